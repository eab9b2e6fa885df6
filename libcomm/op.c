/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations: start, move together, wait with a deadline. */

#include "libcomm/op.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/base/clock.h"

/* --------------------------------------------------------------- tickets */

typedef struct ticket {
  char magic[4];
  uint8_t collective, dtype, op, lasting;
  uint32_t sequence, root;
  uint64_t count, plan_hash;
} ticket;

_Static_assert(sizeof(ticket) <= LCOMM_TICKET_SIZE, "a ticket fits");

static ticket ticket_of(const lcomm_operation *operation) {
  const lcomm_plan *plan = operation->run->plan;
  ticket it = {.magic = {'L', 'C', 'M', 'T'},
               .collective = (uint8_t)plan->collective,
               .dtype = (uint8_t)plan->dtype,
               .op = (uint8_t)operation->op,
               .lasting = plan->lasting,
               .sequence = operation->sequence,
               .root = (uint32_t)plan->root,
               .count = plan->count,
               .plan_hash = plan->hash};
  return it;
}

static lcomm_status post_tickets(lcomm_comm *comm, lcomm_operation *operation) {
  lcomm_transport *wire = comm->transport;
  ticket mine = ticket_of(operation);
  int right = (comm->rank + 1) % comm->size, left = (comm->rank + comm->size - 1) % comm->size;
  operation->ticket_sent = operation->ticket_received = comm->size == 1;
  if (comm->size == 1) {
    return LCOMM_OK;
  }
  memset(operation->ticket_out, 0, sizeof(operation->ticket_out));
  memcpy(operation->ticket_out, &mine, sizeof(mine));
  lcomm_status status = wire->table->receive(wire, left, LCOMM_TAG_TICKET, operation->ticket_in,
                                             LCOMM_TICKET_SIZE, &operation->ticket_receiving);
  if (status == LCOMM_OK) {
    status = wire->table->send(wire, right, LCOMM_TAG_TICKET, operation->ticket_out,
                               LCOMM_TICKET_SIZE, &operation->ticket_sending);
  }
  if (status != LCOMM_OK) {
    operation->ticket_sent = operation->ticket_received = true; /* nothing to cancel */
    return lcomm_fail(comm, LCOMM_ERR_TRANSPORT, "%s #%u cannot be announced. %s.",
                      lcomm_collective_name(operation->run->plan->collective), operation->sequence,
                      wire->table->why(wire));
  }
  return LCOMM_OK;
}

static void describe_ticket(const ticket *it, char *text, size_t size) {
  int used =
      snprintf(text, size, "%s%s #%u", lcomm_collective_name((lcomm_collective)it->collective),
               it->lasting ? " of a bucket" : "", it->sequence);
  if (it->collective == LCOMM_COLLECTIVE_BARRIER) {
    return;
  }
  used += snprintf(text + used, size - (size_t)used, " of %llu %s elements%s",
                   (unsigned long long)it->count, lcomm_dtype_name((lcomm_dtype)it->dtype),
                   it->op == LCOMM_AVG ? ", averaged" : "");
  if (it->collective == LCOMM_COLLECTIVE_BROADCAST) {
    snprintf(text + used, size - (size_t)used, " from rank %u", it->root);
  }
}

static lcomm_status compare_tickets(lcomm_comm *comm, lcomm_operation *operation) {
  char ours[160], theirs[160], who[96];
  ticket mine = ticket_of(operation), other;
  memcpy(&other, operation->ticket_in, sizeof(other));
  if (memcmp(&mine, &other, sizeof(mine)) == 0) {
    return LCOMM_OK;
  }
  describe_ticket(&mine, ours, sizeof(ours));
  describe_ticket(&other, theirs, sizeof(theirs));
  int left = (comm->rank + comm->size - 1) % comm->size;
  return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                    "ranks call different things: %s here, %s on %s. All ranks must make the same "
                    "calls in the same order with the same count and type, on the same tensors.",
                    ours, theirs, lcomm_comm_who(comm, left, who, sizeof(who)));
}

static lcomm_status move_tickets(lcomm_comm *comm, lcomm_operation *operation, bool *moved) {
  lcomm_transport *wire = comm->transport;
  lcomm_status status = LCOMM_OK;
  if (!operation->ticket_sent) {
    status = wire->table->test(wire, &operation->ticket_sending, &operation->ticket_sent, NULL);
    *moved |= operation->ticket_sent;
  }
  if (status == LCOMM_OK && !operation->ticket_received) {
    status =
        wire->table->test(wire, &operation->ticket_receiving, &operation->ticket_received, NULL);
    if (status == LCOMM_OK && operation->ticket_received) {
      *moved = true;
      return compare_tickets(comm, operation);
    }
  }
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, LCOMM_ERR_TRANSPORT, "%s #%u: the announcement failed. %s.",
                      lcomm_collective_name(operation->run->plan->collective), operation->sequence,
                      wire->table->why(wire));
  }
  return LCOMM_OK;
}

static void cancel_tickets(lcomm_comm *comm, lcomm_operation *operation) {
  lcomm_transport *wire = comm->transport;
  if (!operation->ticket_received) {
    wire->table->cancel(wire, &operation->ticket_receiving);
  }
  if (!operation->ticket_sent) {
    wire->table->cancel(wire, &operation->ticket_sending);
  }
}

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
  return post_tickets(comm, operation);
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
    cancel_tickets(comm, operation);
    finish(comm, operation, status);
  }
}

static lcomm_status move_one(lcomm_comm *comm, lcomm_operation *operation, bool *moved) {
  bool here = false;
  lcomm_status status = move_tickets(comm, operation, &here);
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
 * its core away soon, and sleeps when nothing has moved for a while. */
static void idle(lcomm_comm *comm) {
  enum { SPINS = 50, YIELDS = 500 };
  static const struct timespec nap = {0, 50000};
  if (comm->quiet_polls < SPINS) {
    return;
  }
  if (comm->quiet_polls < YIELDS) {
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
    idle(comm);
    status = check_deadline(comm, since_s);
    if (status != LCOMM_OK) {
      cancel_all(comm, status);
      return status;
    }
  }
  return LCOMM_OK;
}
