/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_WRITE_GUARD_H
#define LCOMM_BASE_WRITE_GUARD_H

/* Writing without the signals that a failed write sends to the thread: SIGXFSZ past
 * a file size limit, SIGPIPE without a reader. Either would end a program over a file
 * that it can do without. The program's handlers stay as they are, and so do signals
 * from elsewhere: only one that a write between begin and end has sent is taken away. */

#include <signal.h>

typedef struct lcomm_write_guard {
  sigset_t mask;    /* of the thread, before */
  sigset_t pending; /* that were waiting already */
} lcomm_write_guard;

/* Begin, and end on the same thread. error: errno of the first write that failed,
 * 0 when all went well. Neither changes errno. */
void lcomm_write_guard_begin(lcomm_write_guard *guard);
void lcomm_write_guard_end(const lcomm_write_guard *guard, int error);

#endif
