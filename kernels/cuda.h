/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_H
#define LCOMM_KERNELS_CUDA_H

/* The kernels of a CUDA device. A table of its own beside kernels.h, because a
 * device wants whole steps where a processor wants inner loops: every function
 * here reads its sources once and writes its results once, and is one launch,
 * `squares`, `lowrank.turn` and `lowrank.finish` excepted.
 * The bytes are those of the scalar table, NaN where two NaNs meet excepted.
 *
 * All pointers are addresses of device memory unless a comment says otherwise;
 * arrays of pointers and the argument structures are host memory that is copied
 * before a function returns. Every function puts its work into `stream` (a
 * cudaStream_t) of the current device and returns at once: 0, or the number of
 * a cudaError_t. Nothing is allocated. n may be 0.
 *
 * Values lie in arrays of float32, of which a call works on a view: part `part`
 * of `parts` of the array (kernels/stripe.h), parts == 1 being the whole. n
 * counts the elements of the view, and i of the view is element
 * lcomm_stripe_global(i, parts, part) of the array.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/lowrank_step.h"
#include "kernels/sample.h"
#include "kernels/squares.h"

enum {
  LCOMM_CUDA_SOURCES_MAX = 64,
  LCOMM_CUDA_LIST_MAX = 32,
  LCOMM_CUDA_COMMITS_MAX = LCOMM_CUDA_LIST_MAX / 2,
  LCOMM_CUDA_NUMBERS_MAX = 64,
  LCOMM_CUDA_PAIR = 2,
  LCOMM_CUDA_SQUARES = LCOMM_CUDA_PAIR + 2 * LCOMM_SQUARES_SUMS
};

/* How values are coded. */
typedef enum lcomm_cuda_kind {
  LCOMM_CUDA_F32, /* plain values */
  LCOMM_CUDA_F16,
  LCOMM_CUDA_F16_FIXED, /* all values times 2^exponent */
  LCOMM_CUDA_F16_BLOCK,
  LCOMM_CUDA_BF16,
  LCOMM_CUDA_E4M3,
  LCOMM_CUDA_E5M2,
  LCOMM_CUDA_INT8,
  LCOMM_CUDA_INT4,
  LCOMM_CUDA_SIGN,
  LCOMM_CUDA_INT2,
  LCOMM_CUDA_KIND_COUNT
} lcomm_cuda_kind;

/* The place of a payload's parts, for all n elements of a view. */
typedef struct lcomm_cuda_code {
  lcomm_cuda_kind kind;
  uint32_t block;   /* elements that share a scale, where the kind has scales */
  int32_t exponent; /* F16_FIXED, to encode */
  bool stochastic;  /* E4M3, E5M2, to encode: rounding by lcomm_random(seed, i) */
  uint64_t seed;
  const uint64_t *more_seed; /* of the device, NULL: none: added to it when the kernel runs */
  /* Scales: float32 (INT8, INT4), E8M0 bytes (F16_BLOCK, E4M3, E5M2), scale bytes of
   * lowbit kernels (SIGN, INT2); F16_FIXED: its factor, a float32 before 4 zero bytes. An encoder
   * writes zeros from the last scale to the first code. NULL for the others. */
  void *scale;
  void *code; /* F32: the values, n in a row */
} lcomm_cuda_code;

/* What an encoder does with the rest, see codecs/codec_residual.h. */
typedef enum lcomm_cuda_feedback {
  LCOMM_CUDA_FEEDBACK_NONE,
  LCOMM_CUDA_FEEDBACK_SEND,  /* acc = source + before; residual = kept(acc, decoded) */
  LCOMM_CUDA_FEEDBACK_OWNER, /* residual = finite(residual + weight * kept(source, decoded)) */
  LCOMM_CUDA_FEEDBACK_COUNT
} lcomm_cuda_feedback;

typedef struct lcomm_cuda_encode {
  const float *source;
  float *residual;     /* same geometry as source; NULL without feedback */
  const float *before; /* of SEND, likewise: the residual of the step before; NULL: in residual */
  lcomm_cuda_feedback feedback;
  float weight;
  uint64_t n;
  uint32_t parts, part;
  lcomm_cuda_code code;
} lcomm_cuda_encode;

typedef enum lcomm_cuda_op { LCOMM_CUDA_SUM, LCOMM_CUDA_MIN, LCOMM_CUDA_MAX } lcomm_cuda_op;

