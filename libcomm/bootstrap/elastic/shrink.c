/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_shrink(): the ranks that live go on without those that were lost. */

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/engine/operation.h"
#include "libcomm/include/libcomm_elastic.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual_carry.h"

/* Time-outs that all rounds together may take: a seat that is silent costs one, and whoever hosts
 * then another one. */
enum { PATIENCE = 4 };

/* Only what a lost rank has broken can go on without it. */
static lcomm_status check_failure(lcomm_comm *comm) {
  char sentence[LCOMM_ERROR_MAX - 256];
  lcomm_status status = lcomm_control_receive(comm);
  if (status == LCOMM_OK) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_shrink: no rank was lost; call it after a call has returned "
                        "LCOMM_ERR_TRANSPORT or LCOMM_ERR_TIMEOUT");
  }
  if (status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT) {
    return LCOMM_OK;
  }
  snprintf(sentence, sizeof(sentence), "%.700s", comm->errors.text);
  return lcomm_refuse(comm, LCOMM_ERR_STATE,
                      "lcomm_shrink: the communicator has failed, but not for a lost rank, so all "
                      "ranks would fail again: %s",
                      sentence);
}

lcomm_status lcomm_shrink_check(lcomm_comm *comm, const char *call) {
  if (!comm->bootstrap.reunion) {
    return lcomm_refuse(
        comm, LCOMM_ERR_UNSUPPORTED, "%s: this communicator cannot go on with other ranks: %s",
        call,
        comm->bootstrap.elastic
            ? "it has gone on already, as another one"
            : "make it by lcomm_create_env with LCOMM_ELASTIC=on on all ranks; parts of a "
              "communicator, and those of MPI, whose launcher ends a job when a rank dies, cannot");
  }
  if (lcomm_residuals_count(comm) > LCOMM_REUNION_RESIDUALS) {
    return lcomm_refuse(comm, LCOMM_ERR_UNSUPPORTED,
                        "%s: there are %u residuals, and %d go over at most; destroy some first",
                        call, lcomm_residuals_count(comm), LCOMM_REUNION_RESIDUALS);
  }
  return LCOMM_OK;
}

/* A final error: what is left of the rounds goes. The caller's communicator stays as it is, but
 * where another one has taken its place already, it cannot be shrunk again. */
static lcomm_status give_up(lcomm_shrinking *it, lcomm_status status) {
  if (it->base != it->comm) {
    lcomm_retire(it->base);
    lcomm_release(it->base);
    lcomm_reunion_free(it->reunion);
    it->comm->bootstrap.reunion = NULL;
  }
  return lcomm_refuse(it->comm, status, "%s: %s", it->call, lcomm_error_thread_text());
}

static lcomm_status go_through_rounds(lcomm_shrinking *it) {
  bool over = false;
  while (!over) {
    LCOMM_TRY(lcomm_shrink_round(it, &over));
    if (!over && lcomm_clock_s() >= it->until_s) {
      return lcomm_error_thread(
          LCOMM_ERR_TIMEOUT,
          "the survivors could not agree within %g s, because more ranks were "
          "lost meanwhile, or the network between hosts is down",
          PATIENCE * it->timeout_s);
    }
  }
  return LCOMM_OK;
}

static lcomm_status make(lcomm_comm *comm, const char *call, lcomm_comm **next) {
  size_t seats = (size_t)comm->bootstrap.reunion->seats;
  lcomm_shrinking it = {.call = call,
                        .comm = comm,
                        .base = comm,
                        .reunion = comm->bootstrap.reunion,
                        .timeout_s = comm->settings.timeout_s,
                        .until_s = lcomm_clock_s() + PATIENCE * comm->settings.timeout_s,
                        .kept = 1,
                        .prepared.members = calloc(seats, sizeof(int))};
  lcomm_status status = it.prepared.members ? go_through_rounds(&it)
                                            : lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory");
  lcomm_shrink_drop(&it.prepared);
  it.reunion->guests = NULL;
  it.reunion->guest_count = 0;
  it.reunion->admits = false;
  free(it.prepared.members);
  free(it.found.list.seats);
  free(it.blocks);
  LCOMM_TRY(status == LCOMM_OK ? LCOMM_OK : give_up(&it, status));
  *next = it.base;
  return LCOMM_OK;
}

lcomm_status lcomm_shrink_make(lcomm_comm *comm, const char *call, lcomm_comm **next) {
  unsigned idle = lcomm_turn_idle_begin(comm);
  lcomm_status status = make(comm, call, next);
  lcomm_turn_idle_end(idle);
  return status;
}

static lcomm_status shrink(lcomm_comm *comm, lcomm_comm **next) {
  bool moved = false;
  if (comm->bootstrap.reunion) { /* else there is another reason to refuse it */
    LCOMM_TRY(check_failure(comm));
  }
  LCOMM_TRY(lcomm_shrink_check(comm, "lcomm_shrink"));
  (void)lcomm_operations_move(comm, &moved); /* cancels what is in flight */
  lcomm_lanes_finish(comm);
  lcomm_links_stop_reading(&comm->links);
  LCOMM_TRY(lcomm_residuals_break_off(comm));
  return lcomm_shrink_make(comm, "lcomm_shrink", next);
}

lcomm_status lcomm_shrunk_get(const lcomm_comm *comm, lcomm_shrunk *shrunk) {
  if (!comm || !shrunk) {
    return lcomm_refuse_null(comm, "lcomm_shrunk_get", "shrunk");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  *shrunk = comm->bootstrap.reunion ? comm->bootstrap.reunion->shrunk : (lcomm_shrunk){0};
  return LCOMM_OK;
}

lcomm_status lcomm_shrink(lcomm_comm *comm, lcomm_comm **next) {
  if (!comm || !next) {
    return lcomm_refuse_null(comm, "lcomm_shrink", "next");
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = shrink(comm, next);
  lcomm_exit(comm);
  return status;
}
