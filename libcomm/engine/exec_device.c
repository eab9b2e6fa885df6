/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Computations of the executor on a device: what exec_compute.c and exec_sum.c do
 * on the host, as launches. */

#include "codecs/device_layout.h"
#include "codecs/wire.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

lcomm_status lcomm_run_device_failed(lcomm_run *run, const char *what, int error) {
  const lcomm_run_device *device = run->device;
  return lcomm_fail(run->comm, LCOMM_ERR_SYSTEM,
                    "%s #%u: %s on device %d failed: %s. Other work of the program may have broken "
                    "the device; run it under compute-sanitizer.",
                    lcomm_collective_name(run->plan->collective), run->sequence, what,
                    device->ordinal, device->table->explain(error));
}

/* The elements of a span as the kernels see them. */
static lcomm_cuda_code plain_values(void *values) {
  return (lcomm_cuda_code){.kind = LCOMM_CUDA_F32, .code = values};
}

int lcomm_device_need(lcomm_run *run, uint32_t slot) {
  lcomm_run_device *device = run->device;
  lcomm_slot_memory *memory = &run->slots[slot];
  if (lcomm_payload_is_on_device(memory)) {
    return 0;
  }
  lcomm_payload_on_device(memory);
  return device->table->copy(device->slots[slot].payload, memory->payload, memory->payload_size,
                             device->stream);
}

/* The payload of a slot, taken apart. */
static lcomm_cuda_code parts_of(const lcomm_run *run, uint32_t slot, uint64_t count) {
  lcomm_cuda_code code;
  lcomm_device_layout(lcomm_run_format(run, slot), count, lcomm_device_payload(run, slot), &code);
  return code;
}

/* ---------------------------------------------------------------- ENCODE */

/* Are payloads of this slot the elements of the vector, in a row? */
static bool is_copy(const lcomm_run *run, const lcomm_step *step) {
  bool none = lcomm_run_format(run, step->slot)->codec->id == LCOMM_CODEC_NONE;
  return lcomm_run_is_plain(run) || (none && step->span.parts == 1);
}

static int launch_encoder(lcomm_run *run, const lcomm_step *step) {
  float *residual = lcomm_run_residual(run, step);
  bool owner = step->feedback == LCOMM_FEEDBACK_OWNER,
       sends = step->feedback == LCOMM_FEEDBACK_SEND;
  uint64_t count = lcomm_span_count(step->span);
  lcomm_cuda_encode encode = {.source = lcomm_run_floats(run, step->span.first),
                              .weight = 1.0f / (float)run->factor,
                              .n = count,
                              .parts = step->span.parts,
                              .part = step->span.part,
                              .code = parts_of(run, step->slot, count)};
  encode.code.seed = lcomm_run_seed(run, step->slot);
  if (residual && (owner || sends)) {
    encode.residual = residual;
    encode.feedback = owner ? LCOMM_CUDA_FEEDBACK_OWNER : LCOMM_CUDA_FEEDBACK_SEND;
  }
  return run->device->table->kernels->encode(&encode, run->device->stream);
}

static int copy_to_host(lcomm_run *run, const lcomm_step *step, const uint8_t *source) {
  lcomm_slot_memory *memory = &run->slots[step->slot];
  lcomm_payload_on_host(memory);
  return run->device->table->copy(memory->payload, source, memory->payload_size,
                                  run->device->stream);
}

/* A payload that leaves from here: the vector's own elements where the schedule
 * keeps them, else a copy. */
static int keep_here(lcomm_run *run, const lcomm_step *step) {
  const lcomm_run_device *device = run->device;
  uint8_t *payload = device->slots[step->slot].payload;
  const uint8_t *elements = lcomm_run_at(run, step->span.first);
  bool copies = is_copy(run, step), alias = run->plan->schedule.slots[step->slot].alias.count > 0;
  device->slots[step->slot].mapped = copies && alias ? elements : payload;
  if (copies) {
    lcomm_payload_on_device(&run->slots[step->slot]);
  }
  if (!copies || alias) {
    return 0;
  }
  return device->table->copy(payload, elements, run->slots[step->slot].payload_size,
                             device->stream);
}

