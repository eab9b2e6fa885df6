/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SCHED_SCHED_H
#define LCOMM_SCHED_SCHED_H

/* A schedule is what one rank does in one collective: a straight list of
 * steps over one vector of `count` elements and a set of slots. It is data.
 * Builders write it, the linker derives which step must wait for which, the
 * verifier checks it, the executor (or the simulator of the tests) runs it.
 *
 *   ENCODE  span -> slot(s)          make wire bytes of a part of the vector
 *   SEND    slot -> peer             a slot may be sent to any number of peers
 *   RECV    peer -> slot
 *   DECODE  slot -> span             the span becomes the decoded values
 *   REDUCE  slots (+ span) -> span   the span becomes their sum, in list order
 *
 * This folder sees neither codecs nor transports. A slot only says which
 * *stage* it belongs to; the plan says which codec a stage uses.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"

typedef enum lcomm_step_kind {
  LCOMM_STEP_ENCODE,
  LCOMM_STEP_SEND,
  LCOMM_STEP_RECV,
  LCOMM_STEP_DECODE,
  LCOMM_STEP_REDUCE
} lcomm_step_kind;

/* Where in the collective a slot is used. */
typedef enum lcomm_stage {
  LCOMM_STAGE_NODE,   /* contributions inside a node */
  LCOMM_STAGE_NET,    /* contributions between nodes, or of a flat group */
  LCOMM_STAGE_RESULT, /* finished sums on their way to everyone */
  LCOMM_STAGE_RACK,   /* contributions between nodes of a rack; those between racks are NET */
  LCOMM_STAGE_COUNT
} lcomm_stage;

/* What a step means for error feedback. Builders always say it; the executor
 * acts on it only when the operation owns a residual. */
typedef enum lcomm_feedback {
  LCOMM_FEEDBACK_NONE,
  LCOMM_FEEDBACK_SEND,  /* ENCODE: residual joins in, what is sent leaves it */
  LCOMM_FEEDBACK_HOLD,  /* ENCODE: residual joins in, leaves at COMMIT */
  LCOMM_FEEDBACK_KEEP,  /* REDUCE: my own part joins unquantised, with its residual */
  LCOMM_FEEDBACK_OWNER, /* ENCODE of a sum: the error stays in my residual */
  LCOMM_FEEDBACK_COMMIT /* DECODE: what I sent in slot `commit` and is applied leaves */
} lcomm_feedback;

/* Part `part` of `parts` of a range, block-cyclic by tiles; parts == 1 is the
 * whole range. */
typedef struct lcomm_span {
  uint64_t first, count;
  uint32_t parts, part;
} lcomm_span;

/* Messages of one schedule between two ranks in one direction; transports give
 * their number 15 bits. */
#define LCOMM_MESSAGES_MAX 32768u

#define LCOMM_NO_SLOT UINT32_MAX
#define LCOMM_SOURCE_SELF UINT32_MAX /* as a source of REDUCE: the span's own values */

typedef struct lcomm_slot {
  uint64_t count; /* elements its payload stands for */
  lcomm_stage stage;
  /* Filled by the linker when slots of this stage are plain copies of the
   * vector: the slot's memory is the vector at `alias.first`, its ENCODE and
   * DECODE do nothing, as they are on just this span. alias.count == 0: the
   * slot has memory of its own. */
  lcomm_span alias;
  /* Slots in the same memory, one after the other: the one before, LCOMM_NO_SLOT for none, and the
   * first of all, which may be the slot itself. The linker lets the step that writes a slot wait
   * for all that read the one before. */
  uint32_t before, place;
} lcomm_slot;

typedef struct lcomm_step {
  lcomm_step_kind kind;
  lcomm_feedback feedback;
  bool summed;         /* REDUCE: completes the sum over all ranks */
  int peer;            /* SEND, RECV: rank */
  uint32_t message;    /* SEND, RECV: running number for this peer and direction */
  uint32_t slot;       /* first slot; unused by REDUCE */
  uint32_t slot_count; /* ENCODE: outputs (consecutive slots); REDUCE: sources */
  uint32_t sources;    /* REDUCE: first index into lcomm_schedule.sources */
  uint32_t commit;     /* DECODE with COMMIT: slot, else LCOMM_NO_SLOT */
  lcomm_span span;     /* ENCODE reads it, DECODE and REDUCE write it */
  /* Filled by the linker. */
  uint32_t waits_for;  /* steps that must be over first */
  uint32_t next_first; /* steps that wait for this one: next[next_first ..] */
  uint32_t next_count;
} lcomm_step;

