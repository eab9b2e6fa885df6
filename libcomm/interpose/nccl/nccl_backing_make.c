/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A thread makes each backing, so no thread of the program waits for another rank of its own. The
 * ranks meet with little patience, because NCCL's communicator has just been made: a rank that runs
 * without this library or its settings never comes. Of that communicator they make the one that
 * stays, with the patience of NCCL. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_backing_agree.h"
#include "libcomm/interpose/nccl/nccl_over.h"

static const double MEETING_S = 30;

static const char alone[] = "a communicator of one rank";
static const char inside[] = "a communicator inside one node";
static const char no_place[] =
    "its ranks know no place where libcomm could meet, because its id, or the communicator that it "
    "was made of, was made without libcomm-nccl.so and LCOMM_POLICY, or in a way that libcomm does "
    "not know";
static const char no_comm[] = "libcomm could not make a communicator of these ranks";

/* ------------------------------------------------------------------- making */

static bool is_of_use(const lcomm_comm *comm) {
  lcomm_policy_facts facts = {0};
  (void)lcomm_policy_facts_get(comm, &facts);
  return lcomm_size(comm) > 1 && (lcomm_nodes(comm) > 1 || facts.inside_nodes);
}

static lcomm_progress_mode progress_of(lcomm_nccl_manner manner) {
  return manner == LCOMM_NCCL_HOST_WAITS   ? LCOMM_PROGRESS_CALLS
         : lcomm_setting("LCOMM_PROGRESS") ? LCOMM_PROGRESS_DEFAULT
                                           : LCOMM_PROGRESS_THREAD;
}

lcomm_status lcomm_nccl_derive(lcomm_comm *from, int color, int key, const char *policy,
                               lcomm_nccl_manner manner, lcomm_comm **made) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.timeout_s = lcomm_interpose_timeout_s();
  config.progress = progress_of(manner);
  lcomm_status status = lcomm_split(from, color, key, &config, made);
  if (status != LCOMM_OK || !*made) {
    return status;
  }
  lcomm_stats_hide(*made);
  return manner == LCOMM_NCCL_HOST_WAITS ? lcomm_device_step_by_step(*made) : LCOMM_OK;
}

/* What has become of it: `comm` is NULL where NCCL keeps the communicator, and `why` says why; in a
 * sentence, where libcomm failed. */
typedef struct outcome {
  lcomm_comm *comm;
  lcomm_nccl_manner manner;
  lcomm_nccl_places places;
  const char *why;
  char name[LCOMM_NCCL_NAME_MAX];
  char sentence[1024];
} outcome;

static lcomm_status failed(outcome *it, lcomm_status status, const char *sentence) {
  if (status != LCOMM_OK && !it->sentence[0]) {
    snprintf(it->sentence, sizeof(it->sentence), "%s",
             sentence[0] ? sentence : lcomm_status_string(status));
  }
  return status;
}

static lcomm_status derive(lcomm_comm *from, const lcomm_nccl_origin *origin, outcome *it) {
  lcomm_nccl_agreement mine;
  lcomm_status status = lcomm_nccl_agree(from, origin, &mine);
  if (status == LCOMM_OK && !mine.is_agreed) {
    return failed(it, LCOMM_ERR_MISMATCH,
                  "LCOMM_INTERPOSE, or whether LCOMM_INTERPOSE_CONTROL is set, differs between its "
                  "ranks; give all the same");
  }
  int key = origin->is_split ? origin->key : lcomm_rank(from);
  if (status == LCOMM_OK) {
    status = lcomm_nccl_derive(from, mine.color, key, NULL, mine.manner, &it->comm);
    it->manner = mine.manner;
  }
  if (it->comm) {
    lcomm_name_set(it->comm, mine.name);
    memcpy(it->name, mine.name, sizeof(it->name));
  }
  if (it->comm && !is_of_use(it->comm)) {
    it->why = lcomm_size(it->comm) == 1 ? alone : inside;
    status = lcomm_destroy(it->comm);
    it->comm = NULL;
    return failed(it, status, lcomm_last_error(NULL));
  }
  if (it->comm) { /* a failure is the communicator's, and its first sum tells it */
    (void)lcomm_nccl_places_tell(it->comm, &it->places);
  }
  return failed(it, status, lcomm_last_error(from));
}

static lcomm_status meet(const lcomm_nccl_origin *origin, outcome *it) {
  lcomm_meeting meeting = {.rank = origin->rank,
                           .world_size = origin->ranks,
                           .address = origin->place.address,
                           .port = origin->place.port,
                           .token = origin->place.token};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *first = NULL;
  double patience_s = lcomm_interpose_timeout_s();
  config.timeout_s = patience_s < MEETING_S ? patience_s : MEETING_S;
  config.progress = LCOMM_PROGRESS_CALLS;
  lcomm_status status = lcomm_create_at(&meeting, &config, &first);
  if (origin->rank == 0) {
    lcomm_nccl_place_release(&origin->place);
  }
  if (status != LCOMM_OK) {
    return failed(it, status, lcomm_last_error(NULL));
  }
  lcomm_stats_hide(first);
  if (is_of_use(first)) {
    status = derive(first, origin, it);
  } else {
    it->why = inside;
  }
  (void)lcomm_destroy(first); /* the one that stays does not need it */
  return status;
}

