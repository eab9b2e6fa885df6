/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tickets: what each rank announces to the next one about an operation. */

#include <stdio.h>
#include <string.h>

#include "libcomm/op.h"

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

lcomm_status lcomm_ticket_post(lcomm_comm *comm, lcomm_operation *operation) {
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

lcomm_status lcomm_ticket_move(lcomm_comm *comm, lcomm_operation *operation, bool *moved) {
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

void lcomm_ticket_cancel(lcomm_comm *comm, lcomm_operation *operation) {
  lcomm_transport *wire = comm->transport;
  if (!operation->ticket_received) {
    wire->table->cancel(wire, &operation->ticket_receiving);
  }
  if (!operation->ticket_sent) {
    wire->table->cancel(wire, &operation->ticket_sending);
  }
}
