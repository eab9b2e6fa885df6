/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages of the executor.
 *
 * What travels for a slot is its header and its payload. Together up to
 * LCOMM_INLINE_SIZE bytes they are one message. Past that the header goes
 * alone and the payload follows in a message of its own, which the receiver
 * posts once it has checked the header: sizes are known to be right before
 * any byte of a payload is accepted, and a payload can be received straight
 * into the vector.
 */

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/exec.h"

/* 14 bits of the operation, 15 of the message, 1 of the piece. */
static uint32_t tag_of(const lcomm_run *run, const lcomm_step *step, uint32_t piece) {
  return (run->sequence & 0x3fff) << 16 | (step->message & (LCOMM_MESSAGES_MAX - 1)) << 1 | piece;
}

static bool fits_inline(size_t payload_size) {
  return payload_size <= LCOMM_INLINE_SIZE - LCOMM_WIRE_HEADER_SIZE;
}

static lcomm_status transport_failed(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  char peer[96];
  run->abandoned = true; /* a piece may still be under way */
  return lcomm_fail(run->comm, LCOMM_ERR_TRANSPORT,
                    "%s #%u, step %u: a message %s %s failed. %s. Look at the network and at the "
                    "peer's log.",
                    lcomm_collective_name(run->plan->collective), run->sequence, index,
                    step->kind == LCOMM_STEP_SEND ? "to" : "from",
                    lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)),
                    run->comm->transport->table->why(run->comm->transport));
}

static void count_sent(lcomm_run *run, const lcomm_step *step, const lcomm_slot_memory *slot) {
  lcomm_comm *comm = run->comm;
  lcomm_link link = lcomm_topo_link(&comm->topo, comm->rank, step->peer);
  uint64_t count = run->plan->schedule.slots[step->slot].count;
  size_t element = run->plan->moves ? sizeof(float) : lcomm_dtype_size(run->plan->dtype);
  comm->stats.sent_bytes[link] += LCOMM_WIRE_HEADER_SIZE + slot->wire_size;
  comm->stats.exact_bytes[link] += LCOMM_WIRE_HEADER_SIZE + count * element;
}

static lcomm_status post_send(lcomm_run *run, uint32_t index, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_transport *wire = run->comm->transport;
  size_t first_size = LCOMM_WIRE_HEADER_SIZE;
  bool together = fits_inline(slot->wire_size);
  if (together) {
    if (slot->shares_vector && slot->wire_size > 0) {
      memcpy(slot->header + LCOMM_WIRE_HEADER_SIZE, slot->wire, slot->wire_size);
    }
    first_size += slot->wire_size;
  }
  lcomm_status status = wire->table->send(wire, step->peer, tag_of(run, step, 0), slot->header,
                                          first_size, &message->first);
  if (status != LCOMM_OK) {
    return transport_failed(run, index);
  }
  if (!together) {
    status = wire->table->send(wire, step->peer, tag_of(run, step, 1), slot->wire, slot->wire_size,
                               &message->payload);
    if (status != LCOMM_OK) {
      return transport_failed(run, index);
    }
    message->payload_under_way = true;
  }
  count_sent(run, step, slot);
  return LCOMM_OK;
}

lcomm_status lcomm_exec_post(lcomm_run *run, uint32_t index, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  message->step = index;
  message->first_over = false;
  message->payload_under_way = false;
  if (step->kind == LCOMM_STEP_SEND) {
    return post_send(run, index, message);
  }
  lcomm_transport *wire = run->comm->transport;
  lcomm_status status =
      wire->table->receive(wire, step->peer, tag_of(run, step, 0), run->slots[step->slot].header,
                           LCOMM_INLINE_SIZE, &message->first);
  return status == LCOMM_OK ? LCOMM_OK : transport_failed(run, index);
}

/* ------------------------------------------------------------- receiving */

