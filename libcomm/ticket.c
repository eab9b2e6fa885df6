/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tickets: what each rank tells the next one about an operation that waits. */

#include <stdio.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/op.h"

static const double PATIENCE_S = 0.02, AGAIN_S = 1.0;

/* A ticket on its way. */
typedef struct message {
  int32_t kind; /* LCOMM_NOTICE_TICKET */
  int32_t rank;
  lcomm_ticket ticket;
} message;

static lcomm_ticket ticket_of(const lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  return (lcomm_ticket){.sequence = run->sequence,
                        .collective = (uint8_t)plan->collective,
                        .dtype = (uint8_t)plan->dtype,
                        .op = (uint8_t)run->terms.op,
                        .purpose = (uint8_t)run->terms.purpose,
                        .root = (uint32_t)plan->root,
                        .parameters = run->parameters,
                        .count = plan->count,
                        .residual = run->terms.residual};
}

static int left_of(const lcomm_comm *comm) {
  return (comm->rank + comm->size - 1) % comm->size;
}

static void describe(const lcomm_ticket *it, char *text, size_t size) {
  char purpose[LCOMM_PURPOSE_TEXT_MAX];
  lcomm_collective collective = (lcomm_collective)it->collective;
  int used =
      snprintf(text, size, "%s%s #%u", lcomm_collective_name(collective),
               lcomm_purpose_text((lcomm_purpose)it->purpose, it->residual, purpose), it->sequence);
  if (collective == LCOMM_COLLECTIVE_BARRIER) {
    return;
  }
  static const char *const ops[] = {[LCOMM_SUM] = "",
                                    [LCOMM_AVG] = ", averaged",
                                    [LCOMM_MIN] = ", the smallest",
                                    [LCOMM_MAX] = ", the largest"};
  used += snprintf(text + used, size - (size_t)used, " of %llu %s elements%s",
                   (unsigned long long)it->count, lcomm_dtype_name((lcomm_dtype)it->dtype),
                   it->op <= LCOMM_MAX ? ops[it->op] : "");
  if (collective == LCOMM_COLLECTIVE_BROADCAST) {
    snprintf(text + used, size - (size_t)used, " from rank %u", it->root);
  }
}

static lcomm_status compare(lcomm_comm *comm, const lcomm_ticket *mine, const lcomm_ticket *other) {
  char ours[160], theirs[160], who[96];
  if (memcmp(mine, other, sizeof(*mine)) == 0) {
    return LCOMM_OK;
  }
  describe(mine, ours, sizeof(ours));
  describe(other, theirs, sizeof(theirs));
  return lcomm_fail(
      comm, LCOMM_ERR_MISMATCH,
      "ranks call different things: %s here, %s%s on %s. All ranks must make the same "
      "calls in the same order with the same count and type, with the same residuals and tensors.",
      ours, theirs,
      strcmp(ours, theirs) == 0 ? " with other parts or factors, or after other calls" : "",
      lcomm_comm_who(comm, left_of(comm), who, sizeof(who)));
}

/* A call that differed where no message passed shows in the next one. */
static void pass(lcomm_comm *comm, const lcomm_run *run) {
  lcomm_series series = lcomm_purpose_series(run->terms.purpose);
  uint32_t history = comm->history[series];
  comm->history[series] = ((history << 5 | history >> 27) ^ run->key) * UINT32_C(0x9e3779b1);
  comm->next[series] += LCOMM_SERIES_COUNT;
}

lcomm_status lcomm_ticket_begin(const lcomm_run *run) {
  lcomm_comm *comm = run->comm;
  lcomm_ticket_book *book = &comm->tickets;
  lcomm_ticket ticket = ticket_of(run);
  uint32_t place = ticket.sequence % LCOMM_TICKETS_KEPT;
  pass(comm, run);
  book->mine[place] = ticket;
  if (book->early_count == 0 || book->early[place].sequence != ticket.sequence ||
      book->early[place].collective == UINT8_MAX) {
    return LCOMM_OK;
  }
  lcomm_ticket other = book->early[place];
  book->early[place].collective = UINT8_MAX;
  book->early_count--;
  return compare(comm, &ticket, &other);
}

void lcomm_ticket_book_init(lcomm_ticket_book *book) {
  memset(book, 0, sizeof(*book));
  for (uint32_t i = 0; i < LCOMM_TICKETS_KEPT; i++) {
    book->early[i].collective = UINT8_MAX; /* empty */
    book->mine[i].sequence = i + 1;        /* no operation of this place has that number */
  }
}

static void keep_early(lcomm_ticket_book *book, const lcomm_ticket *ticket) {
  lcomm_ticket *place = &book->early[ticket->sequence % LCOMM_TICKETS_KEPT];
  book->early_count += place->collective == UINT8_MAX;
  *place = *ticket;
}

void lcomm_ticket_hear(lcomm_comm *comm, const void *bytes) {
  message heard;
  memcpy(&heard, bytes, sizeof(heard));
  const lcomm_ticket *ticket = &heard.ticket;
  if (heard.rank != left_of(comm) || ticket->collective >= LCOMM_COLLECTIVE_COUNT) {
    return; /* not for us */
  }
  int32_t ahead = (int32_t)(ticket->sequence - comm->next[ticket->sequence % LCOMM_SERIES_COUNT]);
  if (ahead >= 0 && ahead < LCOMM_TICKETS_KEPT) {
    keep_early(&comm->tickets, ticket);
    return;
  }
  const lcomm_ticket *mine = &comm->tickets.mine[ticket->sequence % LCOMM_TICKETS_KEPT];
  if (ahead < 0 && mine->sequence == ticket->sequence) {
    compare(comm, mine, ticket); /* a difference is now the communicator's error */
  }
}

void lcomm_ticket_tell(lcomm_comm *comm, lcomm_operation *operation, double now_s) {
  double since_s =
      operation->told_s > 0 ? operation->told_s + AGAIN_S : operation->begun_s + PATIENCE_S;
  if (now_s < since_s) {
    return;
  }
  message it;
  memset(&it, 0, sizeof(it));
  it.kind = LCOMM_NOTICE_TICKET;
  it.rank = comm->rank;
  it.ticket = comm->tickets.mine[operation->sequence % LCOMM_TICKETS_KEPT];
  if (it.ticket.sequence == operation->sequence) {
    lcomm_comm_tell(comm, (comm->rank + 1) % comm->size, &it, sizeof(it));
  }
  operation->told_s = now_s;
}
