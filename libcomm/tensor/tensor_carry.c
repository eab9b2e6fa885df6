/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/tensor_carry.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/call/call.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/tensor/residual_carry.h"
#include "libcomm/tensor/saved_state.h"

/* ----------------------------------------------------------------- writing */

static lcomm_status write_list(const lcomm_ef_list *list, lcomm_carry_block *block) {
  float *scratch = NULL;
  LCOMM_TRY(lcomm_state_scratch(list, &scratch));
  uint64_t whole = lcomm_state_written_size(list, scratch);
  block->bytes = whole <= SIZE_MAX ? malloc((size_t)whole) : NULL;
  if (block->bytes) {
    lcomm_state_sink sink = {.bytes = block->bytes};
    lcomm_state_write_to(list, scratch, &sink);
    lcomm_state_put_checksum(XXH3_64bits(sink.bytes, sink.at), sink.bytes + sink.at);
    block->size = (size_t)whole;
  }
  free(scratch);
  return block->bytes ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

lcomm_status lcomm_carry_write(lcomm_comm *comm, bool empty, lcomm_carry_block *block) {
  lcomm_ef_list list;
  LCOMM_TRY(lcomm_saved_state_list_carried(comm, &list));
  list.nodes = 1; /* nobody asks where it was: all is shared out anew */
  list.node = 0;
  list.tensors = empty ? 0 : list.tensors;
  list.count = empty ? 0 : list.count;
  lcomm_status status = write_list(&list, block);
  free(list.items);
  return status;
}

/* ------------------------------------------------------------------ giving */

/* Of a rank: *room receives a copy on all. */
static lcomm_status broadcast_block(lcomm_comm *comm, int rank, const lcomm_carry_block *block,
                                    lcomm_carry_block *room) {
  uint64_t size = rank == comm->rank ? block->size : 0;
  LCOMM_TRY(lcomm_call_broadcast_bytes(comm, &size, sizeof(size), rank));
  size_t words = (size_t)size / sizeof(float) + 1;
  room->bytes = size < SIZE_MAX - sizeof(float) ? calloc(words, sizeof(float)) : NULL;
  if (!room->bytes) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY,
                      "out of memory for %llu bytes that another rank remembers of tensors",
                      (unsigned long long)size);
  }
  room->size = (size_t)size;
  if (rank == comm->rank) {
    memcpy(room->bytes, block->bytes, block->size);
  }
  return lcomm_call_broadcast_bytes(comm, room->bytes, words * sizeof(float), rank);
}

lcomm_status lcomm_carry_give(lcomm_comm *comm, int rank, int heir, const lcomm_carry_block *block,
                              lcomm_carry_block *given) {
  lcomm_carry_block room = {.bytes = NULL};
  lcomm_status status = broadcast_block(comm, rank, block, &room);
  if (status == LCOMM_OK && comm->rank == heir) {
    *given = room;
    return LCOMM_OK;
  }
  free(room.bytes);
  return status;
}

/* ------------------------------------------------------------------ moving */

/* What a tensor was where it comes from. */
typedef struct lcomm_carry_row {
  lcomm_tensor *tensor;
  lcomm_bucket *bucket;
  uint64_t offset;
  lcomm_ef_parked state;
  lcomm_guarded guarded;
  bool frozen, planned;
} row;

static void take_out(lcomm_tensor *tensor, row *was) {
  *was = (row){.tensor = tensor,
               .bucket = tensor->bucket,
               .offset = tensor->offset,
               .state = tensor->state,
               .guarded = tensor->guarded,
               .frozen = tensor->frozen,
               .planned = tensor->planned};
  tensor->bucket = NULL;
  tensor->state = (lcomm_ef_parked){0};
  tensor->frozen = tensor->planned = false;
  lcomm_guarded_forget(&tensor->guarded);
}

static void pass_list(lcomm_comm *from, lcomm_comm *to) {
  lcomm_tensor_set *left = from->tensors, *right = to->tensors;
  right->list = left->list;
  right->count = right->pending = left->count;
  right->room = left->room;
  right->place.given = left->place.given;
  right->location = left->location;
  right->listener = left->listener;
  right->not_finite.last = left->not_finite.last;
  atomic_store(&right->moved, atomic_load(&left->moved));
  atomic_store(&right->sends_momentum, atomic_load(&left->sends_momentum));
  to->deferred.counts_steps = from->deferred.counts_steps;
  left->list = NULL;
  left->count = left->room = left->pending = 0;
  for (size_t i = 0; i < right->count; i++) {
    right->list[i]->comm = to;
    lcomm_handle_pass(right->list[i], to);
  }
}

