/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_DATASET_H
#define TRAINER_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer/failure.h"
#include "trainer/layer.h"

enum { DATASET_CLASSES = 10, DATASET_TEXT_SIZE = 512 };

/* Pass this as a directory to train on the built-in images. */
#define DATASET_BUILT_IN "builtin"

typedef struct image_set {
  uint32_t count;
  uint8_t *pixels; /* [image][row][column] */
  uint8_t *labels;
} image_set;

typedef struct dataset {
  bool built_in;
  char where[DATASET_TEXT_SIZE]; /* directory, "" for the built-in images */
  layer_shape shape;             /* of one image, one channel */
  image_set train;
  image_set test;
  float level[256]; /* normalised value of each byte */
} dataset;

/* Load the images. `directory`, if not NULL, must hold them; else LCOMM_DATA,
 * if set, must; else they are looked for in a few places, and if they are in
 * none, the built-in images are drawn from the seed.
 * Returns 0, or -1 with `why`; then nothing is kept. */
int dataset_load(const char *directory, uint64_t seed, dataset *made, failure *why);
void dataset_free(dataset *self);

/* Keep only the first `count` images for training. */
void dataset_limit(dataset *self, uint32_t count);

/* Equal on ranks that loaded the same bytes. */
uint64_t dataset_hash(const dataset *self);

/* Copy the images order[0 .. count-1] of a set, normalised. */
void dataset_batch(const dataset *self, const image_set *set, const uint32_t *order, int count,
                   float *images, uint8_t *labels);

#endif