/* destination = factor * (source 0 + source 1 + ...), rounded after every
 * addition; MIN and MAX as kernels/plain.h has them, without a factor. One
 * source is a decode. Coded sources all have one kind, block and size; a source
 * of kind F32 with parts > 1 has the view's geometry, and may be the
 * destination. */
typedef struct lcomm_cuda_sum {
  const lcomm_cuda_code *sources; /* `count` of them, 1..LCOMM_CUDA_SOURCES_MAX */
  uint32_t count;
  lcomm_cuda_op op;
  float factor;
  float *destination;
  uint64_t n;
  uint32_t parts, part;
  /* NULL, or: the result is encoded in the same pass. Its kind is that of the
   * coded sources, or any when all sources are plain. */
  const lcomm_cuda_code *encoded;
} lcomm_cuda_sum;

/* A payload of a kind other than F32 into plain values. */
typedef struct lcomm_cuda_decode {
  lcomm_cuda_code code;
  float *destination;
  uint64_t n;
  uint32_t parts, part;
} lcomm_cuda_decode;

/* Bytes from one place to another. */
typedef struct lcomm_cuda_copy {
  const void *from;
  void *to;
  uint64_t size;
} lcomm_cuda_copy;

/* The same from a place that is known when the copy begins: *from, which lies in pinned memory;
 * NULL there: nothing is copied. It may be memory of another device, or pinned. */
typedef struct lcomm_cuda_fetch {
  const uint8_t *const *from;
  void *to;
  uint64_t size;
} lcomm_cuda_fetch;

/* A number in pinned memory that is awaited, until it has reached `number`, counting on past 2^32,
 * or is written. */
typedef struct lcomm_cuda_number {
  uint32_t *place;
  uint32_t number;
  bool is_awaited;
} lcomm_cuda_number;

/* The same of a number that is read, in pinned memory, when the launch comes to it. Nobody waits
 * where `passed`, in pinned memory, is not 0. */
typedef struct lcomm_cuda_gate {
  uint32_t *place;
  const uint32_t *number, *passed;
  bool is_awaited;
} lcomm_cuda_gate;

/* Sums, minima and maxima of elements that no codec touches: destination =
 * factor * (source 0 op source 1 ...), sources as in kernels/plain.h. The factor
 * is for float64 only, 1 for integers. */
typedef enum lcomm_cuda_plain {
  LCOMM_CUDA_F64,
  LCOMM_CUDA_I32,
  LCOMM_CUDA_I64,
  LCOMM_CUDA_I8,
  LCOMM_CUDA_U8
} lcomm_cuda_plain;

typedef struct lcomm_cuda_combine {
  const void *const *sources; /* host array of `count` addresses; may be the destination */
  uint32_t count;
  lcomm_cuda_plain type;
  lcomm_cuda_op op;
  double factor;
  void *destination;
  uint64_t n;
} lcomm_cuda_combine;

/* A sample of an array that lies at `offset` of a vector, whose elements first .. first+count are
 * `values`. Where there is none, it counts as 0. */
typedef struct lcomm_cuda_sample {
  lcomm_sample sample;
  const float *values;
  uint64_t first, count, offset;
  float factor; /* of values */
  float *destination;
} lcomm_cuda_sample;

/* ------------------------------------------------------------------- top-k */

/* As in codecs/codec_topk.h, which says what every step means. */
typedef struct lcomm_cuda_topk_shape {
  uint64_t base_count;
  uint32_t parts, part, outputs;
  bool int8;                       /* values as LCOMM_TOPK_INT8, else bf16 */
  uint32_t segments;               /* of the view, in its own coordinates: */
  const uint64_t *segment_count;   /* elements of each, host memory */
  const uint64_t *segment_kept;    /* how many of them are chosen, host memory */
  const uint64_t *output_capacity; /* entries that each output can hold, host memory */
} lcomm_cuda_topk_shape;

/* Made at plan time: the tables and scratch memory of a view. The memory is the
 * caller's: `size` tells how many bytes of device memory it needs, aligned to
 * 256; `create` writes the shape's tables there (through `stream`) and returns a
 * host object. One encode at a time, of as many launches as lcomm_cuda_topk_launches says at
 * most. */
typedef struct lcomm_cuda_topk lcomm_cuda_topk;

static inline uint32_t lcomm_cuda_topk_launches(uint32_t outputs) {
  enum { ONCE = 9, DIGITS = 6, WRITES = 64 }; /* outputs that are written by one launch */
  return ONCE + DIGITS + (outputs + WRITES - 1) / WRITES;
}

