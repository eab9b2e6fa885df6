/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_LOSSLESS_CHUNK_H
#define LCOMM_CODECS_LOSSLESS_CHUNK_H

/* Inside of the lossless stage, whose interface and stream are lossless.h: one
 * plane in chunks to and from zstd, and what the dense and the sparse side
 * share. */

#include "codecs/lossless.h"

enum { LCOMM_CHUNK = 64 << 10 }; /* bytes of a plane */

/* What a plane holds decides how zstd is used; frames of all kinds read the
 * same. Measured on gradients of a CNN and a transformer. */
typedef enum lcomm_plane_kind {
  /* Of a dense payload. A Huffman coder, all but no search for matches: 3.5
   * times as fast as level 1, and smaller on exponents, where the short
   * matches that level 1 finds cost more than they save. */
  LCOMM_PLANE_DENSE,
  /* Deltas, exponents and scales of a sparse payload, where what was selected
   * by layers or is left to error feedback repeats itself: level 1. */
  LCOMM_PLANE_REPEATS,
  /* Mantissas and int8 codes of a sparse payload. Error feedback leaves
   * values close above a threshold that differs between layers: a Huffman
   * coder in blocks so short that each can have a table of its own. */
  LCOMM_PLANE_MANTISSAS,
  LCOMM_PLANE_CODES,
  LCOMM_PLANE_KINDS
} lcomm_plane_kind;

/* Both contexts lie in memory of lcomm_zstd_memory() bytes at a multiple of 8,
 * which belongs to the caller; nothing else is ever allocated. */
typedef struct lcomm_zstd {
  struct ZSTD_CCtx_s *compressor; /* NULL: this zstd does not take the memory */
  struct ZSTD_DCtx_s *decompressor;
} lcomm_zstd;

size_t lcomm_zstd_memory(void);
lcomm_zstd lcomm_zstd_init(void *memory);

/* Most bytes that `planes` planes of `size` bytes together take in a stream. */
size_t lcomm_planes_bound(size_t size, size_t planes);

/* Writes a plane, returns the end. After a chunk that zstd could not make 5 %
 * smaller, the next 7 are stored without trying: chunks of a plane compress alike. */
uint8_t *lcomm_plane_encode(const lcomm_zstd *zstd, lcomm_plane_kind kind, const uint8_t *plane,
                            size_t size, uint8_t *stream);

/* What is left of a stream. */
typedef struct lcomm_stream {
  const uint8_t *bytes;
  size_t size;
} lcomm_stream;

/* Fills a plane of just `size` bytes from untrusted ones and moves on. NULL, or
 * a static phrase that says what is wrong with the stream. */
const char *lcomm_plane_decode(const lcomm_zstd *zstd, lcomm_stream *stream, uint8_t *plane,
                               size_t size);

struct lcomm_lossless {
  lcomm_format format;
  lcomm_zstd zstd;
  size_t payload_bound;
  uint8_t *planes; /* of one payload */
  size_t planes_size;
};

/* The sparse side (lossless_topk.c) of the functions of lossless.h. Payloads of
 * at most `payload_bound` bytes have planes of lcomm_lossless_topk_planes()
 * bytes together; decode returns NULL or what is wrong. */
size_t lcomm_lossless_topk_planes(const lcomm_format *format, size_t payload_bound);
size_t lcomm_lossless_topk_encode(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                  const uint8_t *payload, uint8_t *stream);
const char *lcomm_lossless_topk_decode(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                       lcomm_stream stream, uint64_t count, uint8_t *payload,
                                       size_t capacity, size_t *payload_size);

#endif
