/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes that this rank saves, to a file or to memory. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/feedback/checkpoint.h"

/* What this rank keeps of an item, with the memory it lies in. */
typedef struct portion {
  lcomm_state_tensor record;
  const float *residual, *momentum, *velocity, *basis;
} portion;

static bool has_guard(const lcomm_state_guard *guard) {
  return guard->rungs > 0 || guard->patience > 0 || guard->pays;
}

static portion begin_portion(const lcomm_ef_item *item) {
  portion it = {.record = {.dtype = (uint8_t)item->dtype,
                           .op = (uint8_t)item->op,
                           .of_calls = item->calls != NULL,
                           .of_scatters = item->ef && lcomm_ef_scatters(item->ef),
                           .calls = item->calls ? *item->calls : 0,
                           .has_guard = has_guard(&item->guard),
                           .guard = item->guard,
                           .count = item->count}};
  snprintf(it.record.name, sizeof(it.record.name), "%s", item->name);
  return it;
}

/* Elements first .. first+n, which lie at `at` of the feedback. */
static void add_shard(const lcomm_feedback_state *feedback, lcomm_ef_shard shard, portion *it) {
  if (shard.n == 0) {
    return;
  }
  it->record.first = shard.first;
  it->record.n = shard.n;
  it->record.has_momentum = feedback->momentum.now != NULL;
  it->residual = feedback->residual.now + shard.at;
  it->momentum = feedback->momentum.now ? feedback->momentum.now + shard.at : NULL;
}

/* ---------------------------------------------------------------- of tensors */

static void add_parked(const lcomm_ef_parked *state, portion *it) {
  it->record.first = state->first;
  it->record.n = state->count;
  it->record.has_momentum = state->momentum != NULL;
  it->residual = state->residual;
  it->momentum = state->momentum;
}

static void add_basis(const lcomm_ef_item *item, portion *it) {
  const lcomm_ef *ef = item->ef;
  uint64_t count = ef ? 0 : item->parked->basis_count, place = 0;
  if (ef) {
    place = lcomm_ef_lowrank_basis(ef, item->offset, &count);
  }
  const float *basis = ef ? ef->state.basis.now : item->parked->basis;
  if (basis && count > 0) {
    unsigned rank = ef ? ef->lowrank.rank : item->parked->rank;
    it->record.shape = (lcomm_state_basis){rank, count / rank};
    it->basis = basis + place;
  }
}

static const float *at(const float *values, uint64_t offset) {
  return values ? values + offset : NULL;
}

static const float *carried_of(const lcomm_ef_item *item) {
  return item->ef ? at(item->ef->state.carried, item->offset) : item->parked->carried;
}

/* What is carried is the same on all ranks: the first one answers for it, with a residual. */
static portion describe_tensor(const lcomm_ef_list *list, const lcomm_ef_item *item,
                               float *scratch) {
  const lcomm_ef *ef = item->ef;
  const float *carried = list->rank == 0 ? carried_of(item) : NULL;
  float units = item->op == LCOMM_AVG ? (float)list->comm->size : 1.0f;
  portion it = begin_portion(item);
  if (ef) {
    const lcomm_feedback_state *feedback = ef->state.feedback;
    add_shard(feedback, lcomm_ef_shard_of(feedback, item->offset, item->count), &it);
  } else {
    add_parked(item->parked, &it);
  }
  if (carried) {
    it.record.first = 0;
    it.record.n = item->count;
    it.record.has_momentum = false;
    it.residual = scratch;
    for (uint64_t i = 0; i < item->count; i++) {
      scratch[i] = units * carried[i];
    }
  }
  it.velocity = ef ? at(ef->state.velocity.now, item->offset) : item->parked->velocity;
  it.record.has_velocity = it.velocity != NULL;
  add_basis(item, &it);
  return it;
}

static void put(lcomm_state_sink *sink, const void *bytes, uint64_t size) {
  if (sink->file) {
    lcomm_file_write(sink->file, bytes, (size_t)size);
  } else if (size > 0) {
    memcpy(sink->bytes + sink->at, bytes, (size_t)size);
    sink->at += (size_t)size;
  }
}

static void write_portion(const portion *it, lcomm_state_sink *sink) {
  static const uint8_t zeros[8];
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  size_t size = lcomm_state_pack_record(&it->record, bytes);
  put(sink, bytes, size);
  put(sink, it->residual, it->record.n * sizeof(float));
  if (it->record.has_momentum) {
    put(sink, it->momentum, it->record.n * sizeof(float));
  }
  if (it->record.has_velocity) {
    put(sink, it->velocity, lcomm_state_velocity_count(&it->record) * sizeof(float));
  }
  put(sink, it->basis, lcomm_state_basis_count(&it->record) * sizeof(float));
  put(sink, zeros, lcomm_state_padding(&it->record));
}

