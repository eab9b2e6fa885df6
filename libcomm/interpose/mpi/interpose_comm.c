/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The state of one communicator: its policy, its name, and the control file that replaces the
 * policy. */

#include "libcomm/interpose/mpi/interpose_comm.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_BETWEEN_READS = 16, WORDS_MAX = LCOMM_INTERPOSE_CONTROL_MAX };

/* ------------------------------------------------------------------- policy */

/* NULL: LCOMM_POLICY. Local; no call is pending. The former at->ef and backing belong to the caller
 * then. On failure nothing has changed. */
static lcomm_status set_policy(lcomm_interpose_comm *at, const char *text) {
  lcomm_interpose_policy *policy = &at->policy;
  lcomm_preview *preview = NULL;
  lcomm_policy_facts facts;
  lcomm_status status =
      lcomm_preview_create(lcomm_interpose_world(), at->members, at->size, text, &preview);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_preview_facts(preview, &facts);
  lcomm_interpose_ef *ef =
      facts.error_feedback ? lcomm_interpose_ef_create(facts.step_calls) : NULL;
  if (facts.error_feedback && !ef) {
    lcomm_preview_destroy(preview);
    return LCOMM_ERR_MEMORY;
  }
  if (at->name_agreed) {
    lcomm_preview_name_set(preview, at->name);
  }
  lcomm_preview_destroy(policy->preview);
  policy->preview = preview;
  policy->facts = facts;
  if (facts.min_bytes < policy->candidate_bytes) {
    policy->candidate_bytes = facts.min_bytes;
  }
  at->ef = ef;
  lcomm_interpose_context_reset(&at->context);
  return LCOMM_OK;
}

lcomm_status lcomm_interpose_comm_init(lcomm_interpose_comm *at, MPI_Comm comm, const int *members,
                                       int size, int rank, const char *policy) {
  *at = (lcomm_interpose_comm){.comm = comm,
                               .handler = MPI_ERRHANDLER_NULL,
                               .rank = rank,
                               .size = size,
                               .policy = {.candidate_bytes = UINT64_MAX, .control = "on"}};
  pthread_mutex_init(&at->lock, NULL);
  atomic_store(&at->users, 1);
  at->parts = malloc((size_t)size * sizeof *at->parts);
  at->members = malloc((size_t)size * sizeof *at->members);
  lcomm_status status = at->parts && at->members ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    memcpy(at->members, members, (size_t)size * sizeof *members);
    status = set_policy(at, policy);
  }
  if (status != LCOMM_OK) {
    lcomm_interpose_comm_clear(at);
  }
  return status;
}

/* Residuals go before the communicators that they live in. */
void lcomm_interpose_comm_clear(lcomm_interpose_comm *at) {
  lcomm_interpose_ef_destroy(at->ef);
  lcomm_interpose_ef_destroy(at->former_ef);
  lcomm_interpose_backing_release(at, &at->context.backing);
  lcomm_interpose_backing_release(at, &at->former_backing);
  lcomm_preview_destroy(at->policy.preview);
  if (at->handler != MPI_ERRHANDLER_NULL) {
    PMPI_Errhandler_free(&at->handler);
  }
  pthread_mutex_destroy(&at->lock);
  lcomm_interpose_context_clear(&at->context);
  free(at->members);
  free(at->parts);
}

/* --------------------------------------------------------------------- name */

static bool all_agree(MPI_Comm comm, bool mine) {
  int least = mine;
  PMPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, comm);
  return least != 0;
}

void lcomm_interpose_comm_agree_on_name(lcomm_interpose_comm *at) {
  char mine[MPI_MAX_OBJECT_NAME] = "", first[MPI_MAX_OBJECT_NAME];
  int length = 0;
  PMPI_Comm_get_name(at->comm, mine, &length);
  memcpy(first, mine, sizeof(first));
  PMPI_Bcast(first, sizeof(first), MPI_CHAR, 0, at->comm);
  if (all_agree(at->comm, strncmp(mine, first, sizeof(first)) == 0)) {
    memcpy(at->name, mine, sizeof(at->name));
    lcomm_preview_name_set(at->policy.preview, at->name);
    if (at->context.backing.comm) {
      lcomm_name_set(at->context.backing.comm, at->name);
    }
  } else if (at->rank == 0) {
    lcomm_interpose_log(
        "the ranks of the communicator that rank 0 calls \"%s\" have different names "
        "for it, so no rule of match=comm= fits it; give it the same name on all ranks",
        first);
  }
  at->name_agreed = true;
}

