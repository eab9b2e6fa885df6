/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Computations of the executor: ENCODE and DECODE over the codecs. */

#include <string.h>

#include "codecs/codec_residual.h"
#include "codecs/wire.h"
#include "kernels/stripe.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"

/* A span as runs of neighbouring elements: `local` counts over the span's own
 * elements, `global` from the start of its range. */
typedef struct span_run {
  uint64_t local, global, count;
} span_run;

static bool next_run(lcomm_span span, span_run *run) {
  uint64_t total = lcomm_span_count(span);
  run->local += run->count;
  if (run->local >= total) {
    return false;
  }
  uint64_t left = total - run->local;
  run->count = span.parts == 1 || left < LCOMM_TILE ? left : LCOMM_TILE;
  run->global = lcomm_stripe_global(run->local, span.parts, span.part);
  return true;
}

/* ---------------------------------------------------------------- ENCODE */

void lcomm_exec_finish_header(lcomm_run *run, uint32_t slot) {
  const lcomm_format *format = lcomm_run_format(run, slot);
  lcomm_slot_memory *memory = &run->slots[slot];
  uint64_t count = run->plan->schedule.slots[slot].count;
  memory->wire_size = memory->payload_size;
  if (format->zstd) {
    memory->wire_size =
        lcomm_lossless_encode(run->codecs.lossless[lcomm_run_stage(run, slot)], run->comm->kernels,
                              memory->payload, memory->payload_size, count, memory->wire);
  }
  lcomm_wire_header header = lcomm_exec_header(run, format, count, memory->wire_size);
  if (run->plan->checksum) {
    header.checksum = lcomm_wire_checksum(memory->wire, memory->wire_size);
  }
  lcomm_wire_pack(&header, memory->header);
  if (memory->state == LCOMM_PAYLOAD_EXPORTED) {
    lcomm_wire_set_handle(memory->header);
  }
}

lcomm_status lcomm_exec_unpack(lcomm_run *run, uint32_t slot, const char **why) {
  lcomm_slot_memory *memory = &run->slots[slot];
  double begin = lcomm_clock_s();
  lcomm_status status =
      lcomm_lossless_decode(run->codecs.lossless[lcomm_run_stage(run, slot)], run->comm->kernels,
                            memory->wire, memory->wire_size, run->plan->schedule.slots[slot].count,
                            memory->payload, memory->capacity, &memory->payload_size, why);
  run->stats.decode_s += lcomm_clock_s() - begin;
  return status;
}

static void encode_dense(lcomm_run *run, const lcomm_step *step) {
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  const lcomm_kernels *kernels = run->comm->kernels;
  lcomm_slot_memory *memory = &run->slots[step->slot];
  const float *source = lcomm_run_floats(run, step->span.first);
  float *residual = lcomm_run_residual(run, step);
  uint64_t count = lcomm_span_count(step->span), seed = lcomm_run_seed(run, step->slot);
  bool is_made = lcomm_slot_is(memory, LCOMM_SLOT_ALIAS) || memory->state == LCOMM_PAYLOAD_ENCODED;
  memory->payload_size = memory->capacity;
  lcomm_payload_made(memory);
  if (is_made) {
    return;
  }
  if (lcomm_run_is_plain(run)) {
    memcpy(memory->payload, source, count * run->plan->element_size);
    return;
  }
  for (span_run r = {0}; next_run(step->span, &r);) {
    const float *here = source + r.global;
    lcomm_range range = {count, r.local, r.count};
    if (residual && step->feedback == LCOMM_FEEDBACK_SEND) {
      lcomm_residual_encode(format, kernels, here, residual + r.global, range, seed,
                            memory->payload);
    } else if (residual && step->feedback == LCOMM_FEEDBACK_OWNER) {
      lcomm_residual_encode_owner(format, kernels, here, residual + r.global,
                                  1.0f / (float)run->factor, range, seed, memory->payload);
    } else {
      lcomm_encode(format, kernels, here, range, seed, memory->payload);
    }
  }
}

static void encode_sparse(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_kernels *kernels = run->comm->kernels;
  const float *base = lcomm_run_floats(run, step->span.first);
  float *residual = lcomm_run_residual(run, step);
  lcomm_slot_memory *memory = &run->slots[step->slot];
  if (step->feedback == LCOMM_FEEDBACK_OWNER) {
    lcomm_topk_encode_owner(run->codecs.encoders[index], kernels, base, residual,
                            1.0f / (float)run->factor, memory->payload, &memory->payload_size);
    return;
  }
  float *momentum = lcomm_run_momentum(run, step);
  if (momentum) { /* the vector is overwritten by the result later on */
    kernels->ef.f32_momentum(run->feedback->momentum_factor, momentum,
                             lcomm_run_floats(run, step->span.first), step->span.count);
  }
  lcomm_topk_keep keep =
      step->feedback == LCOMM_FEEDBACK_HOLD ? LCOMM_TOPK_HOLD : LCOMM_TOPK_RELEASE;
  lcomm_topk_encode(run->codecs.encoders[index], kernels, base, residual, keep,
                    run->scratch.payloads, run->scratch.sizes);
  if (momentum && keep == LCOMM_TOPK_RELEASE) {
    lcomm_topk_mask(lcomm_run_format(run, step->slot), run->scratch.payloads[0], NULL,
                    step->span.parts, step->span.part, momentum);
  }
}

