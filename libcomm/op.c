/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations: start, move together, wait with a deadline. */

#include "libcomm/op.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/base/clock.h"
#include "libcomm/hold.h"

/* ------------------------------------------------------------ life cycle */

static lcomm_operation *take(lcomm_comm *comm) {
  lcomm_operation *operation = comm->idle;
  if (operation) {
    comm->idle = operation->next_idle;
    return operation;
  }
  operation = calloc(1, sizeof(*operation));
  if (operation) {
    operation->next_made = comm->made;
    comm->made = operation;
  }
  return operation;
}

static void append(lcomm_comm *comm, lcomm_operation *operation) {
  operation->previous = comm->last;
  operation->next = NULL;
  if (comm->last) {
    comm->last->next = operation;
  } else {
    comm->first = operation;
  }
  comm->last = operation;
}

static void detach(lcomm_comm *comm, lcomm_operation *operation) {
  if (operation->previous) {
    operation->previous->next = operation->next;
  } else {
    comm->first = operation->next;
  }
  if (operation->next) {
    operation->next->previous = operation->previous;
  } else {
    comm->last = operation->previous;
  }
}

lcomm_status lcomm_operation_start(lcomm_comm *comm, lcomm_run *run,
                                   const lcomm_operation_data *data, lcomm_operation **started) {
  lcomm_operation *operation = take(comm);
  if (!operation && run->sends_done) { /* peers wait for what cannot go on */
    run->sends_done = false;
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  if (!operation) {
    return lcomm_refuse(comm, LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  lcomm_operation *made = operation->next_made;
  memset(operation, 0, sizeof(*operation));
  operation->next_made = made;
  operation->run = run;
  operation->op = data->op;
  operation->sequence = comm->next[lcomm_purpose_series(data->purpose)];
  operation->begun_s = operation->moved_s = lcomm_clock_s();
  lcomm_run_start(run, data, operation->sequence);
  lcomm_summary_begin(&comm->summary, operation->begun_s);
  append(comm, operation);
  *started = operation;
  return lcomm_ticket_begin(run);
}

void lcomm_operation_release(lcomm_comm *comm, lcomm_operation *operation) {
  operation->run = NULL; /* whose it was, it is again */
  operation->next_idle = comm->idle;
  comm->idle = operation;
}

static lcomm_summary_row *row_of(lcomm_comm *comm, const lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  return lcomm_summary_find(&comm->summary, run->plan->collective, run->terms.purpose);
}

/* The operation's numbers go into those of the communicator. */
static void account(lcomm_comm *comm, const lcomm_operation *operation, double now_s) {
  const lcomm_run *run = operation->run;
  const lcomm_plan *plan = run->plan;
  lcomm_stats *all = &comm->stats;
  lcomm_summary_cost cost = {.data_bytes = plan->count * lcomm_dtype_size(plan->dtype),
                             .encode_s = run->stats.encode_s,
                             .decode_s = run->stats.decode_s,
                             .wire_s = run->stats.wire_s};
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    cost.sent_bytes[link] = run->stats.sent_bytes[link];
    cost.exact_bytes[link] = run->stats.exact_bytes[link];
    all->sent_bytes[link] += run->stats.sent_bytes[link];
    all->exact_bytes[link] += run->stats.exact_bytes[link];
    all->received_bytes[link] += run->stats.received_bytes[link];
    all->sent_messages[link] += run->stats.sent_messages[link];
  }
  all->encode_s += cost.encode_s;
  all->decode_s += cost.decode_s;
  all->wire_s += cost.wire_s;
  if (operation->status == LCOMM_OK) {
    all->operations++;
    lcomm_summary_add(&comm->summary, row_of(comm, operation), &cost, operation->begun_s, now_s);
  } else {
    lcomm_summary_drop(&comm->summary, now_s);
  }
}

static void trace_operation(const lcomm_comm *comm, const lcomm_operation *operation,
                            double now_s) {
  const lcomm_plan *plan = operation->run->plan;
  lcomm_trace_event event = {.kind = LCOMM_TRACE_OPERATION,
                             .begin_s = operation->begun_s,
                             .end_s = now_s,
                             .operation = lcomm_collective_name(plan->collective),
                             .sequence = operation->sequence,
                             .peer = -1,
                             .bytes = plan->count * lcomm_dtype_size(plan->dtype),
                             .name = operation->run->name};
  lcomm_trace_add(comm->trace, &event);
}

static void finish(lcomm_comm *comm, lcomm_operation *operation, lcomm_status status) {
  double now_s = lcomm_clock_s();
  detach(comm, operation);
  operation->run->sends_done = false;
  operation->over = true;
  operation->status = status;
  account(comm, operation, now_s);
  if (comm->trace) {
    trace_operation(comm, operation, now_s);
  }
  if (operation->end) {
    operation->end(operation);
  }
  if (operation->hold) {
    lcomm_hold_release(operation->hold);
  }
  if (operation->detached) {
    lcomm_run_keep(comm, operation->run);
    lcomm_operation_release(comm, operation);
  }
}

/* After a failure nothing is waited for any more. */
static void cancel_all(lcomm_comm *comm, lcomm_status status) {
  bool any = comm->first != NULL;
  while (comm->first) {
    lcomm_operation *operation = comm->first;
    lcomm_run_cancel(operation->run);
    finish(comm, operation, status);
  }
  if (comm->trace && any) {
    lcomm_trace_flush(comm->trace);
  }
}

static lcomm_status move_one(lcomm_comm *comm, lcomm_operation *operation, bool *moved) {
  bool here = false;
  lcomm_status status = LCOMM_OK;
  if (!lcomm_run_over(operation->run)) {
    status = lcomm_run_progress(operation->run, &here);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  *moved |= here;
  if (lcomm_run_over(operation->run)) {
    *moved = true;
    finish(comm, operation, LCOMM_OK);
  } else if (here) {
    operation->moved_s = lcomm_clock_s();
  }
  return LCOMM_OK;
}

/* Nothing has moved for a while: is anybody in another call? */
static void tell_tickets(lcomm_comm *comm) {
  double now_s = lcomm_clock_s();
  for (lcomm_operation *operation = comm->first; operation; operation = operation->next) {
    lcomm_ticket_tell(comm, operation, now_s);
  }
}

lcomm_status lcomm_operations_move(lcomm_comm *comm, bool *moved) {
  enum { MOVES_BETWEEN_LOOKS = 256 };
  bool here = false;
  if (comm->first) {
    lcomm_links_progress(&comm->links);
  }
  lcomm_status status = lcomm_comm_listen(comm);
  lcomm_operation *operation = comm->first;
  while (operation && status == LCOMM_OK) {
    lcomm_operation *next = operation->next;
    status = move_one(comm, operation, &here);
    operation = next;
  }
  if (status != LCOMM_OK) {
    cancel_all(comm, status);
  } else if (!here && comm->first && ++comm->quiet_moves % MOVES_BETWEEN_LOOKS == 0) {
    tell_tickets(comm);
  }
  *moved |= here;
  return status;
}

/* --------------------------------------------------------------- waiting */

/* A rank that has nothing to do looks again at once for a moment, then gives
 * its core away, and sleeps when nothing has moved for longer. With more ranks
 * than processors somebody else needs the core right now. True after a sleep. */
static bool idle(lcomm_comm *comm, double idle_since_s) {
  enum { SPINS = 64, SPINS_CROWDED = 4 };
  static const double AWAKE_S = 100e-6, SLEEP_S = 0.05;
  if (comm->quiet_polls < (comm->crowded ? SPINS_CROWDED : SPINS)) {
    return false;
  }
  if (lcomm_clock_s() - idle_since_s < AWAKE_S) {
    sched_yield();
    return false;
  }
  lcomm_links_nap nap;
  lcomm_links_prepare(&comm->links, &nap, -1);
  nap.blind |= comm->device_works > 0;
  lcomm_links_doze(&nap, SLEEP_S);
  lcomm_links_awake(&comm->links);
  return true;
}

static lcomm_status give_up(lcomm_comm *comm, const lcomm_operation *operation) {
  uint32_t step = 0;
  bool receiving = false;
  char who[96];
  const char *name = lcomm_collective_name(operation->run->plan->collective);
  int peer = lcomm_run_awaited(operation->run, &step, &receiving);
  if (peer < 0) {
    return lcomm_fail(comm, LCOMM_ERR_INTERNAL, "%s #%u waits for nothing", name,
                      operation->sequence);
  }
  return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                    "%s #%u, step %u: %s %s for %g s. It may be dead, stopped, or in another "
                    "call. LCOMM_TIMEOUT_S sets the patience.",
                    name, operation->sequence, step, lcomm_comm_who(comm, peer, who, sizeof(who)),
                    receiving ? "has sent nothing" : "takes nothing", comm->timeout_s);
}

/* The patience counts from the begin of the wait: a rank that computed for a
 * long time between two calls has not made anybody late. */
static lcomm_status check_deadline(lcomm_comm *comm, double since_s) {
  const lcomm_operation *oldest = comm->first;
  if (!oldest) {
    return LCOMM_OK;
  }
  double moved_s = oldest->moved_s > since_s ? oldest->moved_s : since_s;
  if (lcomm_clock_s() - moved_s < comm->timeout_s) {
    return LCOMM_OK;
  }
  return give_up(comm, oldest);
}

/* Time with nothing to do is over. */
static void count_wait(lcomm_comm *comm, lcomm_summary_row *row, double since_s) {
  double now_s = lcomm_clock_s();
  comm->stats.wait_s += now_s - since_s;
  if (row) {
    row->wait_s += now_s - since_s;
  }
  if (comm->trace) {
    lcomm_trace_event event = {
        .kind = LCOMM_TRACE_WAIT, .begin_s = since_s, .end_s = now_s, .peer = -1};
    lcomm_trace_add(comm->trace, &event);
  }
}

lcomm_status lcomm_operations_wait(lcomm_comm *comm, const bool *flag) {
  double since_s = lcomm_clock_s(), idle_since_s = 0;
  lcomm_summary_row *row = NULL;
  comm->quiet_polls = 0;
  while (!*flag) {
    bool moved = false;
    lcomm_operation *oldest = comm->first;
    if (comm->quiet_polls == 1) {
      row = oldest ? row_of(comm, oldest) : NULL;
    }
    lcomm_status status = lcomm_operations_move(comm, &moved);
    if (status != LCOMM_OK) {
      return status;
    }
    if (moved) {
      if (comm->quiet_polls > 1) {
        count_wait(comm, row, idle_since_s);
      }
      comm->quiet_polls = 0;
      continue;
    }
    if (comm->quiet_polls++ == 0) {
      idle_since_s = lcomm_clock_s();
    }
    if (idle(comm, idle_since_s)) {
      tell_tickets(comm);
      status = check_deadline(comm, since_s);
    }
    if (status != LCOMM_OK) {
      cancel_all(comm, status);
      return status;
    }
  }
  return LCOMM_OK;
}
