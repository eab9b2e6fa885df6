/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/flow.h"

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/flow_internal.h"

enum { CREDIT_TAG = LCOMM_TAG_CONTROL | 16 };

/* --------------------------------------------------------- an operation */

static lcomm_sequence_space space_of(const lcomm_run *run) {
  return lcomm_op_kind_sequence_space(run->terms.op_kind);
}

static lcomm_flow_way *way_of(const lcomm_run *run, const struct lcomm_flow_part *part) {
  struct lcomm_flow_pair *pair = run->comm->flow.pairs[part->peer];
  return part->out ? &pair->out[space_of(run)] : &pair->in[space_of(run)];
}

void lcomm_flow_begin(lcomm_run *run) {
  run->flow.admitted = run->series.channel > 0; /* replays have a count of their own */
  run->flow.held_by = -1;
  if (run->flow.admitted) {
    return;
  }
  for (uint32_t i = 0; i < run->flow.part_count; i++) {
    struct lcomm_flow_part *part = &run->flow.parts[i];
    lcomm_flow_way *w = way_of(run, part);
    w->begun.operations++;
    w->begun.bytes += part->bytes;
    part->with = w->begun;
    part->due = w->begun.operations - w->last_due.operations >= LCOMM_FLOW_OPERATIONS / 2 ||
                w->begun.bytes - w->last_due.bytes >= LCOMM_FLOW_BYTES / 2;
    if (part->due) {
      w->last_due = w->begun;
      w->due += part->out; /* the receiver owes it from the end of the operation on */
    }
  }
}

static lcomm_status link_failed(lcomm_comm *comm, int peer) {
  char who[96];
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return lcomm_fail_peer(
      comm, LCOMM_ERR_TRANSPORT, peer,
      "a credit from or to %s failed: %s. Look at the network and at the peer's log.",
      lcomm_comm_who(comm, peer, who, sizeof(who)), link->why);
}

/* Take a credit: no less than the last one, and no more than was begun. */
static lcomm_status take_credit(lcomm_comm *comm, int peer, lcomm_flow_way *w, size_t size) {
  char who[96];
  lcomm_flow_amount it = w->message;
  if (size != sizeof(it) || it.operations < w->credited.operations ||
      it.operations > w->begun.operations || it.bytes < w->credited.bytes ||
      it.bytes > w->begun.bytes) {
    return lcomm_fail(
        comm, LCOMM_ERR_WIRE,
        "a credit from %s is malformed. Check that all ranks run the same libcomm, and "
        "the network.",
        lcomm_comm_who(comm, peer, who, sizeof(who)));
  }
  w->credited = it;
  w->due--;
  return LCOMM_OK;
}

/* Has the next credit come? It is received into w->message. */
static lcomm_status test_credit(lcomm_transport *link, int peer, lcomm_sequence_space space,
                                lcomm_flow_way *w, bool *over, size_t *size) {
  if (!w->in_flight) {
    LCOMM_TRY(link->table->receive(link, peer, CREDIT_TAG | space, &w->message, sizeof(w->message),
                                   &w->transfer));
    w->in_flight = true;
  }
  return link->table->test(link, &w->transfer, over, size);
}

/* Take the credits that have come for one direction. */
static lcomm_status receive_credits(lcomm_comm *comm, int peer, lcomm_sequence_space space) {
  lcomm_flow_way *w = &comm->flow.pairs[peer]->out[space];
  lcomm_transport *link = lcomm_comm_link(comm, peer);
  while (w->due > 0) {
    bool over = false;
    size_t size = 0;
    if (test_credit(link, peer, space, w, &over, &size) != LCOMM_OK) {
      return link_failed(comm, peer);
    }
    if (!over) {
      return LCOMM_OK;
    }
    w->in_flight = false;
    LCOMM_TRY(take_credit(comm, peer, w, size));
  }
  return LCOMM_OK;
}

/* Is the receiver less than a window behind this operation? Credits of later ones
 * may be here already. */
static bool has_credit(const lcomm_run *run, const struct lcomm_flow_part *part) {
  const lcomm_flow_way *w = way_of(run, part);
  lcomm_flow_amount before = {part->with.operations - 1, part->with.bytes - part->bytes};
  return !part->out || before.operations <= w->credited.operations ||
         (before.operations - w->credited.operations < LCOMM_FLOW_OPERATIONS &&
          before.bytes - w->credited.bytes < LCOMM_FLOW_BYTES);
}

static lcomm_status ask_for_credit(lcomm_run *run) {
  bool held = run->flow.held_by >= 0;
  run->flow.held_by = -1;
  for (uint32_t i = 0; i < run->flow.part_count; i++) {
    const struct lcomm_flow_part *part = &run->flow.parts[i];
    if (!has_credit(run, part)) {
      LCOMM_TRY(receive_credits(run->comm, part->peer, space_of(run)));
    }
    if (!has_credit(run, part)) {
      run->flow.held_by = part->peer;
      run->comm->stats.flow_waits += !held;
      run->comm->observers.summary.flow_waits += !held;
      return LCOMM_OK;
    }
  }
  run->flow.admitted = true;
  return LCOMM_OK;
}

