/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_regroup(): ranks leave in order, newcomers join. What those that leave remember goes to
 * heirs over the communicator that all are still in. When all heirs have theirs, the others leave,
 * and those that stay go on as after a loss (shrink.c): at the port of a rank that has left nobody
 * listens. */

#include <stdlib.h>

#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/call/call.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/engine/pair.h"
#include "libcomm/tensor/bucket.h"

/* What ranks tell each other first. Travels as words. */
typedef struct wish {
  uint32_t leaves, zero;
  lcomm_remembered remembered;
} wish;

typedef struct regrouping {
  lcomm_comm *comm;
  wish *wishes; /* per rank */
  int *stay;    /* ranks that do */
  int stayers;
} regrouping;

/* ---------------------------------------------------------------- agreeing */

static lcomm_status check(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(lcomm_shrink_check(comm, "lcomm_regroup"));
  if (atomic_load(&comm->deferred.open) || lcomm_comm_is_busy(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_regroup: a step or a request is in flight; call it between the "
                        "steps, after waiting for all requests");
  }
  if (comm->changes.held) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_regroup: newcomers have joined, and the step, or the call with a "
                        "residual, that shares out what ranks remember has not been made; call it "
                        "after that");
  }
  lcomm_lanes_finish(comm);
  return LCOMM_OK;
}

static lcomm_status exchange_wishes(regrouping *it) {
  lcomm_comm *comm = it->comm;
  lcomm_standing standing = lcomm_standing_get(comm);
  wish mine = {.leaves = atomic_load(&comm->changes.asked), .remembered = standing.remembered};
  it->wishes = calloc((size_t)comm->size, sizeof *it->wishes);
  it->stay = calloc((size_t)comm->size, sizeof *it->stay);
  if (!it->wishes || !it->stay) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "lcomm_regroup: out of memory");
  }
  LCOMM_TRY(lcomm_call_allgather_bytes(comm, &mine, it->wishes, sizeof(mine)));
  for (int rank = 0; rank < comm->size; rank++) {
    if (!lcomm_remembered_is_sound(&it->wishes[rank].remembered)) {
      return lcomm_fail(comm, LCOMM_ERR_WIRE,
                        "lcomm_regroup: what rank %d says of its tensors cannot be; check that all "
                        "ranks run the same libcomm, and the network",
                        rank);
    }
    if (!it->wishes[rank].leaves) {
      it->stay[it->stayers++] = rank;
    }
  }
  return LCOMM_OK;
}

static bool leaves(const regrouping *it) {
  return it->wishes[it->comm->rank].leaves != 0;
}

/* --------------------------------------------------------------- inheriting */

static lcomm_status give(regrouping *it, int rank, lcomm_reunion_leaver *leaver) {
  lcomm_comm *comm = it->comm;
  int heir = it->stay[rank % it->stayers];
  lcomm_carry_block mine = {.bytes = NULL};
  *leaver = (lcomm_reunion_leaver){.seat = comm->bootstrap.reunion->members[rank],
                                   .remembered = it->wishes[rank].remembered};
  if (!lcomm_carry_has_any(comm)) {
    return LCOMM_OK;
  }
  if (rank == comm->rank && lcomm_carry_write(comm, false, &mine) != LCOMM_OK) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "lcomm_regroup: out of memory for what rank %d gives",
                      rank);
  }
  lcomm_status status = lcomm_carry_give(comm, rank, heir, &mine, &leaver->block);
  free(mine.bytes);
  return status;
}

/* All that leave, one after the other. Those that stay know them from then on. */
static lcomm_status give_all(regrouping *it) {
  lcomm_comm *comm = it->comm;
  lcomm_reunion *reunion = comm->bootstrap.reunion;
  reunion->leavers = calloc((size_t)comm->size, sizeof *reunion->leavers);
  if (!reunion->leavers) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "lcomm_regroup: out of memory");
  }
  for (int rank = 0; it->stayers > 0 && rank < comm->size; rank++) {
    if (it->wishes[rank].leaves) {
      LCOMM_TRY(give(it, rank, &reunion->leavers[reunion->leaver_count++]));
    }
  }
  return LCOMM_OK;
}

