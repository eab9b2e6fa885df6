/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Encoders of top-k on a device: those of the host tell what they need. */

#include "libcomm/engine/run_device.h"

#include <stdlib.h>

#include "libcomm/engine/exec_internal.h"

/* The numbers of an encoder of the host, for one of the device. */
typedef struct topk_numbers {
  uint64_t *segment_count, *segment_kept, *capacity;
} topk_numbers;

static bool read_numbers(const lcomm_topk *encoder, uint32_t outputs, topk_numbers *numbers) {
  size_t segments = lcomm_topk_segments(encoder);
  uint64_t *all = calloc(2 * segments + outputs + 1, sizeof *all);
  if (!all) {
    return false;
  }
  *numbers = (topk_numbers){all, all + segments, all + 2 * segments};
  for (size_t i = 0; i < segments; i++) {
    lcomm_topk_segment_get(encoder, i, &numbers->segment_count[i], &numbers->segment_kept[i]);
  }
  for (uint32_t i = 0; i < outputs; i++) {
    numbers->capacity[i] = lcomm_topk_output_capacity(encoder, i);
  }
  return true;
}

static lcomm_cuda_topk_shape shape_of(const lcomm_run *run, uint32_t index,
                                      const topk_numbers *numbers) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return (lcomm_cuda_topk_shape){
      .base_count = step->span.count,
      .parts = step->span.parts,
      .part = step->span.part,
      .outputs = step->slot_count,
      .int8 = lcomm_run_format(run, step->slot)->variant == LCOMM_TOPK_INT8,
      .segments = (uint32_t)lcomm_topk_segments(run->codecs.encoders[index]),
      .segment_count = numbers->segment_count,
      .segment_kept = numbers->segment_kept,
      .output_capacity = numbers->capacity};
}

/* Bytes of scratch that the encoders need, or, with memory, the encoders. */
static lcomm_status make_topk(lcomm_run *run, uint32_t index, uint8_t *memory, size_t *size) {
  const lcomm_cuda_kernels *kernels = run->device->table->kernels;
  topk_numbers numbers;
  *size = 0;
  if (!run->codecs.encoders[index]) {
    return LCOMM_OK;
  }
  uint32_t outputs = run->plan->schedule.steps[index].slot_count;
  if (!read_numbers(run->codecs.encoders[index], outputs, &numbers)) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_cuda_topk_shape shape = shape_of(run, index, &numbers);
  *size = lcomm_run_device_aligned(kernels->topk_size(&shape));
  if (memory) {
    run->device->topk[index] = kernels->topk_create(&shape, memory, run->device->stream);
  }
  free(numbers.segment_count);
  return !memory || run->device->topk[index] ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* The encoders of the host have told all they know. */
static void drop_host_encoders(lcomm_run *run) {
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    lcomm_topk_destroy(run->codecs.encoders[i]);
    run->codecs.encoders[i] = NULL;
  }
}

lcomm_status lcomm_run_device_topk_make(lcomm_run *run, uint8_t *memory, size_t *total) {
  *total = 0;
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    size_t size = 0;
    LCOMM_TRY(make_topk(run, i, memory ? memory + *total : NULL, &size));
    *total += size;
  }
  if (memory) {
    drop_host_encoders(run);
  }
  return LCOMM_OK;
}

static size_t scratch_of(const lcomm_run *run, uint32_t slot, uint64_t entries) {
  return run->device->table->kernels->topk_scratch(entries, run->plan->slot_sizes[slot].bound);
}

size_t lcomm_run_device_topk_scratch(const lcomm_run *run) {
  size_t most = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    if (lcomm_run_is_sparse(run, i)) {
      size_t size = scratch_of(run, i, lcomm_run_device_entries(run, i));
      most = size > most ? size : most;
    }
  }
  return lcomm_run_device_aligned(most);
}

/* Positions of their entries have a place of their own. */
uint32_t lcomm_run_device_topk_together(const lcomm_run *run, size_t *size) {
  uint32_t count = 0;
  *size = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count && run->tape; i++) {
    if (lcomm_run_is_sparse(run, i)) {
      size_t here = scratch_of(run, i, 0);
      *size = here > *size ? here : *size;
      count++;
    }
  }
  *size = lcomm_run_device_aligned(*size);
  return count < LCOMM_CUDA_LIST_MAX ? count : LCOMM_CUDA_LIST_MAX;
}

uint32_t lcomm_run_device_topk_commits(const lcomm_run *run, size_t *size) {
  uint32_t count = 0;
  *size = 0;
  for (uint32_t i = 0; i < run->plan->schedule.step_count && run->tape; i++) {
    const lcomm_step *step = &run->plan->schedule.steps[i];
    if (!run->plan->error_feedback || step->commit == LCOMM_NO_SLOT) {
      continue;
    }
    uint64_t entries =
        lcomm_run_is_sparse(run, step->slot) ? lcomm_run_device_entries(run, step->slot) : 0;
    size_t here = (size_t)entries * sizeof(uint32_t);
    *size = here > *size ? here : *size;
    count++;
  }
  *size = lcomm_run_device_aligned(*size);
  return count < LCOMM_CUDA_COMMITS_MAX ? count : LCOMM_CUDA_COMMITS_MAX;
}
