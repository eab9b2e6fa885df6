/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: groups. NCCL's calls of a group begin when the outermost group ends, and libcomm's
 * sums behind them, in the order in which they were made. So on every rank the streams of a
 * communicator come to the same things in the same order. */

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_items.h"
#include "libcomm/interpose/nccl/nccl_over.h"

typedef struct made_comm {
  ncclComm_t *comm;
  lcomm_nccl_origin origin;
} made_comm;

/* Of one thread. */
typedef struct group {
  int depth;
  lcomm_nccl_items comms, sums, noted; /* made_comm, lcomm_nccl_sum, lcomm_nccl_backing * */
} group;

static _Thread_local group *mine;

/* -------------------------------------------------------------- of a thread */

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void forget(void *of_thread) {
  group *it = of_thread;
  free(it->comms.all);
  free(it->sums.all);
  free(it->noted.all);
  free(it);
}

static void make_key(void) {
  has_key = pthread_key_create(&key, forget) == 0;
}

static bool have_group(void) {
  if (mine) {
    return true;
  }
  pthread_once(&once, make_key);
  group *made = has_key ? calloc(1, sizeof *made) : NULL;
  if (made && pthread_setspecific(key, made) != 0) {
    free(made);
    made = NULL;
  }
  mine = made;
  return made != NULL;
}

bool lcomm_nccl_over_in_group(void) {
  return mine && mine->depth > 0;
}

static ncclResult_t no_memory(void) {
  return lcomm_nccl_fail(ncclSystemError, "there is no memory for a longer group");
}

ncclResult_t lcomm_nccl_over_defer_comm(ncclComm_t *comm, const lcomm_nccl_origin *origin) {
  made_comm *it = lcomm_nccl_items_append(&mine->comms, sizeof *it);
  if (!it) {
    return no_memory();
  }
  *it = (made_comm){comm, *origin};
  return ncclSuccess;
}

ncclResult_t lcomm_nccl_over_defer_sum(const lcomm_nccl_sum *sum) {
  lcomm_nccl_sum *it = lcomm_nccl_items_append(&mine->sums, sizeof *it);
  if (!it) {
    return no_memory();
  }
  *it = *sum;
  return ncclSuccess;
}

void lcomm_nccl_over_note(lcomm_nccl_backing *backing) {
  lcomm_nccl_backing **all = mine->noted.all;
  for (size_t i = 0; i < mine->noted.count; i++) {
    if (all[i] == backing) {
      return;
    }
  }
  lcomm_nccl_backing **it = lcomm_nccl_items_append(&mine->noted, sizeof(backing));
  if (it) {
    *it = backing;
  } else { /* the other ranks would wait for this one */
    lcomm_nccl_backing_enter(backing);
    lcomm_abort(backing->now.comm, "a rank has no memory to read LCOMM_INTERPOSE_CONTROL");
    lcomm_nccl_backing_leave(backing);
  }
}

/* ------------------------------------------------------------------ the end */

/* All are begun before one is waited for: this thread may have several ranks of one. */
static ncclResult_t make_comms(ncclResult_t of_group) {
  made_comm *all = mine->comms.all;
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < mine->comms.count; i++) {
    if (of_group == ncclInProgress && all[i].origin.whole) {
      lcomm_nccl_over_await_part(all[i].comm, &all[i].origin);
    } else {
      lcomm_nccl_backing_begin(*all[i].comm, &all[i].origin);
    }
  }
  for (size_t i = 0; i < mine->comms.count && of_group == ncclSuccess; i++) {
    ncclResult_t waited = lcomm_nccl_over_wait(all[i].comm);
    result = result == ncclSuccess ? waited : result;
  }
  return result;
}

static ncclResult_t forward_left(void) {
  const lcomm_nccl_sum *all = mine->sums.all;
  ncclResult_t result = ncclSuccess;
  bool begun = false;
  for (size_t i = 0; i < mine->sums.count && result == ncclSuccess; i++) {
    if (all[i].is_left && !begun) {
      result = lcomm_nccl_below()->GroupStart();
      begun = true;
    }
    if (all[i].is_left && result == ncclSuccess) {
      result = lcomm_nccl_sum_forward(&all[i]);
    }
  }
  ncclResult_t ended = begun ? lcomm_nccl_below()->GroupEnd() : ncclSuccess;
  return result == ncclSuccess ? ended : result;
}