/* May the vector's own elements be exported? Where the schedule keeps them as they are
 * until they are sent, and the peers' streams are not held: they may have to open
 * that memory, which could wait for their streams. Ours they have open. */
static bool may_export_elements(const lcomm_run *run, const lcomm_step *step) {
  bool kept = run->plan->schedule.slots[step->slot].alias.count > 0;
  return kept && is_copy(run, step) && !(run->device->on_stream && run->comm->progress_thread);
}

/* A payload that peers read on this device: the elements, or where payloads are. */
static int export(lcomm_run *run, const lcomm_step *step) {
  lcomm_run_device *device = run->device;
  uint8_t *payload = device->slots[step->slot].payload;
  const uint8_t *elements = lcomm_run_at(run, step->span.first);
  bool copies = is_copy(run, step);
  if (may_export_elements(run, step) && lcomm_device_send_handle(run, step->slot, elements)) {
    device->slots[step->slot].mapped = elements; /* for readers of our own */
    return 0;
  }
  if (!lcomm_device_send_handle(run, step->slot, payload)) {
    return copy_to_host(run, step, copies ? elements : payload);
  }
  device->slots[step->slot].mapped = payload;
  return copies ? device->table->copy(payload, elements, run->slots[step->slot].payload_size,
                                      device->stream)
                : 0;
}

static int encode(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_run_device *device = run->device;
  if (lcomm_run_is_sparse(run, step->slot)) {
    return lcomm_device_encode_sparse(run, index);
  }
  lcomm_slot_memory *memory = &run->slots[step->slot];
  int error = 0;
  memory->payload_size = memory->capacity;
  if (!is_copy(run, step)) {
    error = memory->state == LCOMM_PAYLOAD_ENCODED ? 0 : launch_encoder(run, step);
    lcomm_payload_on_device(memory);
  }
  if (!error && lcomm_slot_is(memory, LCOMM_SLOT_DIRECT)) {
    return keep_here(run, step);
  }
  if (error || lcomm_slot_is(memory, LCOMM_SLOT_EXPORTS)) {
    return error ? error : export(run, step);
  }
  return copy_to_host(run, step,
                      is_copy(run, step) ? lcomm_run_at(run, step->span.first)
                                         : device->slots[step->slot].payload);
}

/* --------------------------------------------------------- DECODE, REDUCE */

static int commit(lcomm_run *run, const lcomm_step *step) {
  bool commits = lcomm_run_residual(run, step) && step->commit != LCOMM_NO_SLOT;
  return commits ? lcomm_device_commit(run, step) : 0;
}

static int decode(lcomm_run *run, const lcomm_step *step) {
  const lcomm_run_device *device = run->device;
  const lcomm_slot_memory *memory = &run->slots[step->slot];
  uint64_t count = lcomm_span_count(step->span);
  int error = 0;
  if (lcomm_run_is_sparse(run, step->slot)) {
    error = lcomm_device_decode_sparse(run, step);
    return error ? error : commit(run, step);
  }
  if (is_copy(run, step)) {
    const uint8_t *mapped = device->slots[step->slot].mapped;
    error =
        device->table->copy(lcomm_run_at(run, step->span.first), mapped ? mapped : memory->payload,
                            count * run->plan->element_size, device->stream);
    return error ? error : commit(run, step);
  }
  error = lcomm_device_need(run, step->slot);
  lcomm_cuda_code code = parts_of(run, step->slot, count);
  lcomm_cuda_sum sum = {.sources = &code,
                        .count = 1,
                        .op = LCOMM_CUDA_SUM,
                        .factor = 1.0f,
                        .destination = lcomm_run_floats(run, step->span.first),
                        .n = count,
                        .parts = step->span.parts,
                        .part = step->span.part};
  error = error ? error : device->table->kernels->sum(&sum, device->stream);
  return error ? error : commit(run, step);
}

static lcomm_cuda_op op_of(const lcomm_run *run) {
  if (run->plan->op == LCOMM_MIN) {
    return LCOMM_CUDA_MIN;
  }
  return run->plan->op == LCOMM_MAX ? LCOMM_CUDA_MAX : LCOMM_CUDA_SUM;
}

