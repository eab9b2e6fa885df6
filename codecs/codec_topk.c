/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_topk.h"

#include <stdlib.h>

#include "codecs/codec_topk_internal.h"
#include "kernels/stripe.h"

/* A delta of 8.5 bits, as at a density of 1 %, and a bf16 or int8 value. */
static double bits(const lcomm_format *format) {
  return 8.5 + (format->variant == LCOMM_TOPK_INT8 ? 8.25 : 16.0);
}

const lcomm_codec lcomm_codec_topk = {
    .id = LCOMM_CODEC_TOPK,
    .name = "topk",
    .summary = "only the largest magnitudes: packed position and bf16 or int8 value",
    .blocks = {0},
    .bits = bits,
};

uint64_t lcomm_topk_entries(double density, uint64_t count) {
  double wanted = density * (double)count + 0.5;
  if (count == 0) {
    return 0;
  }
  if (!(wanted >= 1.0)) {
    return 1;
  }
  return wanted >= (double)count ? count : (uint64_t)wanted;
}

/* A part has room for so many even shares. With fewer parts nothing waits; memory is bounded with
 * more. */
enum { SHARES = 8, DEVIATIONS = 3 };

/* Of what lies on a part, for the widest spread there is: tiles are either picked whole or not at
 * all. Then the number of picked tiles has the deviation of its root. */
static uint64_t deviation(uint64_t total, uint32_t outputs) {
  uint64_t square = total * LCOMM_TILE / outputs, root = 0;
  for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1) {
    root += (root + bit) * (root + bit) <= square ? bit : 0;
  }
  return root;
}

uint64_t lcomm_topk_capacity(uint64_t total, uint32_t outputs, uint64_t part_count) {
  if (outputs == 1) {
    return total;
  }
  uint64_t room = total * SHARES / outputs + 64 + DEVIATIONS * deviation(total, outputs);
  room = room < total ? room : total;
  return room < part_count ? room : part_count;
}

/* Create */

static bool density_is_valid(double density) {
  return density > 0.0 && density <= 1.0;
}

static bool format_is_valid(const lcomm_format *format) {
  return format != NULL && format->codec == &lcomm_codec_topk &&
         (format->variant == LCOMM_VARIANT_PLAIN || format->variant == LCOMM_TOPK_INT8);
}

/* Of a segment of `elements` of the base array. */
static double density_of(const lcomm_topk_shape *shape, size_t segment, uint64_t elements) {
  const lcomm_format *format = shape->format;
  if (shape->segment_densities) {
    return shape->segment_densities[segment];
  }
  if (format->density != 0.0 || elements == 0) {
    return format->density;
  }
  return format->kept < elements ? (double)format->kept / (double)elements : 1.0;
}

static bool segments_are_valid(const lcomm_topk_shape *shape) {
  uint64_t end = 0;
  for (size_t i = 0; i < shape->segments; end = shape->segment_ends[i++]) {
    if (shape->segment_ends[i] < end) {
      return false;
    }
    uint64_t elements = shape->segment_ends[i] - end;
    if (elements > 0 && !density_is_valid(density_of(shape, i, elements))) {
      return false;
    }
  }
  return end == shape->base_count;
}

static bool shape_is_valid(const lcomm_topk_shape *shape) {
  if (shape->base_count > UINT32_MAX || shape->parts == 0 || shape->part >= shape->parts) {
    return false;
  }
  if (shape->outputs == 0 || (shape->outputs > 1 && shape->parts > 1)) {
    return false;
  }
  if (!format_is_valid(shape->format) || shape->segments == 0 || !shape->segment_ends) {
    return false;
  }
  return segments_are_valid(shape);
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
  entries->value = allocate(capacity, sizeof *entries->value);
  return entries->position != NULL && entries->value != NULL;
}

static void free_entries(lcomm_entries *entries) {
  free(entries->position);
  free(entries->value);
}

