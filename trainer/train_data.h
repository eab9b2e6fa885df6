/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_DATA_H
#define TRAINER_TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_peers.h"

/* Images and labels: read from IDX files, or drawn where there are none;
 * then handed out as mini-batches. Everything stays in memory as bytes. */

enum { DATASET_CLASSES = 10, DATASET_TEXT_SIZE = 512 };

/* Pass this as a directory to train on the built-in images. */
#define DATASET_BUILT_IN "builtin"

typedef struct image_set {
  uint32_t count;
  int height, width; /* of one image; there is one channel */
  uint8_t *pixels;   /* [count][height][width] */
  uint8_t *labels;   /* [count] */
} image_set;

typedef struct dataset {
  bool built_in;
  char where[DATASET_TEXT_SIZE]; /* directory, "" for the built-in images */
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

/* Copy the images order[0 .. count-1] of a set, normalised, to
 * images[count][height][width], and their labels to labels[count]. */
void dataset_batch(const dataset *self, const image_set *set, const uint32_t *order, int count,
                   float *images, uint8_t *labels);

/* --------------------------------------------------------------- IDX files
 * The format of MNIST and its relatives: a big-endian header (magic, then one
 * size per dimension) and unsigned bytes. Plain or gzip. */

enum {
  IDX_DIMENSIONS_MAX = 3,
  IDX_SIZE_MAX = 10 * 1000 * 1000, /* of one dimension; float32 counts it exactly */
  IDX_BYTES_MAX = 1 << 30
};

typedef struct idx_array {
  int dimensions; /* 3 for images, 1 for labels */
  uint32_t sizes[IDX_DIMENSIONS_MAX];
  uint8_t *bytes; /* sizes[0] * sizes[1] * ... of them, owned */
} idx_array;

/* Read a file that must have `dimensions` (1 or 3) dimensions. Every size is
 * checked, and memory grows with what is really in the file, not with what
 * its header announces. Returns 0, or -1 with `why`; then nothing is kept. */
int idx_read(const char *path, int dimensions, idx_array *made, failure *why);

void idx_free(idx_array *self);

/* --------------------------------------------------------- built-in images
 * For machines without data: ten kinds of strokes and shapes of random place,
 * size, turn, thickness and contrast, with noise. Image i depends on the seed
 * and i alone and has label i % 10; the bytes are the same on every machine. */

enum { SHAPES_SIDE = 28, SHAPES_CLASSES = 10, SHAPES_TRAIN = 20000, SHAPES_TEST = 4000 };

/* Draw image `index` into pixels[SHAPES_SIDE][SHAPES_SIDE]; returns its label. */
int shapes_draw(uint64_t seed, uint64_t index, uint8_t *pixels);

/* Draw the images first .. first+count-1. Returns 0, or -1 without memory;
 * then dataset_free() frees what there is. */
int shapes_draw_set(uint64_t seed, uint64_t first, uint32_t count, image_set *made, failure *why);

#endif
