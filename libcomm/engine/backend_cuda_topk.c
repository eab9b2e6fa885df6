/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads of top-k on a device. How many entries one has is in its first word, there; how long
 * those are that were made here, kernels write to pinned memory. */

#include "libcomm/engine/backend_cuda_payloads.h"
#include "libcomm/engine/device_batch.h"

static lcomm_status check(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

static const lcomm_cuda_kernels *kernels_of(const lcomm_run *run) {
  return run->device->table->kernels;
}

/* As a whole: nobody here knows how much of it is used. */
static lcomm_status bring_to_host(lcomm_run *run, uint32_t index) {
  lcomm_slot_memory *slot = &run->slots[index];
  lcomm_payload_on_host(slot);
  if (lcomm_device_batch_is_open(run)) {
    slot->payload_size = slot->capacity;
    return lcomm_device_batch_out(run, index);
  }
  return run->backend->vectors->copy(run, slot->payload, run->device->slots[index].payload,
                                     slot->capacity);
}

static lcomm_status bring_all_to_host(lcomm_run *run, const lcomm_step *step) {
  lcomm_status status = LCOMM_OK;
  for (uint32_t i = 0; i < step->slot_count && status == LCOMM_OK; i++) {
    status = bring_to_host(run, step->slot + i);
  }
  return status;
}

/* In few copies, where a tape is played. */
static lcomm_status publish(lcomm_run *run, const lcomm_step *step) {
  if (!run->device->batch) {
    return bring_all_to_host(run, step);
  }
  lcomm_device_batch_open(run);
  lcomm_status status = bring_all_to_host(run, step);
  return lcomm_first_failure(status, lcomm_device_batch_close(run));
}

lcomm_status lcomm_device_topk_encode(lcomm_run *run, const lcomm_encoding *it) {
  const lcomm_step *step = it->step;
  lcomm_run_device *device = run->device;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    device->launch.outputs[i] = device->slots[step->slot + i].payload;
    lcomm_payload_on_device(&run->slots[step->slot + i]);
  }
  lcomm_cuda_topk_encode encode = {.base = it->source,
                                   .residual = it->residual.now,
                                   .before = it->residual.before,
                                   .hold = step->feedback == LCOMM_FEEDBACK_HOLD,
                                   .owner = step->feedback == LCOMM_FEEDBACK_OWNER,
                                   .weight = it->weight,
                                   .payload = device->launch.outputs,
                                   .payload_size = device->payload_sizes + step->slot};
  LCOMM_TRY(
      check(run, kernels_of(run)->topk_encode(device->topk[it->index], &encode, device->stream)));
  return publish(run, step);
}

void lcomm_device_topk_sizes(lcomm_run *run, const lcomm_step *step) {
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_slot_memory *slot = &run->slots[step->slot + i];
    uint64_t size = run->device->payload_sizes[step->slot + i];
    slot->payload_size = size < slot->capacity ? (size_t)size : slot->capacity;
  }
}

/* A payload for kernels, which read there how many entries it has. */
static lcomm_status read_topk(lcomm_run *run, uint32_t slot, lcomm_span span, void *scratch,
                              lcomm_cuda_sparse *it) {
  uint8_t *payload = NULL;
  LCOMM_TRY(lcomm_device_read_payload(run, slot, &payload));
  *it = (lcomm_cuda_sparse){.payload = payload,
                            .size = run->slots[slot].capacity,
                            .entries = lcomm_run_device_entries(run, slot),
                            .int8 = lcomm_run_format(run, slot)->variant == LCOMM_TOPK_INT8,
                            .parts = span.parts,
                            .part = span.part,
                            .base_count = span.count,
                            .scratch = scratch};
  return LCOMM_OK;
}

/* Of the stream that it is read in. */
static void *scratch_of(const lcomm_run *run) {
  return run->device->sparse.alone[run->device->lane];
}

lcomm_status lcomm_device_topk_decode(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                      float *destination) {
  lcomm_cuda_sparse it;
  LCOMM_TRY(read_topk(run, slot, span, scratch_of(run), &it));
  if (lcomm_device_batch_is_open(run)) {
    lcomm_cuda_topk_decode place = {.payload = it, .base = destination};
    return lcomm_device_batch_place(run, &place, factor);
  }
  return check(run, kernels_of(run)->topk_decode(&it, factor, destination, run->device->stream));
}

lcomm_status lcomm_device_topk_add(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                   float *destination) {
  lcomm_cuda_sparse it;
  LCOMM_TRY(read_topk(run, slot, span, scratch_of(run), &it));
  return lcomm_device_batch_is_open(run)
             ? lcomm_device_batch_summand(run, &it, factor, destination)
             : check(run, kernels_of(run)->topk_add(&it, factor, destination, run->device->stream));
}

/* The result is at NULL where that is dense. */
static lcomm_status read_both(lcomm_run *run, const lcomm_applying *it, lcomm_cuda_sparse *result,
                              lcomm_cuda_sparse *sent) {
  *result = (lcomm_cuda_sparse){.payload = NULL};
  LCOMM_TRY(read_topk(run, it->sent, it->span, scratch_of(run), sent));
  return it->slot == LCOMM_NO_SLOT
             ? LCOMM_OK
             : read_topk(run, it->slot, it->span, run->device->sparse.applied, result);
}

/* One after the other, without a list. */
static int apply(const lcomm_run_device *device, const lcomm_cuda_sparse *result,
                 const lcomm_cuda_sparse *sent, const lcomm_applying *it) {
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  const lcomm_cuda_sparse *applied = result->payload ? result : NULL;
  int error = applied ? kernels->topk_decode(applied, 1.0f, it->destination, device->stream) : 0;
  if (error == 0) {
    error = kernels->topk_commit(sent, applied, it->residual, device->stream);
  }
  return error == 0 && it->momentum
             ? kernels->topk_mask(sent, applied, it->momentum, device->stream)
             : error;
}

lcomm_status lcomm_device_topk_apply(lcomm_run *run, const lcomm_applying *it) {
  lcomm_cuda_topk_decode place = {
      .base = it->destination, .residual = it->residual, .momentum = it->momentum};
  LCOMM_TRY(read_both(run, it, &place.payload, &place.sent));
  return lcomm_device_batch_is_open(run)
             ? lcomm_device_batch_place(run, &place, 1.0f)
             : check(run, apply(run->device, &place.payload, &place.sent, it));
}

lcomm_status lcomm_device_topk_mask(lcomm_run *run, uint32_t sent, lcomm_span span,
                                    float *momentum) {
  lcomm_cuda_sparse it;
  LCOMM_TRY(read_topk(run, sent, span, scratch_of(run), &it));
  return check(run, kernels_of(run)->topk_mask(&it, NULL, momentum, run->device->stream));
}
