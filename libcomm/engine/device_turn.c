/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/device_turn.h"

#include "libcomm/engine/entry.h"

unsigned lcomm_turn_give(lcomm_comm *comm) {
  return comm->progress.thread ? lcomm_progress_thread_give(comm->progress.thread) : 0;
}

void lcomm_turn_take(lcomm_comm *comm, unsigned depth) {
  for (unsigned i = 0; i < depth; i++) {
    lcomm_progress_thread_enter(comm->progress.thread);
  }
}

unsigned lcomm_turn_idle_begin(lcomm_comm *comm) {
  unsigned depth = comm->progress.thread ? lcomm_progress_thread_depth(comm->progress.thread) : 0;
  lcomm_progress_thread_turns -= (int)depth;
  return depth;
}

void lcomm_turn_idle_end(unsigned depth) {
  lcomm_progress_thread_turns += (int)depth;
}

/* Whoever has the device's turn takes the communicator's in between, so not the other way round. */
void lcomm_device_turn_enter(lcomm_comm *comm) {
  unsigned depth = lcomm_turn_give(comm);
  pthread_mutex_lock(&comm->runs.device_turn);
  lcomm_turn_take(comm, depth);
}

void lcomm_device_turn_leave(lcomm_comm *comm) {
  pthread_mutex_unlock(&comm->runs.device_turn);
}

bool lcomm_proxy_start(lcomm_comm *comm) {
  if (!comm->progress.thread && comm->progress.allows_thread) {
    lcomm_progress_thread_begin(comm);
  }
  return comm->progress.thread != NULL;
}
