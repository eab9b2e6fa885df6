/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Making a communicator of libcomm: the number, then lcomm_create_part() over messages. */

#include "libcomm/interpose/mpi/making.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/leaving.h"
#include "libcomm/interpose/mpi/meeting.h"
#include "libcomm/interpose/mpi/slots.h"

typedef enum making_state { AGREEING, RUNNING, OVER } making_state;

/* Of a call that does not block. */
typedef struct lcomm_interpose_making {
  lcomm_interpose_comm *at;
  lcomm_interpose_home home;
  MPI_Request request; /* of the number's broadcast */
  making_state state;
  pthread_t thread;
  atomic_bool done; /* by the thread, which has written the rest */
  lcomm_status status;
  char *sentence;
} making;

static const char no_slot[] = "its messages would travel over MPI, which serves 63 communicators "
                              "of libcomm at a time; install "
                              "UCX on all hosts";

/* Of communicators whose rank 0 this rank is. The world's has 0. */
static atomic_uint_fast64_t numbers = 1;

/* ------------------------------------------------------------------ making */

/* What this rank says of one that does not come; NULL when memory is short. */
static char *late_text(const lcomm_interpose_comm *at, int late) {
  char text[256];
  snprintf(
      text, sizeof(text),
      "rank %d of the world has not come to a sum on a communicator of %d ranks for %.0f s. It "
      "may be dead, stopped, or in another call. LCOMM_TIMEOUT_S sets the patience.",
      late, at->size, lcomm_interpose_patience_s());
  return strdup(text);
}

static lcomm_status create_over(lcomm_interpose_meeting_point *point,
                                const lcomm_interpose_comm *at, lcomm_interpose_home *home) {
  lcomm_bootstrap boot = {.rank = at->rank,
                          .world_size = at->size,
                          .context = point,
                          .allgather = lcomm_interpose_meeting_gather};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = lcomm_preview_policy(at->preview);
  config.timeout_s = lcomm_setting("LCOMM_TIMEOUT_S") ? 0 : LCOMM_INTERPOSE_PATIENCE_S;
  lcomm_status status =
      lcomm_create_part(lcomm_interpose_world(), at->members, &boot,
                        lcomm_interpose_slot_comm(home->slot), &config, &home->comm);
  if (status != LCOMM_OK) { /* all ranks have seen the same, so nothing is under way */
    lcomm_interpose_slot_give_back(home->slot);
  }
  return status;
}

/* Collective over the ranks, in any thread. at->members and the policy stay as they are. Fills
 * in comm and slot of the home. */
static lcomm_status create(const lcomm_interpose_comm *at, lcomm_interpose_home *home,
                           char **sentence) {
  lcomm_interpose_meeting_point point = {.members = at->members,
                                         .size = at->size,
                                         .rank = at->rank,
                                         .number = home->number,
                                         .late = -1};
  lcomm_interpose_sweep();
  bool has_slot = lcomm_interpose_slot_take(&point, &home->slot);
  lcomm_status status = has_slot ? create_over(&point, at, home) : LCOMM_ERR_TRANSPORT;
  if (point.late >= 0) {
    *sentence = late_text(at, point.late);
    return LCOMM_ERR_TIMEOUT;
  }
  if (status != LCOMM_OK) {
    *sentence = strdup(has_slot ? lcomm_last_error(NULL) : no_slot);
    return status;
  }
  lcomm_stats_hide(home->comm);
  if (at->name_agreed) {
    lcomm_name_set(home->comm, at->name);
  }
  return LCOMM_OK;
}

static uint64_t draw(const lcomm_interpose_comm *at) {
  return at->rank == 0 ? atomic_fetch_add(&numbers, 1) : 0;
}

/* ----------------------------------------------------------- blocking calls */

/* The broadcast takes the place of the program's call. */
static lcomm_status agree_on_number(lcomm_interpose_comm *at) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = PMPI_Ibcast(&at->home.number, 1, MPI_UINT64_T, 0, at->comm, &request);
  if (code == MPI_SUCCESS && lcomm_interpose_meeting_wait(1, &request) < 0) {
    return LCOMM_OK;
  }
  at->sentence = late_text(at, at->members[0]);
  return LCOMM_ERR_TIMEOUT;
}

