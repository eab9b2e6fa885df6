/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/log.h"
#include "libcomm/comm/create_internal.h"
#include "libcomm/engine/progress_thread.h"
#include "libcomm/transport/mpi/mpi_table.h"

static bool allows_driver(const lcomm_comm *comm) {
  return !lcomm_links_use(&comm->links, "mpi") || lcomm_mpi_allows_threads();
}

/* In percent; 0 when it cannot be found out. */
static uint64_t find_share(const lcomm_comm *comm, const lcomm_create_context *m) {
  lcomm_processors *all = calloc((size_t)comm->size, sizeof *all);
  for (int i = 0; all && i < comm->size; i++) {
    all[i] = m->all[i].processors;
  }
  uint64_t share = all ? lcomm_processors_share(all, comm->size, comm->rank) : 0;
  free(all);
  return share;
}

/* A thread that shares a processor with the program, or with another rank, costs more
 * than it hides. All ranks of a machine find the same. */
static void choose_progress(lcomm_comm *comm, uint64_t share) {
  char text[256], who[96];
  bool enough = comm->size > 1 && share >= LCOMM_PROCESSORS_ENOUGH;
  comm->progress.wants_thread = enough && comm->progress.allows_thread;
  snprintf(text, sizeof(text), "%s: progress %s: %llu.%02llu processors for each rank%s",
           lcomm_comm_who(comm, comm->rank, who, sizeof(who)),
           comm->progress.wants_thread ? "by a thread, from the first call that does not block"
                                       : "in calls",
           (unsigned long long)(share / 100), (unsigned long long)(share % 100),
           enough && !comm->progress.wants_thread
               ? ", but MPI was not initialised with MPI_THREAD_MULTIPLE"
               : "");
  if (lcomm_local_rank(comm) == 0) {
    lcomm_log_info(text);
  }
}

lcomm_status lcomm_create_choose_waiting(lcomm_comm *comm, const lcomm_create_context *m) {
  lcomm_why why;
  uint64_t share = find_share(comm, m);
  comm->waiting.crowded = share < 100;
  comm->progress.allows_thread = allows_driver(comm);
  if (comm->settings.progress == LCOMM_PROGRESS_AUTO) {
    choose_progress(comm, share);
    return LCOMM_OK;
  }
  if (comm->settings.progress == LCOMM_PROGRESS_CALLS) {
    return LCOMM_OK;
  }
  if (!comm->progress.allows_thread) {
    return lcomm_create_complain(
        comm->rank, &m->mine->identity, LCOMM_ERR_UNSUPPORTED,
        "a progress thread moves messages over MPI only where MPI was initialised "
        "with MPI_THREAD_MULTIPLE; do that, or set LCOMM_PROGRESS to auto or calls");
  }
  lcomm_status status = lcomm_progress_thread_start(comm, 0, &why);
  if (status != LCOMM_OK) {
    return lcomm_create_complain(comm->rank, &m->mine->identity, status, why.text);
  }
  return LCOMM_OK;
}

bool lcomm_create_waiting_may_fail(const lcomm_comm *comm, const lcomm_create_context *m) {
  for (int i = 0; i < comm->size; i++) {
    if (m->all[i].progress != LCOMM_PROGRESS_AUTO && m->all[i].progress != LCOMM_PROGRESS_CALLS) {
      return true;
    }
  }
  return false;
}
