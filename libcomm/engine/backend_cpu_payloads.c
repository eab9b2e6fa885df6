/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads in memory of the host, by the codecs. */

#include <string.h>

#include "codecs/codec_residual.h"
#include "kernels/plain.h"
#include "kernels/stripe.h"
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

/* ------------------------------------------------------------------ dense */

static lcomm_status encode(lcomm_run *run, const lcomm_encoding *it) {
  const lcomm_step *step = it->step;
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  const lcomm_kernels *kernels = run->comm->kernels;
  uint8_t *payload = run->slots[step->slot].payload;
  uint64_t count = lcomm_span_count(step->span), seed = lcomm_run_seed(run, step->slot);
  for (span_run r = {0}; next_run(step->span, &r);) {
    const float *here = it->source + r.global;
    lcomm_ef_array residual = lcomm_ef_array_at(it->residual, r.global);
    lcomm_range range = {count, r.local, r.count};
    if (!residual.now) {
      lcomm_encode(format, kernels, here, range, seed, payload);
    } else if (step->feedback == LCOMM_FEEDBACK_SEND) {
      lcomm_residual_encode(format, kernels, here, residual.before, residual.now, range, seed,
                            payload);
    } else {
      lcomm_residual_encode_owner(format, kernels, here, residual.now, it->weight, range, seed,
                                  payload);
    }
  }
  return LCOMM_OK;
}

static lcomm_status publish(lcomm_run *run, const lcomm_step *step, const uint8_t *elements) {
  lcomm_slot_memory *slot = &run->slots[step->slot];
  if (elements && slot->payload_size > 0) {
    memcpy(slot->payload, elements, slot->payload_size);
  }
  lcomm_payload_made(slot);
  return LCOMM_OK;
}

static lcomm_status read_payload(lcomm_run *run, uint32_t slot, uint8_t **payload) {
  LCOMM_ASSERT(lcomm_payload_is_readable(&run->slots[slot]));
  *payload = run->slots[slot].payload;
  return LCOMM_OK;
}

static const uint8_t *at(const lcomm_run *run, uint32_t slot) {
  LCOMM_ASSERT(lcomm_payload_is_readable(&run->slots[slot]));
  return run->slots[slot].payload;
}

static lcomm_status decode(lcomm_run *run, const lcomm_step *step, uint8_t *payload) {
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  float *destination = lcomm_run_floats(run, step->span.first);
  uint64_t count = lcomm_span_count(step->span);
  for (span_run r = {0}; next_run(step->span, &r);) {
    lcomm_range range = {count, r.local, r.count};
    lcomm_decode(format, run->comm->kernels, payload, range, 1.0f, destination + r.global);
  }
  return LCOMM_OK;
}

/* Minima and maxima of 16-bit buffers, whose payloads hold every value exactly.
 * The sources keep their order, because it decides between two NaNs. */
static void combine(const lcomm_run *run, const lcomm_summing *it) {
  enum { PIECE = 1024 };
  _Alignas(64) float first[PIECE], next[PIECE];
  const void *both[2] = {first, next};
  lcomm_plain_kernel kernel = lcomm_plain_kernel_of(
      LCOMM_FLOAT32, run->plan->op == LCOMM_MIN ? LCOMM_PLAIN_MIN : LCOMM_PLAIN_MAX);
  uint64_t count = it->step->span.count;
  for (uint64_t from = 0; from < count; from += PIECE) {
    uint64_t left = count - from;
    lcomm_range range = {count, from, left < PIECE ? left : PIECE};
    for (uint32_t i = 0; i < it->step->slot_count; i++) {
      const lcomm_summand *source = &it->summands[i];
      float *values = i == 0 ? first : next;
      if (!source->payload) {
        memcpy(values, source->values + from, range.n * sizeof(float));
      } else {
        lcomm_decode(source->format, run->comm->kernels, source->payload, range, 1.0f, values);
      }
      if (i > 0) {
        kernel(both, 2, first, range.n);
      }
    }
    memcpy(it->destination + from, first, range.n * sizeof(float));
  }
}

