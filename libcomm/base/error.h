/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_ERROR_H
#define LCOMM_BASE_ERROR_H

/* Error sentences. The function that detects an error writes the sentence;
 * callers only pass the status on. */

#include <stdarg.h>
#include <stddef.h>

#include "libcomm/include/libcomm_types.h"

enum { LCOMM_ERROR_MAX = 1024 };

/* A sentence on its way up, beside a status: why something cannot be done. Whoever knows
 * for whom it was tried passes it on as an error. */
enum { LCOMM_WHY_MAX = 512 };

typedef struct lcomm_why {
  char text[LCOMM_WHY_MAX];
} lcomm_why;

/* Write the sentence; returns status. No argument may be why->text. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_why_set(lcomm_why *why, lcomm_status status, const char *format, ...);

/* Return the status of `expression` if it is not LCOMM_OK; for functions that have nothing
 * to free. */
#define LCOMM_TRY(expression)                                                                      \
  do {                                                                                             \
    lcomm_status tried_ = (expression);                                                            \
    if (tried_ != LCOMM_OK) {                                                                      \
      return tried_;                                                                               \
    }                                                                                              \
  } while (0)

/* Of two steps that were both taken, such as parts of an end: the status of the first that failed.
 */
static inline lcomm_status lcomm_first_failure(lcomm_status first, lcomm_status second) {
  return first != LCOMM_OK ? first : second;
}

/* Write the calling thread's error outside any communicator; returns status. Visible to
 * libcomm-with-mpi.so. */
LCOMM_API __attribute__((format(printf, 2, 3))) lcomm_status
lcomm_error_thread(lcomm_status status, const char *format, ...);

/* The same for a sentence that was logged already: it is not logged again. */
void lcomm_error_thread_keep(const char *sentence);

/* The calling thread's last error, "" if none. */
const char *lcomm_error_thread_text(void);

/* Log one sentence if LCOMM_LOG asks for its level (log.h). A warning reports what no status
 * reports, because the program goes on; it is logged by default. */
void lcomm_log_warning(const char *sentence);
void lcomm_log_error(const char *sentence);
void lcomm_log_info(const char *sentence);

#endif
