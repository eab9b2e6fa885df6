/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How large the tables of an encoder are, and how many candidates it has room for. */

#include <string.h>

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_topk_shape.cuh"

uint32_t lcomm_topk_divide_up(uint64_t count, uint32_t unit) {
  return (uint32_t)((count + unit - 1) / unit);
}

int lcomm_topk_shape_is_valid(const lcomm_cuda_topk_shape *shape) {
  if (shape->base_count > UINT32_MAX || shape->parts == 0 || shape->part >= shape->parts) {
    return 0;
  }
  if (shape->outputs == 0 || (shape->outputs > 1 && shape->parts > 1)) {
    return 0;
  }
  uint64_t count = 0;
  for (uint32_t i = 0; i < shape->segments; i++) {
    if (shape->segment_kept[i] > shape->segment_count[i]) {
      return 0;
    }
    if (shape->segment_count[i] > UINT32_MAX - count) {
      return 0;
    }
    count += shape->segment_count[i];
  }
  return count == lcomm_stripe_count(shape->base_count, shape->parts, shape->part);
}

/* -------------------------------------------------------------- candidates */

static uint64_t root_up(uint64_t square) {
  uint64_t root = 0;
  while (root * root < square) {
    root++;
  }
  return root;
}

static uint64_t least_of(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

enum { SAMPLE_FROM = 1024 }; /* elements; all of a shorter segment are candidates */

static uint64_t sample_size(uint64_t count) {
  uint64_t size = most_of(count / 512, least_of(count / 128, 1 << 17));
  return most_of(size, least_of(count / 4, 1 << 13)) / LCOMM_TOPK_LINE * LCOMM_TOPK_LINE;
}

/* How deep into the sample the threshold lies, and how many elements may be above
 * it. Of `size` elements about `expected` belong to the chosen. A line may be all
 * of one kind, so the standard deviation of that number is up to twice its root:
 * the margins are 3.5 of them below and 4.5 above. */
static void set_sample(lcomm_cuda_segment *segment) {
  uint64_t count = segment->count, kept = segment->kept, size = sample_size(count);
  segment->capacity = segment->count;
  if (kept == 0) {
    segment->capacity = 0;
  }
  if (kept == 0 || count <= SAMPLE_FROM) {
    return;
  }
  uint64_t expected = kept * size / count;
  uint64_t rank = expected + 7 * root_up(expected) + 2;
  uint64_t most = (rank + 9 * root_up(rank) + 4) * count / size + 1;
  if (rank > size || most >= count) {
    return;
  }
  segment->capacity = (uint32_t)most_of(most, kept);
  segment->lines = (uint32_t)(size / LCOMM_TOPK_LINE);
  segment->rank = (uint32_t)rank;
}

/* ------------------------------------------------------------------ counts */

lcomm_cuda_segment lcomm_topk_segment_of(const lcomm_cuda_topk_shape *shape, uint32_t i,
                                         uint32_t first) {
  lcomm_cuda_segment segment;
  memset(&segment, 0, sizeof segment);
  segment.first = first;
  segment.count = (uint32_t)shape->segment_count[i];
  segment.kept = (uint32_t)shape->segment_kept[i];
  segment.spans = lcomm_topk_divide_up(segment.count, LCOMM_TOPK_SPAN);
  set_sample(&segment);
  return segment;
}

uint32_t lcomm_topk_pieces_of(const lcomm_cuda_segment *segment) {
  if (segment->count == 0) {
    return 0;
  }
  uint64_t last = (uint64_t)segment->first + segment->count - 1;
  return (uint32_t)(last / LCOMM_TILE) - segment->first / LCOMM_TILE + 1;
}

uint32_t lcomm_topk_capacity_of(const lcomm_cuda_topk_shape *shape, uint32_t output,
                                uint32_t chosen) {
  return (uint32_t)least_of(shape->output_capacity[output], chosen);
}

uint32_t lcomm_topk_groups_of(uint32_t capacity) {
  return (uint32_t)most_of(lcomm_topk_divide_up(capacity, LCOMM_TOPK_GROUP), 1);
}

lcomm_topk_counts lcomm_topk_count_shape(const lcomm_cuda_topk_shape *shape) {
  lcomm_topk_counts n;
  memset(&n, 0, sizeof n);
  for (uint32_t i = 0; i < shape->segments; i++) {
    lcomm_cuda_segment segment = lcomm_topk_segment_of(shape, i, n.elements);
    n.elements += segment.count;
    n.pieces += lcomm_topk_pieces_of(&segment);
    n.spans += segment.spans;
    n.histograms += segment.spans > 1;
    n.candidates += segment.capacity;
    n.chosen += segment.kept;
  }
  for (uint32_t o = 0; o < shape->outputs; o++) {
    n.groups += lcomm_topk_groups_of(lcomm_topk_capacity_of(shape, o, n.chosen));
  }
  n.segments = shape->segments;
  n.outputs = shape->outputs;
  n.chunks = n.pieces / LCOMM_TOPK_CHUNK + 1;
  return n;
}
