/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_DATA_SHAPES_H
#define TRAINER_DATA_SHAPES_H

#include <stdint.h>

/* The built-in images, for machines without data: ten kinds of strokes and
 * shapes of random place, size, turn, thickness and contrast, with noise.
 * Image i depends on the seed and i alone and has label i % 10; the bytes are
 * the same on every machine. */

enum { SHAPES_SIDE = 28, SHAPES_CLASSES = 10, SHAPES_TRAIN = 20000, SHAPES_TEST = 4000 };

/* Draw image `index` into SHAPES_SIDE * SHAPES_SIDE bytes; returns its label. */
int shapes_draw(uint64_t seed, uint64_t index, uint8_t *pixels);

#endif
