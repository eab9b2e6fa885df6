/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Computations of the executor: ENCODE, DECODE and REDUCE over the codecs. */

#include <string.h>

#include "codecs/residual.h"
#include "codecs/wire.h"
#include "kernels/stripe.h"
#include "libcomm/base/clock.h"
#include "libcomm/exec.h"

static const lcomm_codec *codec_of(const lcomm_run *run, uint32_t slot) {
  return run->plan->stages[run->plan->schedule.slots[slot].stage].codec;
}

static bool is_sparse(const lcomm_run *run, uint32_t slot) {
  return codec_of(run, slot)->id == LCOMM_CODEC_TOPK;
}

/* The residual of a step's span; NULL when the operation keeps none or the
 * step has no part in error feedback. */
static float *residual_of(const lcomm_run *run, const lcomm_step *step) {
  if (!run->residual || step->feedback == LCOMM_FEEDBACK_NONE) {
    return NULL;
  }
  return run->residual + (step->span.first - run->feedback_first);
}

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

static void write_header(lcomm_run *run, uint32_t slot) {
  lcomm_slot_memory *memory = &run->slots[slot];
  lcomm_wire_header header = {
      .version = LCOMM_WIRE_VERSION,
      .codec = (uint8_t)codec_of(run, slot)->id,
      .dtype = (uint8_t)run->plan->dtype,
      .flags = run->plan->checksum ? LCOMM_WIRE_CHECKSUM : 0,
      .parameters = (uint32_t)run->plan->hash,
      .sequence = run->sequence,
      .count = run->plan->schedule.slots[slot].count,
      .payload_size = memory->payload_size,
  };
  if (run->plan->checksum) {
    header.checksum = lcomm_wire_checksum(memory->payload, memory->payload_size);
  }
  lcomm_wire_pack(&header, memory->header);
}

static void encode_dense(lcomm_run *run, const lcomm_step *step) {
  const lcomm_codec *codec = codec_of(run, step->slot);
  const lcomm_kernels *kernels = run->comm->kernels;
  lcomm_slot_memory *memory = &run->slots[step->slot];
  const float *source = run->vector + step->span.first;
  float *residual = residual_of(run, step);
  uint64_t count = lcomm_span_count(step->span);
  memory->payload_size = memory->capacity;
  if (memory->shares_vector) {
    return;
  }
  for (span_run r = {0}; next_run(step->span, &r);) {
    const float *here = source + r.global;
    if (residual && step->feedback == LCOMM_FEEDBACK_SEND) {
      lcomm_residual_encode(codec, kernels, here, residual + r.global, count, r.local, r.count,
                            memory->payload);
    } else if (residual && step->feedback == LCOMM_FEEDBACK_OWNER) {
      lcomm_residual_encode_owner(codec, kernels, here, residual + r.global, 1.0f / run->factor,
                                  count, r.local, r.count, memory->payload);
    } else {
      codec->encode(kernels, here, count, r.local, r.count, memory->payload);
    }
  }
}

static void encode_sparse(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_kernels *kernels = run->comm->kernels;
  const float *base = run->vector + step->span.first;
  float *residual = residual_of(run, step);
  lcomm_slot_memory *memory = &run->slots[step->slot];
  if (step->feedback == LCOMM_FEEDBACK_OWNER) {
    lcomm_topk_encode_owner(run->encoders[index], kernels, base, residual, 1.0f / run->factor,
                            memory->payload, &memory->payload_size);
    return;
  }
  lcomm_topk_keep keep =
      step->feedback == LCOMM_FEEDBACK_HOLD ? LCOMM_TOPK_HOLD : LCOMM_TOPK_RELEASE;
  lcomm_topk_encode(run->encoders[index], kernels, base, residual, keep, run->encode_payloads,
                    run->encode_sizes);
}

static void encode(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (!is_sparse(run, step->slot)) {
    encode_dense(run, step);
    write_header(run, step->slot);
    return;
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->encode_payloads[i] = run->slots[step->slot + i].payload;
  }
  encode_sparse(run, index);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (step->feedback != LCOMM_FEEDBACK_OWNER) {
      run->slots[step->slot + i].payload_size = run->encode_sizes[i];
    }
    write_header(run, step->slot + i);
  }
}

/* ---------------------------------------------------------------- DECODE */

static void settle(lcomm_run *run, const lcomm_step *step) {
  float *residual = residual_of(run, step);
  if (!residual || step->settle == LCOMM_NO_SLOT) {
    return;
  }
  /* A dense result applies everything that was sent. */
  const uint8_t *applied = is_sparse(run, step->slot) ? run->slots[step->slot].payload : NULL;
  lcomm_topk_settle(run->slots[step->settle].payload, applied, step->span.parts, step->span.part,
                    residual);
}

