/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_EXEC_INTERNAL_H
#define LCOMM_ENGINE_EXEC_INTERNAL_H

/* What the computations of the executor share. */

#include "codecs/wire.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/recording.h"

static inline bool lcomm_run_is_sparse(const lcomm_run *run, uint32_t slot) {
  return lcomm_format_is_sparse(lcomm_run_format(run, slot));
}

static inline lcomm_stage lcomm_run_stage(const lcomm_run *run, uint32_t slot) {
  return run->plan->schedule.slots[slot].stage;
}

/* The slots whose payloads a step reads, LCOMM_SOURCE_SELF among them; returns their number. */
static inline uint32_t lcomm_exec_reads(const lcomm_schedule *schedule, const lcomm_step *step,
                                        const uint32_t **slots) {
  if (step->kind == LCOMM_STEP_REDUCE) {
    *slots = schedule->sources + step->sources;
    return step->slot_count;
  }
  *slots = &step->slot;
  return step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_DECODE ? 1 : 0;
}

/* The residual of a step's span; NULL when the operation keeps none or the step has no part in
 * error feedback. The first step that works on an element (SEND, HOLD or KEEP) reads `before`, all
 * work on `now`. */
static inline lcomm_ef_array lcomm_run_residual(const lcomm_run *run, const lcomm_step *step) {
  if (!run->feedback || step->feedback == LCOMM_FEEDBACK_NONE) {
    return (lcomm_ef_array){NULL, NULL};
  }
  return lcomm_ef_array_at(run->feedback->residual, step->span.first - run->feedback->first);
}

/* The momentum of a step's span, likewise; NULL when there is none. */
static inline lcomm_ef_array lcomm_run_momentum(const lcomm_run *run, const lcomm_step *step) {
  if (!run->feedback || step->feedback == LCOMM_FEEDBACK_NONE) {
    return (lcomm_ef_array){NULL, NULL};
  }
  return lcomm_ef_array_at(run->feedback->momentum, step->span.first - run->feedback->first);
}

/* A number of its own for every payload of the communicator, for stochastic
 * rounding. */
static inline uint64_t lcomm_run_seed(const lcomm_run *run, uint32_t slot) {
  bool shifts = run->terms.op_kind == LCOMM_OP_KIND_BUCKET;
  uint32_t number =
      run->sequence + run->series.seed_shift + (shifts ? run->comm->operations.seed_shift : 0);
  return (uint64_t)run->comm->rank << 48 ^ (uint64_t)number << 16 ^ slot;
}

_Static_assert((int)LCOMM_TRACE_ENCODE == (int)LCOMM_STEP_ENCODE &&
                   (int)LCOMM_TRACE_REDUCE == (int)LCOMM_STEP_REDUCE,
               "steps are traced under their own kind");

/* Messages: 14 bits of the operation or the channel, 15 of the message, 1 of the piece. Those of
 * replays have one tag each time: they arrive in the order sent. */
static inline uint32_t lcomm_exec_tag(const lcomm_run *run, uint32_t message, uint32_t piece) {
  uint32_t operation = run->series.channel > 0 ? lcomm_recording_tag(run->series.channel - 1)
                                               : (run->sequence & 0x3fff) << 16;
  return operation | (message & (LCOMM_MESSAGES_MAX - 1)) << 1 | piece;
}

/* The header of `count` elements that travel as `size` bytes, without a checksum. */
static inline lcomm_wire_header lcomm_exec_header(const lcomm_run *run, const lcomm_format *format,
                                                  uint64_t count, size_t size) {
  lcomm_wire_header header = {.version = LCOMM_WIRE_VERSION,
                              .dtype = (uint8_t)run->plan->dtype,
                              .flags = run->plan->checksum ? LCOMM_WIRE_CHECKSUM : 0,
                              .parameters = run->hash.parameters,
                              .sequence = run->sequence,
                              .count = count,
                              .payload_size = size};
  lcomm_wire_set_format(&header, format);
  return header;
}

/* Count a message whose payload has `size` bytes, and would have `exact` without a codec. */
static inline void lcomm_exec_count_sent(lcomm_stats *stats, lcomm_link link, size_t size,
                                         size_t exact) {
  stats->sent_messages[link]++;
  stats->sent_bytes[link] += LCOMM_WIRE_HEADER_SIZE + size;
  stats->exact_bytes[link] += LCOMM_WIRE_HEADER_SIZE + exact;
}

