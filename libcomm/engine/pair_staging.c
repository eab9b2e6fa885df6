/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks on a device: pinned memory, and what two streams do with it. */

#include <stdlib.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/pair_internal.h"
#include "libcomm/engine/run_device.h"

enum { NUMBERS_ROOM = 64, ROOM_LEAST = 4096 };

static int use(const lcomm_device_table *table, int ordinal) {
  int before = ordinal;
  (void)table->current(&before);
  if (before != ordinal) {
    (void)table->use(ordinal);
  }
  return before;
}

static void use_again(const lcomm_device_table *table, int before, int ordinal) {
  if (before != ordinal) {
    (void)table->use(before);
  }
}

/* --------------------------------------------------------------- memory */

/* Kernels that wait in their place are loaded, because the first launch of one would wait for what
 * is in streams. */
static int make_streams(struct lcomm_pairs *pairs, const lcomm_device_table *table) {
  int error = pairs->sending ? 0 : table->load();
  error = error || pairs->sending ? error : table->stream.work_create(&pairs->sending);
  return error || pairs->receiving ? error : table->stream.work_create(&pairs->receiving);
}

void lcomm_pair_block_free(const lcomm_device_table *table, lcomm_pair_block *block) {
  (void)table->event.destroy(block->came);
  (void)table->event.destroy(block->done);
  (void)table->memory.pinned_free(block->numbers);
  free(block);
}

static int fill_block(const lcomm_device_table *table, lcomm_pair_block *block) {
  void *memory = NULL;
  LCOMM_DEVICE_TRY(table->memory.pinned_get(NUMBERS_ROOM + block->room, &memory));
  block->numbers = memory;
  LCOMM_DEVICE_TRY(table->event.create(false, &block->came));
  LCOMM_DEVICE_TRY(table->event.create(false, &block->done));
  *block->numbers = (lcomm_pair_numbers){0};
  block->bytes = (uint8_t *)memory + NUMBERS_ROOM;
  return 0;
}

static int make_parts(struct lcomm_pairs *pairs, const lcomm_device_table *table,
                      lcomm_pair_block *block) {
  LCOMM_DEVICE_TRY(make_streams(pairs, table));
  return fill_block(table, block);
}

static lcomm_pair_block *make_block(struct lcomm_pairs *pairs, int ordinal, uint64_t size,
                                    int *error) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_pair_block *block = calloc(1, sizeof *block);
  *error = -1;
  if (!block) {
    return NULL;
  }
  for (block->room = ROOM_LEAST; block->room < size;) {
    block->room *= 2;
  }
  int before = use(table, ordinal);
  *error = make_parts(pairs, table, block);
  if (*error != 0) {
    lcomm_pair_block_free(table, block);
    block = NULL;
  }
  use_again(table, before, ordinal);
  return block;
}

lcomm_pair_block *lcomm_pair_block_get(lcomm_comm *comm, int ordinal, uint64_t size, int *error) {
  unsigned depth = lcomm_turn_give(comm);
  lcomm_pair_block *block = make_block(comm->pairs, ordinal, size, error);
  lcomm_turn_take(comm, depth);
  return block;
}

/* The smallest that is large enough. */
static lcomm_pair_block *take_idle(struct lcomm_pairs *pairs, uint64_t size) {
  lcomm_pair_block **best = NULL;
  for (lcomm_pair_block **it = &pairs->idle; *it; it = &(*it)->next) {
    bool fits = (*it)->room >= size;
    best = fits && (!best || (*it)->room < (*best)->room) ? it : best;
  }
  lcomm_pair_block *taken = best ? *best : NULL;
  if (taken) {
    *best = taken->next;
  }
  return taken;
}

/* What devices have taken out of blocks meanwhile. */
static void drain(struct lcomm_pairs *pairs) {
  for (lcomm_pair_block **it = &pairs->draining; *it;) {
    lcomm_pair_block *block = *it;
    if (lcomm_pair_reached(&block->numbers->left, block->end)) {
      *it = block->next;
      block->next = pairs->idle;
      pairs->idle = block;
    } else {
      it = &block->next;
    }
  }
}

lcomm_status lcomm_pair_stage(lcomm_comm *comm, lcomm_pair_message *message, int ordinal) {
  struct lcomm_pairs *pairs = comm->pairs;
  int error = 0;
  drain(pairs);
  lcomm_pair_block *block = take_idle(pairs, message->size);
  block = block ? block : lcomm_pair_block_get(comm, ordinal, message->size, &error);
  if (!block) {
    return error < 0 ? LCOMM_ERR_MEMORY
                     : lcomm_error_thread(LCOMM_ERR_SYSTEM, "device %d gives no memory: %s",
                                          ordinal, lcomm_device_get(NULL)->explain(error));
  }
  pairs->ordinal = ordinal;
  message->block = block;
  message->data = block->bytes;
  message->base = block->base;
  block->base += message->pieces + 1;
  block->end = block->base;
  return LCOMM_OK;
}

void lcomm_pair_unstage(lcomm_comm *comm, lcomm_pair_message *message) {
  lcomm_pair_block **list = message->is_send ? &comm->pairs->idle : &comm->pairs->draining;
  if (message->block && message->graph_channel == 0) {
    message->block->next = *list;
    *list = message->block;
    message->block = NULL;
  }
}

/* ------------------------------------------------------------- the device */

static int number(const lcomm_device_table *table, void *stream, lcomm_device_number_task task,
                  uint32_t *place, uint32_t value) {
  lcomm_device_number it = {.task = task, .place = place, .number = value};
  return table->stream.numbers(stream, &it, 1);
}