/* A payload is read in strips of its index. */
enum { LCOMM_CUDA_TOPK_STRIP = 4096, LCOMM_CUDA_TOPK_LEAP = 32 };

/* Reading a payload of `size` bytes is so many launches, applying it one more; of payloads that are
 * read together as many as of the longest. */
static inline uint32_t lcomm_cuda_topk_reads(uint64_t size) {
  return 1 + (size > LCOMM_CUDA_TOPK_STRIP) +
         (size > (uint64_t)2 * LCOMM_CUDA_TOPK_LEAP * LCOMM_CUDA_TOPK_STRIP);
}

typedef struct lcomm_cuda_topk_encode {
  const float *base;
  float *residual;     /* NULL: none */
  const float *before; /* the residual of the step before; NULL: in residual */
  bool hold;           /* LCOMM_TOPK_HOLD */
  bool owner;          /* lcomm_topk_encode_owner, with `weight` */
  float weight;
  uint8_t *const *payload; /* host array of `outputs` device addresses, multiples of 8 */
  uint64_t *payload_size;  /* `outputs` numbers; device or pinned host memory */
} lcomm_cuda_topk_encode;

/* A payload that lcomm_topk_check() passed on the host. How many entries it has is read in its
 * first word, on the device. */
typedef struct lcomm_cuda_sparse {
  const uint8_t *payload;
  uint64_t size;    /* its bytes, or, not knowing them, more that may be read */
  uint64_t entries; /* at most; a payload that says to have more counts as empty */
  bool int8;
  uint32_t parts, part; /* of its positions */
  uint64_t base_count;
  /* Device memory of topk_scratch() bytes, aligned to 16. What lies there is of no
   * use to the next call, so calls of one stream can share it, but not the two
   * payloads of one call. */
  void *scratch;
} lcomm_cuda_sparse;

/* A payload into the view of an array, of which nothing stays. With a residual, every entry of
 * `sent`, a payload of the same view, whose position the payload has, leaves that as by
 * topk_commit, and the momentum as by topk_mask; without a payload every entry of `sent`. */
typedef struct lcomm_cuda_topk_decode {
  lcomm_cuda_sparse payload; /* at NULL: none, and no array */
  float *base;
  float *residual;        /* NULL: nothing leaves anything, and what follows is not read */
  float *momentum;        /* NULL: none */
  lcomm_cuda_sparse sent; /* with scratch of its own */
  uint32_t *positions;    /* device memory for as many numbers as the payload can have entries */
} lcomm_cuda_topk_decode;

