/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k on a device. How long its payloads are is known when they are made, so an
 * ENCODE has two parts: making them, and bringing them to the host. */

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

/* Two payloads of one call need scratch memory each. */
typedef enum scratch { FIRST, SECOND } scratch;

/* A payload that is on the device and, as a whole, on the host. */
static lcomm_cuda_sparse sparse_of(const lcomm_run *run, uint32_t slot, lcomm_span span,
                                   scratch place) {
  uint32_t entries = 0;
  memcpy(&entries, run->slots[slot].payload, sizeof(entries)); /* little-endian, as this machine */
  return (lcomm_cuda_sparse){.payload = run->device->slots[slot].payload,
                             .size = run->slots[slot].payload_size,
                             .entries = entries,
                             .int8 = lcomm_run_format(run, slot)->variant == LCOMM_TOPK_INT8,
                             .parts = span.parts,
                             .part = span.part,
                             .base_count = span.count,
                             .scratch = run->device->sparse_scratch[place]};
}

static int add_momentum(lcomm_run *run, const lcomm_step *step, float *momentum) {
  const lcomm_run_device *device = run->device;
  return device->table->kernels->momentum(run->feedback->momentum_factor, momentum,
                                          lcomm_run_floats(run, step->span.first), step->span.count,
                                          device->stream);
}

int lcomm_device_encode_sparse(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_run_device *device = run->device;
  bool owner = step->feedback == LCOMM_FEEDBACK_OWNER;
  float *momentum = owner ? NULL : lcomm_run_momentum(run, step);
  int error = momentum ? add_momentum(run, step, momentum) : 0;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    device->launch.outputs[i] = device->slots[step->slot + i].payload;
    lcomm_payload_on_device(&run->slots[step->slot + i]);
  }
  lcomm_cuda_topk_encode encode = {.base = lcomm_run_floats(run, step->span.first),
                                   .residual = lcomm_run_residual(run, step),
                                   .hold = step->feedback == LCOMM_FEEDBACK_HOLD,
                                   .owner = owner,
                                   .weight = 1.0f / (float)run->factor,
                                   .payload = device->launch.outputs,
                                   .payload_size = device->payload_sizes + step->slot};
  return error ? error
               : device->table->kernels->topk_encode(device->topk[index], &encode, device->stream);
}

int lcomm_device_copy_sparse(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_run_device *device = run->device;
  int error = 0;
  for (uint32_t i = 0; i < step->slot_count && !error; i++) {
    lcomm_slot_memory *memory = &run->slots[step->slot + i];
    uint64_t size = device->payload_sizes[step->slot + i];
    memory->payload_size = size < memory->capacity ? (size_t)size : memory->capacity;
    lcomm_payload_on_host(memory);
    error = device->table->copy(memory->payload, device->slots[step->slot + i].payload,
                                memory->payload_size, device->stream);
  }
  return error;
}

int lcomm_device_mask_sent(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_run_device *device = run->device;
  float *momentum = step->feedback == LCOMM_FEEDBACK_OWNER ? NULL : lcomm_run_momentum(run, step);
  if (!momentum || step->feedback == LCOMM_FEEDBACK_HOLD) {
    return 0;
  }
  lcomm_cuda_sparse sent = sparse_of(run, step->slot, step->span, FIRST);
  return device->table->kernels->topk_mask(&sent, NULL, momentum, device->stream);
}

int lcomm_device_commit(lcomm_run *run, const lcomm_step *step) {
  const lcomm_run_device *device = run->device;
  lcomm_cuda_sparse sent = sparse_of(run, step->commit, step->span, FIRST), applied = {0};
  bool dense = !lcomm_run_is_sparse(run, step->slot); /* it applies everything that was sent */
  if (!dense) {
    applied = sparse_of(run, step->slot, step->span, SECOND);
  }
  const lcomm_cuda_sparse *both = dense ? NULL : &applied;
  float *momentum = lcomm_run_momentum(run, step);
  int error = device->table->kernels->topk_commit(&sent, both, lcomm_run_residual(run, step),
                                                  device->stream);
  if (error || !momentum) {
    return error;
  }
  return device->table->kernels->topk_mask(&sent, both, momentum, device->stream);
}

int lcomm_device_decode_sparse(lcomm_run *run, const lcomm_step *step) {
  const lcomm_run_device *device = run->device;
  int error = lcomm_device_need(run, step->slot);
  lcomm_cuda_sparse it = sparse_of(run, step->slot, step->span, FIRST);
  return error ? error
               : device->table->kernels->topk_decode(
                     &it, 1.0f, lcomm_run_floats(run, step->span.first), device->stream);
}

static bool has_self(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  uint32_t i = 0;
  while (i < step->slot_count && sources[i] != LCOMM_SOURCE_SELF) {
    i++;
  }
  return i < step->slot_count;
}

/* Selections, onto the rank's own part where that is a source: it is whole. */
int lcomm_device_reduce_sparse(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  const lcomm_run_device *device = run->device;
  const lcomm_cuda_kernels *kernels = device->table->kernels;
  float *destination = lcomm_run_floats(run, step->span.first);
  bool self = has_self(run, step);
  int error = self ? lcomm_device_load(device, destination, LCOMM_FLOAT32, step->span.count, factor,
                                       destination)
                   : 0;
  for (uint32_t i = 0; i < step->slot_count && !error; i++) {
    if (sources[i] == LCOMM_SOURCE_SELF) {
      continue;
    }
    error = lcomm_device_need(run, sources[i]);
    lcomm_cuda_sparse it = sparse_of(run, sources[i], step->span, FIRST);
    if (!error) {
      error = i == 0 && !self ? kernels->topk_decode(&it, factor, destination, device->stream)
                              : kernels->topk_add(&it, factor, destination, device->stream);
    }
  }
  return error;
}
