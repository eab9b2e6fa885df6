/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_TOPK_INTERNAL_H
#define LCOMM_CODECS_CODEC_TOPK_INTERNAL_H

/* The encoder: made by codec_topk.c, used by codec_topk_encode.c. */

#include "codecs/codec_select.h"
#include "codecs/codec_topk.h"

/* Local indices [first, first + count), of which `kept` are sent. */
typedef struct lcomm_topk_segment {
  uint64_t first, count, kept;
  uint64_t waited; /* of the entries that were selected last: did not fit into their output */
} lcomm_topk_segment;

struct lcomm_topk {
  lcomm_format format;
  uint64_t base_count, total;
  uint32_t parts, part, outputs;
  size_t segments;
  lcomm_topk_segment *segment;
  lcomm_entries chosen; /* of the whole view */
  lcomm_entries split;  /* the same by output; only when outputs > 1 */
  size_t *split_end;    /* of each output in split */
  uint64_t *key;        /* scratch of selection */
};

#endif
