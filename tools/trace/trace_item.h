/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_TRACE_TRACE_ITEM_H
#define LCOMM_TOOLS_TRACE_TRACE_ITEM_H

/* One line of a rank's trace. Every byte of it is doubted. */

#include "libcomm/observe/trace_format.h"

typedef enum lcomm_trace_item_kind {
  LCOMM_ITEM_ORIGIN, /* whose trace it is */
  LCOMM_ITEM_RUN,
  LCOMM_ITEM_CLOCK,
  LCOMM_ITEM_ROW,  /* the name of a row */
  LCOMM_ITEM_SORT, /* the order of rows, which follows from their numbers */
  LCOMM_ITEM_EVENT
} lcomm_trace_item_kind;

typedef struct lcomm_trace_item {
  lcomm_trace_item_kind kind;
  lcomm_trace_origin origin;
  uint64_t run;
  int node;
  int64_t offset_ns, error_ns;
  uint32_t row; /* of ROW */
  char row_name[LCOMM_TRACE_NAME_MAX];
  lcomm_trace_event event; /* its strings are below; its times in place */
  lcomm_trace_place place;
  char operation[LCOMM_TRACE_TEXT_MAX], name[LCOMM_TRACE_TEXT_MAX], codec[LCOMM_TRACE_TEXT_MAX];
} lcomm_trace_item;

/* Read a JSON object. On false, *why is a phrase, and the item means nothing. */
bool lcomm_trace_item_read(const char *text, size_t length, lcomm_trace_item *item,
                           const char **why);

#endif