static lcomm_status disagree(lcomm_run *run, uint32_t index, const char *what, uint64_t theirs,
                             uint64_t ours) {
  char peer[96];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(run->comm, LCOMM_ERR_MISMATCH,
                    "%s #%u, step %u: %s sent %s %llu where %llu was expected. All ranks must call "
                    "the same collective with the same count, type and policy.",
                    lcomm_collective_name(run->plan->collective), run->sequence, index,
                    lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)), what,
                    (unsigned long long)theirs, (unsigned long long)ours);
}

static lcomm_status other_plan(lcomm_run *run, uint32_t index) {
  char peer[96];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(
      run->comm, LCOMM_ERR_MISMATCH,
      "%s #%u of %llu elements, step %u: the message from %s belongs to another plan; "
      "its count, type, policy or tensors differ. All ranks must call the same "
      "collective with the same arguments.",
      lcomm_collective_name(run->plan->collective), run->sequence,
      (unsigned long long)run->plan->count, index,
      lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)));
}

static lcomm_status malformed(lcomm_run *run, uint32_t index, const char *why) {
  char peer[96];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(run->comm, LCOMM_ERR_WIRE,
                    "%s #%u, step %u: the message from %s is malformed: %s. Check that all ranks "
                    "run the same libcomm, and the network.",
                    lcomm_collective_name(run->plan->collective), run->sequence, index,
                    lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)), why);
}

/* Compare a header with what the plan expects. */
static lcomm_status check_header(lcomm_run *run, uint32_t index, const lcomm_wire_header *header) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_slot *slot = &run->plan->schedule.slots[step->slot];
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  lcomm_wire_header ours = {.flags = run->plan->checksum ? LCOMM_WIRE_CHECKSUM : 0};
  lcomm_wire_set_format(&ours, format);
  if (header->sequence != run->sequence) {
    return disagree(run, index, "operation number", header->sequence, run->sequence);
  }
  if (header->count != slot->count) {
    return disagree(run, index, "element count", header->count, slot->count);
  }
  if (header->dtype != (uint8_t)run->plan->dtype) {
    return disagree(run, index, "data type", header->dtype, (uint64_t)run->plan->dtype);
  }
  if (header->codec != ours.codec) {
    return disagree(run, index, "codec", header->codec, ours.codec);
  }
  if (header->flags != ours.flags) {
    return disagree(run, index, "codec flags", header->flags, ours.flags);
  }
  if (header->parameters != (uint32_t)run->plan->hash) {
    return other_plan(run, index);
  }
  size_t capacity = run->slots[step->slot].wire_capacity;
  bool exact_size = !lcomm_format_is_sparse(format) && !format->zstd;
  if (header->payload_size > capacity || (exact_size && header->payload_size != capacity)) {
    return disagree(run, index, "payload bytes", header->payload_size, capacity);
  }
  return LCOMM_OK;
}

/* All bytes of a slot are there: from wire to payload. */
static lcomm_status accept_payload(lcomm_run *run, uint32_t index,
                                   const lcomm_wire_header *header) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  const lcomm_slot *slot = &run->plan->schedule.slots[step->slot];
  const lcomm_format *format = lcomm_run_format(run, step->slot);
  lcomm_slot_memory *memory = &run->slots[step->slot];
  if ((header->flags & LCOMM_WIRE_CHECKSUM) &&
      lcomm_wire_checksum(memory->wire, memory->wire_size) != header->checksum) {
    return malformed(run, index, "wrong checksum");
  }
  if (format->zstd) {
    const char *why = NULL;
    lcomm_status status = lcomm_exec_unpack(run, step->slot, &why);
    return status == LCOMM_OK ? LCOMM_OK : malformed(run, index, why);
  }
  memory->payload_size = memory->wire_size;
  if (lcomm_format_is_sparse(format) &&
      lcomm_topk_check(format, memory->payload, memory->payload_size, slot->count, NULL) !=
          LCOMM_OK) {
    return malformed(run, index, "not a top-k payload");
  }
  return LCOMM_OK;
}

