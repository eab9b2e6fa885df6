/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Replays: operations of recordings, begun where the device has come to them. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair_recording.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/tape.h"

static void put(uint32_t *number, uint32_t value) {
  __atomic_store_n(number, value, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------ one replay */

static lcomm_status begin(lcomm_recording *recording) {
  lcomm_run *run = recording->run;
  put(lcomm_tape_free_gate(run), 0);
  put(lcomm_tape_start(run), 0);
  recording->state = LCOMM_RECORDING_REPLAYS;
  run->comm->recordings.moved_s = lcomm_clock_s();
  lcomm_status status = lcomm_operation_replay(run->comm, run, recording->replay++);
  put(lcomm_tape_begun(run), 1); /* the result is not counted before */
  return status;
}

/* All numbers are back, and the device may go on to the next one. */
static void release(lcomm_recording *recording) {
  lcomm_run *run = recording->run;
  memset(run->tape->numbers, 0,
         lcomm_tape_reset_size(run->plan)); /* lanes await `free` meanwhile */
  if (recording->seed) {
    *recording->seed = recording->replay * UINT64_C(0x9e3779b97f4a7c15);
  }
  if (recording->gates) {
    lcomm_gates_count(recording->gates, recording->replay + 1);
  }
  recording->state = LCOMM_RECORDING_IDLE;
  put(lcomm_tape_free_gate(run), 1);
}

void lcomm_replay_over(lcomm_run *run, lcomm_status status) {
  lcomm_recording *recording = run->recording;
  run->comm->recordings.moved_s = lcomm_clock_s();
  recording->state = status == LCOMM_OK ? LCOMM_RECORDING_ACKNOWLEDGES : LCOMM_RECORDING_IDLE;
  if (status == LCOMM_OK && lcomm_acknowledgements_begin(recording) == LCOMM_OK &&
      recording->ack_count == 0) {
    release(recording);
  }
}

static bool has_started(const lcomm_recording *recording) {
  return __atomic_load_n(lcomm_tape_start(recording->run), __ATOMIC_ACQUIRE) != 0;
}

static lcomm_status move_one(lcomm_recording *recording, bool *moved) {
  bool over = false;
  if (recording->state == LCOMM_RECORDING_IDLE && has_started(recording)) {
    *moved = true;
    return begin(recording);
  }
  if (recording->state == LCOMM_RECORDING_ACKNOWLEDGES) {
    LCOMM_TRY(lcomm_acknowledgements_test(recording, &over));
    if (over) {
      *moved = true;
      release(recording);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_replays_move(lcomm_comm *comm, bool *moved) {
  for (lcomm_recording *it = comm->recordings.first; it; it = it->next) {
    if (it->has_messages && !it->is_closed) {
      LCOMM_TRY(move_one(it, moved));
    }
  }
  return lcomm_pair_replays_move(comm, moved);
}

/* A replay comes later by a hundredth of the pause before it at most. */
double lcomm_replays_limit_s(const lcomm_comm *comm, double limit_s) {
  static const double PART = 0.01, LEAST_S = 50e-6, MOST_S = 1e-3;
  if (!lcomm_comm_has_recordings(comm)) {
    return limit_s;
  }
  double pause_s = PART * (lcomm_clock_s() - comm->recordings.moved_s);
  pause_s = pause_s < LEAST_S ? LEAST_S : pause_s > MOST_S ? MOST_S : pause_s;
  return pause_s < limit_s ? pause_s : limit_s;
}

/* ---------------------------------------------------------------------- closing */

/* All that lanes await is there, and stays. */
static void close_one(lcomm_recording *recording) {
  const lcomm_run *run = recording->run;
  recording->is_closed = true;
  if (!recording->has_messages) {
    return;
  }
  lcomm_acknowledgements_cancel(recording);
  if (recording->gates) {
    lcomm_gates_pass(run, recording->gates);
  }
  for (uint32_t i = 0; i < run->plan->schedule.step_count; i++) {
    put(lcomm_tape_go(run, i), 1);
  }
  put(lcomm_tape_begun(run), 1);
  put(lcomm_tape_free_gate(run), 1);
}

void lcomm_recordings_close(lcomm_comm *comm) {
  for (lcomm_recording *it = comm->recordings.first; it; it = it->next) {
    if (!it->is_closed) {
      close_one(it);
    }
  }
  lcomm_pair_recordings_close(comm);
}
