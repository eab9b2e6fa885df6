/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Groups: calls of a thread that begin together, when its outermost group ends. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_alone_control.h"
#include "libcomm/interpose/nccl/nccl_items.h"

/* Of one thread. */
typedef struct group {
  int depth;
  lcomm_nccl_items calls;   /* of lcomm_nccl_call */
  lcomm_nccl_items makings; /* of lcomm_nccl_making */
} group;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

/* A call that ends in the group has memory. */
static void clear(group *mine) {
  const lcomm_nccl_call *calls = mine->calls.all;
  for (size_t i = 0; i < mine->calls.count; i++) {
    if (calls[i].turn == LCOMM_NCCL_TURN_ENDS) {
      lcomm_nccl_gathered_free(calls[i].gathered);
    }
  }
  mine->makings.count = mine->calls.count = 0;
}

static void forget(void *of_thread) {
  group *mine = of_thread;
  clear(mine);
  free(mine->calls.all);
  free(mine->makings.all);
  free(mine);
}

static void make_key(void) {
  has_key = pthread_key_create(&key, forget) == 0;
}

/* NULL: there is no memory. */
static group *group_of_thread(void) {
  pthread_once(&once, make_key);
  group *mine = has_key ? pthread_getspecific(key) : NULL;
  if (!mine && has_key) {
    mine = calloc(1, sizeof *mine);
    if (mine && pthread_setspecific(key, mine) != 0) {
      free(mine);
      mine = NULL;
    }
  }
  return mine;
}

/* -------------------------------------------------------------- submitting */

static ncclResult_t append(lcomm_nccl_items *to, const void *item, size_t size) {
  void *place = lcomm_nccl_items_append(to, size);
  if (!place) {
    return lcomm_nccl_fail(ncclSystemError, "there is no memory for a longer group");
  }
  memcpy(place, item, size);
  return ncclSuccess;
}

ncclResult_t lcomm_nccl_submit(const lcomm_nccl_call *call) {
  group *mine = group_of_thread();
  if (!mine || mine->depth == 0) {
    return call->make(call);
  }
  lcomm_nccl_call grouped = *call;
  grouped.is_grouped = true;
  return append(&mine->calls, &grouped, sizeof grouped);
}

ncclResult_t lcomm_nccl_submit_making(const lcomm_nccl_making *making) {
  group *mine = group_of_thread();
  if (mine && mine->depth > 0) {
    ncclResult_t result = append(&mine->makings, making, sizeof *making);
    if (result != ncclSuccess) {
      lcomm_nccl_comm_free(making->comm);
    }
    return result;
  }
  lcomm_nccl_making copy = *making;
  return lcomm_nccl_make_all(&copy, 1);
}

/* ------------------------------------------------------------- start and end */

ncclResult_t lcomm_nccl_group_start(void) {
  group *mine = group_of_thread();
  if (!mine) {
    return lcomm_nccl_fail(ncclSystemError, "ncclGroupStart: there is no memory");
  }
  mine->depth++;
  return ncclSuccess;
}

static bool has_several_comms(const lcomm_nccl_items *calls) {
  const lcomm_nccl_call *all = calls->all;
  for (size_t i = 1; i < calls->count; i++) {
    if (all[i].comm != all[0].comm) {
      return true;
    }
  }
  return false;
}

/* A thread with several ranks makes the first call of each, then the second ones. A call may get
 * memory, for which its device is to be idle, and so wait for earlier calls on all ranks. Returns
 * how many passes there are; in a group of one communicator all is in one. */
static uint32_t number_passes(const lcomm_nccl_items *calls) {
  lcomm_nccl_call *all = calls->all;
  uint32_t passes = 1;
  bool several = has_several_comms(calls);
  for (size_t i = 0; i < calls->count; i++) {
    size_t before = several ? i : 0;
    while (before > 0 &&
           (all[before - 1].comm != all[i].comm || all[before - 1].turn != all[i].turn)) {
      before--;
    }
    all[i].pass = before > 0 ? all[before - 1].pass + 1 : 0;
    passes = all[i].pass < passes ? passes : all[i].pass + 1;
  }
  return passes;
}

static ncclResult_t make_pass(const lcomm_nccl_items *calls, int turn, uint32_t pass, bool *ends) {
  const lcomm_nccl_call *all = calls->all;
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < calls->count && !*ends; i++) {
    bool is_now = (int)all[i].turn == turn && all[i].pass == pass;
    ncclResult_t made = is_now ? all[i].make(&all[i]) : ncclSuccess;
    result = result == ncclSuccess ? made : result;
    *ends = made != ncclSuccess;
  }
  return result;
}

/* The first failure ends the group: calls behind it are not made. The control file is read for
 * calls behind the group. */
static ncclResult_t make_calls(const lcomm_nccl_items *calls) {
  uint32_t passes = number_passes(calls);
  ncclResult_t result = ncclSuccess;
  bool ends = false;
  for (int turn = 0; turn < LCOMM_NCCL_TURN_COUNT; turn++) {
    for (uint32_t pass = 0; pass < passes && !ends; pass++) {
      ncclResult_t made = make_pass(calls, turn, pass, &ends);
      result = result == ncclSuccess ? made : result;
    }
  }
  lcomm_nccl_control_group(calls->all, calls->count);
  return result;
}

/* Communicators are made, then calls, by `make`. */
static ncclResult_t end(const char *function, ncclResult_t (*make)(const lcomm_nccl_items *calls)) {
  group *mine = group_of_thread();
  if (!mine || mine->depth == 0) {
    return lcomm_nccl_fail(ncclInvalidUsage, "%s: this thread is in no group", function);
  }
  mine->depth--;
  if (mine->depth > 0) {
    return ncclSuccess;
  }
  ncclResult_t made = lcomm_nccl_make_all(mine->makings.all, mine->makings.count);
  bool goes_on = made == ncclSuccess || made == ncclInProgress;
  ncclResult_t result = goes_on ? make(&mine->calls) : made;
  clear(mine);
  return result == ncclSuccess ? made : result;
}

ncclResult_t lcomm_nccl_group_end(void) {
  return end("ncclGroupEnd", make_calls);
}

static ncclResult_t make_none(const lcomm_nccl_items *calls) {
  (void)calls;
  return ncclSuccess;
}

ncclResult_t lcomm_nccl_group_simulate_end(ncclSimInfo_t *simulation) {
  ncclResult_t result = end("ncclGroupSimulateEnd", make_none);
  if (!simulation) {
    return lcomm_nccl_fail(ncclInvalidArgument,
                           "ncclGroupSimulateEnd: simInfo is NULL; the group has ended");
  }
  simulation->estimatedTime = -1;
  return result;
}

void lcomm_nccl_group_drop(void) {
  group *mine = group_of_thread();
  if (!mine || --mine->depth > 0) {
    return;
  }
  lcomm_nccl_making *makings = mine->makings.all;
  for (size_t i = 0; i < mine->makings.count; i++) {
    lcomm_nccl_comm_free(makings[i].comm);
  }
  clear(mine);
}