static lcomm_status sum(lcomm_run *run, const lcomm_summing *it, bool *encoded) {
  const lcomm_kernels *kernels = run->comm->kernels;
  lcomm_range all = lcomm_range_whole(it->step->span.count);
  uint32_t count = it->step->slot_count;
  *encoded = it->next != NULL;
  if (run->plan->op != LCOMM_SUM) {
    combine(run, it);
  } else if (!it->next) {
    lcomm_sum(kernels, it->summands, count, all, it->factor, it->destination);
  } else {
    uint32_t slot = it->next->slot;
    lcomm_sum_encode(kernels, it->summands, count, all, it->factor, it->destination,
                     lcomm_run_format(run, slot), lcomm_run_seed(run, slot),
                     run->slots[slot].payload);
  }
  return LCOMM_OK;
}

static lcomm_status sum_plain(lcomm_run *run, const lcomm_step *step) {
  return lcomm_exec_reduce_plain(run, step);
}

/* ------------------------------------------------------------------ top-k */

static lcomm_status topk_encode(lcomm_run *run, const lcomm_encoding *it) {
  const lcomm_step *step = it->step;
  lcomm_topk *encoder = run->codecs.encoders[it->index];
  lcomm_run_scratch *scratch = &run->scratch;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    scratch->payloads[i] = run->slots[step->slot + i].payload;
  }
  if (step->feedback == LCOMM_FEEDBACK_OWNER) {
    lcomm_topk_encode_owner(encoder, run->comm->kernels, it->source, it->residual.now, it->weight,
                            scratch->payloads[0], &scratch->sizes[0]);
  } else {
    bool holds = step->feedback == LCOMM_FEEDBACK_HOLD;
    lcomm_topk_encode(encoder, run->comm->kernels, it->source, it->residual.before,
                      it->residual.now, holds ? LCOMM_TOPK_HOLD : LCOMM_TOPK_RELEASE,
                      scratch->payloads, scratch->sizes);
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_payload_made(&run->slots[step->slot + i]);
  }
  return LCOMM_OK;
}

static void topk_sizes(lcomm_run *run, const lcomm_step *step) {
  for (uint32_t i = 0; i < step->slot_count; i++) {
    run->slots[step->slot + i].payload_size = run->scratch.sizes[i];
  }
}

static lcomm_status topk_decode(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                                float *destination) {
  lcomm_topk_decode(lcomm_run_format(run, slot), at(run, slot), span.count, span.parts, span.part,
                    factor, destination);
  return LCOMM_OK;
}

static lcomm_status topk_add(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                             float *destination) {
  lcomm_topk_add(lcomm_run_format(run, slot), at(run, slot), span.parts, span.part, factor,
                 destination);
  return LCOMM_OK;
}

static lcomm_status topk_apply(lcomm_run *run, const lcomm_applying *it) {
  const lcomm_format *format = lcomm_run_format(run, it->sent);
  const uint8_t *sent = at(run, it->sent), *applied = NULL;
  if (it->slot != LCOMM_NO_SLOT) {
    applied = at(run, it->slot);
    LCOMM_TRY(topk_decode(run, it->slot, it->span, 1.0f, it->destination));
  }
  lcomm_topk_commit(format, sent, applied, it->span.parts, it->span.part, it->residual);
  if (it->momentum) {
    lcomm_topk_mask(format, sent, applied, it->span.parts, it->span.part, it->momentum);
  }
  return LCOMM_OK;
}

static lcomm_status topk_mask(lcomm_run *run, uint32_t sent, lcomm_span span, float *momentum) {
  lcomm_topk_mask(lcomm_run_format(run, sent), at(run, sent), NULL, span.parts, span.part,
                  momentum);
  return LCOMM_OK;
}

const lcomm_backend_payloads lcomm_backend_cpu_payloads =
    LCOMM_BACKEND_PAYLOADS_TABLE(read_payload, topk);
