/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_OUTPUT_H
#define LCOMM_TOOLS_COMMON_TOOL_OUTPUT_H

/* Files of results. */

#include <stdbool.h>
#include <stdio.h>

/* Can the file be written? A long measurement should not end with one that cannot. NULL stands for
 * none, which is good. false with a sentence in `error` (TOOL_ERROR_MAX bytes). */
bool tool_output_check(const char *path, char *error);

/* Create the file; NULL when that fails, which close reports. */
FILE *tool_output_open(const char *path);

/* Close it (NULL ok) when `good` says whether all was written. false, with a line of the program on
 * standard error, unless the file has everything. */
bool tool_output_close(const char *program, const char *path, FILE *file, bool good);

/* A cell of comma-separated values, in quotes as RFC 4180 has them; ends of lines become blanks. */
void tool_put_quoted(const char *text, FILE *file);

#endif