static lcomm_status agree(regrouping *it) {
  LCOMM_TRY(check(it->comm));
  LCOMM_TRY(exchange_wishes(it));
  LCOMM_TRY(it->stayers < it->comm->size ? give_all(it) : LCOMM_OK);
  return lcomm_call_barrier(it->comm); /* the heirs have all */
}

static lcomm_status enter_and_agree(regrouping *it) {
  lcomm_comm *comm = it->comm;
  LCOMM_TRY(lcomm_enter(comm));
  comm->operations.inside = LCOMM_OP_KIND_REGROUP;
  lcomm_status status = agree(it);
  comm->operations.inside = LCOMM_OP_KIND_CALL;
  if (status != LCOMM_OK && comm->bootstrap.reunion &&
      atomic_load(&comm->errors.status) == LCOMM_OK) {
    lcomm_reunion_forget_leavers(comm->bootstrap.reunion);
  }
  lcomm_exit(comm);
  return status;
}

/* ---------------------------------------------------------------- going on */

/* Whatever happens from here on, who leaves has left. */
static void say_farewell(regrouping *it) {
  lcomm_comm *comm = it->comm;
  if (leaves(it)) {
    lcomm_reunion_free(comm->bootstrap.reunion);
    comm->bootstrap.reunion = NULL;
  }
  bool met = lcomm_call_barrier(comm) == LCOMM_OK; /* nobody waits for the last one any more */
  lcomm_retire(comm);
  comm->changes.parted = met && lcomm_comm_part(comm);
  comm->changes.over = true;
}

static lcomm_status go_on(regrouping *it, lcomm_comm **next) {
  lcomm_comm *comm = it->comm;
  LCOMM_TRY(lcomm_enter(comm));
  comm->bootstrap.reunion->admits = true;
  lcomm_status status = lcomm_shrink_make(comm, "lcomm_regroup", next);
  lcomm_comm_stick(comm, status == LCOMM_OK ? LCOMM_ERR_STATE : LCOMM_ERR_TRANSPORT,
                   status == LCOMM_OK ? "this communicator has gone on as another one, which "
                                        "lcomm_regroup has made; use that"
                                      : lcomm_error_thread_text());
  lcomm_exit(comm);
  return status;
}

static lcomm_status regroup(regrouping *it, lcomm_comm **next) {
  LCOMM_TRY(enter_and_agree(it));
  say_farewell(it);
  if (!leaves(it)) {
    return go_on(it, next);
  }
  lcomm_comm_stick(it->comm, LCOMM_ERR_STATE, "this rank has left in lcomm_regroup");
  *next = NULL;
  return LCOMM_OK;
}

/* ------------------------------------------------------------ public calls */

lcomm_status lcomm_regroup(lcomm_comm *comm, lcomm_comm **next) {
  if (!comm || !next) {
    return lcomm_refuse_null(comm, "lcomm_regroup", "next");
  }
  regrouping it = {.comm = comm};
  lcomm_status status = regroup(&it, next);
  free(it.wishes);
  free(it.stay);
  return status;
}

lcomm_status lcomm_leave(lcomm_comm *comm) {
  if (!comm) {
    return lcomm_refuse_null(comm, "lcomm_leave", "comm");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  if (!comm->bootstrap.elastic) {
    return lcomm_refuse(comm, LCOMM_ERR_UNSUPPORTED,
                        "lcomm_leave: ranks leave communicators of lcomm_create_env that are "
                        "elastic: set LCOMM_ELASTIC=on on all of them");
  }
  atomic_store(&comm->changes.asked, true);
  return LCOMM_OK;
}

lcomm_status lcomm_changes_get(const lcomm_comm *comm, lcomm_changes *changes) {
  if (!comm || !changes) {
    return lcomm_refuse_null(comm, "lcomm_changes_get", "changes");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  *changes = (lcomm_changes){.leaving = comm->changes.leaving,
                             .waiting = comm->changes.waiting,
                             .leaves = comm->changes.leaves};
  return LCOMM_OK;
}

lcomm_status lcomm_regrouped_get(const lcomm_comm *comm, lcomm_regrouped *regrouped) {
  if (!comm || !regrouped) {
    return lcomm_refuse_null(comm, "lcomm_regrouped_get", "regrouped");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  *regrouped = comm->bootstrap.reunion ? comm->bootstrap.reunion->regrouped : (lcomm_regrouped){0};
  return LCOMM_OK;
}
