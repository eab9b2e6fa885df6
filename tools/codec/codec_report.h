/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_REPORT_H
#define LCOMM_TOOLS_CODEC_CODEC_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/codec/codec_results.h"
#include "tools/common/tool_table.h"

/* Print all results as tables. false when memory ended or the file took not
 * everything. */
bool lcomm_report_print(const lcomm_results *results, FILE *file);

/* Its parts, a table each. */
typedef struct lcomm_page {
  const lcomm_results *results;
  FILE *file;
  bool colours;
  bool failed; /* memory ended */
} lcomm_page;

/* An empty line and a heading. */
void lcomm_page_title(const lcomm_page *p, const char *text);

/* Prints and frees the table. */
void lcomm_page_print(lcomm_page *p, tool_table *table);

size_t lcomm_page_codecs(const lcomm_page *p);

/* What to make of all: where does which codec pay? Nothing when no codec's bytes and speeds were
 * both measured. */
void lcomm_page_verdict(lcomm_page *p);

void lcomm_page_quality(lcomm_page *p);
void lcomm_page_tensors(lcomm_page *p);
void lcomm_page_steps(lcomm_page *p);

/* All speeds at one size. */
void lcomm_page_speed(lcomm_page *p, uint64_t size_bytes);

/* Nothing when there are none. */
void lcomm_page_comparisons(lcomm_page *p);

#endif