static inline void lcomm_exec_count_received(lcomm_stats *stats, lcomm_link link, size_t size) {
  stats->received_bytes[link] += LCOMM_WIRE_HEADER_SIZE + size;
}

/* The first piece of a message. */
static inline lcomm_transfer *lcomm_exec_first(const lcomm_run *run, lcomm_message *message) {
  const lcomm_step *step = &run->plan->schedule.steps[message->step];
  bool sent = run->fastpath.is_sent && step->kind == LCOMM_STEP_SEND;
  return sent ? &run->fastpath.sends[step->peer].transfer : &message->first;
}

/* A piece of a message has just been started. */
static inline void lcomm_exec_watch(lcomm_transport *link, lcomm_transfer *transfer,
                                    lcomm_message *message) {
  if (link->table->watch) {
    link->table->watch(link, transfer, message);
  }
}

/* The longest payload that travels over `link` in one message with its header. The same
 * on both sides. */
static inline size_t lcomm_exec_short_max(const lcomm_transport *link) {
  return (link->table->zero_copy ? LCOMM_INLINE_SIZE : LCOMM_REMOTE_INLINE_SIZE) -
         LCOMM_WIRE_HEADER_SIZE;
}

static inline bool lcomm_exec_is_short(const lcomm_transport *link, size_t payload_size) {
  return payload_size <= lcomm_exec_short_max(link);
}

/* What travels for a slot in a message of its own, behind that of its header. */
static inline const void *lcomm_exec_sent_bytes(const lcomm_run *run, uint32_t slot, size_t *size) {
  const lcomm_slot_memory *memory = &run->slots[slot];
  if (memory->state == LCOMM_PAYLOAD_EXPORTED) {
    return run->backend->sent_bytes(run, slot, size);
  }
  *size = memory->wire_size;
  return memory->wire;
}

/* After the last step, by operations of the backend. */
static inline lcomm_status lcomm_exec_stage_out(lcomm_run *run) {
  return run->data.stage_out ? run->data.stage_out(run) : LCOMM_OK;
}

/* A step may run; it is over, and those that waited for it may. */
void lcomm_exec_make_ready(lcomm_run *run, uint32_t step);
void lcomm_exec_finish_step(lcomm_run *run, uint32_t step);

/* Post the message of a step that is ready, or let it wait for its turn. */
lcomm_status lcomm_exec_start_message(lcomm_run *run, uint32_t step);

/* Part of lcomm_run_create. */
lcomm_status lcomm_run_make_slots(lcomm_run *run);

lcomm_status lcomm_exec_poll_receive(lcomm_run *run, lcomm_message *message, bool *moved,
                                     bool *over);
/* A link is broken. A peer that gives up says why, and then its links break: its reason, or that of
 * another rank, is worth more than the break. Waits a moment for it; returns the status in force.
 */
lcomm_status lcomm_exec_receive_reason(lcomm_comm *comm);
lcomm_status lcomm_exec_transport_failed(lcomm_run *run, uint32_t step);
void lcomm_exec_trace_message(const lcomm_run *run, const lcomm_message *message);

/* Zero-copy: may this slot's payload be read where its sender has it; it can be read now. */
bool lcomm_exec_may_zcopy(const lcomm_run *run, uint32_t slot, const lcomm_transport *link);
lcomm_status lcomm_exec_receive_zcopy(lcomm_run *run, uint32_t step);
/* Copy a part of what a zero-copy receive has, mapped or remote. TRANSPORT with the sentence. */
lcomm_status lcomm_exec_copy_zcopy(lcomm_run *run, uint32_t slot, size_t offset, size_t size,
                                   void *bytes);

/* A REDUCE of a plan without codecs, on the host. */
lcomm_status lcomm_exec_reduce_plain(lcomm_run *run, const lcomm_step *step);
/* Sum (or minimum, maximum) of elements of a plain plan. */
void lcomm_exec_add_plain(const lcomm_run *run, const void *const *sources, size_t count,
                          void *destination, size_t n);

/* What a complete sum is multiplied by: averages are divided here. */
static inline double lcomm_exec_factor(const lcomm_comm *comm, lcomm_op op, double after) {
  return op == LCOMM_AVG ? after / comm->size : after;
}

/* Multiply elements of a plain plan; integers stay as they are. */
void lcomm_exec_scale(const lcomm_run *run, double factor, void *values, size_t n);

#endif
