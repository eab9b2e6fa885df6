/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Recordings: made by a capture, freed when nothing refers to them any more. */

#include "libcomm/engine/recording.h"

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/gates.h"
#include "libcomm/engine/left_memory.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/progress_thread.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape_internal.h"

/* By whoever lets go of the last of a graph, in any thread. */
static void release_graph(void *life) {
  atomic_store(&((lcomm_graph_life *)life)->is_over, true);
}

int lcomm_graph_hold(const lcomm_device_table *table, void *stream, lcomm_graph_life *life) {
  return table->stream.retain(stream, release_graph, life);
}

/* -------------------------------------------------------------------- making */

static bool rounds_by_chance(const lcomm_plan *plan) {
  bool any = false;
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    any |= plan->stages[i].format.stochastic;
  }
  return any;
}

lcomm_status lcomm_recording_make_seed(lcomm_recording *it) {
  const lcomm_device_memory *memory = &it->run->device->table->memory;
  if (!rounds_by_chance(it->run->plan)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_tape_got(it->run, "pinned memory",
                           memory->pinned_get(sizeof *it->seed, (void **)&it->seed)));
  *it->seed = 0;
  LCOMM_TRY(lcomm_tape_got(it->run, "memory",
                           memory->get(sizeof *it->device_seed, (void **)&it->device_seed)));
  it->run->device->more_seed = it->device_seed;
  return LCOMM_OK;
}

/* What was copied to the device for the run is there before anything of it is captured. */
static lcomm_status take_lanes(lcomm_run *run, uint64_t capture) {
  int error = 0;
  LCOMM_TRY(lcomm_tape_got(run, "kernels", run->device->table->stream.finish(run->device->stream)));
  run->tape->lanes =
      lcomm_lanes_captured(&run->comm->recordings.lanes, run->device->ordinal, capture, &error);
  LCOMM_TRY(run->tape->lanes ? LCOMM_OK : lcomm_tape_got(run, "stream", error));
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE);
  return LCOMM_OK;
}

static lcomm_status keep_graph(lcomm_recording *it, void *stream) {
  it->graph = calloc(1, sizeof *it->graph);
  return it->graph ? lcomm_tape_got(it->run, "hold of the graph",
                                    lcomm_graph_hold(it->run->device->table, stream, it->graph))
                   : LCOMM_ERR_MEMORY;
}

static lcomm_status make_parts(lcomm_recording *it, void *stream, uint64_t capture) {
  LCOMM_TRY(take_lanes(it->run, capture));
  LCOMM_TRY(lcomm_recording_make_seed(it));
  LCOMM_TRY(lcomm_acknowledgements_make(it));
  LCOMM_TRY(lcomm_tape_record(it->run));
  return keep_graph(it, stream); /* last: nothing fails while the graph has it */
}

static bool has_messages(const lcomm_plan *plan) {
  bool any = false;
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    any |= lcomm_step_is_message(&plan->schedule.steps[i]);
  }
  return any;
}

lcomm_status lcomm_recording_add(lcomm_run *run) {
  lcomm_recording *it = calloc(1, sizeof *it);
  if (!it) {
    return LCOMM_ERR_MEMORY;
  }
  run->recording = it;
  run->series.channel = ++run->comm->recordings.channels;
  it->run = run;
  it->has_messages = has_messages(run->plan);
  return LCOMM_OK;
}

/* Sentence and status of a communicator that has failed for it. */
static lcomm_status fail(lcomm_comm *comm, lcomm_run *run, lcomm_status status) {
  if (status == LCOMM_ERR_MEMORY) {
    lcomm_error_thread(status, "no memory for a call that is captured into a graph");
  }
  status = lcomm_fail(comm, status, "%s", lcomm_error_thread_text());
  lcomm_run_retire(comm, run);
  return status;
}

static lcomm_status create_run(lcomm_comm *comm, lcomm_plan *plan, lcomm_run **run) {
  LCOMM_TRY(lcomm_run_create(comm, plan, LCOMM_SEQUENCE_SPACE_CALLS, run));
  return lcomm_recording_add(*run);
}

lcomm_status lcomm_recording_create(lcomm_comm *comm, lcomm_plan *plan,
                                    lcomm_recording **recording) {
  lcomm_run *run = NULL;
  lcomm_status status = create_run(comm, plan, &run);
  if (status != LCOMM_OK) {
    return fail(comm, run, status);
  }
  *recording = run->recording;
  return LCOMM_OK;
}

lcomm_status lcomm_recording_complete(lcomm_recording *recording, void *stream, uint64_t capture) {
  lcomm_run *run = recording->run;
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = make_parts(recording, stream, capture);
  lcomm_run_leave(run, entry);
  return status == LCOMM_OK ? LCOMM_OK : fail(run->comm, run, status);
}

void lcomm_recording_give_up(lcomm_recording *recording) {
  lcomm_run_retire(recording->run->comm, recording->run);
}

/* Seeds differ from those of calls, and of other recordings. */
void lcomm_recording_rewind(lcomm_recording *recording) {
  lcomm_run *run = recording->run;
  lcomm_run_start(run, &run->data, UINT32_C(1) << 31 | run->series.channel);
  lcomm_tape_forget(run);
  lcomm_tape_rewind(run);
}

void lcomm_recording_open(lcomm_recording *recording) {
  lcomm_comm *comm = recording->run->comm;
  recording->next = comm->recordings.first;
  comm->recordings.first = recording;
  comm->recordings.moved_s = lcomm_clock_s();
  if (atomic_load(&comm->errors.status) != LCOMM_OK) {
    lcomm_recordings_close(comm);
  }
  if (comm->progress.thread) { /* it sleeps as long as it may */
    lcomm_progress_thread_wake(comm->progress.thread);
  }
}

/* ----------------------------------------------------------------------- end */

static bool is_gone(const lcomm_recording *it) {
  return atomic_load(&it->graph->is_over) && it->state != LCOMM_RECORDING_REPLAYS;
}

void lcomm_recordings_retire(lcomm_comm *comm) {
  for (lcomm_recording **at = &comm->recordings.first; *at;) {
    lcomm_recording *it = *at;
    if (!is_gone(it) || it->state == LCOMM_RECORDING_ACKNOWLEDGES) {
      at = &it->next;
      continue;
    }
    *at = it->next;
    lcomm_run_retire(comm, it->run);
  }
}

void lcomm_recordings_free(lcomm_comm *comm) {
  lcomm_recordings_close(comm);
  while (comm->recordings.first) {
    lcomm_recording *it = comm->recordings.first;
    comm->recordings.first = it->next;
    if (!atomic_load(&it->graph->is_over) && !it->run->messages.abandoned) {
      lcomm_left_memory_take(it->run);
    }
    lcomm_run_destroy(it->run);
  }
}

void lcomm_recording_free(lcomm_recording *it) {
  const lcomm_device_memory *memory = &it->run->device->table->memory;
  (void)memory->pinned_free(it->seed);
  (void)memory->free(it->device_seed);
  lcomm_gates_free(it->gates);
  free(it->acks);
  free(it->graph);
  free(it);
}
