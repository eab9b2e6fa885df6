/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_H
#define LCOMM_CODECS_CODEC_H

/* A codec turns float32 numbers into bytes and back. It knows nothing of
 * ranks, threads or allocation; it writes into memory it is given. A *format*
 * is a codec with its parameters, all that is needed to read its bytes.
 *
 * Dense codecs have a payload size that depends on the count alone, and allow
 * random access: a range that begins at a multiple of LCOMM_BLOCK can be
 * encoded or decoded by itself. So a payload is valid exactly when its size
 * is right, and decoding a payload of the right size cannot fail, whatever
 * its bytes are. A payload begins at an address that is a multiple of 8, and
 * numbers in it are little-endian, as is every machine libcomm runs on.
 *
 * The sparse codec has an interface of its own, codec_topk.h, and the lossless stage
 * that may follow any codec is lossless.h. WIRE.md has every byte.
 *
 * Callers compute in the standard floating-point environment (lcomm_fp_enter).
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
  LCOMM_CODEC_TOPK = 6,
  LCOMM_CODEC_INT4 = 7,
  LCOMM_CODEC_SIGN = 8,
  LCOMM_CODEC_INT2 = 9
} lcomm_codec_id;

typedef struct lcomm_codec lcomm_codec;

/* Variants of a codec's payload: part of the wire format, 0..3. */
enum {
  LCOMM_VARIANT_PLAIN = 0,
  LCOMM_FP16_FIXED = 1, /* all values times 2^exponent, which the payload carries */
  LCOMM_FP16_BLOCK = 2, /* a power of two shared by each block */
  LCOMM_TOPK_INT8 = 1   /* kept values as int8, else as bf16 */
};

typedef struct lcomm_format {
  const lcomm_codec *codec; /* never NULL */
  uint16_t block;           /* elements that share a scale; 0: the codec has no choice */
  uint8_t variant;
  int8_t exponent; /* LCOMM_FP16_FIXED: of the scale */
  bool stochastic; /* fp8: stochastic rounding; the bytes read the same */
  bool zstd;       /* the lossless stage follows */
  /* top-k: the share of values that is kept, or, when it is 0, `kept` values
   * of each tensor (or of each bucket) */
  double density;
  uint64_t kept;
} lcomm_format;

/* A part of a payload of `count` values: `first` is a multiple of LCOMM_BLOCK,
 * first + n <= count, and n is a multiple of LCOMM_BLOCK unless first + n ==
 * count. */
typedef struct lcomm_range {
  uint64_t count, first, n;
} lcomm_range;

static inline lcomm_range lcomm_range_whole(uint64_t count) {
  return (lcomm_range){count, 0, count};
}

struct lcomm_codec {
  lcomm_codec_id id;
  const char *name;    /* as in a policy */
  const char *summary; /* one line for people */
  /* Blocks that may be chosen, ended by 0; the first is standard. */
  uint16_t blocks[4];
  bool feeds_back; /* a policy gives it error feedback between nodes unless it says -ef */

  /* Bits per value of a long payload; of the sparse codec: per kept value. */
  double (*bits)(const lcomm_format *format);

  /* Payload bytes for `count` values. NULL for the sparse codec, as are the
   * three below. */
  size_t (*size)(const lcomm_format *format, uint64_t count);

  /* `payload` is the whole payload, `source` and `destination` point at
   * element `first`. Nothing but the range's part of the payload is written;
   * head and padding belong to the ranges at the begin and at the end.
   *   encode      payload = Q(source); seed is for stochastic rounding, equal
   *               for all ranges of a payload and different for every payload
   *   decode      destination  = factor * value
   *   accumulate  destination += factor * value */
  void (*encode)(const lcomm_format *format, const lcomm_kernels *kernels, const float *source,
                 lcomm_range range, uint64_t seed, uint8_t *payload);
  void (*decode)(const lcomm_format *format, const lcomm_kernels *kernels, const uint8_t *payload,
                 lcomm_range range, float factor, float *destination);
  void (*accumulate)(const lcomm_format *format, const lcomm_kernels *kernels,
                     const uint8_t *payload, lcomm_range range, float factor, float *destination);

  /* A sum of `count` sources in one kernel, whose values are plain or whose
   * `code` is a whole payload; it turns them into codes and scales. NULL where
   * there is no such kernel; codec_sum.h does it another way then. */
  void (*sum)(const lcomm_format *format, const lcomm_kernels *kernels, lcomm_source *sources,
              size_t count, lcomm_range range, float factor, float *destination);
};

/* The functions of a dense codec, which its file has under these names. */
#define LCOMM_DENSE_FUNCTIONS                                                                      \
  .bits = bits, .size = size_of, .encode = encode, .decode = decode, .accumulate = accumulate

/* One codec per file. */
extern const lcomm_codec lcomm_codec_none, lcomm_codec_fp16, lcomm_codec_bf16, lcomm_codec_fp8e4m3,
    lcomm_codec_fp8e5m2, lcomm_codec_int8, lcomm_codec_topk, lcomm_codec_int4, lcomm_codec_sign,
    lcomm_codec_int2;

/* All codecs in wire-number order, ended by NULL. */
extern const lcomm_codec *const lcomm_codec_list[];

/* NULL when there is none. */
const lcomm_codec *lcomm_codec_by_name(const char *name, size_t length);
const lcomm_codec *lcomm_codec_by_id(unsigned id);

/* The codec with its standard parameters: first block of its list, plain
 * variant, round to nearest, no lossless stage; top-k keeps 1 %. */
lcomm_format lcomm_format_of(const lcomm_codec *codec);

/* The dense format that carries a buffer of `dtype` exactly: fp16, bf16, and none
 * for all others. Of types other than float32 it stands for their elements as they
 * are, which nobody encodes. */
lcomm_format lcomm_format_exact(lcomm_dtype dtype);

/* Equal in all that their codec knows. */
bool lcomm_format_equal(const lcomm_format *a, const lcomm_format *b);

static inline bool lcomm_format_is_sparse(const lcomm_format *format) {
  return format->codec->id == LCOMM_CODEC_TOPK;
}

/* Bits per value before the lossless stage: of a long vector, and of a kept
 * value for the sparse codec. */
double lcomm_format_bits(const lcomm_format *format);

/* Short for the functions of the table, dense formats only. */
static inline size_t lcomm_payload_size(const lcomm_format *format, uint64_t count) {
  return format->codec->size(format, count);
}

static inline void lcomm_encode(const lcomm_format *format, const lcomm_kernels *kernels,
                                const float *source, lcomm_range range, uint64_t seed,
                                uint8_t *payload) {
  format->codec->encode(format, kernels, source, range, seed, payload);
}

static inline void lcomm_decode(const lcomm_format *format, const lcomm_kernels *kernels,
                                const uint8_t *payload, lcomm_range range, float factor,
                                float *destination) {
  format->codec->decode(format, kernels, payload, range, factor, destination);
}

static inline void lcomm_accumulate(const lcomm_format *format, const lcomm_kernels *kernels,
                                    const uint8_t *payload, lcomm_range range, float factor,
                                    float *destination) {
  format->codec->accumulate(format, kernels, payload, range, factor, destination);
}

#endif
