/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of an encoder: made on the host, copied to the device once. */

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_topk_shape.cuh"

/* ------------------------------------------------------------------ layout */

/* Bytes, from the beginning: tables that never change, and scratch that has to be
 * zero at first. */
typedef struct layout {
  size_t fixed, zero, all;
} layout;

/* Takes room for `count` elements of a table. */
static void *take(uintptr_t memory, size_t *end, uint64_t count, size_t size) {
  size_t place = *end;
  *end += (size_t)((count * size + 255) / 256 * 256);
  return (void *)(memory + place);
}

static layout lay_out(const lcomm_topk_counts *n, void *memory, lcomm_topk_tables *t) {
  uintptr_t at = (uintptr_t)memory;
  layout end = {0, 0, 0};
  size_t *all = &end.all;
  t->segment = (lcomm_cuda_segment *)take(at, all, n->segments, sizeof *t->segment);
  t->span_segment = (uint32_t *)take(at, all, n->spans, sizeof *t->span_segment);
  t->piece = (lcomm_topk_piece *)take(at, all, n->pieces, sizeof *t->piece);
  t->output = (lcomm_topk_output *)take(at, all, n->outputs, sizeof *t->output);
  t->group_output = (uint32_t *)take(at, all, n->groups, sizeof *t->group_output);
  end.fixed = *all;
  t->histogram = (uint32_t *)take(at, all, n->histograms, LCOMM_TOPK_BINS * sizeof *t->histogram);
  t->ticket = (uint32_t *)take(at, all, 1, sizeof *t->ticket);
  t->misled = (uint32_t *)take(at, all, 1, sizeof *t->misled);
  t->progress = (lcomm_topk_progress *)take(at, all, n->outputs, sizeof *t->progress);
  t->search = (lcomm_topk_search *)take(at, all, n->segments, sizeof *t->search);
  end.zero = *all;
  t->run = (lcomm_topk_run *)take(at, all, n->pieces, sizeof *t->run);
  t->position = (uint32_t *)take(at, all, n->candidates, sizeof *t->position);
  t->value = (float *)take(at, all, n->candidates, sizeof *t->value);
  t->chosen_position = (uint32_t *)take(at, all, n->chosen, sizeof *t->chosen_position);
  t->chosen_value = (float *)take(at, all, n->chosen, sizeof *t->chosen_value);
  t->before = (uint32_t *)take(at, all, (uint64_t)n->chunks * LCOMM_TOPK_CHUNK, sizeof *t->before);
  t->chunk_before = (uint32_t *)take(at, all, n->chunks, sizeof *t->chunk_before);
  t->group_before = (uint32_t *)take(at, all, n->groups, sizeof *t->group_before);
  return end;
}

/* ------------------------------------------------------------------ tables */

static void fill_segments(const lcomm_cuda_topk_shape *shape, lcomm_cuda_segment *segments,
                          uint32_t *span_segment) {
  uint32_t first = 0, span = 0, histogram = 0, area = 0;
  for (uint32_t i = 0; i < shape->segments; i++) {
    lcomm_cuda_segment *segment = &segments[i];
    *segment = lcomm_topk_segment_of(shape, i, first);
    segment->first_span = span;
    segment->histogram = histogram;
    segment->area = area;
    first += segment->count;
    histogram += segment->spans > 1;
    area += segment->capacity;
    for (uint32_t j = 0; j < segment->spans; j++) {
      span_segment[span++] = i;
    }
  }
}

static uint32_t piece_first(const lcomm_cuda_segment *segment, uint32_t i) {
  uint32_t tile = segment->first / LCOMM_TILE + i;
  return i == 0 ? segment->first : tile * LCOMM_TILE;
}

/* Pieces by output; `outputs` has counted none, and ends up with where theirs end. */
static void fill_pieces(const lcomm_cuda_topk_shape *shape, const lcomm_cuda_segment *segments,
                        lcomm_topk_output *outputs, lcomm_topk_piece *pieces) {
  uint32_t end = 0;
  for (uint32_t s = 0; s < shape->segments; s++) {
    for (uint32_t i = 0; i < lcomm_topk_pieces_of(&segments[s]); i++) {
      outputs[piece_first(&segments[s], i) / LCOMM_TILE % shape->outputs].end_piece++;
    }
  }
  for (uint32_t o = 0; o < shape->outputs; o++) {
    uint32_t count = outputs[o].end_piece;
    outputs[o].first_piece = outputs[o].end_piece = end;
    end += count;
  }
  for (uint32_t s = 0; s < shape->segments; s++) {
    for (uint32_t i = 0; i < lcomm_topk_pieces_of(&segments[s]); i++) {
      uint32_t first = piece_first(&segments[s], i);
      lcomm_topk_piece piece = {first, s};
      pieces[outputs[first / LCOMM_TILE % shape->outputs].end_piece++] = piece;
    }
  }
}

