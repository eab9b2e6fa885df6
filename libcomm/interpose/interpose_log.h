/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_INTERPOSE_LOG_H
#define LCOMM_INTERPOSE_INTERPOSE_LOG_H

/* The log of all interposers. */

#include <stdarg.h>

/* Write one line to standard error: "LIBRARY: ...", cut to 9 KiB. Any thread. */
__attribute__((format(printf, 2, 0))) void
lcomm_interpose_log_line(const char *library, const char *format, va_list arguments);

#endif
