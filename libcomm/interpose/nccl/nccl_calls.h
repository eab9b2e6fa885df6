/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_CALLS_H
#define LCOMM_INTERPOSE_NCCL_CALLS_H

/* The functions that NCCL's names stand for in this process. */

#include <stdatomic.h>
#include <stdbool.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"

#define LCOMM_NCCL_MEMBER(name, kind, n, ...)                                                      \
  LCOMM_NCCL_RETURNS(kind)(*name) LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
typedef struct lcomm_nccl_calls {
  LCOMM_NCCL_LIST(LCOMM_NCCL_MEMBER)
} lcomm_nccl_calls;
#undef LCOMM_NCCL_MEMBER

enum { LCOMM_NCCL_PATH_MAX = 4096, LCOMM_NCCL_SENTENCE_MAX = 4608 };

/* What was decided when the process called NCCL for the first time. */
typedef struct lcomm_nccl_choice {
  lcomm_nccl_calls calls;
  char reason[LCOMM_NCCL_SENTENCE_MAX]; /* why calls are refused, as the end of a sentence */
  int version;                          /* what ncclGetVersion tells; 0: it asks `below` */
  bool is_alone;                        /* libcomm makes the calls */
  lcomm_nccl_calls below;               /* functions of the NCCL below, or refusals */
  void (*reset_debug_below)(void);      /* its ncclResetDebugInitInternal, NULL without */
} lcomm_nccl_choice;

/* NULL before the first call of the process; set once, and never freed. */
extern _Atomic(const lcomm_nccl_choice *) lcomm_nccl_in_force;

/* Decide, if that is not done yet. Never NULL. Any thread, also several at a time: no lock is held,
 * because constructors of the libraries that are opened meanwhile may call NCCL. */
const lcomm_nccl_choice *lcomm_nccl_start(void);

static inline const lcomm_nccl_choice *lcomm_nccl_now(void) {
  const lcomm_nccl_choice *now = atomic_load_explicit(&lcomm_nccl_in_force, memory_order_acquire);
  return now ? now : lcomm_nccl_start();
}

/* ------------------------------------------------------------ NCCL below */

/* Find and open the NCCL that the program would use without this library, and choose that it makes
 * all calls. False: there is none, and `reason` says so. */
bool lcomm_nccl_over(lcomm_nccl_choice *choice);

/* Take a look at a file that may be NCCL. True: that is it, look no further. */
typedef bool (*lcomm_nccl_visit)(void *context, const char *path);

/* Visit the files that may be the NCCL of this process, best first: where the loader looks on
 * behalf of libraries that need it, where Python packages keep it. True: a visit was. */
bool lcomm_nccl_search(lcomm_nccl_visit visit, void *context);

/* ------------------------------------------------------------------ alone */

/* Choose that libcomm makes all calls that it can, and refuses the others. nccl_comm.h
 * False: the program may not run so, and `reason` says why. */
bool lcomm_nccl_alone(lcomm_nccl_choice *choice);

/* LCOMM_NCCL_VERSION; 0: there is none, or it is none, which is logged. */
int lcomm_nccl_version_to_tell(void);

/* --------------------------------------------------------------- refusals */

/* Every function refuses, but for ncclGetErrorString and ncclGetLastError. */
extern const lcomm_nccl_calls lcomm_nccl_refusing;

/* What calls find that constructors make of libraries which the decision opens; and what calls find
 * in a process that has no memory for it. */
extern const lcomm_nccl_choice lcomm_nccl_while_opening, lcomm_nccl_without_memory;

/* The texts of NCCL's results. Static. */
const char *lcomm_nccl_error_string(ncclResult_t result);

/* The call fails: the sentence is the thread's last error. Return `result`. */
ncclResult_t lcomm_nccl_fail(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The sentence of the last call of this thread that this library failed, and that was not told yet;
 * NULL: there is none. The text stays until the thread's next failure. */
const char *lcomm_nccl_last_failure(void);

/* One line on standard error, with the library's name before it. Any thread. */
void lcomm_nccl_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
