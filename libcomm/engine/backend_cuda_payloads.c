/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads on a device, as launches. */

#include <string.h>

#include "codecs/device_layout.h"
#include "codecs/wire.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

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
  if (it->residual.now) {
    bool owner = step->feedback == LCOMM_FEEDBACK_OWNER;
    encode.residual = it->residual.now;
    encode.before = it->residual.before;
    encode.feedback = owner ? LCOMM_CUDA_FEEDBACK_OWNER : LCOMM_CUDA_FEEDBACK_SEND;
  }
  return check(run, kernels_of(run)->encode(&encode, run->device->stream));
}

static lcomm_status copy_to_host(lcomm_run *run, const lcomm_step *step, const uint8_t *source) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_payload_on_host(slot);
  return copy(run, slot->payload, source, slot->payload_size);
}

static bool is_kept(const lcomm_run *run, const lcomm_step *step) {
  return run->plan->schedule.slots[step->slot].alias.count > 0;
}

/* A payload that leaves from here: the vector's own elements where the schedule
 * keeps them, else a copy. */
static lcomm_status keep_here(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_device_slot *own = &run->device->slots[step->slot];
  bool is_elements = elements && is_kept(run, step);
  own->mapped = is_elements ? elements : own->payload;
  if (elements) {
    lcomm_payload_on_device(&run->slots[step->slot]);
  }
  return elements && !is_elements
             ? copy(run, own->payload, elements, run->slots[step->slot].payload_size)
             : LCOMM_OK;
}

/* May the vector's own elements be exported? Where the schedule keeps them as they are
 * until they are sent, and the peers' streams are not held: they may have to open
 * that memory, which could wait for their streams. Ours they have open. */
static bool may_export_elements(const lcomm_run *run, const lcomm_step *step) {
  return is_kept(run, step) && !(run->data.on_stream && run->comm->progress_thread);
}

/* A payload that peers read on this device: the elements, or where payloads are. */
static lcomm_status export(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_device_slot *own = &run->device->slots[step->slot];
  if (elements && may_export_elements(run, step) &&
      lcomm_device_send_handle(run, step->slot, elements)) {
    own->mapped = elements; /* for readers of our own */
    return LCOMM_OK;
  }
  if (!lcomm_device_send_handle(run, step->slot, own->payload)) {
    return copy_to_host(run, step, elements ? elements : own->payload);
  }
  own->mapped = own->payload;
  return elements ? copy(run, own->payload, elements, run->slots[step->slot].payload_size)
                  : LCOMM_OK;
}

static lcomm_status publish(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  if (!elements) {
    lcomm_payload_on_device(slot);
  }
  if (lcomm_slot_is(slot, LCOMM_SLOT_DIRECT)) {
    return keep_here(run, step, elements);
  }
  if (lcomm_slot_is(slot, LCOMM_SLOT_EXPORTS)) {
    return export(run, step, elements);
  }
  return copy_to_host(run, step, elements ? elements : run->device->slots[step->slot].payload);
}

/* --------------------------------------------------------- DECODE, REDUCE */

static lcomm_status read_payload(lcomm_run *run, uint32_t slot, uint8_t **payload) {
  lcomm_slot_memory *memory = &run->slots[slot];
  *payload = lcomm_device_payload(run, slot);
  if (lcomm_payload_is_on_device(memory)) {
    return LCOMM_OK;
  }
  lcomm_payload_on_device(memory);
  return copy(run, run->device->slots[slot].payload, memory->payload, memory->payload_size);
}

static const uint8_t *at(const lcomm_run *run, uint32_t slot) {
  const uint8_t *mapped = run->device->slots[slot].mapped;
  return mapped ? mapped : run->slots[slot].payload;
}

static lcomm_status decode(lcomm_run *run, const lcomm_step *step, uint8_t *payload) {
  uint64_t count = lcomm_span_count(step->span);
  lcomm_cuda_code code = parts_of(lcomm_run_format(run, step->slot), count, payload);
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
      LCOMM_TRY(read_payload(run, sources[i], &values));
    }
    launch->addresses[i] = values;
    launch->codes[i] = plain_values(values);
  }
  if (run->plan->element_size != sizeof(float) || run->plan->dtype == LCOMM_INT32) {
    return combine(run, step);
  }
  return launch_sum(run, step, step->summed ? (float)run->factor : 1.0f, NULL);
}

