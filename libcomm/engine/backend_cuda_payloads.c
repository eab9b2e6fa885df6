/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads on a device, as launches; those of top-k are in backend_cuda_topk.c. */

#include "libcomm/engine/backend_cuda_payloads.h"
#include "codecs/device_layout.h"
#include "codecs/wire.h"
#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

static lcomm_status check(lcomm_run *run, int error) {
  return lcomm_run_device_check(run, "a computation", error);
}

static const lcomm_cuda_kernels *kernels_of(const lcomm_run *run) {
  return run->device->table->kernels;
}

static lcomm_status copy(lcomm_run *run, void *to, const void *from, size_t size) {
  return run->backend->vectors->copy(run, to, from, size);
}

static lcomm_cuda_code plain_values(const void *values) {
  return (lcomm_cuda_code){.kind = LCOMM_CUDA_F32, .code = (void *)(uintptr_t)values};
}

/* A payload of a slot's format, taken apart. */
static lcomm_cuda_code parts_of(const lcomm_format *format, uint64_t count, uint8_t *payload) {
  lcomm_cuda_code code;
  lcomm_device_layout(format, count, payload, &code);
  return code;
}

/* ---------------------------------------------------------------- ENCODE */

static lcomm_status encode(lcomm_run *run, const lcomm_encoding *it) {
  const lcomm_step *step = it->step;
  uint64_t count = lcomm_span_count(step->span);
  lcomm_cuda_encode encode = {.source = it->source,
                              .weight = it->weight,
                              .n = count,
                              .parts = step->span.parts,
                              .part = step->span.part,
                              .code = parts_of(lcomm_run_format(run, step->slot), count,
                                               lcomm_device_payload(run, step->slot))};
  encode.code.seed = lcomm_run_seed(run, step->slot);
  encode.code.more_seed = run->device->more_seed;
  if (it->residual.now) {
    bool owner = step->feedback == LCOMM_FEEDBACK_OWNER;
    encode.residual = it->residual.now;
    encode.before = it->residual.before;
    encode.feedback = owner ? LCOMM_CUDA_FEEDBACK_OWNER : LCOMM_CUDA_FEEDBACK_SEND;
  }
  return lcomm_device_batch_is_open(run)
             ? lcomm_device_batch_encode(run, &encode)
             : check(run, kernels_of(run)->encode(&encode, run->device->stream));
}

static lcomm_status copy_to_host(lcomm_run *run, const lcomm_step *step, const uint8_t *source) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  uint8_t *own = run->device->slots[step->slot].payload;
  if (!lcomm_device_batch_is_open(run)) {
    lcomm_payload_on_host(slot);
    return copy(run, slot->payload, source, slot->payload_size);
  }
  if (source != own) { /* side by side with others it crosses with them */
    lcomm_payload_on_device(slot);
    LCOMM_TRY(copy(run, own, source, slot->payload_size));
  }
  lcomm_payload_on_host(slot);
  return lcomm_device_batch_out(run, step->slot);
}

/* A payload that peers read on this device, where payloads are. */
static lcomm_status keep_here(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  if (!elements) {
    return LCOMM_OK;
  }
  lcomm_payload_on_device(slot);
  return copy(run, lcomm_device_payload(run, step->slot), elements, slot->payload_size);
}

static bool stays(const lcomm_run *run, uint32_t slot) {
  return lcomm_slot_is(&run->slots[slot], LCOMM_SLOT_EXPORTS) && run->device->share.stays[slot];
}

static lcomm_status publish(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  if (!elements) {
    lcomm_payload_on_device(slot);
  }
  if (stays(run, step->slot)) {
    return keep_here(run, step, elements);
  }
  return copy_to_host(run, step, elements ? elements : run->device->slots[step->slot].payload);
}

/* --------------------------------------------------------- DECODE, REDUCE */

/* From where it is when the lane comes to it. */
static lcomm_status fetch(lcomm_run *run, uint32_t slot) {
  lcomm_cuda_fetch it = {.from = &run->tape->from[slot],
                         .to = lcomm_device_payload(run, slot),
                         .size = run->slots[slot].payload_size};
  return lcomm_device_batch_is_open(run)
             ? lcomm_device_batch_fetch(run, &it)
             : check(run, kernels_of(run)->fetch_list(&it, 1, run->device->stream));
}

lcomm_status lcomm_device_read_payload(lcomm_run *run, uint32_t slot, uint8_t **payload) {
  lcomm_slot_memory *memory = &run->slots[slot];
  *payload = lcomm_device_payload(run, slot);
  if (lcomm_payload_is_on_device(memory)) {
    return LCOMM_OK;
  }
  lcomm_payload_on_device(memory);
  if (lcomm_slot_is(memory, LCOMM_SLOT_FETCHED)) {
    return fetch(run, slot);
  }
  return lcomm_device_batch_is_open(run)
             ? lcomm_device_batch_in(run, slot)
             : copy(run, run->device->slots[slot].payload, memory->payload, memory->payload_size);
}

static const uint8_t *at(const lcomm_run *run, uint32_t slot) {
  return lcomm_payload_is_on_device(&run->slots[slot]) ? lcomm_device_payload(run, slot)
                                                       : run->slots[slot].payload;
}