/* The segments of the view, empty ones left out; adds up total. */
static void set_segments(lcomm_topk *topk, const lcomm_topk_shape *shape) {
  uint64_t first = 0, before = 0;
  for (size_t i = 0; i < shape->segments; before = shape->segment_ends[i++]) {
    uint64_t end = lcomm_stripe_count(shape->segment_ends[i], shape->parts, shape->part);
    double density = density_of(shape, i, shape->segment_ends[i] - before);
    uint64_t kept = lcomm_topk_entries(density, end - first);
    if (kept == 0) {
      continue;
    }
    topk->segment[topk->segments++] =
        (lcomm_topk_segment){.first = first, .count = end - first, .kept = kept};
    topk->total += kept;
    first = end;
  }
}

/* Selecting a segment needs room behind what the segments before it chose. */
static bool allocate_scratch(lcomm_topk *topk) {
  uint64_t before = 0, room = 0, keys = topk->outputs > 1 ? topk->total : 0;
  for (size_t i = 0; i < topk->segments; i++) {
    const lcomm_topk_segment *segment = &topk->segment[i];
    uint64_t needed = lcomm_select_room(segment->count, segment->kept);
    room = larger(room, before + needed);
    keys = larger(keys, needed);
    before += segment->kept;
  }
  topk->key = allocate(keys, sizeof *topk->key);
  return topk->key != NULL && allocate_entries(&topk->chosen, room);
}

static bool allocate_split(lcomm_topk *topk) {
  if (topk->outputs == 1) {
    return true;
  }
  topk->split_end = allocate(topk->outputs, sizeof *topk->split_end);
  return topk->split_end != NULL && allocate_entries(&topk->split, topk->total);
}

lcomm_status lcomm_topk_create(const lcomm_topk_shape *shape, lcomm_topk **topk) {
  if (!shape || !topk || !shape_is_valid(shape)) {
    return LCOMM_ERR_ARGUMENT;
  }
  lcomm_topk *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->format = *shape->format;
  made->base_count = shape->base_count;
  made->parts = shape->parts;
  made->part = shape->part;
  made->outputs = shape->outputs;
  made->segment = calloc(shape->segments, sizeof *made->segment);
  if (!made->segment) {
    lcomm_topk_destroy(made);
    return LCOMM_ERR_MEMORY;
  }
  set_segments(made, shape);
  if (!allocate_scratch(made) || !allocate_split(made)) {
    lcomm_topk_destroy(made);
    return LCOMM_ERR_MEMORY;
  }
  *topk = made;
  return LCOMM_OK;
}

void lcomm_topk_destroy(lcomm_topk *topk) {
  if (!topk) {
    return;
  }
  free(topk->segment);
  free_entries(&topk->chosen);
  free_entries(&topk->split);
  free(topk->split_end);
  free(topk->key);
  free(topk);
}

uint64_t lcomm_topk_total(const lcomm_topk *topk) {
  return topk->total;
}

size_t lcomm_topk_segments(const lcomm_topk *topk) {
  return topk->segments;
}

void lcomm_topk_segment_get(const lcomm_topk *topk, size_t segment, uint64_t *count,
                            uint64_t *kept) {
  *count = topk->segment[segment].count;
  *kept = topk->segment[segment].kept;
}

uint64_t lcomm_topk_segment_waited(const lcomm_topk *topk, size_t segment) {
  return topk->segment[segment].waited;
}

/* Elements of the view that payload `output` is for. */
static uint64_t output_count(const lcomm_topk *topk, uint32_t output) {
  if (topk->outputs > 1) {
    return lcomm_stripe_count(topk->base_count, topk->outputs, output);
  }
  return lcomm_stripe_count(topk->base_count, topk->parts, topk->part);
}

uint64_t lcomm_topk_output_capacity(const lcomm_topk *topk, uint32_t output) {
  return lcomm_topk_capacity(topk->total, topk->outputs, output_count(topk, output));
}

size_t lcomm_topk_output_bound(const lcomm_topk *topk, uint32_t output) {
  return lcomm_topk_bound(&topk->format, lcomm_topk_output_capacity(topk, output),
                          output_count(topk, output));
}