lcomm_status lcomm_flow_admit(lcomm_flow_round *round, lcomm_run *run) {
  if (run->series.channel > 0) {
    return LCOMM_OK;
  }
  uint32_t *steps = &round->steps[space_of(run)], own = run->plan->schedule.step_count;
  bool fits = *steps == 0 || *steps + own <= LCOMM_FLOW_STEPS;
  *steps = *steps + own < LCOMM_FLOW_STEPS ? *steps + own : LCOMM_FLOW_STEPS;
  if (run->flow.admitted || (!fits && !run->fastpath.is_sent)) {
    return LCOMM_OK;
  }
  return ask_for_credit(run);
}

/* ------------------------------------------------------------ the receiver */

/* Send the next credit that is due, if the one before has left. */
static lcomm_status send_credit(lcomm_comm *comm, int peer, lcomm_sequence_space space) {
  lcomm_flow_way *w = &comm->flow.pairs[peer]->in[space];
  lcomm_transport *link = lcomm_comm_link(comm, peer);
  bool left = true;
  if (w->in_flight && link->table->test(link, &w->transfer, &left, NULL) != LCOMM_OK) {
    return link_failed(comm, peer);
  }
  w->in_flight = !left;
  if (!left || w->due == 0) {
    return LCOMM_OK;
  }
  w->message = w->credited;
  if (link->table->send(link, peer, CREDIT_TAG | space, &w->message, sizeof(w->message),
                        &w->transfer) != LCOMM_OK) {
    return link_failed(comm, peer);
  }
  w->in_flight = true;
  w->due--;
  comm->flow.due--;
  return LCOMM_OK;
}

lcomm_status lcomm_flow_end(lcomm_run *run) {
  for (uint32_t i = 0; run->series.channel == 0 && i < run->flow.part_count; i++) {
    const struct lcomm_flow_part *part = &run->flow.parts[i];
    if (part->due && !part->out) {
      lcomm_flow_way *w = way_of(run, part);
      w->credited = part->with.operations > w->credited.operations ? part->with : w->credited;
      w->due++;
      run->comm->flow.due++;
      LCOMM_TRY(send_credit(run->comm, part->peer, space_of(run)));
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_flow_retry(lcomm_comm *comm) {
  for (int i = 0; i < comm->size * LCOMM_SEQUENCE_SPACE_COUNT; i++) {
    int peer = i / LCOMM_SEQUENCE_SPACE_COUNT;
    if (comm->flow.pairs[peer]) {
      LCOMM_TRY(send_credit(comm, peer, (lcomm_sequence_space)(i % LCOMM_SEQUENCE_SPACE_COUNT)));
    }
  }
  return LCOMM_OK;
}

/* ----------------------------------------------------------------- the end */

/* Progress of all credits in flight from or to a peer. *left is set while there are some. */
static lcomm_status drain_pair(lcomm_comm *comm, int peer, bool *left) {
  const struct lcomm_flow_pair *pair = comm->flow.pairs[peer];
  for (int s = 0; s < LCOMM_SEQUENCE_SPACE_COUNT; s++) {
    LCOMM_TRY(receive_credits(comm, peer, (lcomm_sequence_space)s));
    LCOMM_TRY(send_credit(comm, peer, (lcomm_sequence_space)s));
    *left |= pair->out[s].due > 0 || pair->in[s].due > 0 || pair->in[s].in_flight;
  }
  return LCOMM_OK;
}

static lcomm_status drain_pairs(lcomm_comm *comm, bool *left) {
  *left = false;
  lcomm_links_progress(&comm->links);
  LCOMM_TRY(lcomm_control_receive(comm));
  for (int peer = 0; peer < comm->size; peer++) {
    LCOMM_TRY(comm->flow.pairs[peer] ? drain_pair(comm, peer, left) : LCOMM_OK);
  }
  return LCOMM_OK;
}

static void sleep_a_moment(lcomm_comm *comm) {
  static const double MOMENT_S = 1e-3;
  lcomm_links_wait_set set;
  lcomm_links_prepare(&comm->links, &set, -1);
  lcomm_links_sleep(&set, MOMENT_S);
  lcomm_links_awake(&comm->links);
}

void lcomm_flow_drain(lcomm_comm *comm) {
  double end_s = lcomm_clock_s() + comm->settings.timeout_s;
  bool left = comm->flow.pairs != NULL;
  while (left && lcomm_clock_s() < end_s && drain_pairs(comm, &left) == LCOMM_OK) {
    if (left) {
      sleep_a_moment(comm);
    }
  }
}

void lcomm_flow_cancel(lcomm_comm *comm) {
  for (int peer = 0; comm->flow.pairs && peer < comm->size; peer++) {
    struct lcomm_flow_pair *pair = comm->flow.pairs[peer];
    lcomm_transport *link = pair ? lcomm_comm_link(comm, peer) : NULL;
    for (int s = 0; pair && s < 2 * LCOMM_SEQUENCE_SPACE_COUNT; s++) {
      lcomm_flow_way *w = s < LCOMM_SEQUENCE_SPACE_COUNT
                              ? &pair->out[s]
                              : &pair->in[s - LCOMM_SEQUENCE_SPACE_COUNT];
      if (w->in_flight) {
        link->table->cancel(link, &w->transfer);
        w->in_flight = false;
      }
    }
  }
}

void lcomm_flow_free(lcomm_comm *comm) {
  for (int peer = 0; comm->flow.pairs && peer < comm->size; peer++) {
    free(comm->flow.pairs[peer]);
  }
  free(comm->flow.pairs);
  comm->flow.pairs = NULL;
}
