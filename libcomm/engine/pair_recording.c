/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Captured messages between two ranks: made by a capture, freed when their graph is gone. */

#include "libcomm/engine/pair_recording.h"

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/lanes.h"
#include "libcomm/engine/left_memory.h"
#include "libcomm/engine/pair_frame.h"
#include "libcomm/engine/progress_thread.h"

static uint32_t *captured_of(const lcomm_comm *comm, const lcomm_pair_call *call) {
  return &lcomm_pair_queue_of(comm, call->is_send, call->peer)->captured;
}

bool lcomm_pair_can_record(const lcomm_comm *comm, const lcomm_pair_call *call) {
  return !comm->pairs || *captured_of(comm, call) < LCOMM_PAIR_CAPTURED_MAX;
}

/* ------------------------------------------------------------------ one of them */

/* The graph is gone, or has never held it. */
static void free_one(const lcomm_device_table *table, lcomm_pair_recording *it) {
  if (it->fresh.block) {
    lcomm_pair_block_free(table, it->fresh.block);
  }
  lcomm_lossless_destroy(it->fresh.lossless);
  free(it->queue.wire);
  free(it->graph);
  free(it);
}

/* The graph may still be launched. */
static void leave_one(const lcomm_device_table *table, lcomm_pair_recording *it) {
  lcomm_left_memory_take_pinned(it->graph, it->ordinal, it->fresh.block->numbers);
  it->fresh.block->numbers = NULL;
  it->graph = NULL;
  free_one(table, it);
}

static lcomm_status make_block(lcomm_comm *comm, lcomm_pair_recording *it) {
  int error = 0;
  lcomm_pair_message *fresh = &it->fresh;
  fresh->block = lcomm_pair_block_get(comm, it->ordinal, fresh->size, &error);
  if (!fresh->block) {
    return error < 0 ? LCOMM_ERR_MEMORY
                     : lcomm_error_thread(LCOMM_ERR_SYSTEM, "device %d gives no memory: %s",
                                          it->ordinal, lcomm_device_get(NULL)->explain(error));
  }
  fresh->data = fresh->block->bytes;
  fresh->block->numbers->free = 1;
  comm->pairs->ordinal = it->ordinal;
  return LCOMM_OK;
}

/* Its owner is the recording, not the messages that are used again. */
static lcomm_status make_parts(lcomm_comm *comm, lcomm_pair_recording *it) {
  lcomm_pair_describe(comm, &it->fresh, &it->call);
  it->fresh.end.is_kept = true;
  it->fresh.graph_channel = ++*captured_of(comm, &it->call);
  it->ordinal = it->call.data.location.device;
  it->graph = calloc(1, sizeof *it->graph);
  LCOMM_TRY(it->graph ? LCOMM_OK : LCOMM_ERR_MEMORY);
  LCOMM_TRY(lcomm_pair_frame_prepare(comm, &it->queue, &it->fresh));
  return make_block(comm, it);
}

static void append(lcomm_comm *comm, lcomm_pair_recording *it) {
  lcomm_pair_recording **at = &comm->recordings.pairs;
  while (*at) {
    at = &(*at)->next;
  }
  *at = it;
  comm->recordings.moved_s = lcomm_clock_s();
}

/* ------------------------------------------------------------------- capturing */

static int find_lane(lcomm_comm *comm, lcomm_pair_recording *it) {
  int error = 0;
  const lcomm_lanes *lanes =
      lcomm_lanes_captured(&comm->recordings.pair_lanes, it->ordinal, it->call.capture, &error);
  it->lane = lanes ? lanes->stream[it->call.is_send ? LCOMM_LANE_ENCODE : LCOMM_LANE_DECODE] : NULL;
  return error;
}

/* The last call that can fail before the graph refers to the block is that which holds the graph.
 */
static int hold(lcomm_comm *comm, const lcomm_device_table *table, lcomm_pair_recording *it) {
  LCOMM_DEVICE_TRY(find_lane(comm, it));
  return lcomm_graph_hold(table, it->call.stream, it->graph);
}

static int play_begin(const lcomm_device_table *table, const lcomm_pair_recording *it) {
  const lcomm_pair_block *block = it->fresh.block;
  lcomm_device_number numbers[] = {
      {.task = LCOMM_DEVICE_AWAIT, .place = &block->numbers->free, .number = 1},
      {.task = LCOMM_DEVICE_WRITE, .place = &block->numbers->begun, .number = 1}};
  LCOMM_DEVICE_TRY(table->event.record(block->came, it->call.stream));
  LCOMM_DEVICE_TRY(table->stream.wait(it->lane, block->came));
  return table->stream.numbers(it->lane, numbers, 2);
}

static int play_end(const lcomm_device_table *table, const lcomm_pair_recording *it) {
  const lcomm_pair_block *block = it->fresh.block;
  lcomm_device_number numbers[] = {
      {.task = LCOMM_DEVICE_AWAIT, .place = &block->numbers->seen, .number = 1},
      {.task = LCOMM_DEVICE_WRITE, .place = &block->numbers->left, .number = 1}};
  LCOMM_DEVICE_TRY(lcomm_pair_play_pieces(table, &it->fresh, it->call.data.data, it->lane));
  LCOMM_DEVICE_TRY(table->stream.numbers(it->lane, numbers, 2));
  LCOMM_DEVICE_TRY(table->event.record(block->done, it->lane));
  return table->stream.wait(it->call.stream, block->done);
}

/* In CUDA, on its device, with the communicator's turn given up. */
typedef struct stay {
  unsigned depth;
  int before;
} stay;

