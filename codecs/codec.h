/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_H
#define LCOMM_CODECS_CODEC_H

/* A codec turns float32 numbers into bytes and back. It knows nothing of
 * ranks, threads or allocation; it writes into memory it is given.
 *
 * Dense codecs have a payload size that depends on the count alone, and allow
 * random access: a range that begins at a multiple of LCOMM_BLOCK can be
 * encoded or decoded by itself. So a payload is valid exactly when its size
 * is right, and decoding a payload of the right size cannot fail, whatever
 * its bytes are. A payload begins at an address that is a multiple of 8, and
 * numbers in it are little-endian, as is every machine libcomm runs on.
 *
 * The sparse codec has an interface of its own, topk.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "libcomm/include/libcomm_types.h"

/* Wire numbers: part of the wire format, never reused. */
typedef enum lcomm_codec_id {
  LCOMM_CODEC_NONE = 0, /* float32 as it is */
  LCOMM_CODEC_FP16 = 1,
  LCOMM_CODEC_BF16 = 2,
  LCOMM_CODEC_FP8E4M3 = 3,
  LCOMM_CODEC_FP8E5M2 = 4,
  LCOMM_CODEC_INT8 = 5,
  LCOMM_CODEC_TOPK = 6
} lcomm_codec_id;

typedef struct lcomm_codec {
  lcomm_codec_id id;
  const char *name;    /* as in a policy */
  const char *summary; /* one line for people */
  /* bits per value on the wire, for planning and printing; of the sparse
   * codec: per value that is kept */
  double bits;

  /* Payload bytes for `count` values. */
  size_t (*size)(uint64_t count);

  /* Range functions. `payload` is the whole payload of `count` values,
   * `first` a multiple of LCOMM_BLOCK, first + n <= count, and n a multiple of
   * LCOMM_BLOCK unless first + n == count. `source` and `destination` point
   * at element `first`.
   *   encode      payload[first..] = Q(source)
   *   decode      destination  = factor * value
   *   accumulate  destination += factor * value */
  void (*encode)(const lcomm_kernels *kernels, const float *source, uint64_t count, uint64_t first,
                 uint64_t n, uint8_t *payload);
  void (*decode)(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                 uint64_t first, uint64_t n, float factor, float *destination);
  void (*accumulate)(const lcomm_kernels *kernels, const uint8_t *payload, uint64_t count,
                     uint64_t first, uint64_t n, float factor, float *destination);
} lcomm_codec;

/* One codec per file. The sparse codec has the entry lcomm_codec_topk with
 * NULL functions, so that names and numbers live in one list. */
extern const lcomm_codec lcomm_codec_none, lcomm_codec_fp16, lcomm_codec_bf16, lcomm_codec_fp8e4m3,
    lcomm_codec_fp8e5m2, lcomm_codec_int8, lcomm_codec_topk;

/* All codecs in wire-number order, ended by NULL. */
extern const lcomm_codec *const lcomm_codec_list[];

/* NULL when there is none. */
const lcomm_codec *lcomm_codec_by_name(const char *name, size_t length);
const lcomm_codec *lcomm_codec_by_id(unsigned id);

/* The dense codec that carries a buffer of `dtype` exactly: none, fp16, bf16. */
const lcomm_codec *lcomm_codec_exact(lcomm_dtype dtype);

#endif
