/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_SYNTHETIC_H
#define LCOMM_TOOLS_CODEC_CODEC_SYNTHETIC_H

/* Values of known distributions, to measure codecs without data. A value
 * depends on the kind, the seed, its tensor and its index alone, so any part
 * can be made at any time, by any thread. Two machines differ at most in the
 * last bits of their maths libraries.
 *
 * All kinds but `layers` are one tensor. `normal`, `laplace`, `student` and the
 * values of `sparse` that are not 0 have the standard deviation 1e-3, which
 * also is the value of `constant`.
 *
 * layers   A gradient of many layers. Sizes are log-uniform from 1024 to 16 Mi
 *          values (but at most an eighth of all, so that small sources have
 *          several layers, too), the last layer takes what is left. Layer
 *          scales are log-uniform from 1e-6 to 3e-3; the rows of a layer (a
 *          power of two near the square root of its size) have log-normal
 *          scales with a deviation of 0.5; an element is 90 % N(0,1), 9 %
 *          N(0,9) and 1 % N(0,100), times both scales.
 * bits     Any bit pattern of float32, NaN and Inf included; one in 64 is a
 *          special one: zeros, Inf, NaN, subnormals, the largest number. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum lcomm_synthetic_kind {
  LCOMM_SYNTHETIC_NORMAL,
  LCOMM_SYNTHETIC_LAPLACE,
  LCOMM_SYNTHETIC_STUDENT,
  LCOMM_SYNTHETIC_LAYERS,
  LCOMM_SYNTHETIC_SPARSE,
  LCOMM_SYNTHETIC_CONSTANT,
  LCOMM_SYNTHETIC_BITS,
  LCOMM_SYNTHETIC_KINDS
} lcomm_synthetic_kind;

#define LCOMM_SYNTHETIC_COUNT_MAX ((uint64_t)1 << 40)

typedef struct lcomm_synthetic {
  lcomm_synthetic_kind kind;
  uint64_t seed;
  uint64_t count; /* values of all tensors, 1 to LCOMM_SYNTHETIC_COUNT_MAX */
} lcomm_synthetic;

/* "normal", "laplace", "student", "layers", "sparse", "constant", "bits", and
 * half a line for --help. Static. */
const char *lcomm_synthetic_name(lcomm_synthetic_kind kind);
const char *lcomm_synthetic_about(lcomm_synthetic_kind kind);

/* false when no kind has this name. */
bool lcomm_synthetic_by_name(const char *name, lcomm_synthetic_kind *kind);

/* Values of tensor number `tensor` when those before it left `left` >= 1. */
uint64_t lcomm_synthetic_tensor_count(const lcomm_synthetic *synthetic, uint64_t tensor,
                                      uint64_t left);

/* Values first to first+n-1 of a tensor that has `tensor_count` of them. */
void lcomm_synthetic_fill(const lcomm_synthetic *synthetic, uint64_t tensor, uint64_t tensor_count,
                          uint64_t first, uint64_t n, float *values);

#endif
