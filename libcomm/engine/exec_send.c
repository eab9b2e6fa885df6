/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages of the executor.
 *
 * What travels for a slot is its header and its payload. Together up to 4 or
 * 16 KiB (lcomm_exec_short_max) they are one message. Past that the header goes
 * alone and the payload follows in a message of its own. The receiver posts
 * both at once, the payload with the slot's capacity: so it arrives where it
 * belongs, in the vector or the slot, and not in a buffer of the transport, and
 * there is no second wait between the two. A payload that its header does not
 * announce is cancelled.
 *
 * Links with zero-copy receives are the exception (transport.h): there the header
 * says what to ask for, and its payload waits at the sender.
 */

#include <stdio.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/exec_internal.h"

lcomm_status lcomm_exec_receive_reason(lcomm_comm *comm) {
  static const double PATIENCE_S = 0.05;
  lcomm_backoff pause = {.sleep_ns = 1000000};
  double end_s = lcomm_clock_s() + PATIENCE_S;
  lcomm_status status = lcomm_control_receive(comm);
  while (status == LCOMM_OK && lcomm_clock_s() < end_s) {
    lcomm_backoff_step(&pause);
    lcomm_links_progress(&comm->links);
    status = lcomm_control_receive(comm);
  }
  return status;
}

lcomm_status lcomm_exec_transport_failed(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  char peer[96];
  lcomm_transport *link = lcomm_comm_link(run->comm, step->peer);
  char why[LCOMM_TRANSPORT_WHY_MAX];
  run->messages.abandoned = true; /* a piece may still be in flight */
  snprintf(why, sizeof(why), "%s", link->why);
  lcomm_status received = lcomm_exec_receive_reason(run->comm);
  if (received != LCOMM_OK) {
    return received;
  }
  return lcomm_fail_peer(
      run->comm, LCOMM_ERR_TRANSPORT, step->peer,
      "%s #%u, step %u: a message %s %s failed. %s. Look at the network and at the "
      "peer's log.",
      lcomm_collective_name(run->plan->collective), run->sequence, index,
      step->kind == LCOMM_STEP_SEND ? "to" : "from",
      lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)), why);
}

static lcomm_link link_class(const lcomm_run *run, const lcomm_step *step) {
  return lcomm_topo_link(&run->comm->topo, run->comm->rank, step->peer);
}

static void count_sent(lcomm_run *run, const lcomm_step *step, const lcomm_slot_memory *slot) {
  uint64_t count = run->plan->schedule.slots[step->slot].count;
  lcomm_exec_count_sent(&run->stats, link_class(run, step), slot->wire_size,
                        count * lcomm_dtype_size(run->plan->dtype));
  lcomm_comm_count_in_rack(run->comm, step->peer, LCOMM_WIRE_HEADER_SIZE + slot->wire_size);
}

/* The header is under way. It is not among the messages in flight where its payload is not, so
 * nobody else would cancel it. */
static void note_payload(lcomm_transport *wire, lcomm_message *message, lcomm_status status) {
  message->payload_under_way = status == LCOMM_OK;
  if (status != LCOMM_OK) {
    wire->table->cancel(wire, &message->first);
  }
}

/* `status` is that of posting the message, whose payload is watched where it is under way. */
static lcomm_status watch_payload(lcomm_run *run, uint32_t index, lcomm_message *message,
                                  lcomm_status status) {
  if (status != LCOMM_OK) {
    return lcomm_exec_transport_failed(run, index);
  }
  if (message->payload_under_way) {
    int peer = run->plan->schedule.steps[index].peer;
    lcomm_exec_watch(lcomm_comm_link(run->comm, peer), &message->payload, message);
  }
  return LCOMM_OK;
}

