/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/topk.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/select.h"
#include "codecs/topk_payload.h"
#include "kernels/element.h"
#include "kernels/stripe.h"

/* A delta of 8.5 bits at a density of 1 %, and a bf16 value. */
const lcomm_codec lcomm_codec_topk = {
    .id = LCOMM_CODEC_TOPK,
    .name = "topk",
    .summary = "only the largest magnitudes: packed position and bfloat16 value, bits per kept one",
    .bits = 24.5,
};

/* Local indices [first, first + count), of which `kept` are sent. */
typedef struct topk_segment {
  uint64_t first, count, kept;
} topk_segment;

struct lcomm_topk {
  uint64_t base_count, total;
  uint32_t parts, part, outputs;
  size_t segments;
  topk_segment *segment;
  lcomm_entries chosen; /* of the whole view, room for total */
  lcomm_entries split;  /* the same by output; only when outputs > 1 */
  size_t *split_end;    /* of each output in split */
  lcomm_select_scratch scratch;
};

uint64_t lcomm_topk_entries(double density, uint64_t count) {
  double wanted = density * (double)count + 0.5;
  if (count == 0)
    return 0;
  if (!(wanted >= 1.0))
    return 1;
  return wanted >= (double)count ? count : (uint64_t)wanted;
}

uint64_t lcomm_topk_capacity(uint64_t total, uint32_t outputs, uint64_t part_count) {
  if (outputs == 1)
    return total;
  uint64_t share = total * 5 / ((uint64_t)outputs * 4) + 64;
  return share < part_count ? share : part_count;
}

/* Create */

static bool shape_is_valid(const lcomm_topk_shape *shape) {
  if (shape->base_count > UINT32_MAX || shape->parts == 0 || shape->part >= shape->parts)
    return false;
  if (shape->outputs == 0 || (shape->outputs > 1 && shape->parts > 1))
    return false;
  if (!(shape->density > 0.0 && shape->density <= 1.0))
    return false;
  if (shape->segments == 0 || shape->segment_ends == NULL)
    return false;
  for (size_t i = 1; i < shape->segments; i++)
    if (shape->segment_ends[i] < shape->segment_ends[i - 1])
      return false;
  return shape->segment_ends[shape->segments - 1] == shape->base_count;
}

static uint64_t larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Never NULL for want of elements. */
static void *allocate(uint64_t count, size_t size) {
  return calloc((size_t)larger(count, 1), size);
}

static bool allocate_entries(lcomm_entries *entries, uint64_t capacity) {
  entries->position = allocate(capacity, sizeof *entries->position);
  entries->bits = allocate(capacity, sizeof *entries->bits);
  return entries->position != NULL && entries->bits != NULL;
}

static void free_entries(lcomm_entries *entries) {
  free(entries->position);
  free(entries->bits);
}

/* The segments of the view, empty ones left out; adds up total. */
static void set_segments(lcomm_topk *topk, const lcomm_topk_shape *shape) {
  uint64_t first = 0;
  for (size_t i = 0; i < shape->segments; i++) {
    uint64_t end = lcomm_stripe_count(shape->segment_ends[i], shape->parts, shape->part);
    uint64_t kept = lcomm_topk_entries(shape->density, end - first);
    if (kept == 0)
      continue;
    topk->segment[topk->segments++] =
        (topk_segment){.first = first, .count = end - first, .kept = kept};
    topk->total += kept;
    first = end;
  }
}

static bool allocate_scratch(lcomm_topk *topk) {
  uint64_t capacity = 0, keys = topk->outputs > 1 ? topk->total : 0;
  for (size_t i = 0; i < topk->segments; i++) {
    const topk_segment *segment = &topk->segment[i];
    capacity = larger(capacity, lcomm_select_capacity(segment->count, segment->kept));
    keys = larger(keys, lcomm_select_keys(segment->count, segment->kept));
  }
  topk->scratch.capacity = (size_t)capacity;
  topk->scratch.key = allocate(keys, sizeof *topk->scratch.key);
  return topk->scratch.key != NULL && allocate_entries(&topk->scratch.candidates, capacity);
}

static bool allocate_outputs(lcomm_topk *topk) {
  if (!allocate_entries(&topk->chosen, topk->total))
    return false;
  if (topk->outputs == 1)
    return true;
  topk->split_end = allocate(topk->outputs, sizeof *topk->split_end);
  return topk->split_end != NULL && allocate_entries(&topk->split, topk->total);
}

lcomm_status lcomm_topk_create(const lcomm_topk_shape *shape, lcomm_topk **topk) {
  if (shape == NULL || topk == NULL || !shape_is_valid(shape))
    return LCOMM_ERR_ARGUMENT;
  lcomm_topk *made = calloc(1, sizeof *made);
  if (made == NULL)
    return LCOMM_ERR_MEMORY;
  made->base_count = shape->base_count;
  made->parts = shape->parts;
  made->part = shape->part;
  made->outputs = shape->outputs;
  made->segment = calloc(shape->segments, sizeof *made->segment);
  if (made->segment == NULL) {
    lcomm_topk_destroy(made);
    return LCOMM_ERR_MEMORY;
  }
  set_segments(made, shape);
  if (!allocate_scratch(made) || !allocate_outputs(made)) {
    lcomm_topk_destroy(made);
    return LCOMM_ERR_MEMORY;
  }
  *topk = made;
  return LCOMM_OK;
}