static void decode(lcomm_run *run, const lcomm_step *step) {
  const lcomm_slot_memory *memory = &run->slots[step->slot];
  const lcomm_codec *codec = codec_of(run, step->slot);
  float *destination = run->vector + step->span.first;
  if (memory->shares_vector) {
    return;
  }
  if (is_sparse(run, step->slot)) {
    lcomm_topk_decode(memory->payload, step->span.count, step->span.parts, step->span.part, 1.0f,
                      destination);
  } else {
    uint64_t count = lcomm_span_count(step->span);
    for (span_run r = {0}; next_run(step->span, &r);) {
      codec->decode(run->comm->kernels, memory->payload, count, r.local, r.count, 1.0f,
                    destination + r.global);
    }
  }
  settle(run, step);
}

/* ---------------------------------------------------------------- REDUCE */

static void reduce_sparse(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = run->vector + step->span.first;
  lcomm_topk_decode(run->slots[sources[0]].payload, step->span.count, step->span.parts,
                    step->span.part, factor, destination);
  for (uint32_t i = 1; i < step->slot_count; i++) {
    lcomm_topk_add(run->slots[sources[i]].payload, step->span.parts, step->span.part, factor,
                   destination);
  }
}

/* Plain float32 sources are summed where they lie. */
static bool sums_in_place(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] != LCOMM_SOURCE_SELF && codec_of(run, sources[i])->id != LCOMM_CODEC_NONE) {
      return false;
    }
  }
  return true;
}

/* One block of a sum stays in the first-level cache while all sources are
 * added to it: one pass over the vector, however many sources there are. */
static void sum_plain_block(lcomm_run *run, const lcomm_step *step, uint64_t at, uint64_t n,
                            float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = run->vector + step->span.first + at;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->reduce_sources[i] = destination;
    if (sources[i] != LCOMM_SOURCE_SELF) {
      run->reduce_sources[i] = (const float *)(const void *)run->slots[sources[i]].payload + at;
    }
  }
  run->comm->kernels->f32_sum(run->reduce_sources, step->slot_count, destination, n);
  if (factor != 1.0f) {
    run->comm->kernels->f32_scale(destination, factor, destination, n);
  }
}

static void sum_coded_block(lcomm_run *run, const lcomm_step *step, uint64_t at, uint64_t n,
                            float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  const lcomm_kernels *kernels = run->comm->kernels;
  float *destination = run->vector + step->span.first + at;
  float sum[LCOMM_TILE];
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] == LCOMM_SOURCE_SELF) {
      if (i == 0) {
        memcpy(sum, destination, n * sizeof(float));
      } else {
        kernels->f32_add(destination, 1.0f, sum, n);
      }
      continue;
    }
    const lcomm_codec *codec = codec_of(run, sources[i]);
    const uint8_t *payload = run->slots[sources[i]].payload;
    if (i == 0) {
      codec->decode(kernels, payload, step->span.count, at, n, 1.0f, sum);
    } else {
      codec->accumulate(kernels, payload, step->span.count, at, n, 1.0f, sum);
    }
  }
  kernels->f32_scale(sum, factor, destination, n);
}

static void reduce(lcomm_run *run, const lcomm_step *step) {
  float factor = step->summed ? run->factor : 1.0f;
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  if (sources[0] != LCOMM_SOURCE_SELF && is_sparse(run, sources[0])) {
    reduce_sparse(run, step, factor);
    return;
  }
  float *residual = residual_of(run, step);
  if (residual && step->feedback == LCOMM_FEEDBACK_KEEP) {
    lcomm_residual_fold(run->vector + step->span.first, residual, step->span.count);
  }
  bool plain = sums_in_place(run, step);
  for (uint64_t at = 0; at < step->span.count; at += LCOMM_TILE) {
    uint64_t left = step->span.count - at;
    uint64_t n = left < LCOMM_TILE ? left : LCOMM_TILE;
    if (plain) {
      sum_plain_block(run, step, at, n, factor);
    } else {
      sum_coded_block(run, step, at, n, factor);
    }
  }
}

lcomm_status lcomm_exec_compute(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  double begin = lcomm_clock_s();
  if (step->kind == LCOMM_STEP_ENCODE) {
    encode(run, index);
    run->comm->stats.encode_s += lcomm_clock_s() - begin;
    return LCOMM_OK;
  }
  if (step->kind == LCOMM_STEP_DECODE) {
    decode(run, step);
  } else {
    reduce(run, step);
  }
  run->comm->stats.decode_s += lcomm_clock_s() - begin;
  return LCOMM_OK;
}
