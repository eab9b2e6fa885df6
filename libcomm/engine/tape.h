/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_H
#define LCOMM_ENGINE_TAPE_H

/* A tape: all that an operation does on its device, put into the lanes (lanes.h) by the call that
 * starts it, from staging in to staging out, as if all messages were there already. Where a
 * computation needs one, its lane waits for a number in pinned memory, its `go`; where a message
 * needs a computation, the lane writes a number, `ready`; after the last of all the number `end`.
 * All numbers are that of the operation, counted by run, so they only grow.
 *
 * Messages are moved meanwhile by the executor, step by step as ever, in whatever thread makes
 * progress. For it a computation is a number to write and a number to await (proxy.c): it calls no
 * function of the device's table.
 *
 * Computations play on a copy of the run with slots of its own, because where a payload is by the
 * tape and where it is by the messages are two things. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec.h"
#include "libcomm/engine/lanes.h"

enum { LCOMM_TAPE_NONE = -1, LCOMM_TAPE_NUMBERS = 64 };

/* A computation of the schedule; unused for messages. */
typedef struct lcomm_tape_step {
  lcomm_lane lane;
  uint32_t last;  /* of its group (../sched/lane_group.h): they are played together */
  bool awaits;    /* messages: it has a `go` */
  bool announces; /* messages wait for it: it has a `ready` */
  bool only_read; /* ... because it reads what is to be released, and nothing is sent of it */
  bool is_joined; /* lanes after its own wait for its event; of the last of a group */
  void *event;    /* of those */
  /* The last group of each lane before its own that it waits for, by its last step, or NONE. */
  int64_t follows[LCOMM_LANE_COUNT];
} lcomm_tape_step;

typedef struct lcomm_tape {
  const lcomm_lanes *lanes;
  lcomm_tape_step *steps; /* one more than the schedule has: staging out */
  bool waits_for_staging[LCOMM_LANE_COUNT];
  void *drained[LCOMM_LANE_COUNT]; /* events, of a recording: nothing follows in that lane */
  void *staged, *done;             /* events: staging in, all of it */
  lcomm_run copy;                  /* that is played on, with slots and counts of its own: */
  lcomm_slot_memory *slots;
  uint32_t *waiting;    /* see lcomm_run_steps */
  uint32_t *numbers;    /* pinned: go and ready of each step, then end, start, begun, free */
  const uint8_t **from; /* pinned: of slots that are fetched, where the payload is, or NULL */
  uint32_t number;      /* of the operation; of a recording always 1 */
  /* What the lane in which things are played is to do with numbers, and was not told yet: as many
   * as can be in one call. */
  lcomm_device_number told[LCOMM_TAPE_NUMBERS];
  uint32_t told_count;
  bool is_urgent;    /* some of it is awaited, or lets messages leave */
  bool awaits_begun; /* of a recording: the last lane has been told to await `begun` */
  /* The same of gates, of a recording. One of both lists is empty. */
  lcomm_device_gate gates[LCOMM_TAPE_NUMBERS];
  uint32_t gate_count;
  /* Of the proxy: computations whose dependencies are over and that are not; each step: have its
   * dependencies been over? Is the operation not over; are all steps? */
  lcomm_computation *works;
  uint32_t work_count;
  bool *is_begun;
  bool in_flight, is_closed;
  unsigned given; /* how often its caller had entered the communicator, see proxy.c */
} lcomm_tape;

/* Parts of making and freeing a run whose operations are played: its lanes, and the rest when its
 * slots are made. The device is in use. MEMORY, SYSTEM with a sentence in
 * lcomm_error_thread_text. */
lcomm_status lcomm_tape_open(lcomm_run *run);
lcomm_status lcomm_tape_make(lcomm_run *run);
void lcomm_tape_free(lcomm_run *run);

/* Is anything of it in the lanes? */
bool lcomm_tape_is_in_lanes(const lcomm_run *run);

/* Make it the tape of a recording, which waits for its first replay. Between lcomm_run_enter and
 * lcomm_run_leave. SYSTEM with a sentence in lcomm_error_thread_text. */
lcomm_status lcomm_tape_record(lcomm_run *run);

/* proxy.c: an operation was started only to be recorded. */
void lcomm_tape_forget(lcomm_run *run);

/* An operation was started and has not moved, and all is known that it works on: take the copy to
 * play on. */
void lcomm_tape_rewind(lcomm_run *run);

/* Put the steps and staging out of an operation that was started into the lanes; staging in is
 * there. Between lcomm_run_enter and lcomm_run_leave, in the device's turn. SYSTEM: the
 * communicator has failed. */
lcomm_status lcomm_tape_play(lcomm_run *run);

/* What follows in a stream of the program comes after the operation. Likewise. */
lcomm_status lcomm_tape_join(lcomm_run *run, void *stream);

/* What the next operation begins with is what this one makes. Likewise. */
lcomm_status lcomm_tape_chain(lcomm_run *run);

/* Places of numbers. */
static inline uint32_t *lcomm_tape_go(const lcomm_run *run, uint32_t step) {
  return &run->tape->numbers[2 * step];
}

static inline uint32_t *lcomm_tape_ready(const lcomm_run *run, uint32_t step) {
  return &run->tape->numbers[2 * step + 1];
}

static inline uint32_t *lcomm_tape_end(const lcomm_run *run) {
  return &run->tape->numbers[2 * run->plan->schedule.step_count];
}

/* Those that recordings have besides. */
static inline uint32_t *lcomm_tape_start(const lcomm_run *run) {
  return lcomm_tape_end(run) + 1;
}

static inline uint32_t *lcomm_tape_begun(const lcomm_run *run) {
  return lcomm_tape_end(run) + 2;
}

static inline uint32_t *lcomm_tape_free_gate(const lcomm_run *run) {
  return lcomm_tape_end(run) + 3;
}

/* Bytes of all of them; without the last one. */
static inline size_t lcomm_tape_numbers_size(const lcomm_plan *plan) {
  return (2 * (size_t)plan->schedule.step_count + 4) * sizeof(uint32_t);
}

static inline size_t lcomm_tape_reset_size(const lcomm_plan *plan) {
  return lcomm_tape_numbers_size(plan) - sizeof(uint32_t);
}

#endif