void lcomm_topk_destroy(lcomm_topk *topk) {
  if (topk == NULL)
    return;
  free(topk->segment);
  free_entries(&topk->chosen);
  free_entries(&topk->split);
  free(topk->split_end);
  free_entries(&topk->scratch.candidates);
  free(topk->scratch.key);
  free(topk);
}

uint64_t lcomm_topk_total(const lcomm_topk *topk) {
  return topk->total;
}

uint64_t lcomm_topk_output_capacity(const lcomm_topk *topk, uint32_t output) {
  uint64_t part_count = lcomm_stripe_count(topk->base_count, topk->outputs, output);
  return lcomm_topk_capacity(topk->total, topk->outputs, part_count);
}

size_t lcomm_topk_output_bound(const lcomm_topk *topk, uint32_t output) {
  return lcomm_topk_bound(lcomm_topk_output_capacity(topk, output));
}

/* Encode */

static void select_view(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                        float *residual) {
  lcomm_select_input input = {.kernels = kernels,
                              .base = base,
                              .residual = residual,
                              .parts = topk->parts,
                              .part = topk->part};
  topk->chosen.count = 0;
  for (size_t i = 0; i < topk->segments; i++) {
    const topk_segment *segment = &topk->segment[i];
    lcomm_select_range(&input, segment->first, segment->count, segment->kept, &topk->scratch,
                       &topk->chosen);
  }
}

/* Sort the chosen by output, stable, and turn their positions into local
 * indices of the output's part. */
static void split_chosen(lcomm_topk *topk) {
  const lcomm_entries *chosen = &topk->chosen;
  size_t *end = topk->split_end, first = 0;
  memset(end, 0, topk->outputs * sizeof *end);
  for (size_t i = 0; i < chosen->count; i++)
    end[lcomm_stripe_owner(chosen->position[i], topk->outputs)]++;
  for (uint32_t output = 0; output < topk->outputs; output++) {
    size_t count = end[output];
    end[output] = first;
    first += count;
  }
  for (size_t i = 0; i < chosen->count; i++) {
    uint32_t position = chosen->position[i];
    size_t place = end[lcomm_stripe_owner(position, topk->outputs)]++;
    topk->split.position[place] = (uint32_t)lcomm_stripe_local(position, topk->outputs);
    topk->split.bits[place] = chosen->bits[i];
  }
}

/* residual = acc - sent for finite entries. */
static void release(const lcomm_entries *sent, uint32_t parts, uint32_t part, float *residual) {
  for (size_t i = 0; i < sent->count; i++) {
    float acc = lcomm_f32_from_bits(sent->bits[i]);
    float error = acc - lcomm_bf16_to_f32(lcomm_f32_to_bf16_finite(acc));
    residual[lcomm_stripe_global(sent->position[i], parts, part)] = error;
  }
}

static bool all_finite(const lcomm_entries *entries) {
  uint32_t greatest = 0;
  for (size_t i = 0; i < entries->count; i++) {
    uint32_t magnitude = entries->bits[i] & 0x7fffffffu;
    greatest = magnitude > greatest ? magnitude : greatest;
  }
  return greatest < LCOMM_F32_INF_BITS;
}

/* Values that are not finite rank first, so if any exist, one was chosen. The
 * others, sent or not, must not live on in the residual. */
static void clear_not_finite(const lcomm_topk *topk, float *residual) {
  uint64_t end = lcomm_stripe_count(topk->base_count, topk->parts, topk->part);
  for (uint64_t local = 0; local < end; local++) {
    float *value = residual + lcomm_stripe_global(local, topk->parts, topk->part);
    if (!lcomm_f32_is_finite(*value))
      *value = 0.0f;
  }
}

static void finish(const lcomm_entries *sent, uint32_t parts, uint32_t part, lcomm_topk_keep keep,
                   float *residual, uint8_t *payload, size_t *size) {
  *size = lcomm_topk_write(sent, payload);
  if (residual != NULL && keep == LCOMM_TOPK_RELEASE)
    release(sent, parts, part, residual);
}

void lcomm_topk_encode(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                       float *residual, lcomm_topk_keep keep, uint8_t *const *payload,
                       size_t *size) {
  select_view(topk, kernels, base, residual);
  if (topk->outputs == 1) {
    finish(&topk->chosen, topk->parts, topk->part, keep, residual, payload[0], &size[0]);
  } else {
    split_chosen(topk);
    size_t first = 0;
    for (uint32_t output = 0; output < topk->outputs; output++) {
      lcomm_entries sent = {.position = topk->split.position + first,
                            .bits = topk->split.bits + first,
                            .count = topk->split_end[output] - first};
      lcomm_select_trim(&sent, (size_t)lcomm_topk_output_capacity(topk, output), topk->scratch.key);
      finish(&sent, topk->outputs, output, keep, residual, payload[output], &size[output]);
      first = topk->split_end[output];
    }
  }
  if (residual != NULL && !all_finite(&topk->chosen))
    clear_not_finite(topk, residual);
}

void lcomm_topk_encode_owner(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                             float *residual, float weight, uint8_t *payload, size_t *size) {
  select_view(topk, kernels, base, NULL);
  const lcomm_entries *sent = &topk->chosen;
  *size = lcomm_topk_write(sent, payload);
  if (residual == NULL)
    return;
  for (size_t i = 0; i < sent->count; i++) {
    float sum = lcomm_f32_from_bits(sent->bits[i]);
    if (!lcomm_f32_is_finite(sum))
      continue;
    float error = sum - lcomm_bf16_to_f32(lcomm_f32_to_bf16_finite(sum));
    residual[lcomm_stripe_global(sent->position[i], topk->parts, topk->part)] += weight * error;
  }
}