static void count_received(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  lcomm_link link = lcomm_topo_link(&run->comm->topo, run->comm->rank, step->peer);
  run->comm->stats.received_bytes[link] +=
      LCOMM_WIRE_HEADER_SIZE + run->slots[step->slot].wire_size;
}

/* The first piece has arrived with `size` bytes. */
static lcomm_status accept_first(lcomm_run *run, lcomm_message *message, size_t size, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_wire_header header;
  const char *why = NULL;
  if (lcomm_wire_unpack(slot->header, size, &header, &why) != LCOMM_OK) {
    return malformed(run, message->step, why);
  }
  lcomm_status status = check_header(run, message->step, &header);
  if (status != LCOMM_OK) {
    return status;
  }
  slot->wire_size = (size_t)header.payload_size;
  if (!fits_inline(slot->wire_size)) {
    if (size != LCOMM_WIRE_HEADER_SIZE) {
      return malformed(run, message->step, "a long payload does not follow its header");
    }
    lcomm_transport *wire = run->comm->transport;
    status = wire->table->receive(wire, step->peer, tag_of(run, step, 1), slot->wire,
                                  slot->wire_size, &message->payload);
    message->payload_under_way = status == LCOMM_OK;
    return status == LCOMM_OK ? LCOMM_OK : transport_failed(run, message->step);
  }
  if (size != LCOMM_WIRE_HEADER_SIZE + slot->wire_size) {
    return malformed(run, message->step, "its length is not what its header says");
  }
  if (slot->shares_vector && slot->wire_size > 0) {
    memcpy(slot->wire, slot->header + LCOMM_WIRE_HEADER_SIZE, slot->wire_size);
  }
  *over = true;
  return LCOMM_OK;
}

static lcomm_status poll_receive(lcomm_run *run, lcomm_message *message, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_transport *wire = run->comm->transport;
  bool arrived = false;
  size_t size = 0;
  lcomm_transfer *transfer = message->first_over ? &message->payload : &message->first;
  if (wire->table->test(wire, transfer, &arrived, &size) != LCOMM_OK) {
    return transport_failed(run, message->step);
  }
  if (!arrived) {
    return LCOMM_OK;
  }
  bool complete = false;
  if (!message->first_over) {
    message->first_over = true;
    lcomm_status status = accept_first(run, message, size, &complete);
    if (status != LCOMM_OK) {
      return status;
    }
  } else {
    message->payload_under_way = false;
    if (size != run->slots[step->slot].wire_size) {
      return malformed(run, message->step, "the payload is shorter than its header says");
    }
    complete = true;
  }
  if (!complete) {
    return LCOMM_OK;
  }
  lcomm_wire_header header;
  lcomm_wire_unpack(run->slots[step->slot].header, LCOMM_WIRE_HEADER_SIZE, &header, NULL);
  *over = true;
  count_received(run, message->step);
  return accept_payload(run, message->step, &header);
}

static lcomm_status poll_send(lcomm_run *run, lcomm_message *message, bool *over) {
  lcomm_transport *wire = run->comm->transport;
  if (!message->first_over) {
    if (wire->table->test(wire, &message->first, &message->first_over, NULL) != LCOMM_OK) {
      return transport_failed(run, message->step);
    }
  }
  if (message->payload_under_way) {
    bool left = false;
    if (wire->table->test(wire, &message->payload, &left, NULL) != LCOMM_OK) {
      return transport_failed(run, message->step);
    }
    message->payload_under_way = !left;
  }
  *over = message->first_over && !message->payload_under_way;
  return LCOMM_OK;
}

lcomm_status lcomm_exec_poll(lcomm_run *run, lcomm_message *message, bool *over) {
  if (run->plan->schedule.steps[message->step].kind == LCOMM_STEP_SEND) {
    return poll_send(run, message, over);
  }
  return poll_receive(run, message, over);
}
