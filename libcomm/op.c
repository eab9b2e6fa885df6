/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations: start, move together, wait with a deadline. */

#include "libcomm/op.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/base/clock.h"

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

lcomm_status lcomm_operation_start(lcomm_comm *comm, lcomm_run *run, float *vector, lcomm_op op,
                                   lcomm_operation **started) {
  lcomm_operation *operation = take(comm);
  if (!operation) {
    return lcomm_refuse(comm, LCOMM_ERR_MEMORY, "out of memory for an operation");
  }
  lcomm_operation *made = operation->next_made;
  memset(operation, 0, sizeof(*operation));
  operation->next_made = made;
  operation->run = run;
  operation->op = op;
  operation->sequence = comm->sequence++;
  operation->moved_s = lcomm_clock_s();
  lcomm_run_start(run, vector, op == LCOMM_AVG ? 1.0f / (float)comm->size : 1.0f,
                  operation->sequence);
  append(comm, operation);
  *started = operation;
  return lcomm_ticket_post(comm, operation);
}

void lcomm_operation_release(lcomm_comm *comm, lcomm_operation *operation) {
  operation->next_idle = comm->idle;
  comm->idle = operation;
}

static void finish(lcomm_comm *comm, lcomm_operation *operation, lcomm_status status) {
  detach(comm, operation);
  operation->over = true;
  operation->status = status;
  if (status == LCOMM_OK) {
    comm->stats.operations++;
  }
  if (operation->end) {
    operation->end(operation);
  }
}

/* After a failure nothing is waited for any more. */
static void cancel_all(lcomm_comm *comm, lcomm_status status) {
  while (comm->first) {
    lcomm_operation *operation = comm->first;
    lcomm_run_cancel(operation->run);
    lcomm_ticket_cancel(comm, operation);
    finish(comm, operation, status);
  }
}

static lcomm_status move_one(lcomm_comm *comm, lcomm_operation *operation, bool *moved) {
  bool here = false;
  lcomm_status status = lcomm_ticket_move(comm, operation, &here);
  if (status == LCOMM_OK && !lcomm_run_over(operation->run)) {
    status = lcomm_run_progress(operation->run, &here);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  if (here) {
    *moved = true;
    operation->moved_s = lcomm_clock_s();
  }
  if (lcomm_run_over(operation->run) && operation->ticket_sent && operation->ticket_received) {
    *moved = true;
    finish(comm, operation, LCOMM_OK);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_operations_move(lcomm_comm *comm, bool *moved) {
  lcomm_status status = lcomm_comm_listen(comm);
  lcomm_operation *operation = comm->first;
  while (operation && status == LCOMM_OK) {
    lcomm_operation *next = operation->next;
    status = move_one(comm, operation, moved);
    operation = next;
  }
  if (status != LCOMM_OK) {
    cancel_all(comm, status);
  }
  return status;
}

/* --------------------------------------------------------------- waiting */

/* More ranks than cores are common, so a rank that has nothing to do gives
 * its core away soon, and sleeps when nothing has moved for a while. Not at
 * once: below us, a long message moves in pieces that nobody tells us of. */
static void idle(const lcomm_comm *comm, double idle_since_s) {
  enum { SPINS = 50 };
  static const double AWAKE_S = 1e-3;
  static const struct timespec nap = {0, 50000};
  if (comm->quiet_polls < SPINS) {
    return;
  }
  if (lcomm_clock_s() - idle_since_s < AWAKE_S) {
    sched_yield();
    return;
  }
  nanosleep(&nap, NULL);
}

static lcomm_status give_up(lcomm_comm *comm, const lcomm_operation *operation) {
  uint32_t step = 0;
  bool receiving = false;
  char who[96];
  const char *name = lcomm_collective_name(operation->run->plan->collective);
  int peer = lcomm_run_awaited(operation->run, &step, &receiving);
  if (peer < 0) {
    int left = (comm->rank + comm->size - 1) % comm->size;
    return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                      "%s #%u: %s has not begun it for %.0f s. It may be dead, stopped, or in "
                      "another call. LCOMM_TIMEOUT_S sets the patience.",
                      name, operation->sequence, lcomm_comm_who(comm, left, who, sizeof(who)),
                      comm->timeout_s);
  }
  return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                    "%s #%u, step %u: %s %s for %.0f s. It may be dead, stopped, or in another "
                    "call. LCOMM_TIMEOUT_S sets the patience.",
                    name, operation->sequence, step, lcomm_comm_who(comm, peer, who, sizeof(who)),
                    receiving ? "has sent nothing" : "takes nothing", comm->timeout_s);
}

/* The patience counts from the begin of the wait: a rank that computed for a
 * long time between two calls has not made anybody late. */
static lcomm_status check_deadline(lcomm_comm *comm, double since_s) {
  enum { POLLS_BETWEEN_LOOKS = 256 };
  if (comm->quiet_polls % POLLS_BETWEEN_LOOKS != 0 || !comm->first) {
    return LCOMM_OK;
  }
  const lcomm_operation *oldest = comm->first;
  double moved_s = oldest->moved_s > since_s ? oldest->moved_s : since_s;
  if (lcomm_clock_s() - moved_s < comm->timeout_s) {
    return LCOMM_OK;
  }
  return give_up(comm, oldest);
}

lcomm_status lcomm_operations_wait(lcomm_comm *comm, const bool *flag) {
  double since_s = lcomm_clock_s(), idle_since_s = 0;
  comm->quiet_polls = 0;
  while (!*flag) {
    bool moved = false;
    lcomm_status status = lcomm_operations_move(comm, &moved);
    if (status != LCOMM_OK) {
      return status;
    }
    if (moved) {
      if (comm->quiet_polls > 0) {
        comm->stats.wait_s += lcomm_clock_s() - idle_since_s;
      }
      comm->quiet_polls = 0;
      continue;
    }
    if (comm->quiet_polls++ == 0) {
      idle_since_s = lcomm_clock_s();
    }
    idle(comm, idle_since_s);
    status = check_deadline(comm, since_s);
    if (status != LCOMM_OK) {
      cancel_all(comm, status);
      return status;
    }
  }
  return LCOMM_OK;
}
