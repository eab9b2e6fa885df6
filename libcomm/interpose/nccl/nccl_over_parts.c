/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: parts of communicators, split off, or shrunk without ranks that were lost. Where the
 * whole does not block, NCCL tells a part when it has made it; its backing is begun at once all the
 * same, because the order of the calls is that in which ranks make parts. */

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_over.h"

/* ------------------------------------------------------- parts of later */

typedef struct awaited {
  struct awaited *next;
  ncclComm_t whole;
  ncclComm_t *part; /* where NCCL tells it */
  lcomm_nccl_backing *backing;
} awaited;

static struct {
  pthread_mutex_t lock;
  awaited *first;
} parts = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lcomm_nccl_over_await_part(ncclComm_t *part, const lcomm_nccl_origin *origin) {
  awaited *it = malloc(sizeof *it);
  lcomm_nccl_backing *backing = lcomm_nccl_backing_begin_part(origin);
  if (!it && backing) { /* its sums would be waited for */
    backing->given_up = "a rank has no memory for its communicator";
    lcomm_nccl_backing_release(backing);
  }
  if (!it || !backing) {
    free(it);
    return;
  }
  pthread_mutex_lock(&parts.lock);
  *it = (awaited){parts.first, origin->whole, part, backing};
  parts.first = it;
  pthread_mutex_unlock(&parts.lock);
}

/* With the lock: where the next one of this communicator is linked, from `at` on; NULL behind the
 * last one. */
static awaited **find(awaited **at, ncclComm_t whole) {
  while (*at && (*at)->whole != whole) {
    at = &(*at)->next;
  }
  return at;
}

static void take(awaited *it) {
  ncclComm_t part = __atomic_load_n(it->part, __ATOMIC_ACQUIRE);
  if (part) {
    lcomm_nccl_backing_list(it->backing, part);
  } else {
    lcomm_nccl_backing_release(it->backing);
  }
  free(it);
}

void lcomm_nccl_over_end_whole(ncclComm_t whole) {
  pthread_mutex_lock(&parts.lock);
  for (awaited **at = find(&parts.first, whole); *at; at = find(at, whole)) {
    awaited *it = *at;
    *at = it->next;
    take(it);
  }
  pthread_mutex_unlock(&parts.lock);
}

bool lcomm_nccl_over_take_parts_of(ncclComm_t whole) {
  bool all = true;
  pthread_mutex_lock(&parts.lock);
  for (awaited **at = find(&parts.first, whole); *at && all; at = find(&(*at)->next, whole)) {
    all = !lcomm_nccl_backing_is_making((*at)->backing);
  }
  pthread_mutex_unlock(&parts.lock);
  if (all) {
    lcomm_nccl_over_end_whole(whole);
  }
  return all;
}

/* ------------------------------------------------------------------- calls */

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *part,
                          ncclConfig_t *config) {
  lcomm_nccl_origin origin = {
      .is_split = true, .whole = comm, .color = color, .key = key, .device = lcomm_device_noted()};
  lcomm_nccl_config_name(config, origin.name);
  ncclResult_t result = lcomm_nccl_below()->CommSplit(comm, color, key, part, config);
  return part ? lcomm_nccl_over_made(result, part, &origin) : result;
}

/* ------------------------------------------------------------------ shrink */

enum { SHRINK_ABORT = 1 };

static bool is_among(int rank, const int *ranks, int count) {
  for (int i = 0; i < count; i++) {
    if (ranks[i] == rank) {
      return true;
    }
  }
  return false;
}

/* With the lock of the whole: those that are left, in their order, meet where the first of them
 * can. False: they cannot. The places serve once. */
static bool find_survivors(lcomm_nccl_backing *whole, const int *without, int count,
                           lcomm_nccl_origin *origin) {
  lcomm_nccl_places *places = &whole->places;
  for (int rank = 0; rank < places->count; rank++) {
    if (is_among(rank, without, count)) {
      continue;
    }
    if (origin->ranks++ == 0) {
      origin->meets = lcomm_nccl_id_read(&places->at[rank], &origin->place);
    }
    origin->rank += rank < whole->rank;
  }
  places->count = 0;
  return origin->meets && !is_among(whole->rank, without, count);
}

/* A sum that waits for a rank that is lost may stand before what NCCL waits for. */
static bool begin_to_shrink(ncclComm_t comm, const int *without, int count, int flags,
                            lcomm_nccl_origin *origin) {
  if (flags == SHRINK_ABORT) {
    lcomm_nccl_backing_give_up(comm, "ncclCommShrink was called with NCCL_SHRINK_ABORT");
  }
  lcomm_nccl_backing *whole = lcomm_nccl_backing_find(comm);
  if (!whole || count < 0 || (count > 0 && !without)) {
    return false;
  }
  lcomm_nccl_backing_enter(whole);
  bool can = find_survivors(whole, without, count, origin);
  lcomm_nccl_backing_leave(whole);
  return can;
}

static ncclResult_t shrink(ncclComm_t comm, int *without, int count, ncclComm_t *part,
                           ncclConfig_t *config, int flags) {
  lcomm_nccl_origin origin = {.whole = comm, .device = lcomm_device_noted()};
  lcomm_nccl_config_name(config, origin.name);
  bool can = begin_to_shrink(comm, without, count, flags, &origin);
  ncclResult_t result = lcomm_nccl_below()->CommShrink(comm, without, count, part, config, flags);
  return can && part ? lcomm_nccl_over_made(result, part, &origin) : result;
}

void lcomm_nccl_over_take_parts(lcomm_nccl_calls *calls) {
  calls->CommSplit = split;
  calls->CommShrink = shrink;
}
