/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages that arrive: every header is compared with what the plan expects
 * before any byte of a payload is accepted. */

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/header_check.h"
#include "libcomm/engine/operation.h"

static lcomm_status disagree(lcomm_run *run, uint32_t index, const lcomm_header_verdict *verdict) {
  char peer[96], op_kind[LCOMM_OP_KIND_TEXT_MAX];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(run->comm, LCOMM_ERR_MISMATCH,
                    "%s%s #%u, step %u: %s sent %s %llu where %llu was expected. All ranks must %s",
                    lcomm_collective_name(run->plan->collective),
                    lcomm_op_kind_text(run->terms.op_kind, run->terms.residual, op_kind),
                    run->sequence, index, lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)),
                    lcomm_header_field_name(verdict->field), (unsigned long long)verdict->theirs,
                    (unsigned long long)verdict->ours, lcomm_op_kind_remedy(run->terms.op_kind));
}

static lcomm_status damaged(lcomm_run *run, uint32_t index, const lcomm_header_verdict *verdict) {
  char peer[96];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(run->comm, LCOMM_ERR_WIRE,
                    "%s #%u, step %u: the header of the message from %s was damaged on its way: "
                    "its %s is %llu where %llu belongs. Check network and memory of both hosts; "
                    "check=xxhash in the policy watches over payloads, too.",
                    lcomm_collective_name(run->plan->collective), run->sequence, index,
                    lcomm_comm_who(run->comm, step->peer, peer, sizeof(peer)),
                    lcomm_header_field_name(verdict->field), (unsigned long long)verdict->theirs,
                    (unsigned long long)verdict->ours);
}

static lcomm_status other_plan(lcomm_run *run, uint32_t index) {
  char peer[96], op_kind[LCOMM_OP_KIND_TEXT_MAX];
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return lcomm_fail(
      run->comm, LCOMM_ERR_MISMATCH,
      "%s%s #%u of %llu elements, step %u: the message from %s belongs to another plan; its count, "
      "type, policy, residual or tensors differ, or an earlier call did. All ranks must call the "
      "same collective with the same arguments; where they do, the header was damaged on its way.",
      lcomm_collective_name(run->plan->collective),
      lcomm_op_kind_text(run->terms.op_kind, run->terms.residual, op_kind), run->sequence,
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
  lcomm_header_expected expected = {
      .header = lcomm_exec_header(run, format, slot->count, run->slots[step->slot].wire_capacity),
      .exact_size = !lcomm_format_is_sparse(format) && !format->zstd};
  lcomm_header_verdict verdict = lcomm_header_check(header, &expected);
  if (verdict.status == LCOMM_ERR_WIRE) {
    return damaged(run, index, &verdict);
  }
  lcomm_status status =
      verdict.status == LCOMM_ERR_MISMATCH ? lcomm_fingerprint_ask(run, step->peer) : LCOMM_OK;
  if (status == LCOMM_OK && verdict.status == LCOMM_ERR_MISMATCH) {
    return verdict.field == LCOMM_HEADER_PARAMETERS ? other_plan(run, index)
                                                    : disagree(run, index, &verdict);
  }
  return status;
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
    if (lcomm_exec_unpack(run, step->slot, &why) != LCOMM_OK) {
      return malformed(run, index, why);
    }
    return LCOMM_OK;
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
  lcomm_exec_count_received(&run->stats, link, run->slots[step->slot].wire_size);
}

/* The payload of a link with zero-copy receives follows: into its place (POSTED), to be read
 * where it is (REQUESTED), or its memory handle instead. */
static lcomm_status await_payload(lcomm_run *run, lcomm_message *message,
                                  lcomm_payload_state what) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  uint32_t tag = lcomm_exec_tag(run, step->message, 1);
  lcomm_status status = LCOMM_OK;
  if (what != LCOMM_PAYLOAD_POSTED) {
    size_t size = what == LCOMM_PAYLOAD_HANDLE ? (size_t)LCOMM_MEMORY_HANDLE_SIZE : slot->wire_size;
    status = lcomm_payload_request(slot, what, wire, step->peer, tag, size);
  } else {
    status = wire->table->receive(wire, step->peer, tag, slot->wire, slot->wire_capacity,
                                  &message->payload);
  }
  message->payload_under_way = status == LCOMM_OK;
  if (status != LCOMM_OK) {
    return lcomm_exec_transport_failed(run, message->step);
  }
  lcomm_exec_watch(wire, lcomm_payload_is_zcopy(slot) ? &slot->zcopy.transfer : &message->payload,
                   message);
  return LCOMM_OK;
}

