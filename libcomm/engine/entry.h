/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_ENTRY_H
#define LCOMM_ENGINE_ENTRY_H

/* Entry and exit of every public call: check the process, take the turn, give it up. */

#include "libcomm/base/error.h"
#include "libcomm/base/fork.h"
#include "libcomm/engine/progress_thread.h"

/* Write the sentence for a forked child, in the thread's error: nothing of the
 * communicator is touched there, its locks included. Returns STATE. */
lcomm_status lcomm_refuse_child(const lcomm_comm *comm);

/* Is this a forked child of the process that made the communicator? */
static inline bool lcomm_is_child(const lcomm_comm *comm) {
  return comm->identity.fork_generation != lcomm_fork_generation;
}

/* For calls that need no turn. STATE in a forked child. */
static inline lcomm_status lcomm_check_process(const lcomm_comm *comm) {
  return lcomm_is_child(comm) ? lcomm_refuse_child(comm) : LCOMM_OK;
}

/* Around everything that a call does with a communicator; may be nested. STATE in
 * a forked child, and then there is nothing to leave. */
__attribute__((warn_unused_result)) static inline lcomm_status lcomm_enter(lcomm_comm *comm) {
  if (lcomm_is_child(comm)) {
    return lcomm_refuse_child(comm);
  }
  if (comm->progress.thread) {
    lcomm_progress_thread_enter(comm->progress.thread);
  } else {
    lcomm_turn_enter(&comm->turn);
  }
  return LCOMM_OK;
}

/* The same of a call that may be given no communicator: ARGUMENT, with the name of the call. */
__attribute__((warn_unused_result)) static inline lcomm_status lcomm_enter_given(lcomm_comm *comm,
                                                                                 const char *call) {
  return comm ? lcomm_enter(comm)
              : lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", call);
}

/* Inside: the call that follows does not block. */
static inline void lcomm_expect_overlap(lcomm_comm *comm) {
  if (comm->progress.wants_thread) {
    lcomm_progress_thread_begin(comm);
  }
}

static inline void lcomm_exit(lcomm_comm *comm) {
  if (comm->progress.thread) {
    lcomm_progress_thread_leave(comm->progress.thread);
  } else {
    lcomm_turn_leave(&comm->turn);
  }
}

#endif