typedef struct lcomm_cuda_kernels {
  int (*encode)(const lcomm_cuda_encode *a, void *stream);
  int (*sum)(const lcomm_cuda_sum *a, void *stream);
  int (*combine)(const lcomm_cuda_combine *a, void *stream);

  /* Up to LCOMM_CUDA_LIST_MAX pieces in one launch, none of which writes what another one reads or
   * writes: encodes of one kind and one sort of feedback, decodes of one kind, copies, fetches. */
  int (*encode_list)(const lcomm_cuda_encode *list, uint32_t count, void *stream);
  int (*decode_list)(const lcomm_cuda_decode *list, uint32_t count, void *stream);
  int (*copy_list)(const lcomm_cuda_copy *list, uint32_t count, void *stream);
  int (*fetch_list)(const lcomm_cuda_fetch *list, uint32_t count, void *stream);

  /* One after the other, in a launch for each LCOMM_CUDA_NUMBERS_MAX of them. */
  int (*numbers)(const lcomm_cuda_number *list, uint32_t count, void *stream);
  int (*gates)(const lcomm_cuda_gate *list, uint32_t count, void *stream);

  /* 16-bit values of a program (kind F16 or BF16), at any even address, to float32 and
   * back: destination = factor * value; half = RNE(source). Slower than sum and
   * encode, whose codes begin at multiples of 8. */
  int (*unaligned16_load)(lcomm_cuda_kind kind, const void *codes, float factor, float *destination,
                          uint64_t n, void *stream);
  int (*unaligned16_store)(lcomm_cuda_kind kind, const float *source, void *codes, uint64_t n,
                           void *stream);

  /* lcomm_residual_fold: values += before; residual = 0. */
  int (*fold)(float *values, const float *before, float *residual, uint64_t n, void *stream);
  /* sums += values */
  int (*add_to_f64)(double *sums, const float *values, uint64_t n, void *stream);
  /* f32_momentum of kernels.h. */
  int (*momentum)(float factor, const float *before, float *momentum, float *gradient, uint64_t n,
                  void *stream);
  /* lcomm_plain_mean_f32 of plain.h. */
  int (*mean)(float keep, const float *before, float take, const float *values, float *mean,
              uint64_t n, void *stream);
  /* How many of n values are NaN or Inf, added to *found. */
  int (*count_not_finite)(const float *source, uint64_t n, uint64_t *found, void *stream);
  int (*count_not_finite_f64)(const double *source, uint64_t n, uint64_t *found, void *stream);
  /* Divide towards zero. */
  struct {
    int (*i32)(int32_t *values, int32_t divisor, uint64_t n, void *stream);
    int (*i64)(int64_t *values, int64_t divisor, uint64_t n, void *stream);
    int (*i8)(int8_t *values, int32_t divisor, uint64_t n, void *stream);
    int (*u8)(uint8_t *values, int32_t divisor, uint64_t n, void *stream);
  } divide;
  /* The sums of squares of kernels/squares.h: total[0] is before[0] and that of n values, total[1]
   * before[1] and that of float64 values times LCOMM_SQUARES_UNIT. before NULL: zeros. `total` has
   * LCOMM_CUDA_SQUARES doubles, all but two of which are scratch. */
  int (*squares)(const float *values, uint64_t n, const double *before, double *total,
                 void *stream);
  int (*squares_f64)(const double *values, uint64_t n, const double *before, double *total,
                     void *stream);
  /* Scale n values down so that the norm of all whose squares are in `total` is at most `limit`. */
  int (*clip_to)(float *values, uint64_t n, const double *total, double limit, void *stream);
  int (*clip_to_f64)(double *values, uint64_t n, const double *total, double limit, void *stream);
  /* The elements of a sample, and added to what is there. */
  int (*sample)(const lcomm_cuda_sample *a, void *stream);
  int (*sample_add)(const lcomm_cuda_sample *a, void *stream);
  /* split2, split4, join2, join4 of kernels.h: `width` is 2 or 4. */
  int (*split)(unsigned width, const uint8_t *source, uint8_t *const *plane, uint64_t n,
               void *stream);
  int (*join)(unsigned width, const uint8_t *const *plane, uint8_t *destination, uint64_t n,
              void *stream);
  lcomm_cuda_lowrank lowrank;

  size_t (*topk_size)(const lcomm_cuda_topk_shape *shape);
  /* NULL when memory is short. */
  lcomm_cuda_topk *(*topk_create)(const lcomm_cuda_topk_shape *shape, void *memory, void *stream);
  void (*topk_destroy)(lcomm_cuda_topk *topk);
  int (*topk_encode)(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a, void *stream);
  /* Bytes of scratch for payloads of up to `entries` entries and `size` bytes. */
  size_t (*topk_scratch)(uint64_t entries, uint64_t size);
  /* base[global] += factor * value for every entry; positions of one payload
   * differ, and payloads are added in the order of the calls. */
  int (*topk_add)(const lcomm_cuda_sparse *a, float factor, float *base, void *stream);
  /* Zeros in the view, then topk_add. */
  int (*topk_decode)(const lcomm_cuda_sparse *a, float factor, float *base, void *stream);
  /* Up to LCOMM_CUDA_LIST_MAX payloads, up to LCOMM_CUDA_COMMITS_MAX that were sent among them,
   * each with scratch of its own: of no entries, because positions have a place of theirs.
   * topk_decode of each, in one launch more than applying one takes, and in another one where there
   * is any residual: views do not overlap, in no array. topk_add of each to one array, in order, in
   * a launch for each more than reading takes. */
  int (*topk_decode_list)(const lcomm_cuda_topk_decode *list, uint32_t count, float factor,
                          void *stream);
  int (*topk_add_list)(const lcomm_cuda_sparse *list, uint32_t count, float factor, float *base,
                       void *stream);
  /* lcomm_topk_commit and lcomm_topk_mask; applied NULL: everything was. */
  int (*topk_commit)(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                     float *residual, void *stream);
  int (*topk_mask)(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied, float *momentum,
                   void *stream);
} lcomm_cuda_kernels;

extern const lcomm_cuda_kernels lcomm_cuda_kernels_table;

#endif