/* ----------------------------------------------------------------- top-k */

static lcomm_status topk_encode(lcomm_run *run, const lcomm_encoding *it) {
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
  return check(run, kernels_of(run)->topk_encode(device->topk[it->index], &encode, device->stream));
}

static lcomm_status topk_fetch(lcomm_run *run, const lcomm_step *step, bool *over) {
  const lcomm_run_device *device = run->device;
  *over = false;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_slot_memory *slot = &run->slots[step->slot + i];
    uint64_t size = device->payload_sizes[step->slot + i];
    slot->payload_size = size < slot->capacity ? (size_t)size : slot->capacity;
    lcomm_payload_on_host(slot);
    LCOMM_TRY(copy(run, slot->payload, device->slots[step->slot + i].payload, slot->payload_size));
  }
  return LCOMM_OK;
}

/* Two payloads of one call need scratch memory each. */
typedef enum scratch { FIRST, SECOND } scratch;

/* A payload that is on the host, and is brought to the device as a whole. */
static lcomm_status read_topk(lcomm_run *run, uint32_t slot, lcomm_span span, scratch place,
                              lcomm_cuda_sparse *it) {
  uint32_t entries = 0;
  uint8_t *payload = NULL;
  LCOMM_TRY(read_payload(run, slot, &payload));
  memcpy(&entries, run->slots[slot].payload, sizeof(entries)); /* little-endian, as this machine */
  *it = (lcomm_cuda_sparse){.payload = payload,
                            .size = run->slots[slot].payload_size,
                            .entries = entries,
                            .int8 = lcomm_run_format(run, slot)->variant == LCOMM_TOPK_INT8,
                            .parts = span.parts,
                            .part = span.part,
                            .base_count = span.count,
                            .scratch = run->device->sparse_scratch[place]};
  return LCOMM_OK;
}

static lcomm_status topk_decode(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                float *destination) {
  lcomm_cuda_sparse it;
  LCOMM_TRY(read_topk(run, slot, span, FIRST, &it));
  return check(run, kernels_of(run)->topk_decode(&it, factor, destination, run->device->stream));
}

static lcomm_status topk_add(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                             float *destination) {
  lcomm_cuda_sparse it;
  LCOMM_TRY(read_topk(run, slot, span, FIRST, &it));
  return check(run, kernels_of(run)->topk_add(&it, factor, destination, run->device->stream));
}

/* What was sent, and what of it is applied; *both is NULL for all. */
typedef struct selections {
  lcomm_cuda_sparse sent, applied;
  const lcomm_cuda_sparse *both;
} selections;

static lcomm_status read_selections(lcomm_run *run, uint32_t sent, uint32_t applied,
                                    lcomm_span span, selections *it) {
  it->both = applied == LCOMM_NO_SLOT ? NULL : &it->applied;
  LCOMM_TRY(read_topk(run, sent, span, FIRST, &it->sent));
  return it->both ? read_topk(run, applied, span, SECOND, &it->applied) : LCOMM_OK;
}

static lcomm_status topk_commit(lcomm_run *run, uint32_t sent, uint32_t applied, lcomm_span span,
                                float *residual) {
  selections it;
  LCOMM_TRY(read_selections(run, sent, applied, span, &it));
  return check(run, kernels_of(run)->topk_commit(&it.sent, it.both, residual, run->device->stream));
}

static lcomm_status topk_mask(lcomm_run *run, uint32_t sent, uint32_t applied, lcomm_span span,
                              float *momentum) {
  selections it;
  LCOMM_TRY(read_selections(run, sent, applied, span, &it));
  return check(run, kernels_of(run)->topk_mask(&it.sent, it.both, momentum, run->device->stream));
}

const lcomm_backend_payloads lcomm_backend_cuda_payloads = LCOMM_BACKEND_PAYLOADS_TABLE;
