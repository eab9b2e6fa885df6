/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_VERSION_H
#define LCOMM_TOOLS_COMMON_TOOL_VERSION_H

/* What every program says to --version, on standard output. */
void tool_print_version(const char *program);

#endif
