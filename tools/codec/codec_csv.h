/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_CSV_H
#define LCOMM_TOOLS_CODEC_CODEC_CSV_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/codec/codec_results.h"

/* Write all results as comma-separated values (RFC 4180 but for the ends of
 * lines), one figure a line, under the head
 *   section,codec,source,tensor,operation,kernels,size_bytes,figure,min,median,max
 * Sections and figures have the names of codec_json.h; a figure without a spread is
 * in the column median. What a line is not about stays empty. false when the
 * file took not everything. */
bool lcomm_csv_print(const lcomm_results *results, FILE *file);

#endif
