/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Fingerprints: what each rank tells the next one about an operation that waits. */

#include <stdio.h>
#include <string.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/base/log.h"
#include "libcomm/base/text.h"
#include "libcomm/engine/operation.h"

static const double PATIENCE_S = 0.02, AGAIN_S = 1.0, ASK_AGAIN_S = 0.05;

enum {
  ASKS = 1, /* the receiver answers with its own fingerprint */
  STUCK = 2 /* the program of the sender begins nothing else until the operation is over */
};

/* A fingerprint as a control message. */
typedef struct message {
  int32_t kind; /* LCOMM_CONTROL_FINGERPRINT */
  int32_t rank;
  lcomm_fingerprint fingerprint;
  uint32_t flags;
  uint32_t other_next; /* number of the sender's next operation of the other sequence space */
} message;

lcomm_fingerprint lcomm_fingerprint_of(const lcomm_run *run) {
  const lcomm_plan *plan = run->plan;
  return (lcomm_fingerprint){.sequence = run->sequence,
                             .collective = (uint8_t)plan->collective,
                             .dtype = (uint8_t)plan->dtype,
                             .op = (uint8_t)run->terms.op,
                             .op_kind = (uint8_t)run->terms.op_kind,
                             .root = (uint32_t)plan->root,
                             .parameters = run->hash.parameters,
                             .count = plan->count,
                             .residual = run->terms.residual};
}

static int left_of(const lcomm_comm *comm) {
  return (comm->rank + comm->size - 1) % comm->size;
}

const char *lcomm_fingerprint_text(const lcomm_fingerprint *it,
                                   char text[LCOMM_FINGERPRINT_TEXT_MAX]) {
  static const char *const ops[] = {[LCOMM_SUM] = "",
                                    [LCOMM_AVG] = ", averaged",
                                    [LCOMM_MIN] = ", the smallest",
                                    [LCOMM_MAX] = ", the largest"};
  char words[LCOMM_OP_KIND_TEXT_MAX], count[LCOMM_TEXT_COUNT_MAX];
  const char *call = lcomm_op_kind_call((lcomm_op_kind)it->op_kind);
  const char *name = lcomm_collective_name((lcomm_collective)it->collective);
  bool bucket = it->op_kind == LCOMM_OP_KIND_BUCKET;
  if (call || it->collective == LCOMM_COLLECTIVE_BARRIER) {
    snprintf(text, LCOMM_FINGERPRINT_TEXT_MAX, call ? "%s" : "%s #%u", call ? call : name,
             it->sequence);
    return text;
  }
  int used = snprintf(
      text, LCOMM_FINGERPRINT_TEXT_MAX, "%s%s #%u of %s %s%s", bucket ? "bucket" : name,
      bucket ? " of tensors" : lcomm_op_kind_text((lcomm_op_kind)it->op_kind, it->residual, words),
      it->sequence, lcomm_text_count(it->count, count), lcomm_dtype_name((lcomm_dtype)it->dtype),
      it->op <= LCOMM_MAX ? ops[it->op] : "");
  if (it->collective == LCOMM_COLLECTIVE_BROADCAST) {
    snprintf(text + used, LCOMM_FINGERPRINT_TEXT_MAX - (size_t)used, " from rank %u", it->root);
  }
  return text;
}

/* The same sentence whichever of the two ranks writes it. */
static lcomm_status name_both(lcomm_comm *comm, const lcomm_fingerprint *mine, int peer,
                              const lcomm_fingerprint *other) {
  char first[LCOMM_FINGERPRINT_TEXT_MAX], second[LCOMM_FINGERPRINT_TEXT_MAX], one[96], two[96];
  bool rises = comm->rank < peer;
  lcomm_fingerprint_text(rises ? mine : other, first);
  lcomm_fingerprint_text(rises ? other : mine, second);
  return lcomm_fail_for(
      comm, LCOMM_ERR_MISMATCH, rises ? comm->rank : peer,
      "ranks are in different calls: %s is in %s, %s in %s%s. All ranks must make the same calls "
      "in the same order with the same count and type, with the same residuals and tensors.",
      lcomm_comm_who(comm, rises ? comm->rank : peer, one, sizeof(one)), first,
      lcomm_comm_who(comm, rises ? peer : comm->rank, two, sizeof(two)), second,
      strcmp(first, second) == 0 ? " with other parts or factors, or after other calls" : "");
}

