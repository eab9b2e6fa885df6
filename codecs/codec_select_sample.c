/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The sample that gives the threshold of the pass. */

#include "codecs/codec_select_internal.h"

/* A cache miss costs the same for a whole line as for one element, so the sample
 * consists of lines. Large values of gradients are clustered: the elements of a
 * line are correlated and tell less than as many independent ones. So the variance
 * between lines is measured.
 */
enum {
  LINE = 16,          /* elements */
  LINES_LEAST = 64,   /* of a sample */
  LINE_STRIDE = 512,  /* one line in so many is sampled */
  SAMPLE_FROM = 4096, /* shorter ranges are not sampled */
  AHEAD = 16          /* lines asked for in advance */
};

static uint64_t sample_lines(uint64_t count) {
  uint64_t lines = count / LINE / LINE_STRIDE;
  return lines > LINES_LEAST ? lines : LINES_LEAST;
}

uint64_t lcomm_select_sample_size(uint64_t count) {
  return count < SAMPLE_FROM ? 0 : sample_lines(count) * LINE;
}

/* The i-th line of the sample, in elements from the first line of the range:
 * a place in the i-th of `lines` equal strata, spread by a hash, so that
 * periodic data does not mislead. */
static uint64_t line_place(uint64_t i, uint64_t stratum) {
  uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u >> 32;
  return (i * stratum + (hash * stratum >> 32)) * LINE;
}

/* acc of one line. Lines never cross the end of a tile. */
static void read_line(const lcomm_select_input *input, uint64_t global, float *value) {
  for (int j = 0; j < LINE; j++) {
    value[j] = input->base[global + j];
  }
  for (int j = 0; input->residual != NULL && j < LINE; j++) {
    value[j] += input->before[global + j];
  }
}

static void prefetch_line(const lcomm_select_input *input, uint64_t global) {
  __builtin_prefetch(input->base + global);
  if (input->residual) {
    __builtin_prefetch(input->before + global);
  }
}

static void take_sample(const lcomm_select_input *input, lcomm_select_span span,
                        lcomm_entries *sample, lcomm_rank_histogram *histogram) {
  uint64_t begin = (span.first + LINE - 1) / LINE * LINE, lines = sample_lines(span.count);
  uint64_t stratum = (span.first + span.count - begin) / LINE / lines;
  for (uint64_t i = 0; i < lines; i++) {
    float *value = sample->value + i * LINE;
    uint64_t ahead = i + AHEAD < lines ? i + AHEAD : i;
    prefetch_line(input, lcomm_select_global(input, begin + line_place(ahead, stratum)));
    read_line(input, lcomm_select_global(input, begin + line_place(i, stratum)), value);
    for (uint64_t j = 0; j < LINE; j++) {
      sample->position[i * LINE + j] = (uint32_t)(i * LINE + j);
      lcomm_rank_count(histogram, value[j]);
    }
  }
  sample->count = (size_t)(lines * LINE);
}

/* The variance of the number of elements of a sample that reach `magnitude`:
 * lines are independent of each other, their elements are not. */
static uint64_t variance(const lcomm_entries *sample, uint32_t magnitude) {
  uint64_t sum = 0;
  for (size_t i = 0; i < sample->count; i += LINE) {
    uint32_t hits = 0;
    for (size_t j = i; j < i + LINE; j++) {
      hits += lcomm_f32_magnitude(sample->value[j]) >= (int32_t)magnitude;
    }
    sum += (uint64_t)hits * hits;
  }
  return sum;
}

static uint64_t root_up(uint64_t square) {
  uint64_t root = 0;
  while (root * root < square) {
    root++;
  }
  return root;
}

static uint32_t magnitude_at(const lcomm_rank_histogram *histogram, const lcomm_entries *sample,
                             uint64_t rank, uint64_t *key) {
  if (rank > sample->count) {
    return 1;
  }
  uint32_t magnitude = (uint32_t)(lcomm_rank_nth(histogram, sample, rank, key) >> 32);
  return magnitude > 0 ? magnitude : 1;
}

lcomm_threshold lcomm_select_threshold(const lcomm_select_input *input, lcomm_select_span span,
                                       lcomm_select_margin margin, lcomm_entries *sample,
                                       uint64_t *key) {
  uint64_t size = lcomm_select_sample_size(span.count);
  uint64_t expected = span.kept * size / span.count + 1;
  if (expected >= size) {
    return (lcomm_threshold){1, 1};
  }
  lcomm_rank_histogram histogram;
  lcomm_rank_coarse(&histogram, 0);
  take_sample(input, span, sample, &histogram);
  uint32_t likely = magnitude_at(&histogram, sample, expected, key);
  /* Three or eight standard deviations. */
  uint64_t squares = margin == LCOMM_SELECT_USUAL ? 9 : 64;
  uint64_t rank = expected + root_up(squares * (variance(sample, likely) + 1));
  return (lcomm_threshold){magnitude_at(&histogram, sample, rank, key), likely};
}
