/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The init context: the number, then lcomm_create_part() over a rendezvous. */

#include "libcomm/interpose/mpi/interpose_comm.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/interpose_rendezvous.h"

typedef enum init_state { BROADCASTING, RUNNING, DONE } init_state;

/* Creation that a non-blocking call has begun. */
typedef struct lcomm_interpose_init_context {
  lcomm_interpose_comm *at;
  lcomm_interpose_backing backing;
  MPI_Request request; /* of the number's broadcast */
  init_state state;
  int device; /* of the thread that made the call, noted; -1: none */
  pthread_t thread;
  atomic_bool done; /* set by the thread after all else */
  lcomm_status status;
  char *sentence;
} init_context;

static const char no_channel[] =
    "its messages would travel over MPI, which serves 63 communicators "
    "of libcomm at a time; install "
    "UCX on all hosts";

/* Of backing communicators with this rank as root. That of the world has 0. */
static atomic_uint_fast64_t numbers = 1;

void lcomm_interpose_context_reset(lcomm_interpose_context *context) {
  context->backing = (lcomm_interpose_backing){.comm = NULL};
  context->plain_mpi = false;
}

void lcomm_interpose_context_clear(lcomm_interpose_context *context) {
  free(context->sentence);
}

/* ----------------------------------------------------------------- creation */

/* NULL: no memory. */
static char *overdue_text(const lcomm_interpose_comm *at, int overdue) {
  char text[256];
  snprintf(
      text, sizeof(text),
      "rank %d of the world has not come to a sum on a communicator of %d ranks for %.0f s. It "
      "may be dead, stopped, or in another call. LCOMM_TIMEOUT_S sets the patience.",
      overdue, at->size, lcomm_interpose_timeout_s());
  return strdup(text);
}

static lcomm_status create_over(lcomm_interpose_rendezvous *point, const lcomm_interpose_comm *at,
                                lcomm_interpose_backing *backing) {
  lcomm_bootstrap bootstrap = {.rank = at->rank,
                               .world_size = at->size,
                               .context = point,
                               .allgather = lcomm_interpose_rendezvous_allgather};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = lcomm_preview_policy(at->policy.preview);
  config.timeout_s = lcomm_setting("LCOMM_TIMEOUT_S") ? 0 : LCOMM_INTERPOSE_DEFAULT_TIMEOUT_S;
  lcomm_status status =
      lcomm_create_part(lcomm_interpose_world(), at->members, &bootstrap,
                        lcomm_interpose_channel_comm(backing->channel), &config, &backing->comm);
  if (status != LCOMM_OK) { /* on all ranks, so no message is in flight */
    lcomm_interpose_channel_release(backing->channel);
  }
  return status;
}

/* Collective over the ranks, in any thread: reads members and policy, which do not change
 * meanwhile. Sets comm and channel of the backing. */
static lcomm_status create(const lcomm_interpose_comm *at, lcomm_interpose_backing *backing,
                           char **sentence) {
  lcomm_interpose_rendezvous point = {.members = at->members,
                                      .size = at->size,
                                      .rank = at->rank,
                                      .number = backing->number,
                                      .overdue = -1};
  lcomm_interpose_release_ready();
  bool has_channel = lcomm_interpose_channel_take(&point, &backing->channel);
  lcomm_status status = has_channel ? create_over(&point, at, backing) : LCOMM_ERR_TRANSPORT;
  if (point.overdue >= 0) {
    *sentence = overdue_text(at, point.overdue);
    return LCOMM_ERR_TIMEOUT;
  }
  if (status != LCOMM_OK) {
    *sentence = strdup(has_channel ? lcomm_last_error(NULL) : no_channel);
    return status;
  }
  lcomm_stats_hide(backing->comm);
  if (at->name_agreed) {
    lcomm_name_set(backing->comm, at->name);
  }
  return LCOMM_OK;
}

static uint64_t draw_number(const lcomm_interpose_comm *at) {
  return at->rank == 0 ? atomic_fetch_add(&numbers, 1) : 0;
}

/* ----------------------------------------------------------- blocking calls */

/* The broadcast takes the place of the program's call. */
static lcomm_status agree_on_number(lcomm_interpose_comm *at) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = PMPI_Ibcast(&at->context.backing.number, 1, MPI_UINT64_T, 0, at->comm, &request);
  if (code == MPI_SUCCESS && lcomm_interpose_rendezvous_wait(1, &request) < 0) {
    return LCOMM_OK;
  }
  at->context.sentence = overdue_text(at, at->members[0]);
  return LCOMM_ERR_TIMEOUT;
}

