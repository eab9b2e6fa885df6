/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The state of one communicator: what the policy says of it, and its name. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/leaving.h"

/* ----------------------------------------------------------------- judging */

lcomm_status lcomm_interpose_comm_judge_by(lcomm_interpose_comm *at, const char *policy) {
  lcomm_preview *preview = NULL;
  lcomm_policy_facts facts;
  lcomm_status status =
      lcomm_preview_create(lcomm_interpose_world(), at->members, at->size, policy, &preview);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_preview_facts(preview, &facts);
  lcomm_interpose_lasting *lasting =
      facts.error_feedback ? lcomm_interpose_lasting_create(NULL, facts.step_calls) : NULL;
  if (facts.error_feedback && !lasting) {
    lcomm_preview_destroy(preview);
    return LCOMM_ERR_MEMORY;
  }
  if (at->name_agreed) {
    lcomm_preview_name_set(preview, at->name);
  }
  lcomm_preview_destroy(at->preview);
  at->preview = preview;
  at->facts = facts;
  at->candidate_bytes =
      facts.min_bytes < at->candidate_bytes ? facts.min_bytes : at->candidate_bytes;
  at->lasting = lasting;
  at->home = (lcomm_interpose_home){.comm = NULL};
  at->stays_mpi = false;
  return LCOMM_OK;
}

lcomm_status lcomm_interpose_comm_init(lcomm_interpose_comm *at, MPI_Comm comm, const int *members,
                                       int size, int rank, const char *policy) {
  *at = (lcomm_interpose_comm){.comm = comm,
                               .handler = MPI_ERRHANDLER_NULL,
                               .rank = rank,
                               .size = size,
                               .candidate_bytes = UINT64_MAX,
                               .control = "on"};
  pthread_mutex_init(&at->lock, NULL);
  atomic_store(&at->users, 1);
  at->parts = malloc((size_t)size * sizeof *at->parts);
  at->members = malloc((size_t)size * sizeof *at->members);
  lcomm_status status = at->parts && at->members ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    memcpy(at->members, members, (size_t)size * sizeof *members);
    status = lcomm_interpose_comm_judge_by(at, policy);
  }
  if (status != LCOMM_OK) {
    lcomm_interpose_comm_clear(at);
  }
  return status;
}

/* Identities go before the communicators that they live in. */
void lcomm_interpose_comm_clear(lcomm_interpose_comm *at) {
  lcomm_interpose_lasting_destroy(at->lasting);
  lcomm_interpose_lasting_destroy(at->owed);
  lcomm_interpose_leave(at, &at->home);
  lcomm_interpose_leave(at, &at->owing);
  lcomm_preview_destroy(at->preview);
  if (at->handler != MPI_ERRHANDLER_NULL) {
    PMPI_Errhandler_free(&at->handler);
  }
  pthread_mutex_destroy(&at->lock);
  free(at->sentence);
  free(at->members);
  free(at->parts);
}

/* -------------------------------------------------------------------- names */

/* All ranks of the communicator say the same. */
static bool all_say(MPI_Comm comm, bool mine) {
  int least = mine;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, comm);
  return least != 0;
}

void lcomm_interpose_agree_on_name(lcomm_interpose_comm *at) {
  char mine[MPI_MAX_OBJECT_NAME] = "", first[MPI_MAX_OBJECT_NAME];
  int length = 0;
  PMPI_Comm_get_name(at->comm, mine, &length);
  memcpy(first, mine, sizeof(first));
  PMPI_Bcast(first, sizeof(first), MPI_CHAR, 0, at->comm);
  if (all_say(at->comm, strncmp(mine, first, sizeof(first)) == 0)) {
    memcpy(at->name, mine, sizeof(at->name));
    lcomm_preview_name_set(at->preview, at->name);
    if (at->home.comm) {
      lcomm_name_set(at->home.comm, at->name);
    }
  } else if (at->rank == 0) {
    lcomm_interpose_say(
        "the ranks of the communicator that rank 0 calls \"%s\" have different names "
        "for it, so no rule of match=comm= fits it; give it the same name on all ranks",
        first);
  }
  at->name_agreed = true;
}
