/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_TOPK_PAYLOAD_H
#define LCOMM_CODECS_CODEC_TOPK_PAYLOAD_H

/* Writing and reading the bytes of a top-k payload, codec_topk.h has the layout. */

#include "codecs/codec.h"
#include "codecs/codec_select.h"

enum { LCOMM_TOPK_BLOCK = 32 }; /* entries that share one width */

/* Returns the size. */
size_t lcomm_topk_write(const lcomm_format *format, const lcomm_kernels *kernels,
                        const lcomm_entries *entries, uint8_t *payload);

/* Bytes of the values of `entries` entries: the end of a payload. */
size_t lcomm_topk_values_size(const lcomm_format *format, uint64_t entries);

/* The values of the entries [first, first + n) of a payload of `entries`;
 * `values` is where its values begin, and the range lies in one block of
 * LCOMM_BLOCK. */
void lcomm_topk_read_values(const lcomm_format *format, const uint8_t *values, uint32_t entries,
                            uint32_t first, uint32_t n, float *value);

/* Reads a payload that passed lcomm_topk_check, block by block. */
typedef struct lcomm_topk_reader {
  const lcomm_format *format;
  const uint8_t *index;   /* the next block */
  const uint8_t *values;  /* of all entries */
  uint32_t entries, done; /* read so far */
  uint32_t next;          /* lowest position that can follow */
} lcomm_topk_reader;

typedef struct lcomm_topk_block {
  uint32_t count; /* 0: the payload is at its end */
  uint32_t position[LCOMM_TOPK_BLOCK];
  float value[LCOMM_TOPK_BLOCK];
} lcomm_topk_block;

/* The format outlives the reader. */
lcomm_topk_reader lcomm_topk_open(const lcomm_format *format, const uint8_t *payload);
void lcomm_topk_read(lcomm_topk_reader *reader, lcomm_topk_block *block);

#endif
