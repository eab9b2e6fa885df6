/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Waiting for operations, with a deadline. */

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/base/error.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/diagnose.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/other_waits.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/siblings.h"

/* How long a rank that has nothing to do stays awake: adaptive spinning. To wake up
 * takes some 50 us, so it pays to stay awake for about as long as waits last now, if
 * that is not long. Where ranks share processors waits last longer, and whoever waits
 * yields to the others. */
static const double AWAKE_LEAST_S = 20e-6, AWAKE_MOST_S = 1e-3;

static double awake_time_s(const lcomm_comm *comm) {
  return comm->waiting.awake_s > AWAKE_LEAST_S ? comm->waiting.awake_s : AWAKE_LEAST_S;
}

/* Adapt to a wait that has ended and lasted so long. */
static void adapt_awake_time(lcomm_comm *comm, double lasted_s) {
  if (lasted_s > AWAKE_MOST_S) {
    comm->waiting.awake_s /= 2;
  } else if (lasted_s > awake_time_s(comm)) {
    comm->waiting.awake_s = 2 * lasted_s < AWAKE_MOST_S ? 2 * lasted_s : AWAKE_MOST_S;
  }
}

/* A rank that has nothing to do polls for a moment, then yields its core, then sleeps when nothing
 * has moved for longer. Meanwhile it makes progress in other communicators of the process. True
 * when the deadline should be checked. */
static bool idle(lcomm_comm *comm, lcomm_backoff *backoff, double idle_since_s) {
  static const double SLEEP_S = 0.05;
  if (backoff->steps < backoff->spins) {
    lcomm_backoff_step(backoff);
    return false;
  }
  bool others_moved = lcomm_siblings_move(comm);
  double now_s = lcomm_clock_s();
  lcomm_external_progress(&comm->waiting.external, &comm->bootstrap, now_s);
  if (now_s - idle_since_s < awake_time_s(comm)) {
    lcomm_backoff_step(backoff);
    return false;
  }
  if (!others_moved) {
    lcomm_comm_sleep(comm, SLEEP_S);
  }
  return true;
}

/* Sleep in pieces, between which the program's messages in MPI move. True when the sleep ran to its
 * limit although every transport could have woken this rank. */
static bool sleep_in_pieces(lcomm_comm *comm, lcomm_links_wait_set *set, double limit_s) {
  double now_s = lcomm_clock_s(), end_s = now_s + limit_s;
  while (now_s < end_s) {
    double piece_s =
        lcomm_external_limit_s(&comm->waiting.external, &comm->bootstrap, now_s, end_s - now_s);
    if (!lcomm_links_sleep(set, piece_s)) {
      return false;
    }
    now_s = lcomm_clock_s();
    lcomm_external_progress(&comm->waiting.external, &comm->bootstrap, now_s);
  }
  return lcomm_links_sleep(set, 0); /* on a busy machine somebody may have rung meanwhile */
}

void lcomm_comm_sleep(lcomm_comm *comm, double limit_s) {
  lcomm_links_wait_set set;
  lcomm_links_prepare(&comm->links, &set, -1);
  set.blind |= comm->runs.device_works > 0;
  bool joined = lcomm_siblings_prepare(comm, &set);
  double until_s = lcomm_replays_limit_s(comm, limit_s);
  comm->waiting.overslept = sleep_in_pieces(comm, &set, until_s) && until_s >= limit_s;
  lcomm_links_awake(&comm->links);
  lcomm_siblings_awake(comm, joined);
}

/* Does the operation wait for this rank's own device, which has not come to the call yet or is at
 * work for it? Peers that wait for too long name this rank. */
bool lcomm_operation_waits_for_device(const lcomm_operation *operation) {
  const lcomm_backend_queue *queue = operation->run->backend->queue;
  return queue && queue->is_busy(operation->run);
}

/* Nothing has moved for a while: does the network still reach the hosts of all peers? */
static lcomm_status check_network(lcomm_comm *comm, double since_s) {
  static const double PATIENCE_S = 2, EVERY_S = 1;
  char who[96];
  lcomm_why why;
  const lcomm_operation *oldest = comm->operations.first;
  double now_s = lcomm_clock_s(), moved_s = oldest ? oldest->moved_s : now_s;
  moved_s = moved_s > since_s ? moved_s : since_s;
  if (now_s - moved_s < PATIENCE_S || now_s - comm->waiting.network_seen_s < EVERY_S) {
    return LCOMM_OK;
  }
  comm->waiting.network_seen_s = now_s;
  int peer = lcomm_links_unreachable(&comm->links, &why);
  if (peer < 0) {
    return LCOMM_OK;
  }
  return lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, peer,
                         "%s #%u: the network to %s %s. Is the host on, and its cable in?",
                         lcomm_collective_name(oldest->run->plan->collective), oldest->sequence,
                         lcomm_comm_who(comm, peer, who, sizeof(who)), why.text);
}

/* Has an operation that does not move been waited for since `since_s` (or since it last moved) for
 * too long? Asks peers from half the time-out on. TIMEOUT, MISMATCH: an error of the communicator
 * now. The time-out counts from the begin of the wait: a rank that computed for a long time between
 * two calls has waited for nobody meanwhile. */