/* All sources of a sum on the device; those that are this rank's own are `own`. */
static int gather_sources(lcomm_run *run, const lcomm_step *step, float *own) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  lcomm_run_device *device = run->device;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    bool self = sources[i] == LCOMM_SOURCE_SELF;
    int error = self ? 0 : lcomm_device_need(run, sources[i]);
    if (error) {
      return error;
    }
    bool plain = self || lcomm_run_is_plain(run);
    void *values = self ? (void *)own : lcomm_device_payload(run, sources[i]);
    device->launch.addresses[i] = values;
    device->launch.codes[i] =
        plain ? plain_values(values) : parts_of(run, sources[i], lcomm_span_count(step->span));
  }
  return 0;
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

static int combine(lcomm_run *run, const lcomm_step *step, float *destination) {
  bool f64 = run->plan->dtype == LCOMM_FLOAT64;
  lcomm_cuda_combine it = {.sources = run->device->launch.addresses,
                           .count = step->slot_count,
                           .type = plain_type(run->plan->dtype),
                           .op = op_of(run),
                           .factor = step->summed && f64 ? run->factor : 1.0,
                           .destination = destination,
                           .n = step->span.count};
  return run->device->table->kernels->combine(&it, run->device->stream);
}

/* Is the sum encoded as it is made? By kernels whose sources are plain, or of the
 * kind that they encode. */
static bool encodes_too(lcomm_run *run, const lcomm_step *step, lcomm_cuda_code *code) {
  const lcomm_step *next = lcomm_run_is_plain(run) ? NULL : lcomm_exec_encode_after(run, step);
  if (!next || run->plan->op != LCOMM_SUM || is_copy(run, next)) {
    return false;
  }
  *code = parts_of(run, next->slot, step->span.count);
  code->seed = lcomm_run_seed(run, next->slot);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_cuda_kind kind = run->device->launch.codes[i].kind;
    if (kind != LCOMM_CUDA_F32 && kind != code->kind) {
      return false;
    }
  }
  lcomm_payload_encoded(&run->slots[next->slot]);
  return true;
}

/* My own part joins unquantised. Its momentum is not masked: it is that of a sum that travels
 * exactly. */
static int join(lcomm_run *run, const lcomm_step *step, float *destination) {
  const lcomm_run_device *device = run->device;
  float *residual = lcomm_run_residual(run, step), *momentum = lcomm_run_momentum(run, step);
  int error = 0;
  if (step->feedback != LCOMM_FEEDBACK_KEEP) {
    return 0;
  }
  if (momentum) {
    error = device->table->kernels->momentum(run->feedback->momentum_factor, momentum, destination,
                                             step->span.count, device->stream);
  }
  return error || !residual ? error
                            : device->table->kernels->fold(destination, residual, step->span.count,
                                                           device->stream);
}

/* Is it a sum of what top-k has selected? */
static bool sums_sparse(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  uint32_t other = sources[0] == LCOMM_SOURCE_SELF && step->slot_count > 1 ? 1 : 0;
  return sources[other] != LCOMM_SOURCE_SELF && lcomm_run_is_sparse(run, sources[other]);
}

static int reduce(lcomm_run *run, const lcomm_step *step) {
  lcomm_run_device *device = run->device;
  float factor = step->summed ? (float)run->factor : 1.0f;
  float *destination = lcomm_run_floats(run, step->span.first);
  int error = join(run, step, destination);
  if (!error && sums_sparse(run, step)) {
    return lcomm_device_reduce_sparse(run, step, factor);
  }
  error = error ? error : gather_sources(run, step, destination);
  if (error) {
    return error;
  }
  if (run->plan->element_size != sizeof(float) || run->plan->dtype == LCOMM_INT32) {
    return combine(run, step, destination);
  }
  lcomm_cuda_sum sum = {.sources = device->launch.codes,
                        .count = step->slot_count,
                        .op = op_of(run),
                        .factor = factor,
                        .destination = destination,
                        .n = step->span.count,
                        .parts = 1};
  lcomm_cuda_code code;
  if (encodes_too(run, step, &code)) {
    sum.encoded = &code;
  }
  return device->table->kernels->sum(&sum, device->stream);
}

int lcomm_device_compute(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->kind == LCOMM_STEP_ENCODE) {
    return encode(run, index);
  }
  return step->kind == LCOMM_STEP_DECODE ? decode(run, step) : reduce(run, step);
}