static void encode(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (!lcomm_run_is_sparse(run, step->slot)) {
    encode_dense(run, step);
    lcomm_exec_finish_header(run, step->slot);
    return;
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->scratch.payloads[i] = run->slots[step->slot + i].payload;
  }
  encode_sparse(run, index);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (step->feedback != LCOMM_FEEDBACK_OWNER) {
      run->slots[step->slot + i].payload_size = run->scratch.sizes[i];
    }
    lcomm_payload_made(&run->slots[step->slot + i]);
    lcomm_exec_finish_header(run, step->slot + i);
  }
}

/* ---------------------------------------------------------------- DECODE */

static void commit(lcomm_run *run, const lcomm_step *step) {
  float *residual = lcomm_run_residual(run, step);
  if (!residual || step->commit == LCOMM_NO_SLOT) {
    return;
  }
  /* A dense result applies everything that was sent. */
  const uint8_t *applied =
      lcomm_run_is_sparse(run, step->slot) ? run->slots[step->slot].payload : NULL;
  lcomm_topk_commit(lcomm_run_format(run, step->commit), run->slots[step->commit].payload, applied,
                    step->span.parts, step->span.part, residual);
  float *momentum = lcomm_run_momentum(run, step);
  if (momentum) {
    lcomm_topk_mask(lcomm_run_format(run, step->commit), run->slots[step->commit].payload, applied,
                    step->span.parts, step->span.part, momentum);
  }
}

static void decode(lcomm_run *run, const lcomm_step *step) {
  const lcomm_slot_memory *memory = &run->slots[step->slot];
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  float *destination = lcomm_run_floats(run, step->span.first);
  LCOMM_ASSERT(lcomm_payload_is_readable(memory));
  if (lcomm_slot_is(memory, LCOMM_SLOT_ALIAS)) {
    return;
  }
  if (lcomm_run_is_plain(run)) {
    memcpy(destination, memory->payload, step->span.count * run->plan->element_size);
    return;
  }
  if (lcomm_run_is_sparse(run, step->slot)) {
    lcomm_topk_decode(format, memory->payload, step->span.count, step->span.parts, step->span.part,
                      1.0f, destination);
  } else {
    uint64_t count = lcomm_span_count(step->span);
    for (span_run r = {0}; next_run(step->span, &r);) {
      lcomm_range range = {count, r.local, r.count};
      lcomm_decode(format, run->comm->kernels, memory->payload, range, 1.0f,
                   destination + r.global);
    }
  }
  commit(run, step);
}

static void trace_compute(const lcomm_run *run, uint32_t index, double begin_s, double end_s) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  uint32_t slot = step->kind == LCOMM_STEP_REDUCE
                      ? run->plan->schedule.sources[step->sources + step->slot_count - 1]
                      : step->slot;
  const lcomm_format *format = slot == LCOMM_SOURCE_SELF ? NULL : lcomm_run_format(run, slot);
  lcomm_trace_event event = {.kind = (lcomm_trace_kind)step->kind,
                             .begin_s = begin_s,
                             .end_s = end_s,
                             .operation = lcomm_collective_name(run->plan->collective),
                             .sequence = run->sequence,
                             .step = index,
                             .peer = -1,
                             .bytes = lcomm_span_count(step->span) * run->plan->element_size,
                             .name = run->name,
                             .codec = format ? format->codec->name : NULL};
  lcomm_trace_add(run->comm->trace, &event);
}

void lcomm_exec_count_compute(lcomm_run *run, uint32_t index, double begin_s, double end_s) {
  bool encodes = run->plan->schedule.steps[index].kind == LCOMM_STEP_ENCODE;
  *(encodes ? &run->stats.encode_s : &run->stats.decode_s) += end_s - begin_s;
  if (run->comm->trace) {
    trace_compute(run, index, begin_s, end_s);
  }
}

lcomm_status lcomm_exec_compute(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  double begin = lcomm_clock_s();
  uint32_t environment = lcomm_fp_enter();
  lcomm_status status = LCOMM_OK;
  if (step->kind == LCOMM_STEP_ENCODE) {
    encode(run, index);
  } else if (step->kind == LCOMM_STEP_DECODE) {
    decode(run, step);
  } else {
    status = lcomm_exec_reduce(run, step);
  }
  lcomm_fp_leave(environment);
  lcomm_exec_release(run, step);
  lcomm_exec_count_compute(run, index, begin, lcomm_clock_s());
  return status;
}
