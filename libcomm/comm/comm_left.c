/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/comm_left.h"

#include <pthread.h>
#include <stdlib.h>

#include "libcomm/engine/exec.h"
#include "libcomm/engine/flow.h"
#include "libcomm/engine/pair.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lcomm_comm *all; /* reachable, for who looks for leaks */

void lcomm_comm_free_rest(lcomm_comm *comm) {
  lcomm_flow_free(comm);
  lcomm_pairs_free(comm);
  lcomm_runs_free_abandoned(comm);
  lcomm_links_memory_free_all(&comm->links);
  lcomm_topo_free(&comm->topo);
  lcomm_failure_state_free(comm);
  pthread_mutex_destroy(&comm->errors.lock);
  pthread_mutex_destroy(&comm->runs.device_turn);
  free(comm);
}

void lcomm_left_comms_add(lcomm_comm *comm) {
  pthread_mutex_lock(&lock);
  comm->changes.next_left = all;
  all = comm;
  pthread_mutex_unlock(&lock);
}

void lcomm_left_comms_free(void) {
  pthread_mutex_lock(&lock);
  lcomm_comm *next = all;
  all = NULL;
  pthread_mutex_unlock(&lock);
  while (next) {
    lcomm_comm *comm = next;
    next = comm->changes.next_left;
    if (lcomm_links_release(&comm->links)) {
      lcomm_comm_free_rest(comm);
    } else {
      lcomm_left_comms_add(comm);
    }
  }
}