static int send_pieces(const lcomm_device_table *table, const lcomm_pair_message *it,
                       const uint8_t *data, void *stream) {
  for (uint32_t i = 0; i < it->pieces; i++) {
    uint8_t *at;
    size_t size = lcomm_pair_piece(it, i, &at);
    LCOMM_DEVICE_TRY(table->copy(at, data + (at - it->data), size, stream));
    LCOMM_DEVICE_TRY(
        number(table, stream, LCOMM_DEVICE_WRITE, &it->block->numbers->there, it->base + i + 1));
  }
  return 0;
}

static int receive_pieces(const lcomm_device_table *table, const lcomm_pair_message *it,
                          uint8_t *data, void *stream) {
  lcomm_pair_numbers *numbers = it->block->numbers;
  for (uint32_t i = 0; i < it->pieces; i++) {
    uint8_t *at;
    size_t size = lcomm_pair_piece(it, i, &at);
    LCOMM_DEVICE_TRY(number(table, stream, LCOMM_DEVICE_AWAIT, &numbers->there, it->base + i + 1));
    LCOMM_DEVICE_TRY(table->copy(data + (at - it->data), at, size, stream));
  }
  return 0;
}

int lcomm_pair_play_pieces(const lcomm_device_table *table, const lcomm_pair_message *it,
                           uint8_t *data, void *stream) {
  return it->is_send ? send_pieces(table, it, data, stream)
                     : receive_pieces(table, it, data, stream);
}

static int play_receive(const lcomm_device_table *table, const lcomm_pair_message *it,
                        uint8_t *data, void *stream) {
  lcomm_pair_numbers *numbers = it->block->numbers;
  LCOMM_DEVICE_TRY(number(table, stream, LCOMM_DEVICE_WRITE, &numbers->begun, it->base + 1));
  LCOMM_DEVICE_TRY(receive_pieces(table, it, data, stream));
  return number(table, stream, LCOMM_DEVICE_WRITE, &numbers->left, it->base + it->pieces + 1);
}

/* Between where the stream of the program is, and what is put there next. */
static int play(const lcomm_device_table *table, const struct lcomm_pairs *pairs,
                const lcomm_pair_message *it, const lcomm_pair_call *call) {
  void *stream = it->is_send ? pairs->sending : pairs->receiving;
  LCOMM_DEVICE_TRY(table->event.record(it->block->came, call->stream));
  LCOMM_DEVICE_TRY(table->stream.wait(stream, it->block->came));
  LCOMM_DEVICE_TRY(it->is_send ? send_pieces(table, it, call->data.data, stream)
                               : play_receive(table, it, call->data.data, stream));
  LCOMM_DEVICE_TRY(table->event.record(it->block->done, stream));
  return table->stream.wait(call->stream, it->block->done);
}

lcomm_status lcomm_pair_play(lcomm_comm *comm, const lcomm_pair_message *message,
                             const lcomm_pair_call *call) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  const struct lcomm_pairs *pairs = comm->pairs;
  lcomm_pair_message copy = *message; /* it may be over before the last call returns */
  unsigned depth = lcomm_turn_give(comm);
  int before = use(table, pairs->ordinal);
  int error = play(table, pairs, &copy, call);
  use_again(table, before, pairs->ordinal);
  lcomm_turn_take(comm, depth);
  return error == 0 ? LCOMM_OK : lcomm_error_thread(LCOMM_ERR_SYSTEM, "%s", table->explain(error));
}

/* ------------------------------------------------------------------ the end */

/* After a failure a stream of the program may wait for another communicator. */
static bool is_through(const lcomm_device_table *table, const lcomm_pair_block *block,
                       double end_s) {
  lcomm_backoff pause = {.sleep_ns = 100000};
  bool over = false;
  while (table->event.query(block->done, &over) == 0 && !over && lcomm_clock_s() < end_s) {
    lcomm_backoff_step(&pause);
  }
  return over;
}

/* What the device may still come to stays as it is. */
static bool free_blocks(const lcomm_device_table *table, lcomm_pair_block *block, double end_s) {
  bool all = true;
  while (block) {
    lcomm_pair_block *next = block->next;
    if (is_through(table, block, end_s)) {
      lcomm_pair_block_free(table, block);
    } else {
      all = false;
    }
    block = next;
  }
  return all;
}

/* What pairs have on a device. */
typedef struct staging {
  lcomm_pair_block *idle, *draining;
  void *sending, *receiving;
} staging;

static void free_staging(const lcomm_device_table *table, void *argument) {
  static const double PATIENCE_S = 1;
  const staging *it = argument;
  double end_s = lcomm_clock_s() + PATIENCE_S;
  bool all = free_blocks(table, it->idle, end_s);
  all &= free_blocks(table, it->draining, end_s);
  if (all) {
    (void)table->stream.destroy(it->sending);
    (void)table->stream.destroy(it->receiving);
  }
  free(argument);
}

void lcomm_pairs_free_staging(lcomm_comm *comm) {
  const struct lcomm_pairs *pairs = comm->pairs;
  bool has_any = pairs->ordinal != LCOMM_DEVICE_NONE;
  staging *it = has_any ? malloc(sizeof *it) : NULL;
  if (it) { /* without memory for it, all stays */
    *it = (staging){pairs->idle, pairs->draining, pairs->sending, pairs->receiving};
    lcomm_device_free_by(pairs->ordinal, free_staging, it);
  }
}