static void fill_outputs(const lcomm_cuda_topk_shape *shape, const lcomm_topk_counts *n,
                         lcomm_topk_output *outputs, uint32_t *group_output) {
  uint32_t group = 0;
  for (uint32_t o = 0; o < shape->outputs; o++) {
    outputs[o].capacity = lcomm_topk_capacity_of(shape, o, n->chosen);
    outputs[o].first_group = group;
    for (uint32_t i = 0; i < lcomm_topk_groups_of(outputs[o].capacity); i++) {
      group_output[group++] = o;
    }
  }
  outputs[shape->outputs].first_group = group;
}

/* The digits of keys, 11 bits at a time: magnitudes have 31, positions as many as
 * the view needs. */
static void set_steps(lcomm_cuda_topk *topk) {
  static const lcomm_topk_step magnitude[LCOMM_TOPK_POSITIONS] = {{52, 11}, {41, 11}, {32, 9}};
  uint32_t bits = 0;
  memcpy(topk->step, magnitude, sizeof magnitude);
  while (topk->tables.count > 1 && bits < 32 && (topk->tables.count - 1) >> bits != 0) {
    bits++;
  }
  topk->steps = LCOMM_TOPK_POSITIONS;
  for (uint32_t digits = lcomm_topk_divide_up(bits, 11); digits > 0; digits--) {
    uint32_t shift = 11 * (digits - 1);
    lcomm_topk_step step = {shift, (uint32_t)(shift == 22 ? 10 : 11)};
    topk->step[topk->steps++] = step;
  }
}

/* ------------------------------------------------------------------ object */

static void set_topk(lcomm_cuda_topk *topk, const lcomm_cuda_topk_shape *shape,
                     const lcomm_topk_counts *n) {
  lcomm_topk_tables *t = &topk->tables;
  t->count = n->elements;
  t->parts = shape->parts;
  t->part = shape->part;
  t->outputs = shape->outputs;
  t->pieces = n->pieces;
  topk->spans = n->spans;
  topk->chunks = n->chunks;
  topk->groups = n->groups;
  topk->int8 = shape->int8;
  set_steps(topk);
  for (uint32_t o = 0; o < shape->outputs; o++) {
    uint64_t count = lcomm_stripe_count(n->elements, shape->outputs, o);
    uint64_t most = count < n->chosen ? count : n->chosen;
    topk->trims |= shape->output_capacity[o] < most;
  }
}

/* The tables, in host memory first, where they lie as on the device. */
static int copy_tables(lcomm_cuda_topk *topk, const lcomm_cuda_topk_shape *shape,
                       const lcomm_topk_counts *n, void *memory, size_t size, void *stream) {
  lcomm_topk_tables host;
  topk->copied = calloc(size > 0 ? size : 1, 1);
  if (!topk->copied) {
    return 1;
  }
  lay_out(n, topk->copied, &host);
  lcomm_cuda_segment *segments = (lcomm_cuda_segment *)host.segment;
  fill_segments(shape, segments, (uint32_t *)host.span_segment);
  fill_pieces(shape, segments, topk->output, (lcomm_topk_piece *)host.piece);
  fill_outputs(shape, n, topk->output, (uint32_t *)host.group_output);
  memcpy((void *)host.output, topk->output, shape->outputs * sizeof *topk->output);
  return lcomm_cuda_copy_in(memory, topk->copied, size, stream);
}

extern "C" size_t lcomm_cuda_run_topk_size(const lcomm_cuda_topk_shape *shape) {
  lcomm_topk_tables none;
  if (!lcomm_topk_shape_is_valid(shape)) {
    return 0;
  }
  lcomm_topk_counts n = lcomm_topk_count_shape(shape);
  return lay_out(&n, NULL, &none).all;
}

extern "C" lcomm_cuda_topk *lcomm_cuda_run_topk_create(const lcomm_cuda_topk_shape *shape,
                                                       void *memory, void *stream) {
  if (!lcomm_topk_shape_is_valid(shape)) {
    return NULL;
  }
  lcomm_topk_counts n = lcomm_topk_count_shape(shape);
  lcomm_cuda_topk *topk = (lcomm_cuda_topk *)calloc(1, sizeof *topk);
  if (!topk) {
    return NULL;
  }
  set_topk(topk, shape, &n);
  layout end = lay_out(&n, memory, &topk->tables);
  topk->output = (lcomm_topk_output *)calloc((size_t)shape->outputs + 1, sizeof *topk->output);
  if (!topk->output || copy_tables(topk, shape, &n, memory, end.fixed, stream) != 0 ||
      lcomm_cuda_set((uint8_t *)memory + end.fixed, end.zero - end.fixed, stream) != 0) {
    lcomm_cuda_run_topk_destroy(topk);
    return NULL;
  }
  return topk;
}

extern "C" void lcomm_cuda_run_topk_destroy(lcomm_cuda_topk *topk) {
  if (!topk) {
    return;
  }
  free(topk->output);
  free(topk->copied);
  free(topk);
}
