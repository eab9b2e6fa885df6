/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The list of lost ranks. */

#include "libcomm/engine/lost_ranks.h"

#include <stdio.h>
#include <string.h>

enum { LOST_MAX = 64 };

typedef struct lost_process {
  lcomm_process process; /* pid 0: this place is free */
  lcomm_status status;
  char text[LCOMM_ERROR_MAX];
} lost_process;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lost_process all[LOST_MAX];
static unsigned next; /* the place that is used next, the oldest one */

static lost_process *find(const lcomm_process *process) {
  for (int i = 0; i < LOST_MAX; i++) {
    if (all[i].process.pid == process->pid && all[i].process.host_hash == process->host_hash) {
      return &all[i];
    }
  }
  return NULL;
}

void lcomm_lost_ranks_add(const lcomm_comm *comm, const lcomm_fault *fault) {
  if (fault->culprit < 0 || fault->culprit == comm->rank ||
      (fault->status != LCOMM_ERR_TRANSPORT && fault->status != LCOMM_ERR_TIMEOUT)) {
    return;
  }
  const lcomm_process *process = &comm->identity.processes[fault->culprit];
  pthread_mutex_lock(&lock);
  if (process->pid != 0 && !find(process)) {
    lost_process *it = &all[next++ % LOST_MAX];
    it->process = *process;
    it->status = (lcomm_status)fault->status;
    snprintf(it->text, sizeof(it->text), "%s", fault->text);
  }
  pthread_mutex_unlock(&lock);
}

bool lcomm_lost_ranks_find(const lcomm_comm *comm, lcomm_fault *fault) {
  char who[96], culprit[96];
  bool found = false;
  pthread_mutex_lock(&lock);
  for (int rank = 0; !found && rank < comm->size; rank++) {
    const lcomm_process *process = &comm->identity.processes[rank];
    const lost_process *it = process->pid != 0 ? find(process) : NULL;
    found = it && rank != comm->rank;
    if (found) {
      *fault = (lcomm_fault){.status = (int32_t)it->status, .author = comm->rank, .culprit = rank};
      snprintf(fault->text, sizeof(fault->text),
               "%s: nobody waits for %s any more, which was given up by another communicator: "
               "%.700s",
               lcomm_comm_who(comm, comm->rank, who, sizeof(who)),
               lcomm_comm_who(comm, rank, culprit, sizeof(culprit)), it->text);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void lcomm_lost_ranks_forget(const lcomm_comm *comm) {
  pthread_mutex_lock(&lock);
  for (int rank = 0; rank < comm->size; rank++) {
    lost_process *it =
        comm->identity.processes[rank].pid != 0 ? find(&comm->identity.processes[rank]) : NULL;
    if (it) {
      memset(it, 0, sizeof *it);
    }
  }
  pthread_mutex_unlock(&lock);
}
