/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Select, pack, and keep what was not sent. */

#include <string.h>

#include "codecs/codec_topk_internal.h"
#include "codecs/codec_topk_payload.h"
#include "kernels/element.h"
#include "kernels/stripe.h"

/* What goes into one payload. */
typedef struct parcel {
  lcomm_entries sent;
  uint32_t parts, part;  /* of the positions */
  const uint8_t *values; /* in the payload, once it is written */
} parcel;

static void select_view(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                        const float *before, float *residual, lcomm_select_keep keep) {
  lcomm_select_input input = {.kernels = kernels,
                              .base = base,
                              .before = before,
                              .residual = residual,
                              .parts = topk->parts,
                              .part = topk->part,
                              .keep = keep};
  topk->chosen.count = 0;
  for (size_t i = 0; i < topk->segments; i++) {
    lcomm_topk_segment *segment = &topk->segment[i];
    segment->waited = 0;
    lcomm_select_range(&input, segment->first, segment->count, segment->kept, &topk->chosen,
                       topk->key);
  }
}

/* Entries from `first` on that lie in the tile of the first one. */
static size_t tile_run(const lcomm_entries *entries, size_t first) {
  uint32_t tile = entries->position[first] / LCOMM_TILE;
  size_t end = first + 1;
  while (end < entries->count && entries->position[end] / LCOMM_TILE == tile) {
    end++;
  }
  return end - first;
}

/* Sort the chosen by output, stable, and turn their positions into local
 * indices of the output's part. */
static void split_chosen(lcomm_topk *topk) {
  const lcomm_entries *chosen = &topk->chosen;
  size_t *end = topk->split_end, total = 0;
  memset(end, 0, topk->outputs * sizeof *end);
  for (size_t i = 0, run; i < chosen->count; i += run) {
    run = tile_run(chosen, i);
    end[lcomm_stripe_owner(chosen->position[i], topk->outputs)] += run;
  }
  for (uint32_t output = 0; output < topk->outputs; output++) {
    size_t count = end[output];
    end[output] = total;
    total += count;
  }
  for (size_t i = 0, run; i < chosen->count; i += run) {
    uint32_t first = chosen->position[i];
    uint32_t shift = first - (uint32_t)lcomm_stripe_local(first, topk->outputs);
    size_t *place = &end[lcomm_stripe_owner(first, topk->outputs)];
    run = tile_run(chosen, i);
    for (size_t j = i; j < i + run; j++) {
      topk->split.position[*place + j - i] = chosen->position[j] - shift;
    }
    memcpy(topk->split.value + *place, chosen->value + i, run * sizeof *chosen->value);
    *place += run;
  }
}

static void write_parcel(const lcomm_topk *topk, const lcomm_kernels *kernels, parcel *it,
                         uint8_t *payload, size_t *size) {
  *size = lcomm_topk_write(&topk->format, kernels, &it->sent, payload);
  it->values = payload + *size - lcomm_topk_values_size(&topk->format, it->sent.count);
}

/* What stays of up to LCOMM_BLOCK entries from `first` on; returns how many. */
static uint32_t errors_of(const lcomm_topk *topk, const parcel *it, size_t first, float *error) {
  size_t left = it->sent.count - first;
  uint32_t n = left < LCOMM_BLOCK ? (uint32_t)left : LCOMM_BLOCK;
  lcomm_topk_read_values(&topk->format, it->values, (uint32_t)it->sent.count, (uint32_t)first, n,
                         error);
  for (uint32_t i = 0; i < n; i++) {
    error[i] = lcomm_error_kept(it->sent.value[first + i], error[i]);
  }
  return n;
}

static void release(const lcomm_topk *topk, const parcel *it, float *residual) {
  float error[LCOMM_BLOCK];
  for (size_t first = 0, n; first < it->sent.count; first += n) {
    const uint32_t *position = it->sent.position + first;
    n = errors_of(topk, it, first, error);
    for (size_t i = 0; i < n; i++) {
      residual[lcomm_stripe_global(position[i], it->parts, it->part)] = error[i];
    }
  }
}

static void release_to_owner(const lcomm_topk *topk, const parcel *it, float weight,
                             float *residual) {
  float error[LCOMM_BLOCK];
  for (size_t first = 0, n; first < it->sent.count; first += n) {
    const uint32_t *position = it->sent.position + first;
    n = errors_of(topk, it, first, error);
    for (size_t i = 0; i < n; i++) {
      float *kept = residual + lcomm_stripe_global(position[i], it->parts, it->part);
      *kept = lcomm_finite_or_zero(*kept + weight * error[i]);
    }
  }
}

static bool all_finite(const lcomm_entries *entries) {
  int32_t greatest = 0;
  for (size_t i = 0; i < entries->count; i++) {
    int32_t magnitude = lcomm_f32_magnitude(entries->value[i]);
    greatest = magnitude > greatest ? magnitude : greatest;
  }
  return greatest < (int32_t)LCOMM_F32_INF_BITS;
}