static lcomm_status compare(lcomm_comm *comm, const lcomm_fingerprint *mine, int peer,
                            const lcomm_fingerprint *other) {
  if (memcmp(mine, other, sizeof *mine) == 0) {
    comm->fingerprints.equal_rank = peer;
    comm->fingerprints.equal_sequence = mine->sequence;
    return LCOMM_OK;
  }
  return name_both(comm, mine, peer, other);
}

/* A call that differed where no message passed shows in the next one. */
static void pass(lcomm_comm *comm, const lcomm_run *run) {
  lcomm_sequence_space space = lcomm_op_kind_sequence_space(run->terms.op_kind);
  uint32_t history = comm->operations.history[space];
  comm->operations.history[space] =
      ((history << 5 | history >> 27) ^ run->hash.key) * UINT32_C(0x9e3779b1);
  comm->operations.next[space] += LCOMM_SEQUENCE_SPACE_COUNT;
}

static void log_begin(const lcomm_comm *comm, const lcomm_fingerprint *fingerprint) {
  char call[LCOMM_FINGERPRINT_TEXT_MAX], who[96], sentence[LCOMM_FINGERPRINT_TEXT_MAX + 160];
  snprintf(sentence, sizeof(sentence), "%s: communicator %u: %s begins",
           lcomm_comm_who(comm, comm->rank, who, sizeof(who)), comm->identity.number,
           lcomm_fingerprint_text(fingerprint, call));
  lcomm_log(LCOMM_LOG_TRACE, sentence);
}

lcomm_status lcomm_fingerprint_begin(const lcomm_run *run) {
  lcomm_comm *comm = run->comm;
  lcomm_fingerprint_book *book = &comm->fingerprints;
  lcomm_fingerprint fingerprint = lcomm_fingerprint_of(run);
  uint32_t place = fingerprint.sequence % LCOMM_FINGERPRINTS_KEPT;
  pass(comm, run);
  book->mine[place] = fingerprint;
  if (lcomm_log_wants(LCOMM_LOG_TRACE)) {
    log_begin(comm, &fingerprint);
  }
  if (book->early_count == 0 || book->early[place].sequence != fingerprint.sequence ||
      book->early[place].collective == UINT8_MAX) {
    return LCOMM_OK;
  }
  lcomm_fingerprint other = book->early[place];
  book->early[place].collective = UINT8_MAX;
  book->early_count--;
  return compare(comm, &fingerprint, left_of(comm), &other);
}

void lcomm_fingerprint_book_init(lcomm_fingerprint_book *book) {
  memset(book, 0, sizeof *book);
  book->equal_rank = -1;
  for (uint32_t i = 0; i < LCOMM_FINGERPRINTS_KEPT; i++) {
    book->early[i].collective = UINT8_MAX; /* empty */
    book->mine[i].sequence = i + 1;        /* no operation of this place has that number */
  }
}

static void keep_early(lcomm_fingerprint_book *book, const lcomm_fingerprint *fingerprint) {
  lcomm_fingerprint *place = &book->early[fingerprint->sequence % LCOMM_FINGERPRINTS_KEPT];
  book->early_count += place->collective == UINT8_MAX;
  *place = *fingerprint;
}

/* Can the operation not end here before `rank` has begun it? */
static bool needs(const lcomm_plan *plan, int rank) {
  switch (plan->collective) {
  case LCOMM_COLLECTIVE_BARRIER:
    return true;
  case LCOMM_COLLECTIVE_BROADCAST:
    return plan->count > 0 && plan->root == rank;
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return plan->part_counts && plan->part_counts[rank] > 0;
  default:
    return plan->count > 0;
  }
}

/* Does the program wait for this operation, which needs `rank`, and can nothing of the other
 * sequence space begin here before it is done? The progress thread begins buckets. */
static bool is_stuck_in(const lcomm_comm *comm, const lcomm_operation *operation, int rank) {
  bool begins_others = operation->run->terms.op_kind != LCOMM_OP_KIND_BUCKET &&
                       comm->progress.thread && comm->deferred.for_others;
  return operation->awaited == comm->waiting.awaited_done && !begins_others &&
         needs(operation->run->plan, rank);
}

/* A rank is stuck in an operation that has not begun here. Is this rank stuck in an operation of
 * the other sequence space that has not begun there? */
