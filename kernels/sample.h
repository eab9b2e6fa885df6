/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SAMPLE_H
#define LCOMM_KERNELS_SAMPLE_H

/* A sample of an array: blocks of neighbours, one in each of equal parts, at a place that a counter
 * draws. So every machine finds the same elements. */

#include "kernels/element.h"

typedef struct lcomm_sample {
  uint64_t count;  /* elements of the array */
  uint64_t blocks; /* one in each of so many parts of it */
  uint64_t seed;
  uint32_t block; /* elements of each, count / blocks or fewer */
} lcomm_sample;

LCOMM_ELEMENT uint64_t lcomm_sample_elements(const lcomm_sample *sample) {
  return sample->blocks * sample->block;
}

/* The first element of block `index`. */
LCOMM_ELEMENT uint64_t lcomm_sample_begin(const lcomm_sample *sample, uint64_t index) {
  uint64_t part = sample->count / sample->blocks, rest = sample->count % sample->blocks;
  uint64_t first = index * part + (index < rest ? index : rest);
  uint64_t places = part + (index < rest) - sample->block + 1;
  return first + lcomm_random(sample->seed, index) * places / ((uint64_t)1 << 32);
}

/* Where element i of the sample is in the array. */
LCOMM_ELEMENT uint64_t lcomm_sample_at(const lcomm_sample *sample, uint64_t i) {
  return lcomm_sample_begin(sample, i / sample->block) + i % sample->block;
}

#endif
