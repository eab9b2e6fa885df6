/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_TOPK_PAYLOAD_H
#define LCOMM_CODECS_TOPK_PAYLOAD_H

/* Writing and reading the bytes of a top-k payload, topk.h has the layout. */

#include "codecs/select.h"

enum { LCOMM_TOPK_BLOCK = 32 }; /* entries that share one width */

/* Returns the size. */
size_t lcomm_topk_write(const lcomm_entries *entries, uint8_t *payload);

/* Reads a payload that passed lcomm_topk_check, block by block. */
typedef struct lcomm_topk_reader {
  const uint8_t *index, *value; /* the next block, its values */
  uint32_t left;                /* entries */
  uint32_t next;                /* lowest position that can follow */
} lcomm_topk_reader;

typedef struct lcomm_topk_block {
  uint32_t count; /* 0: the payload is at its end */
  uint32_t position[LCOMM_TOPK_BLOCK];
  float value[LCOMM_TOPK_BLOCK];
} lcomm_topk_block;

lcomm_topk_reader lcomm_topk_open(const uint8_t *payload);
void lcomm_topk_read(lcomm_topk_reader *reader, lcomm_topk_block *block);

#endif