static int go_there(lcomm_comm *comm, const lcomm_device_table *table, int ordinal, stay *it) {
  it->depth = lcomm_turn_give(comm);
  return lcomm_device_enter(table, ordinal, &it->before);
}

static void come_back(lcomm_comm *comm, const lcomm_device_table *table, const stay *it) {
  (void)table->use(it->before);
  lcomm_turn_take(comm, it->depth);
}

static lcomm_status fail(lcomm_comm *comm, const lcomm_pair_call *call, int error) {
  lcomm_status status = error < 0 ? LCOMM_ERR_MEMORY
                                  : lcomm_error_thread(LCOMM_ERR_SYSTEM, "%s",
                                                       lcomm_device_get(NULL)->explain(error));
  return lcomm_pair_failed(comm, call, status);
}

static lcomm_status put_begin(lcomm_comm *comm, lcomm_pair_recording *it,
                              const lcomm_pair_call *call) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  stay there = {.before = it->ordinal};
  int error = go_there(comm, table, it->ordinal, &there);
  error = error ? error : hold(comm, table, it);
  bool is_held = error == 0;
  error = is_held ? play_begin(table, it) : error;
  if (!is_held) {
    free_one(table, it);
  }
  come_back(comm, table, &there);
  if (is_held) {
    append(comm, it);
  }
  return error == 0 ? LCOMM_OK : fail(comm, call, error);
}

lcomm_status lcomm_pair_record(lcomm_comm *comm, const lcomm_pair_call *call) {
  lcomm_status status = lcomm_pairs_make(comm);
  lcomm_pair_recordings_retire(comm);
  lcomm_pair_recording *it = status == LCOMM_OK ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return lcomm_pair_failed(comm, call, LCOMM_ERR_MEMORY);
  }
  it->call = *call;
  status = make_parts(comm, it);
  if (status != LCOMM_OK || atomic_load(&comm->errors.status) != LCOMM_OK) {
    free_one(lcomm_device_get(NULL), it);
    return lcomm_pair_failed(comm, call, status);
  }
  return put_begin(comm, it, call);
}

static lcomm_status put_end(lcomm_comm *comm, lcomm_pair_recording *it) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  stay there = {.before = it->ordinal};
  int error = go_there(comm, table, it->ordinal, &there);
  error = error ? error : play_end(table, it);
  come_back(comm, table, &there);
  it->is_captured = true;
  return error == 0 ? LCOMM_OK : fail(comm, &it->call, error);
}

lcomm_status lcomm_pair_records_end(lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  for (lcomm_pair_recording *it = comm->recordings.pairs; it; it = it->next) {
    status = status == LCOMM_OK && !it->is_captured ? put_end(comm, it) : status;
    it->is_captured = true;
  }
  if (comm->recordings.pairs && comm->progress.thread) { /* it sleeps as long as it may */
    lcomm_progress_thread_wake(comm->progress.thread);
  }
  if (comm->recordings.pairs && atomic_load(&comm->errors.status) != LCOMM_OK) {
    lcomm_pair_recordings_close(comm);
  }
  return status;
}

/* ------------------------------------------------------------------------- end */

/* Its graph is gone, and what was launched of that is over. */
static bool is_gone(const lcomm_pair_recording *it) {
  return atomic_load(&it->graph->is_over) && it->state == LCOMM_PAIR_REPLAY_IDLE;
}

bool lcomm_pair_channel_is_recorded(const lcomm_channel *channel) {
  bool any = false;
  for (const lcomm_pair_recording *it = channel->comm->recordings.pairs; it; it = it->next) {
    any |= it->call.channel == channel && !is_gone(it);
  }
  return any;
}

static lcomm_pair_recording *take_gone(lcomm_comm *comm) {
  lcomm_pair_recording **at = &comm->recordings.pairs;
  while (*at && !is_gone(*at)) {
    at = &(*at)->next;
  }
  lcomm_pair_recording *it = *at;
  if (it) {
    *at = it->next;
  }
  return it;
}

void lcomm_pair_recordings_retire(lcomm_comm *comm) {
  for (lcomm_pair_recording *it = take_gone(comm); it; it = take_gone(comm)) {
    const lcomm_device_table *table = lcomm_device_get(NULL);
    stay there = {.before = it->ordinal};
    (void)go_there(comm, table, it->ordinal, &there);
    free_one(table, it);
    come_back(comm, table, &there);
  }
}

/* All that lanes await is there, and stays. */
static void close_one(lcomm_pair_recording *it) {
  lcomm_pair_numbers *numbers = it->fresh.block->numbers;
  it->fresh.block->passes = true;
  if (!it->fresh.is_send) { /* else its device alone writes that */
    __atomic_store_n(&numbers->there, it->fresh.pieces, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&numbers->seen, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&numbers->free, 1, __ATOMIC_RELEASE);
}

void lcomm_pair_recordings_close(lcomm_comm *comm) {
  for (lcomm_pair_recording *it = comm->recordings.pairs; it; it = it->next) {
    close_one(it);
  }
}

void lcomm_pair_recordings_free(lcomm_comm *comm) {
  const lcomm_device_table *table = comm->recordings.pairs ? lcomm_device_get(NULL) : NULL;
  lcomm_pair_recordings_close(comm);
  while (comm->recordings.pairs) {
    lcomm_pair_recording *it = comm->recordings.pairs;
    int before = it->ordinal;
    comm->recordings.pairs = it->next;
    (void)lcomm_device_enter(table, it->ordinal, &before);
    if (atomic_load(&it->graph->is_over)) {
      free_one(table, it);
    } else {
      leave_one(table, it);
    }
    (void)table->use(before);
  }
}
