/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_REPORT_H
#define LCOMM_TOOLS_STREAM_STREAM_REPORT_H

#include <stdio.h>

#include "tools/stream/stream_case.h"

/* false: not all was written. */
bool stream_print(const stream_world *world, const stream_result *results, size_t count,
                  FILE *file);
bool stream_json(const stream_world *world, const stream_result *results, size_t count, FILE *file);
bool stream_list(FILE *file);

#endif