/* -------------------------------------------------------------- control file */

static void log_change(const lcomm_interpose_comm *at, const char *what, const char *why) {
  if (at->rank == 0) {
    lcomm_interpose_control_say(lcomm_interpose_log, what, why);
  }
}

/* Free the former policy's residuals and backing when the last residual is flushed. */
static void drop_former(lcomm_interpose_comm *at) {
  if (at->former_ef && lcomm_interpose_ef_carrying(at->former_ef) == 0) {
    lcomm_interpose_drain(at); /* the last flush may be in flight */
    lcomm_interpose_ef_destroy(at->former_ef);
    lcomm_interpose_backing_release(at, &at->former_backing);
    at->former_ef = NULL;
  }
}

/* Calls to come flush the residuals of the policy that is replaced. Those of the one before it, for
 * which no call has come in all that time, are dropped. */
static bool replace_policy(lcomm_interpose_comm *at, const char *text) {
  lcomm_interpose_drain(at);
  lcomm_interpose_backing backing = at->context.backing;
  lcomm_interpose_ef *ef = at->ef;
  if (set_policy(at, text) != LCOMM_OK) {
    log_change(at, "the policy stays as it is: ", lcomm_last_error(NULL));
    return false;
  }
  at->policy.off = false;
  lcomm_interpose_ef_destroy(at->former_ef);
  lcomm_interpose_backing_release(at, &at->former_backing);
  at->former_ef = ef;
  at->former_backing = backing;
  if (ef) {
    lcomm_interpose_ef_suspend(ef);
    drop_former(at);
  } else {
    lcomm_interpose_backing_release(at, &at->former_backing);
  }
  log_change(at, "from here on the policy is ", lcomm_preview_policy(at->policy.preview));
  return true;
}

static void switch_off(lcomm_interpose_comm *at) {
  at->policy.off = true;
  if (at->ef) {
    lcomm_interpose_ef_suspend(at->ef);
  }
  log_change(at, "from here on all calls are MPI's", "");
}

static void switch_on(lcomm_interpose_comm *at) {
  if (at->policy.replaced) {
    at->policy.replaced = !replace_policy(at, NULL);
  } else if (at->policy.off) {
    at->policy.off = false;
    if (at->ef) {
      lcomm_interpose_ef_resume(at->ef);
    }
    log_change(at, "on again, the policy is ", lcomm_preview_policy(at->policy.preview));
  }
}

static void obey(lcomm_interpose_comm *at, const char *words) {
  const char *policy = NULL;
  switch (lcomm_interpose_control_parse(words, &policy)) {
  case LCOMM_INTERPOSE_CONTROL_POLICY:
    at->policy.replaced |= replace_policy(at, policy);
    break;
  case LCOMM_INTERPOSE_CONTROL_OFF:
    switch_off(at);
    break;
  case LCOMM_INTERPOSE_CONTROL_ON:
    switch_on(at);
    break;
  case LCOMM_INTERPOSE_CONTROL_UNKNOWN:
    log_change(at, "neither on, off nor policy WORDS, ignored: ", words);
  }
}

/* In a blocking call of all ranks. */
static void agree_on_words(lcomm_interpose_comm *at) {
  char words[WORDS_MAX] = "";
  if (at->rank == 0) {
    lcomm_interpose_control_read(words);
  }
  PMPI_Bcast(words, WORDS_MAX, MPI_CHAR, 0, at->comm);
  lcomm_interpose_text_sanitize(words, sizeof(words));
  if (strcmp(words, at->policy.control) != 0) {
    memcpy(at->policy.control, words, sizeof(at->policy.control));
    obey(at, words);
  }
}

void lcomm_interpose_control_poll(lcomm_interpose_comm *at) {
  drop_former(at);
  if (lcomm_interpose_control_wanted() && at->policy.candidates % CALLS_BETWEEN_READS == 1) {
    agree_on_words(at);
  }
}