/* ---------------------------------------------------------------- of calls */

/* Without error feedback: what is carried to the result, in units of a residual, and the momentum
 * of the results. Of an all-reduce one rank answers for what is carried. */
static portion describe_result(const lcomm_ef_item *item, float *scratch) {
  const lcomm_ef *ef = item->ef;
  const lcomm_ef_state *state = &ef->state;
  portion it = begin_portion(item);
  bool scatters = lcomm_ef_scatters(ef);
  if (state->carried ? scatters || ef->comm->rank == 0 : scatters && state->velocity.now) {
    it.record.first = ef->result.first;
    it.record.n = ef->result.count;
    it.residual = scratch;
    for (uint64_t i = 0; i < it.record.n; i++) {
      scratch[i] = state->carried ? lcomm_ef_units(ef) * state->carried[i] : 0;
    }
  }
  it.record.has_velocity = state->velocity.now && (!scatters || ef->result.count > 0);
  it.velocity = state->velocity.now;
  return it;
}

typedef void visitor(const portion *it, void *context);

/* All records of calls, at least one. */
static void visit_calls(const lcomm_ef_item *item, float *scratch, visitor *visit, void *context) {
  const lcomm_feedback_state *feedback = item->ef->state.feedback;
  bool any = false;
  for (int i = 0; i < lcomm_ef_part_count(item->ef); i++) {
    lcomm_span part = lcomm_ef_part(item->ef, feedback, i);
    if (part.count > 0) {
      portion it = begin_portion(item);
      lcomm_ef_shard shard = {part.first, part.count, part.first - feedback->first};
      add_shard(feedback, shard, &it);
      visit(&it, context);
      any = true;
    }
  }
  if (!any) {
    portion it = describe_result(item, scratch);
    visit(&it, context);
  }
}

/* ------------------------------------------------------------------- whole */

static void visit_all(const lcomm_ef_list *list, float *scratch, visitor *visit, void *context) {
  for (size_t i = 0; i < list->tensors; i++) {
    portion it = describe_tensor(list, &list->items[i], scratch);
    visit(&it, context);
  }
  for (size_t i = list->tensors; i < list->count; i++) {
    visit_calls(&list->items[i], scratch, visit, context);
  }
}

lcomm_status lcomm_state_scratch(const lcomm_ef_list *list, float **scratch) {
  uint64_t most = 0;
  for (size_t i = 0; i < list->count; i++) {
    const lcomm_ef_item *it = &list->items[i];
    bool needs =
        it->calls ? it->ef->state.carried || it->ef->state.velocity.now : carried_of(it) != NULL;
    uint64_t count = it->calls ? it->ef->result.count : it->count;
    most = needs && count > most ? count : most;
  }
  *scratch = most > 0 ? malloc(most * sizeof(float)) : NULL;
  return most > 0 && !*scratch ? LCOMM_ERR_MEMORY : LCOMM_OK;
}

static void count_portion(const portion *it, void *context) {
  lcomm_state_header *header = context;
  header->file_size += lcomm_state_tensor_size(&it->record);
  header->tensors++;
}

static lcomm_state_header header_of(const lcomm_ef_list *list, float *scratch) {
  const lcomm_comm *comm = list->comm;
  lcomm_state_header header = {.version = LCOMM_STATE_VERSION,
                               .step = comm->deferred.step,
                               .rank = (uint32_t)list->rank,
                               .ranks = (uint32_t)list->ranks,
                               .nodes = (uint32_t)list->nodes,
                               .node = (uint32_t)list->node,
                               .sequence = comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] +
                                           comm->operations.seed_shift};
  snprintf(header.policy, sizeof(header.policy), "%s", comm->settings.policy_text);
  header.file_size = lcomm_state_header_size(&header) + LCOMM_STATE_CHECKSUM_SIZE;
  visit_all(list, scratch, count_portion, &header);
  return header;
}

static void write_visited(const portion *it, void *context) {
  write_portion(it, context);
}

uint64_t lcomm_state_written_size(const lcomm_ef_list *list, float *scratch) {
  return header_of(list, scratch).file_size;
}

void lcomm_state_write_to(const lcomm_ef_list *list, float *scratch, lcomm_state_sink *sink) {
  uint8_t bytes[LCOMM_STATE_HEADER_MAX];
  lcomm_state_header header = header_of(list, scratch);
  size_t size = lcomm_state_pack_header(&header, bytes);
  put(sink, bytes, size);
  visit_all(list, scratch, write_visited, sink);
}