static lcomm_status check_operation(lcomm_comm *comm, const lcomm_operation *operation,
                                    double since_s) {
  double moved_s = operation->moved_s > since_s ? operation->moved_s : since_s;
  bool behind_own = !operation->run->flow.admitted && operation->run->flow.held_by < 0;
  if (behind_own || lcomm_operation_waits_for_device(operation)) {
    return LCOMM_OK; /* older operations of this rank, or its device, are looked after */
  }
  return lcomm_diagnose(comm, operation, lcomm_clock_s() - moved_s);
}

static lcomm_status check_oldest(lcomm_comm *comm, double since_s) {
  const lcomm_operation *oldest = comm->operations.first;
  LCOMM_TRY(oldest ? check_operation(comm, oldest, since_s) : LCOMM_OK);
  LCOMM_TRY(lcomm_pairs_check(comm));
  return check_network(comm, since_s);
}

static lcomm_status cancel_on_failure(lcomm_comm *comm, lcomm_status status) {
  if (status != LCOMM_OK) {
    lcomm_operations_cancel(comm, status);
  }
  return status;
}

static lcomm_status check_awaited(lcomm_comm *comm) {
  for (const lcomm_operation *it = comm->operations.first; it; it = it->next) {
    bool awaited = it->streamed || it->tested_s > 0;
    LCOMM_TRY(awaited ? check_operation(comm, it, it->tested_s) : LCOMM_OK);
  }
  LCOMM_TRY(lcomm_pairs_check(comm));
  return check_network(comm, 0);
}

lcomm_status lcomm_operations_check(lcomm_comm *comm) {
  return cancel_on_failure(comm, check_awaited(comm));
}

/* Register a long wait: ranks that wait for this one in other communicators may ask why. */
static void tell_long_wait(lcomm_comm *comm, double idle_since_s) {
  static const double LONG_S = 0.1;
  if (lcomm_clock_s() - idle_since_s >= LONG_S) {
    comm->waiting.long_wait = true;
    lcomm_other_waits_add(comm, 0, 0);
    lcomm_siblings_listen(comm);
  }
}

static void end_long_wait(lcomm_comm *comm) {
  if (comm->waiting.long_wait) {
    comm->waiting.long_wait = false;
    lcomm_other_waits_remove(comm);
  }
}

/* Count the time with nothing to do, which has ended. */
static void count_wait(lcomm_comm *comm, lcomm_summary_row *row, double since_s) {
  double now_s = lcomm_clock_s();
  adapt_awake_time(comm, now_s - since_s);
  comm->stats.wait_s += now_s - since_s;
  if (row) {
    row->wait_s += now_s - since_s;
  }
  if (comm->observers.trace) {
    lcomm_trace_event event = {
        .kind = LCOMM_TRACE_WAIT, .begin_s = since_s, .end_s = now_s, .peer = -1};
    lcomm_trace_add(comm->observers.trace, &event);
  }
}

static lcomm_status wait_for(lcomm_comm *comm, const bool *flag) {
  enum { SPINS = 64, SPINS_CROWDED = 4 };
  double since_s = lcomm_clock_s(), idle_since_s = 0;
  lcomm_summary_row *row = NULL;
  lcomm_backoff backoff = {.spins = comm->waiting.crowded ? SPINS_CROWDED : SPINS,
                           .yields = LCOMM_BACKOFF_ALWAYS};
  while (!*flag) {
    bool moved = false;
    lcomm_operation *oldest = comm->operations.first;
    if (backoff.steps == 1) {
      row = oldest ? lcomm_operation_row(comm, oldest) : lcomm_pairs_awaited_row(comm);
    }
    LCOMM_TRY(lcomm_operations_move(comm, &moved));
    if (comm->runs.reads_awaited > 0) {
      LCOMM_TRY(cancel_on_failure(comm, lcomm_device_read_awaited(comm)));
    }
    if (moved) {
      if (backoff.steps > 1) {
        count_wait(comm, row, idle_since_s);
      }
      lcomm_backoff_reset(&backoff);
      end_long_wait(comm);
      continue;
    }
    if (backoff.steps == 0) {
      idle_since_s = lcomm_clock_s();
      lcomm_external_begin(&comm->waiting.external, idle_since_s);
    }
    if (idle(comm, &backoff, idle_since_s)) {
      lcomm_fingerprints_send(comm);
      tell_long_wait(comm, idle_since_s);
      LCOMM_TRY(cancel_on_failure(comm, check_oldest(comm, since_s)));
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_operations_wait(lcomm_comm *comm, const bool *flag) {
  comm->waiting.awaited_done = flag;
  lcomm_status status = wait_for(comm, flag);
  comm->waiting.awaited_done = NULL;
  end_long_wait(comm);
  return status;
}

static const lcomm_operation *find_detached(const lcomm_comm *comm) {
  const lcomm_operation *it = comm->operations.first;
  while (it && !it->detached) {
    it = it->next;
  }
  return it;
}

lcomm_status lcomm_operations_finish(lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  for (const lcomm_operation *it = find_detached(comm); it && status == LCOMM_OK;
       it = find_detached(comm)) {
    status = lcomm_operations_wait(comm, &it->over);
  }
  return status == LCOMM_OK ? lcomm_pairs_finish(comm) : status;
}
