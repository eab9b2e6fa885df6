/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_LOG_H
#define LCOMM_BASE_LOG_H

/* The log: what the library reports besides the errors it returns. LCOMM_LOG, LCOMM_LOG_FILE and
 * lcomm_log_set() of libcomm.h configure it. Any thread, at any time. */

#include <stdbool.h>
#include <stddef.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"

/* Is this level logged? For sentences that take time to make. */
bool lcomm_log_wants(lcomm_log_level level);

/* Log one sentence if its level is logged. */
void lcomm_log(lcomm_log_level level, const char *sentence);

/* Begin the log of a new communicator: read the variables again, and open the file of
 * LCOMM_LOG_FILE if that was not done in this process. ARGUMENT with a sentence in `why` for values
 * that are none. If the file cannot be opened, a sentence on standard error says so, and the log
 * goes there. */
lcomm_status lcomm_log_begin(int rank, const char *host, lcomm_why *why);

/* The path of a pattern: %r the rank, %h the host, %p the process, %% a %. False when it has
 * another one, or is too long. */
bool lcomm_log_path(const char *pattern, int rank, const char *host, char *path, size_t size);

#endif