static bool are_in_streams_of_one_comm(void) {
  const lcomm_nccl_sum *all = mine->sums.all;
  for (size_t i = 0; i < mine->sums.count; i++) {
    if (all[i].at != all[0].at || all[i].at->manner != LCOMM_NCCL_IN_STREAMS) {
      return false;
    }
  }
  return true;
}

/* Is it the turn of sum `i`? Where the thread has several communicators, which may be ranks of one,
 * the first sum of each comes first, then the second of each: with error feedback a sum may wait
 * until the one before it is over, and where the host waits for sums it waits for those of a pass.
 */
static bool is_next(lcomm_nccl_sum *it, uint64_t pass) {
  if (it->was_turn || it->at->pass == pass) {
    return false;
  }
  it->at->pass = pass;
  return it->was_turn = true;
}

static ncclResult_t begin_pass(uint64_t pass, bool *any) {
  lcomm_nccl_sum *all = mine->sums.all;
  ncclResult_t result = ncclSuccess;
  *any = false;
  for (size_t i = 0; i < mine->sums.count && result == ncclSuccess; i++) {
    if (pass == 0 || is_next(&all[i], pass)) {
      result = lcomm_nccl_sum_begin(&all[i]);
      *any = pass > 0;
    }
  }
  return result;
}

static ncclResult_t finish_pass(void) {
  lcomm_nccl_sum *all = mine->sums.all;
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < mine->sums.count; i++) {
    ncclResult_t finished = lcomm_nccl_sum_finish(&all[i]);
    result = result == ncclSuccess ? finished : result;
  }
  return result;
}

/* Those that libcomm cannot make are a group of NCCL's then. */
static ncclResult_t make_sums(void) {
  static atomic_uint_fast64_t passes; /* of all threads, so no two have one number */
  bool one = are_in_streams_of_one_comm(), any = true;
  ncclResult_t result = ncclSuccess;
  while (any && result == ncclSuccess) {
    result = begin_pass(one ? 0 : atomic_fetch_add(&passes, 1) + 1, &any);
    ncclResult_t finished = finish_pass();
    result = result == ncclSuccess ? finished : result;
  }
  return result == ncclSuccess ? forward_left() : result;
}

static void poll_control(void) {
  lcomm_nccl_backing **all = mine->noted.all;
  size_t due = 0;
  for (size_t i = 0; i < mine->noted.count; i++) {
    lcomm_nccl_backing_enter(all[i]);
    bool is_due = all[i]->now.comm && lcomm_nccl_control_is_due(&all[i]->control);
    lcomm_nccl_backing_leave(all[i]);
    if (is_due) {
      all[due++] = all[i];
    }
  }
  if (due > 0) {
    lcomm_nccl_over_poll(all, due);
  }
}

/* `result` is NCCL's, which may still be at it. The first failure ends the group. */
static ncclResult_t end(ncclResult_t result) {
  ncclResult_t own = ncclSuccess;
  if (result == ncclSuccess || result == ncclInProgress) {
    own = make_comms(result);
    own = own == ncclSuccess ? make_sums() : own;
    poll_control();
  }
  mine->comms.count = mine->sums.count = mine->noted.count = 0;
  return own == ncclSuccess ? result : own;
}

static ncclResult_t group_start(void) {
  if (!have_group()) {
    return no_memory();
  }
  ncclResult_t result = lcomm_nccl_below()->GroupStart();
  mine->depth += result == ncclSuccess;
  return result;
}

/* What lcomm_nccl_over_in_group() says while NCCL ends its group is of no matter: it makes none of
 * the calls that ask. */
static ncclResult_t group_end(void) {
  if (!lcomm_nccl_over_in_group()) {
    return lcomm_nccl_below()->GroupEnd();
  }
  ncclResult_t result = lcomm_nccl_below()->GroupEnd();
  mine->depth--;
  return mine->depth > 0 ? result : end(result);
}

/* No call of the group is made. Communicators that NCCL makes all the same are NCCL's alone. */
static ncclResult_t group_simulate_end(ncclSimInfo_t *simulation) {
  ncclResult_t result = lcomm_nccl_below()->GroupSimulateEnd(simulation);
  if (lcomm_nccl_over_in_group() && --mine->depth == 0) {
    mine->comms.count = mine->sums.count = mine->noted.count = 0;
  }
  return result;
}

void lcomm_nccl_over_take_groups(lcomm_nccl_calls *calls) {
  calls->GroupStart = group_start;
  calls->GroupEnd = group_end;
  calls->GroupSimulateEnd = group_simulate_end;
}