/* The first piece has arrived with `size` bytes. */
static lcomm_status accept_first(lcomm_run *run, lcomm_message *message, size_t size, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  lcomm_wire_header header;
  const char *why = NULL;
  bool handle = size == LCOMM_WIRE_HEADER_SIZE && lcomm_wire_has_handle(slot->header) &&
                lcomm_device_is_zcopy(run, step, slot->header);
  if (lcomm_wire_unpack(slot->header, size, &header, &why) != LCOMM_OK) {
    return malformed(run, message->step, why);
  }
  LCOMM_TRY(check_header(run, message->step, &header));
  slot->wire_size = (size_t)header.payload_size;
  if (handle && lcomm_exec_is_short(wire, slot->wire_size)) {
    return malformed(run, message->step, "a short payload has a memory handle");
  }
  if (!lcomm_exec_is_short(wire, slot->wire_size)) {
    if (size != LCOMM_WIRE_HEADER_SIZE) {
      return malformed(run, message->step, "a long payload does not follow its header");
    }
    lcomm_payload_state what = handle ? LCOMM_PAYLOAD_HANDLE
                               : lcomm_exec_may_zcopy(run, step->slot, wire)
                                   ? LCOMM_PAYLOAD_REQUESTED
                                   : LCOMM_PAYLOAD_POSTED;
    return message->payload_under_way ? LCOMM_OK : await_payload(run, message, what);
  }
  if (message->payload_under_way) { /* it came with its header */
    wire->table->cancel(wire, &message->payload);
    message->payload_under_way = false;
  }
  if (size != LCOMM_WIRE_HEADER_SIZE + slot->wire_size) {
    return malformed(run, message->step, "its length is not what its header says");
  }
  uint8_t *bytes = slot->header + LCOMM_WIRE_HEADER_SIZE;
  *over = true;
  if (!(slot->traits & (LCOMM_SLOT_MEMORY | LCOMM_SLOT_ALIAS))) {
    lcomm_payload_received_inline(slot, bytes);
    return LCOMM_OK;
  }
  if (slot->wire != bytes && slot->wire_size > 0) {
    memcpy(slot->wire, bytes, slot->wire_size);
  }
  lcomm_payload_received(slot);
  return LCOMM_OK;
}

/* The payload has arrived with `size` bytes, or can be read; *over unless somebody else reads it.
 */
static lcomm_status accept_second(lcomm_run *run, lcomm_message *message, size_t size, bool *over) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_slot_memory *slot = &run->slots[step->slot];
  message->payload_under_way = false;
  if (slot->state == LCOMM_PAYLOAD_HANDLE) {
    LCOMM_TRY(lcomm_device_receive_handle(run, message->step, over));
    message->awaits_read = !*over;
    return LCOMM_OK;
  }
  if (size != slot->wire_size) {
    return malformed(run, message->step, "the length of the payload is not what its header says");
  }
  if (slot->state == LCOMM_PAYLOAD_REQUESTED) {
    return lcomm_exec_receive_zcopy(run, message->step);
  }
  lcomm_payload_received(slot);
  return LCOMM_OK;
}

/* The piece that is awaited: the header, then the payload. */
static lcomm_transfer *awaited(lcomm_run *run, lcomm_message *message) {
  lcomm_slot_memory *slot = &run->slots[run->plan->schedule.steps[message->step].slot];
  if (!message->first_over) {
    return &message->first;
  }
  return lcomm_payload_is_zcopy(slot) ? &slot->zcopy.transfer : &message->payload;
}

/* Take what has arrived, piece by piece. *complete once nothing is awaited. */
static lcomm_status take_pieces(lcomm_run *run, lcomm_message *message, bool *moved,
                                bool *complete) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  lcomm_transport *wire = lcomm_comm_link(run->comm, step->peer);
  while (!*complete) {
    bool arrived = false;
    size_t size = 0;
    if (wire->table->test(wire, awaited(run, message), &arrived, &size) != LCOMM_OK) {
      return lcomm_exec_transport_failed(run, message->step);
    }
    if (!arrived) {
      return LCOMM_OK;
    }
    *moved = true;
    *complete = message->first_over;
    message->first_over = true;
    LCOMM_TRY(*complete ? accept_second(run, message, size, complete)
                        : accept_first(run, message, size, complete));
    if (message->awaits_read) {
      return LCOMM_OK;
    }
  }
  return LCOMM_OK;
}

/* A thread of the program was to read it: has it? */
static lcomm_status look_whether_read(lcomm_run *run, lcomm_message *message, bool *moved,
                                      bool *over) {
  const lcomm_slot_memory *slot = &run->slots[run->plan->schedule.steps[message->step].slot];
  *over = slot->state != LCOMM_PAYLOAD_HANDLE;
  message->awaits_read = !*over;
  *moved |= *over;
  return LCOMM_OK;
}

lcomm_status lcomm_exec_poll_receive(lcomm_run *run, lcomm_message *message, bool *moved,
                                     bool *over) {
  lcomm_status status =
      (message->awaits_read ? look_whether_read : take_pieces)(run, message, moved, over);
  if (status != LCOMM_OK || !*over) {
    return status;
  }
  lcomm_wire_header header;
  uint32_t slot = run->plan->schedule.steps[message->step].slot;
  lcomm_wire_unpack(run->slots[slot].header, LCOMM_WIRE_HEADER_SIZE, &header, NULL);
  count_received(run, message->step);
  return accept_payload(run, message->step, &header);
}