/* All ranks have come to the same verdict. */
static void stay_with_mpi(lcomm_interpose_comm *at) {
  at->stays_mpi = true;
  if (at->rank == 0) {
    lcomm_interpose_say("a communicator of %d ranks stays plain MPI: %s", at->size,
                        at->sentence ? at->sentence : "out of memory");
  }
}

lcomm_status lcomm_interpose_make_home(lcomm_interpose_comm *at) {
  if (at->home.comm || at->unmade != LCOMM_OK) {
    return at->unmade;
  }
  at->home.number = draw(at);
  lcomm_status status = agree_on_number(at);
  if (status == LCOMM_OK) {
    status = create(at, &at->home, &at->sentence);
  }
  if (status == LCOMM_ERR_TIMEOUT) {
    at->unmade = status;
  } else if (status != LCOMM_OK) {
    stay_with_mpi(at);
  }
  return status;
}

/* -------------------------------------------------- calls that do not block */

/* Only calls begin a making, and there is one at a time on a communicator. */
static bool is_begun(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&at->lock);
  bool begun = at->home.comm || at->making || at->unmade != LCOMM_OK;
  pthread_mutex_unlock(&at->lock);
  return begun;
}

bool lcomm_interpose_begin_home(lcomm_interpose_comm *at) {
  if (is_begun(at)) {
    return true;
  }
  making *m = calloc(1, sizeof *m);
  if (!m) {
    return false;
  }
  m->at = at;
  m->home.number = draw(at);
  m->request = MPI_REQUEST_NULL;
  if (PMPI_Ibcast(&m->home.number, 1, MPI_UINT64_T, 0, at->comm, &m->request) != MPI_SUCCESS) {
    free(m);
    return false;
  }
  pthread_mutex_lock(&at->lock);
  at->making = m;
  pthread_mutex_unlock(&at->lock);
  return true;
}

static void *run(void *context) {
  making *m = context;
  m->status = create(m->at, &m->home, &m->sentence);
  atomic_store(&m->done, true);
  return NULL;
}

/* A thread of its own: it waits for the ranks of this communicator, and the queue's thread
 * for nobody. */
static void start(making *m) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  m->state = pthread_create(&m->thread, NULL, run, m) == 0 ? RUNNING : OVER;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (m->state == OVER) {
    m->status = LCOMM_ERR_SYSTEM;
    m->sentence = strdup("a rank can start no thread to make a communicator; raise the limit of "
                         "processes (ulimit -u)");
  }
}

static bool number_is_here(making *m) {
  int here = 0;
  PMPI_Test(&m->request, &here, MPI_STATUS_IGNORE);
  return here != 0;
}

static lcomm_status end(lcomm_interpose_comm *at, making *m) {
  lcomm_status status = m->status;
  if (status != LCOMM_OK) {
    at->unmade = status;
    free(at->sentence);
    at->sentence = m->sentence;
  }
  at->home = m->home;
  at->making = NULL;
  free(m);
  return status;
}

bool lcomm_interpose_home_is_made(lcomm_interpose_comm *at, lcomm_status *status) {
  making *m = at->making;
  *status = at->unmade;
  if (!m) {
    return true;
  }
  if (m->state == AGREEING && number_is_here(m)) {
    start(m);
  }
  if (m->state == RUNNING && atomic_load(&m->done)) {
    pthread_join(m->thread, NULL);
    m->state = OVER;
  }
  if (m->state != OVER) {
    return false;
  }
  *status = end(at, m);
  return true;
}

/* The broadcast is a call on the program's communicator. */
void lcomm_interpose_home_let_go(lcomm_interpose_comm *at) {
  static const struct timespec moment = {0, 50000};
  bool waits = true;
  while (waits) {
    pthread_mutex_lock(&at->lock);
    waits = at->making && at->making->state == AGREEING && !number_is_here(at->making);
    pthread_mutex_unlock(&at->lock);
    if (waits) {
      nanosleep(&moment, NULL);
    }
  }
}