/* Creation has failed on all ranks. */
static void stay_with_mpi(lcomm_interpose_comm *at) {
  at->context.plain_mpi = true;
  if (at->rank == 0) {
    lcomm_interpose_log("a communicator of %d ranks stays plain MPI: %s", at->size,
                        at->context.sentence ? at->context.sentence : "out of memory");
  }
}

lcomm_status lcomm_interpose_backing_create(lcomm_interpose_comm *at) {
  lcomm_interpose_context *context = &at->context;
  if (context->backing.comm || context->init_status != LCOMM_OK) {
    return context->init_status;
  }
  context->backing.number = draw_number(at);
  lcomm_status status = agree_on_number(at);
  if (status == LCOMM_OK) {
    status = create(at, &context->backing, &context->sentence);
  }
  if (status == LCOMM_ERR_TIMEOUT) {
    context->init_status = status;
  } else if (status != LCOMM_OK) {
    stay_with_mpi(at);
  }
  return status;
}

/* ------------------------------------------------------- non-blocking calls */

/* Only calls begin a creation, one at a time on a communicator. */
static bool is_begun(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&at->lock);
  bool begun = at->context.backing.comm || at->context.init || at->context.init_status != LCOMM_OK;
  pthread_mutex_unlock(&at->lock);
  return begun;
}

bool lcomm_interpose_backing_begin(lcomm_interpose_comm *at) {
  if (is_begun(at)) {
    return true;
  }
  init_context *init = calloc(1, sizeof *init);
  if (!init) {
    return false;
  }
  init->at = at;
  init->device = lcomm_device_is_loaded() ? lcomm_device_noted() : -1;
  init->backing.number = draw_number(at);
  init->request = MPI_REQUEST_NULL;
  if (PMPI_Ibcast(&init->backing.number, 1, MPI_UINT64_T, 0, at->comm, &init->request) !=
      MPI_SUCCESS) {
    free(init);
    return false;
  }
  pthread_mutex_lock(&at->lock);
  at->context.init = init;
  pthread_mutex_unlock(&at->lock);
  return true;
}

static void *run(void *context) {
  init_context *init = context;
  lcomm_device_defer_thread(init->device);
  init->status = create(init->at, &init->backing, &init->sentence);
  atomic_store(&init->done, true);
  return NULL;
}

/* A thread of its own waits for the other ranks, because the queue's thread never waits. */
static void start_thread(init_context *init) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  init->state = pthread_create(&init->thread, NULL, run, init) == 0 ? RUNNING : DONE;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (init->state == DONE) {
    init->status = LCOMM_ERR_SYSTEM;
    init->sentence = strdup("a rank can start no thread to make a communicator; raise the limit of "
                            "processes (ulimit -u)");
  }
}

/* The communicator whose broadcast this thread tests. */
static _Thread_local const lcomm_interpose_comm *tested;

static bool has_number(init_context *init) {
  int done = 0;
  tested = init->at;
  PMPI_Test(&init->request, &done, MPI_STATUS_IGNORE);
  tested = NULL;
  return done != 0;
}

static lcomm_status finish(lcomm_interpose_context *context, init_context *init) {
  lcomm_status status = init->status;
  if (status != LCOMM_OK) {
    context->init_status = status;
    free(context->sentence);
    context->sentence = init->sentence;
  }
  context->backing = init->backing;
  context->init = NULL;
  free(init);
  return status;
}

bool lcomm_interpose_backing_ready(lcomm_interpose_comm *at, lcomm_status *status) {
  init_context *init = at->context.init;
  *status = at->context.init_status;
  if (!init) {
    return true;
  }
  if (init->state == BROADCASTING && has_number(init)) {
    start_thread(init);
  }
  if (init->state == RUNNING && atomic_load(&init->done)) {
    pthread_join(init->thread, NULL);
    init->state = DONE;
  }
  if (init->state != DONE) {
    return false;
  }
  *status = finish(&at->context, init);
  return true;
}

void lcomm_interpose_context_keep_error(lcomm_interpose_context *context, const char *sentence) {
  if (!context->sentence) {
    context->sentence = strdup(sentence);
  }
}

/* MPICH frees a communicator when the last call on it ends, which may be the broadcast of the
 * number: then this runs inside has_number(), with the lock held. */
void lcomm_interpose_backing_detach(lcomm_interpose_comm *at) {
  static const struct timespec pause = {0, 50000};
  bool waits = tested != at;
  while (waits) {
    pthread_mutex_lock(&at->lock);
    init_context *init = at->context.init;
    waits = init && init->state == BROADCASTING && !has_number(init);
    pthread_mutex_unlock(&at->lock);
    if (waits) {
      nanosleep(&pause, NULL);
    }
  }
}
