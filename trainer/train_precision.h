/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_PRECISION_H
#define TRAINER_TRAIN_PRECISION_H

#include <libcomm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Mixed precision: what is kept between two computations has 16 bits, computations have 32.
 *
 *   bf16   8 bits of exponent, 8 of significand: the range of float32
 *   fp16   5 bits of exponent, 11 of significand: 6e-8 to 65504
 *
 * Where a GPU holds 16 bits, here floats are rounded to values that have 16 bits, because the
 * products of OpenBLAS take floats. They add up in float32, as those of a GPU do. To the nearest,
 * ties to even. */

typedef enum precision_kind {
  PRECISION_FP32,
  PRECISION_BF16,
  PRECISION_FP16,
  PRECISION_COUNT
} precision_kind;

/* "bf16", and the kind of such a name; PRECISION_COUNT: none. */
const char *precision_name(precision_kind kind);
precision_kind precision_find(const char *name);

/* The type of buffers of it, and bytes of a value. */
lcomm_dtype precision_dtype(precision_kind kind);
size_t precision_size(precision_kind kind);

/* Values become those of the type; nothing of fp32. What is too large becomes infinite. */
void precision_round(precision_kind kind, float *values, size_t count);

/* codes[i] of factor * values[i], and values[i] of factor * codes[i]; of the types of 16 bits. */
void precision_encode(precision_kind kind, const float *values, float factor, uint16_t *codes,
                      size_t count);
void precision_decode(precision_kind kind, const uint16_t *codes, float factor, float *values,
                      size_t count);

/* -------------------------------------------------------------- loss scaling
 * Small gradients are zero in fp16. So the loss is multiplied by a scale, and the averaged
 * gradients divided by it. A step whose averages hold Inf or NaN is skipped, and the scale is
 * halved; after many steps without one it is doubled. It is a power of two, so it rounds nothing.
 */

enum { LOSS_SCALE_PATIENCE = 1000 };

typedef struct loss_scale {
  float factor;  /* 1 and constant but for fp16 */
  uint32_t good; /* steps since it changed, or since one was skipped */
  bool dynamic;
} loss_scale;

loss_scale loss_scale_begin(precision_kind kind);

/* A step is done; was it skipped? */
void loss_scale_step(loss_scale *self, bool skipped);

/* Gradients overflow whatever the scale: it cannot be halved any more. */
bool loss_scale_is_exhausted(const loss_scale *self);

#endif