static lcomm_status post_send(lcomm_run *run, uint32_t index, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  size_t first_size = LCOMM_WIRE_HEADER_SIZE;
  bool together = lcomm_exec_is_short(wire, slot->wire_size);
  LCOMM_ASSERT(lcomm_payload_is_complete(slot));
  count_sent(run, step, slot);
  if (run->fastpath.is_sent) {
    message->first_over = run->fastpath.sends[step->peer].over;
    lcomm_exec_watch(wire, lcomm_exec_first(run, message), message);
    return LCOMM_OK;
  }
  if (together) {
    if (slot->wire != slot->header + LCOMM_WIRE_HEADER_SIZE && slot->wire_size > 0) {
      memcpy(slot->header + LCOMM_WIRE_HEADER_SIZE, slot->wire, slot->wire_size);
    }
    first_size += slot->wire_size;
  }
  lcomm_status status = wire->table->send(wire, step->peer, lcomm_exec_tag(run, step->message, 0),
                                          slot->header, first_size, &message->first);
  if (status == LCOMM_OK) {
    lcomm_exec_watch(wire, &message->first, message);
  }
  if (status == LCOMM_OK && !together) {
    size_t size = 0;
    const void *bytes = lcomm_exec_sent_bytes(run, step->slot, &size);
    status = wire->table->send(wire, step->peer, lcomm_exec_tag(run, step->message, 1), bytes, size,
                               &message->payload);
    note_payload(wire, message, status);
  }
  return watch_payload(run, index, message, status);
}

static lcomm_status post_receive(lcomm_run *run, uint32_t index, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  lcomm_payload_posted(slot);
  lcomm_status status =
      wire->table->receive(wire, step->peer, lcomm_exec_tag(run, step->message, 0), slot->header,
                           LCOMM_WIRE_HEADER_SIZE + lcomm_exec_short_max(wire), &message->first);
  if (status == LCOMM_OK) {
    lcomm_exec_watch(wire, &message->first, message);
  }
  if (status == LCOMM_OK && !wire->table->zero_copy &&
      !lcomm_exec_is_short(wire, slot->wire_capacity)) {
    status = wire->table->receive(wire, step->peer, lcomm_exec_tag(run, step->message, 1),
                                  slot->wire, slot->wire_capacity, &message->payload);
    note_payload(wire, message, status);
  }
  return watch_payload(run, index, message, status);
}

lcomm_status lcomm_exec_post(lcomm_run *run, uint32_t index, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  message->run = run;
  message->step = index;
  message->first_over = false;
  message->payload_under_way = false;
  message->awaits_read = false;
  message->begun_s = run->comm->observers.trace ? lcomm_clock_s() : 0;
  if (step->kind == LCOMM_STEP_SEND) {
    return post_send(run, index, message);
  }
  return post_receive(run, index, message);
}

static lcomm_status poll_send(lcomm_run *run, lcomm_message *message, bool *moved, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  if (!message->first_over) {
    if (wire->table->test(wire, lcomm_exec_first(run, message), &message->first_over, NULL) !=
        LCOMM_OK) {
      return lcomm_exec_transport_failed(run, message->step);
    }
    *moved |= message->first_over;
  }
  if (message->payload_under_way) {
    bool left = false;
    if (wire->table->test(wire, &message->payload, &left, NULL) != LCOMM_OK) {
      return lcomm_exec_transport_failed(run, message->step);
    }
    message->payload_under_way = !left;
    *moved |= left;
  }
  *over = message->first_over && !message->payload_under_way;
  return LCOMM_OK;
}

lcomm_status lcomm_exec_poll(lcomm_run *run, lcomm_message *message, bool *moved, bool *over) {
  run->comm->waiting.looks++;
  if (run->plan->schedule.steps[message->step].kind == LCOMM_STEP_SEND) {
    return poll_send(run, message, moved, over);
  }
  return lcomm_exec_poll_receive(run, message, moved, over);
}

void lcomm_exec_trace_message(const lcomm_run *run, const lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_trace_event event = {.kind = (lcomm_trace_kind)step->kind,
                             .begin_s = message->begun_s,
                             .end_s = lcomm_clock_s(),
                             .operation = lcomm_collective_name(run->plan->collective),
                             .sequence = run->sequence,
                             .step = message->step,
                             .peer = step->peer,
                             .message = step->message,
                             .link = link_class(run, step),
                             .bytes = LCOMM_WIRE_HEADER_SIZE + run->slots[step->slot].wire_size,
                             .name = run->data.name,
                             .codec = lcomm_run_format(run, step->slot)->codec->name};
  lcomm_trace_add(run->comm->observers.trace, &event);
}