static lcomm_status decode(lcomm_run *run, const lcomm_step *step, uint8_t *payload) {
  uint64_t count = lcomm_span_count(step->span);
  lcomm_cuda_code code = parts_of(lcomm_run_format(run, step->slot), count, payload);
  if (lcomm_device_batch_is_open(run) && code.kind != LCOMM_CUDA_F32) {
    lcomm_cuda_decode it = {code, lcomm_run_floats(run, step->span.first), count, step->span.parts,
                            step->span.part};
    return lcomm_device_batch_decode(run, &it);
  }
  LCOMM_TRY(lcomm_device_batch_flush(run));
  lcomm_cuda_sum sum = {.sources = &code,
                        .count = 1,
                        .op = LCOMM_CUDA_SUM,
                        .factor = 1.0f,
                        .destination = lcomm_run_floats(run, step->span.first),
                        .n = count,
                        .parts = step->span.parts,
                        .part = step->span.part};
  return check(run, kernels_of(run)->sum(&sum, run->device->stream));
}

static lcomm_cuda_op op_of(const lcomm_run *run) {
  if (run->plan->op == LCOMM_MIN) {
    return LCOMM_CUDA_MIN;
  }
  return run->plan->op == LCOMM_MAX ? LCOMM_CUDA_MAX : LCOMM_CUDA_SUM;
}

static lcomm_status launch_sum(lcomm_run *run, const lcomm_step *step, float factor,
                               const lcomm_cuda_code *encoded) {
  lcomm_cuda_sum sum = {.sources = run->device->launch.codes,
                        .count = step->slot_count,
                        .op = op_of(run),
                        .factor = factor,
                        .destination = lcomm_run_floats(run, step->span.first),
                        .n = step->span.count,
                        .parts = 1,
                        .encoded = encoded};
  return check(run, kernels_of(run)->sum(&sum, run->device->stream));
}

/* Kernels encode the sum as they make it where their sources are plain, or of the kind that they
 * encode. */
static bool encodes_too(const lcomm_run *run, const lcomm_summing *it, lcomm_cuda_code *code) {
  const lcomm_step *next = it->next;
  if (!next || lcomm_run_format(run, next->slot)->codec->id == LCOMM_CODEC_NONE) {
    return false;
  }
  *code = parts_of(lcomm_run_format(run, next->slot), it->step->span.count,
                   lcomm_device_payload(run, next->slot));
  code->seed = lcomm_run_seed(run, next->slot);
  code->more_seed = run->device->more_seed;
  for (uint32_t i = 0; i < it->step->slot_count; i++) {
    lcomm_cuda_kind kind = run->device->launch.codes[i].kind;
    if (kind != LCOMM_CUDA_F32 && kind != code->kind) {
      return false;
    }
  }
  return true;
}

static lcomm_status sum(lcomm_run *run, const lcomm_summing *it, bool *encoded) {
  uint64_t count = lcomm_span_count(it->step->span);
  for (uint32_t i = 0; i < it->step->slot_count; i++) {
    const lcomm_summand *source = &it->summands[i];
    uint8_t *payload = (uint8_t *)(uintptr_t)source->payload; /* only read */
    run->device->launch.codes[i] =
        payload ? parts_of(source->format, count, payload) : plain_values(source->values);
  }
  lcomm_cuda_code code;
  *encoded = encodes_too(run, it, &code);
  LCOMM_TRY(lcomm_device_batch_flush(run));
  return launch_sum(run, it->step, it->factor, *encoded ? &code : NULL);
}

static lcomm_cuda_plain plain_type(lcomm_dtype dtype) {
  switch (dtype) {
  case LCOMM_INT32:
    return LCOMM_CUDA_I32;
  case LCOMM_INT64:
    return LCOMM_CUDA_I64;
  case LCOMM_INT8:
    return LCOMM_CUDA_I8;
  case LCOMM_UINT8:
    return LCOMM_CUDA_U8;
  default:
    return LCOMM_CUDA_F64;
  }
}

static lcomm_status combine(lcomm_run *run, const lcomm_step *step) {
  bool f64 = run->plan->dtype == LCOMM_FLOAT64;
  lcomm_cuda_combine it = {.sources = run->device->launch.addresses,
                           .count = step->slot_count,
                           .type = plain_type(run->plan->dtype),
                           .op = op_of(run),
                           .factor = step->summed && f64 ? run->factor : 1.0,
                           .destination = lcomm_run_at(run, step->span.first),
                           .n = step->span.count};
  return check(run, kernels_of(run)->combine(&it, run->device->stream));
}

static lcomm_status sum_plain(lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  const lcomm_device_launch *launch = &run->device->launch;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint8_t *values = lcomm_run_at(run, step->span.first);
    if (sources[i] != LCOMM_SOURCE_SELF) {
      LCOMM_TRY(lcomm_device_read_payload(run, sources[i], &values));
    }
    launch->addresses[i] = values;
    launch->codes[i] = plain_values(values);
  }
  LCOMM_TRY(lcomm_device_batch_flush(run));
  if (run->plan->element_size != sizeof(float) || run->plan->dtype == LCOMM_INT32) {
    return combine(run, step);
  }
  return launch_sum(run, step, step->summed ? (float)run->factor : 1.0f, NULL);
}

const lcomm_backend_payloads lcomm_backend_cuda_payloads =
    LCOMM_BACKEND_PAYLOADS_TABLE(lcomm_device_read_payload, lcomm_device_topk);