/* --------------------------------------------------------------- the thread */

typedef struct maker {
  lcomm_nccl_origin origin;
  lcomm_nccl_backing *made;  /* NULL: this rank takes no part */
  lcomm_nccl_backing *whole; /* that is split; NULL */
  uint64_t turn;             /* of `whole` */
} maker;

/* A sentence that all ranks have is said by one, or, where rank 0 may be the one that does not
 * come, by few. */
static void say(const maker *it, lcomm_status status, const char *sentence) {
  int rank = it->origin.is_split ? it->whole->rank : it->origin.rank;
  bool is_lonely = status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT;
  if (rank == 0 || (is_lonely && (rank & (rank - 1)) == 0)) {
    lcomm_nccl_log("a communicator of NCCL stays without libcomm: %s", sentence);
  }
}

static void publish(maker *it, outcome *of, lcomm_status status) {
  lcomm_nccl_backing *backing = it->made;
  if (of->sentence[0]) {
    say(it, status, of->sentence);
  }
  if (!backing) { /* its sums would be waited for */
    lcomm_nccl_made unkept = {.comm = of->comm};
    lcomm_nccl_made_end(&unkept, "a rank has no memory for its communicator");
    lcomm_nccl_places_free(&of->places);
    return;
  }
  lcomm_policy_facts facts = {0};
  lcomm_nccl_made made = lcomm_nccl_made_of(of->comm);
  if (of->comm) {
    (void)lcomm_policy_facts_get(of->comm, &facts);
    lcomm_nccl_over_backing(of->comm);
  }
  pthread_mutex_lock(&backing->lock);
  lcomm_nccl_backing_set(backing, &made);
  backing->manner = of->manner;
  backing->places = of->places;
  backing->min_bytes = facts.min_bytes;
  backing->rank = of->comm ? lcomm_rank(of->comm) : backing->rank;
  backing->why = of->why;
  memcpy(backing->name, of->name, sizeof(backing->name));
  backing->failure = of->sentence[0] ? strdup(of->sentence) : NULL;
  backing->is_making = false;
  pthread_cond_broadcast(&backing->changed);
  pthread_mutex_unlock(&backing->lock);
  lcomm_nccl_backing_release(backing);
}

/* Parts of one communicator are made in the order in which the program asks for them. */
static lcomm_status split(maker *it, outcome *of) {
  lcomm_nccl_backing *whole = it->whole;
  lcomm_status status = LCOMM_OK;
  pthread_mutex_lock(&whole->lock);
  while (whole->is_making || whole->is_changing || whole->turn != it->turn) {
    pthread_cond_wait(&whole->changed, &whole->lock);
  }
  if (whole->now.comm) {
    status = derive(whole->now.comm, &it->origin, of);
  } else {
    of->why = whole->why;
  }
  whole->turn++;
  pthread_cond_broadcast(&whole->changed);
  pthread_mutex_unlock(&whole->lock);
  return status;
}

static void make(void *argument) {
  maker *it = argument;
  outcome of = {.why = no_comm};
  lcomm_status status = LCOMM_ERR_UNSUPPORTED;
  if (it->whole) {
    status = split(it, &of);
  } else if (it->origin.meets) {
    status = meet(&it->origin, &of);
  } else {
    (void)failed(&of, status, no_place);
  }
  publish(it, &of, status);
  if (it->whole) {
    lcomm_nccl_backing_release(it->whole);
  }
  free(it);
}

/* Of a communicator that NCCL has to itself a part is NCCL's, too. */
static lcomm_nccl_backing *begin(const lcomm_nccl_origin *origin, bool takes_part) {
  lcomm_nccl_backing *whole = origin->is_split ? lcomm_nccl_backing_find(origin->whole) : NULL;
  maker *it = (origin->is_split && !whole) ? NULL : calloc(1, sizeof *it);
  if (!it) {
    return NULL;
  }
  lcomm_nccl_backing *made = takes_part ? lcomm_nccl_backing_new(origin->device) : NULL;
  *it = (maker){.origin = *origin, .made = made, .whole = whole};
  if (made) {
    made->rank = origin->rank;
    lcomm_nccl_backing_retain(made);
  }
  if (whole) {
    pthread_mutex_lock(&whole->lock);
    whole->users++;
    it->turn = whole->turns++;
    pthread_mutex_unlock(&whole->lock);
  }
  if (!lcomm_nccl_thread_start(origin->device, make, it)) {
    make(it); /* which only waits for ranks of other threads */
  }
  return made;
}

void lcomm_nccl_backing_begin(ncclComm_t comm, const lcomm_nccl_origin *origin) {
  lcomm_nccl_backing *made = begin(origin, comm != NULL);
  if (made) {
    lcomm_nccl_backing_list(made, comm);
  }
}

lcomm_nccl_backing *lcomm_nccl_backing_begin_part(const lcomm_nccl_origin *origin) {
  return begin(origin, !origin->is_split || origin->color >= 0);
}
