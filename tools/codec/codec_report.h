/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_REPORT_H
#define LCOMM_TOOLS_CODEC_CODEC_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/codec/codec_results.h"

/* Print all results as tables. false when memory ended or the file took not
 * everything. */
bool lcomm_report_print(const lcomm_results *results, FILE *file);

#endif