typedef struct lcomm_schedule {
  uint64_t count; /* elements of the vector */
  int rank, size;
  lcomm_step *steps;
  uint32_t step_count, step_room;
  lcomm_slot *slots;
  uint32_t slot_count, slot_room;
  uint32_t *sources;
  uint32_t source_count, source_room;
  uint32_t *next;
  uint32_t next_count, next_room;
  uint32_t *sent_to, *received_from; /* messages so far, by peer */
  lcomm_status status;               /* first error of a builder, sticky */
} lcomm_schedule;

/* ------------------------------------------------------------- building */

lcomm_status lcomm_schedule_init(lcomm_schedule *schedule, int rank, int size, uint64_t count);
void lcomm_schedule_free(lcomm_schedule *schedule);

/* Each adds one element. Memory errors are kept in schedule->status, so
 * builders need not check every call. */
uint32_t lcomm_schedule_slot(lcomm_schedule *schedule, lcomm_stage stage, uint64_t count);
/* `slot`, which no step uses yet, takes the memory of `before` once that has been read. */
void lcomm_schedule_share(lcomm_schedule *schedule, uint32_t slot, uint32_t before);
void lcomm_schedule_encode(lcomm_schedule *schedule, lcomm_span span, uint32_t slot,
                           uint32_t outputs, lcomm_feedback feedback);
void lcomm_schedule_send(lcomm_schedule *schedule, uint32_t slot, int peer);
void lcomm_schedule_receive(lcomm_schedule *schedule, uint32_t slot, int peer);
/* commit: LCOMM_NO_SLOT for none */
void lcomm_schedule_decode(lcomm_schedule *schedule, uint32_t slot, lcomm_span span,
                           uint32_t commit);
/* `sources` is copied. lcomm_schedule_sum marks the step that completes the
 * sum over all ranks, lcomm_schedule_partial one that does not. */
void lcomm_schedule_sum(lcomm_schedule *schedule, lcomm_span span, const uint32_t *sources,
                        uint32_t source_count, lcomm_feedback feedback);
void lcomm_schedule_partial(lcomm_schedule *schedule, lcomm_span span, const uint32_t *sources,
                            uint32_t source_count);

/* --------------------------------------------------------------- steps */

static inline bool lcomm_step_is_message(const lcomm_step *step) {
  return step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV;
}

/* --------------------------------------------------------------- spans */

static inline lcomm_span lcomm_span_whole(uint64_t first, uint64_t count) {
  lcomm_span span = {first, count, 1, 0};
  return span;
}

/* Elements in the span. */
uint64_t lcomm_span_count(lcomm_span span);

/* Piece `index` of `pieces` of a contiguous span. Pieces begin at multiples
 * of the codecs' block when there are enough elements, so that no block is
 * cut; they may be empty. */
lcomm_span lcomm_span_piece(lcomm_span span, uint32_t pieces, uint32_t index);

bool lcomm_span_overlap(lcomm_span a, lcomm_span b);

/* ---------------------------------------------------- linking, verifying */

/* Derive waits_for and next from the slots and spans each step reads and
 * writes. copies[stage]: payloads of that stage are plain copies of the
 * vector, so slots may alias it. MEMORY on failure. */
lcomm_status lcomm_schedule_link(lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]);

/* Is the schedule well formed by itself: spans inside the vector, every slot
 * written exactly once and before it is read, not read once another has its memory, slot sizes
 * equal to their spans, sources in range, peers in range, dependencies acyclic? On failure
 * returns INTERNAL and writes a sentence into why. */
lcomm_status lcomm_schedule_verify(const lcomm_schedule *schedule, lcomm_why *why);

/* Do the schedules of all ranks fit together: every SEND has its RECV with
 * the same number, stage and count, and the other way round? */
lcomm_status lcomm_schedule_verify_all(const lcomm_schedule *schedules, int size, lcomm_why *why);

#endif