/* Values that are not finite rank first, so if any exist, one was chosen. The
 * others, sent or not, must not live on in the residual. */
static void clear_not_finite(const lcomm_topk *topk, float *residual) {
  uint64_t end = lcomm_stripe_count(topk->base_count, topk->parts, topk->part);
  for (uint64_t local = 0; local < end; local++) {
    float *value = residual + lcomm_stripe_global(local, topk->parts, topk->part);
    if (!lcomm_f32_is_finite(*value)) {
      *value = 0.0f;
    }
  }
}

/* A bf16 error needs no other value: selecting leaves it while the value is in
 * a cache. An int8 error is known when its block has been written. */
static lcomm_select_keep early_keep(const lcomm_topk *topk, lcomm_topk_keep keep) {
  bool early = keep == LCOMM_TOPK_RELEASE && topk->format.variant == LCOMM_VARIANT_PLAIN;
  return early ? LCOMM_SELECT_BF16_ERROR : LCOMM_SELECT_ACC;
}

/* Count the entries of a parcel in the segments that they are of. */
static void count_waiting(lcomm_topk *topk, const parcel *it, uint64_t change) {
  size_t segment = 0;
  for (size_t i = 0; i < it->sent.count; i++) {
    uint64_t at = lcomm_stripe_global(it->sent.position[i], it->parts, it->part);
    while (at >= topk->segment[segment].first + topk->segment[segment].count) {
      segment++;
    }
    topk->segment[segment].waited += change;
  }
}

/* Drops what does not fit into an output. The residual gets back what
 * selecting took from it; returns whether it did. */
static bool fit(lcomm_topk *topk, parcel *it, float *residual) {
  size_t capacity = (size_t)lcomm_topk_output_capacity(topk, it->part);
  if (it->sent.count <= capacity) {
    return false;
  }
  for (size_t i = 0; residual != NULL && i < it->sent.count; i++) {
    residual[lcomm_stripe_global(it->sent.position[i], it->parts, it->part)] = it->sent.value[i];
  }
  count_waiting(topk, it, 1);
  lcomm_select_trim(&it->sent, capacity, topk->key);
  count_waiting(topk, it, UINT64_MAX); /* those that are sent wait no more */
  return true;
}

static void encode_split(lcomm_topk *topk, const lcomm_kernels *kernels, lcomm_topk_keep keep,
                         float *residual, uint8_t *const *payload, size_t *size) {
  size_t first = 0;
  split_chosen(topk);
  for (uint32_t output = 0; output < topk->outputs; output++) {
    parcel it = {.sent = {.position = topk->split.position + first,
                          .value = topk->split.value + first,
                          .count = topk->split_end[output] - first},
                 .parts = topk->outputs,
                 .part = output};
    first = topk->split_end[output];
    bool late = fit(topk, &it, residual) || early_keep(topk, keep) == LCOMM_SELECT_ACC;
    write_parcel(topk, kernels, &it, payload[output], &size[output]);
    if (residual && keep == LCOMM_TOPK_RELEASE && late) {
      release(topk, &it, residual);
    }
  }
}

static parcel whole_parcel(const lcomm_topk *topk) {
  return (parcel){.sent = topk->chosen, .parts = topk->parts, .part = topk->part};
}

static void encode_whole(const lcomm_topk *topk, const lcomm_kernels *kernels, lcomm_topk_keep keep,
                         float *residual, uint8_t *payload, size_t *size) {
  parcel it = whole_parcel(topk);
  write_parcel(topk, kernels, &it, payload, size);
  bool late = early_keep(topk, keep) == LCOMM_SELECT_ACC;
  if (residual && keep == LCOMM_TOPK_RELEASE && late) {
    release(topk, &it, residual);
  }
}

void lcomm_topk_encode(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                       const float *before, float *residual, lcomm_topk_keep keep,
                       uint8_t *const *payload, size_t *size) {
  select_view(topk, kernels, base, before, residual, early_keep(topk, keep));
  if (topk->outputs == 1) {
    encode_whole(topk, kernels, keep, residual, payload[0], &size[0]);
  } else {
    encode_split(topk, kernels, keep, residual, payload, size);
  }
  if (residual && !all_finite(&topk->chosen)) {
    clear_not_finite(topk, residual);
  }
}

void lcomm_topk_encode_owner(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                             float *residual, float weight, uint8_t *payload, size_t *size) {
  select_view(topk, kernels, base, NULL, NULL, LCOMM_SELECT_ACC);
  parcel it = whole_parcel(topk);
  write_parcel(topk, kernels, &it, payload, size);
  if (residual) {
    release_to_owner(topk, &it, weight, residual);
  }
}