static void look_for_other_series(lcomm_comm *comm, const message *received) {
  for (const lcomm_operation *it = comm->operations.first; it; it = it->next) {
    bool other_space = it->sequence % LCOMM_SEQUENCE_SPACE_COUNT !=
                       received->fingerprint.sequence % LCOMM_SEQUENCE_SPACE_COUNT;
    if (other_space && it->run->series.channel == 0 && is_stuck_in(comm, it, received->rank) &&
        (int32_t)(it->sequence - received->other_next) >= 0) {
      (void)name_both(comm, &comm->fingerprints.mine[it->sequence % LCOMM_FINGERPRINTS_KEPT],
                      received->rank, &received->fingerprint);
      return;
    }
  }
}

static void tell(lcomm_comm *comm, int peer, uint32_t sequence, uint32_t flags) {
  message it;
  memset(&it, 0, sizeof(it));
  it.kind = LCOMM_CONTROL_FINGERPRINT;
  it.rank = comm->rank;
  it.fingerprint = comm->fingerprints.mine[sequence % LCOMM_FINGERPRINTS_KEPT];
  it.flags = flags;
  it.other_next = comm->operations.next[(sequence + 1) % LCOMM_SEQUENCE_SPACE_COUNT];
  if (it.fingerprint.sequence == sequence) {
    lcomm_control_send(comm, peer, &it, sizeof(it));
  }
}

/* Receive a fingerprint of an operation that has not begun here. */
static void receive_early(lcomm_comm *comm, const message *received) {
  if (received->rank != left_of(comm)) {
    return; /* not for us */
  }
  keep_early(&comm->fingerprints, &received->fingerprint);
  if (received->flags & STUCK) {
    look_for_other_series(comm, received);
  }
}

void lcomm_fingerprint_receive(lcomm_comm *comm, const void *bytes) {
  message received;
  memcpy(&received, bytes, sizeof(received));
  const lcomm_fingerprint *fingerprint = &received.fingerprint;
  bool is_peer = received.rank >= 0 && received.rank < comm->size && received.rank != comm->rank;
  if (!is_peer || fingerprint->collective >= LCOMM_COLLECTIVE_COUNT ||
      comm->errors.agreement.running) {
    return; /* while ranks agree on a fault each says once what it knows, and finds no other */
  }
  int32_t ahead =
      (int32_t)(fingerprint->sequence -
                comm->operations.next[fingerprint->sequence % LCOMM_SEQUENCE_SPACE_COUNT]);
  if (ahead >= 0 && ahead < LCOMM_FINGERPRINTS_KEPT) {
    receive_early(comm, &received);
    return;
  }
  const lcomm_fingerprint *mine =
      &comm->fingerprints.mine[fingerprint->sequence % LCOMM_FINGERPRINTS_KEPT];
  if (ahead < 0 && mine->sequence == fingerprint->sequence) {
    lcomm_status status =
        compare(comm, mine, received.rank, fingerprint); /* a difference is an error */
    if (status == LCOMM_OK && received.flags & ASKS) {
      tell(comm, received.rank, fingerprint->sequence, 0);
    }
  }
}

void lcomm_fingerprint_send(lcomm_comm *comm, lcomm_operation *operation, double now_s) {
  double since_s = operation->fingerprint_sent_s > 0 ? operation->fingerprint_sent_s + AGAIN_S
                                                     : operation->begun_s + PATIENCE_S;
  if (now_s < since_s || operation->run->series.channel > 0) {
    return;
  }
  int right = (comm->rank + 1) % comm->size;
  tell(comm, right, operation->sequence, is_stuck_in(comm, operation, right) ? STUCK : 0);
  operation->fingerprint_sent_s = now_s;
}

lcomm_status lcomm_fingerprint_ask(const lcomm_run *run, int peer) {
  lcomm_backoff pause = {.sleep_ns = 200000};
  lcomm_comm *comm = run->comm;
  lcomm_fingerprint_book *book = &comm->fingerprints;
  double now_s = lcomm_clock_s(), end_s = now_s + comm->errors.agreement.listen_s, again_s = now_s;
  lcomm_status status = LCOMM_OK;
  if (run->series.channel > 0) { /* ranks have captured the same */
    return LCOMM_OK;
  }
  book->equal_rank = -1;
  while (status == LCOMM_OK && now_s < end_s &&
         !(book->equal_rank == peer && book->equal_sequence == run->sequence)) {
    if (now_s >= again_s) {
      tell(comm, peer, run->sequence, ASKS);
      again_s = now_s + ASK_AGAIN_S;
    } else {
      lcomm_backoff_step(&pause);
    }
    lcomm_links_progress(&comm->links);
    status = lcomm_control_receive(comm);
    now_s = lcomm_clock_s();
  }
  return status;
}