lcomm_status lcomm_carry_move(lcomm_carry *it, lcomm_comm *from, lcomm_comm *to) {
  row *rows = calloc(from->tensors->count + 1, sizeof *rows);
  if (!rows) {
    return LCOMM_ERR_MEMORY;
  }
  *it = (lcomm_carry){.from = from, .to = to, .rows = rows, .count = from->tensors->count};
  if (lcomm_residuals_move(it) != LCOMM_OK) {
    free(rows);
    *it = (lcomm_carry){.to = NULL};
    return LCOMM_ERR_MEMORY;
  }
  lcomm_guard_free(from); /* which looks at the tensors */
  for (size_t i = 0; i < it->count; i++) {
    take_out(from->tensors->list[i], &rows[i]);
  }
  pass_list(from, to);
  return LCOMM_OK;
}

/* The buckets of `from` have stayed. */
void lcomm_carry_undo(lcomm_carry *it) {
  if (!it->to) {
    return;
  }
  lcomm_guard_free(it->to);
  lcomm_residuals_undo(it);
  for (size_t i = 0; i < it->count; i++) {
    lcomm_tensor_state_free(it->rows[i].tensor);
  }
  pass_list(it->to, it->from);
  for (size_t i = 0; i < it->count; i++) {
    const row *was = &it->rows[i];
    lcomm_tensor *tensor = was->tensor;
    tensor->bucket = was->bucket;
    tensor->offset = was->offset;
    tensor->state = was->state;
    tensor->guarded = was->guarded;
    tensor->guarded.share = NULL;
    tensor->frozen = was->frozen;
    tensor->planned = was->planned;
  }
  free(it->rows);
  *it = (lcomm_carry){.to = NULL};
}

void lcomm_carry_finish(lcomm_carry *it) {
  for (size_t i = 0; it->to && i < it->count; i++) {
    lcomm_ef_parked_free(it->from, it->from->tensors->location, &it->rows[i].state);
  }
  lcomm_residuals_finish(it);
  free(it->rows);
  *it = (lcomm_carry){.to = NULL};
}

/* ----------------------------------------------------------------- loading */

/* One block after the other, by broadcasts. */
typedef struct bringing {
  lcomm_comm *comm;
  const lcomm_carry_blocks *blocks;
  lcomm_carry_block room; /* of the block that is asked for */
} bringing;

static int count_blocks(const lcomm_carry_blocks *blocks, int ranks) {
  int count = 0;
  for (int rank = 0; rank < ranks; rank++) {
    count += (int)blocks->counts[rank];
  }
  return count;
}

static lcomm_status bring(void *context, int number, const uint8_t **bytes, size_t *size) {
  bringing *it = context;
  int rank = 0;
  for (; number >= (int)it->blocks->counts[rank]; rank++) {
    number -= (int)it->blocks->counts[rank];
  }
  free(it->room.bytes);
  it->room.bytes = NULL;
  const lcomm_carry_block *mine = rank == it->comm->rank ? &it->blocks->mine[number] : NULL;
  LCOMM_TRY(broadcast_block(it->comm, rank, mine, &it->room));
  *bytes = it->room.bytes;
  *size = it->room.size;
  return LCOMM_OK;
}

/* The next step plans them so, and parks what they have. */
void lcomm_carry_freeze(lcomm_carry *it) {
  for (size_t i = 0; i < it->count; i++) {
    if (it->rows[i].frozen) {
      it->rows[i].tensor->frozen = true;
      it->to->tensors->pending++;
    }
  }
}

lcomm_status lcomm_carry_bring(lcomm_comm *comm, const lcomm_carry_blocks *blocks, int ranks_before,
                               lcomm_carry_way *way) {
  bringing from_all = {.comm = comm, .blocks = blocks};
  lcomm_state_source source = {
      .bring = bring, .blocks = count_blocks(blocks, comm->size), .context = &from_all};
  lcomm_status status =
      source.blocks > 0 ? way(comm, "lcomm_shrink", &source, ranks_before) : LCOMM_OK;
  free(from_all.room.bytes);
  return status;
}

lcomm_status lcomm_carry_load(lcomm_carry *it, const lcomm_carry_blocks *blocks) {
  const lcomm_carry_held *held = it->from->changes.held;
  int ranks_before = held ? held->ranks_before : it->from->size;
  it->to->deferred.step = it->from->deferred.step;
  LCOMM_TRY(lcomm_carry_bring(it->to, blocks, ranks_before, lcomm_saved_state_bring));
  lcomm_carry_freeze(it);
  LCOMM_TRY(lcomm_enter(it->to));
  if (it->count > 0) {
    lcomm_expect_overlap(it->to);
  }
  lcomm_exit(it->to);
  return LCOMM_OK;
}
