/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes that this rank saves, to a file or to memory. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/tensor/checkpoint.h"
#include "libcomm/tensor/residual.h"

/* What this rank keeps of a tensor, with the memory it lies in. */
typedef struct portion {
  lcomm_state_tensor record;
  const float *residual, *momentum, *velocity;
} portion;

static void describe_kept(const lcomm_tensor *tensor, portion *it) {
  const lcomm_feedback_state *feedback = tensor->bucket->ef.state.feedback;
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, feedback);
  if (kept.n == 0) {
    return;
  }
  it->record.first = kept.first;
  it->record.n = kept.n;
  it->record.has_momentum = feedback->momentum != NULL;
  it->residual = feedback->residual + kept.at;
  it->momentum = feedback->momentum ? feedback->momentum + kept.at : NULL;
}

static void describe_frozen(const lcomm_tensor_state *state, portion *it) {
  it->record.first = state->first;
  it->record.n = state->count;
  it->record.has_momentum = state->momentum != NULL;
  it->residual = state->residual;
  it->momentum = state->momentum;
}

/* `carried` has room for the largest tensor, or is NULL when nothing is carried. */
static portion describe(const lcomm_tensor *tensor, float *carried) {
  portion it = {.record = {.dtype = (uint8_t)tensor->dtype,
                           .op = (uint8_t)tensor->op,
                           .count = tensor->count}};
  snprintf(it.record.name, sizeof(it.record.name), "%s", tensor->name);
  const lcomm_bucket *bucket = tensor->bucket;
  if (bucket) {
    describe_kept(tensor, &it);
  } else {
    describe_frozen(&tensor->state, &it);
  }
  if (carried && lcomm_tensor_carried(tensor, carried)) {
    it.record.first = 0;
    it.record.n = tensor->count;
    it.record.has_momentum = false;
    it.residual = carried;
  }
  if (bucket && bucket->ef.state.velocity) {
    it.velocity = bucket->ef.state.velocity + tensor->offset;
  } else if (!bucket) {
    it.velocity = tensor->state.velocity;
  }
  it.record.has_velocity = it.velocity != NULL;
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
  put(sink, zeros, lcomm_state_padding(&it->record));
}

/* ---------------------------------------------------------------- of calls */

static portion begin_calls(const lcomm_residual *residual) {
  portion it = {.record = {.dtype = LCOMM_FLOAT32,
                           .op = (uint8_t)residual->ef.request.op,
                           .of_calls = true,
                           .of_scatters = residual->part_counts != NULL,
                           .calls = residual->calls,
                           .count = residual->ef.request.count}};
  snprintf(it.record.name, sizeof(it.record.name), "%s", residual->name);
  return it;
}

static portion describe_part(const lcomm_residual *residual, lcomm_span part) {
  const lcomm_feedback_state *feedback = residual->ef.state.feedback;
  portion it = begin_calls(residual);
  if (part.count > 0) {
    it.record.first = part.first;
    it.record.n = part.count;
    it.record.has_momentum = feedback->momentum != NULL;
    it.residual = feedback->residual + (part.first - feedback->first);
    it.momentum =
        it.record.has_momentum ? feedback->momentum + (part.first - feedback->first) : NULL;
  }
  return it;
}

/* Without error feedback: what is carried to the result, in units of a residual, and the momentum
 * of the results. Of an all-reduce one rank answers for what is carried. */
static portion describe_result(const lcomm_residual *residual, float *scratch) {
  portion it = begin_calls(residual);
  bool scatters = residual->part_counts != NULL;
  float units = residual->ef.request.op == LCOMM_AVG ? (float)residual->ef.comm->size : 1.0f;
  if (residual->ef.state.carried ? scatters || residual->ef.comm->rank == 0
                                 : scatters && residual->ef.state.velocity) {
    it.record.first = residual->ef.result.first;
    it.record.n = residual->ef.result.count;
    it.residual = scratch;
    for (uint64_t i = 0; i < it.record.n; i++) {
      scratch[i] = residual->ef.state.carried ? units * residual->ef.state.carried[i] : 0;
    }
  }
  it.record.has_velocity =
      residual->ef.state.velocity && (!scatters || residual->ef.result.count > 0);
  it.velocity = residual->ef.state.velocity;
  return it;
}

typedef void visitor(const portion *it, void *context);

/* All records of a residual, at least one. */
static void visit_calls(const lcomm_residual *residual, float *scratch, visitor *visit,
                        void *context) {
  bool any = false;
  for (int i = 0; i < lcomm_ef_part_count(&residual->ef); i++) {
    lcomm_span part = lcomm_ef_part(&residual->ef, residual->ef.state.feedback, i);
    if (part.count > 0) {
      portion it = describe_part(residual, part);
      visit(&it, context);
      any = true;
    }
  }
  if (!any) {
    portion it = describe_result(residual, scratch);
    visit(&it, context);
  }
}

/* The list has the newest first. */
static void visit_all_calls(const lcomm_comm *comm, float *scratch, visitor *visit, void *context) {
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (it->name[0]) {
      visit_calls(it, scratch, visit, context);
    }
  }
}

/* ------------------------------------------------------------------- whole */

static void visit_all(const lcomm_comm *comm, float *scratch, visitor *visit, void *context) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    portion it = describe(comm->tensors->list[i], scratch);
    visit(&it, context);
  }
  visit_all_calls(comm, scratch, visit, context);
}

lcomm_status lcomm_state_scratch(const lcomm_comm *comm, float **scratch) {
  uint64_t most = 0;
  for (size_t i = 0; i < comm->tensors->count; i++) {
    const lcomm_tensor *tensor = comm->tensors->list[i];
    bool owes =
        tensor->bucket ? tensor->bucket->ef.state.carried != NULL : tensor->state.carried != NULL;
    if (owes && tensor->count > most) {
      most = tensor->count;
    }
  }
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    bool needs = it->name[0] && (it->ef.state.carried || it->ef.state.velocity);
    most = needs && it->ef.result.count > most ? it->ef.result.count : most;
  }
  *scratch = most > 0 ? malloc(most * sizeof(float)) : NULL;
  return most > 0 && !*scratch ? LCOMM_ERR_MEMORY : LCOMM_OK;
}

static void count_portion(const portion *it, void *context) {
  lcomm_state_header *header = context;
  header->file_size += lcomm_state_tensor_size(&it->record);
  header->tensors++;
}

static lcomm_state_header header_of(const lcomm_comm *comm, float *scratch) {
  lcomm_state_header header = {.step = comm->deferred.step,
                               .rank = (uint32_t)comm->rank,
                               .ranks = (uint32_t)comm->size,
                               .nodes = (uint32_t)comm->topo.nodes,
                               .node = (uint32_t)comm->topo.node[comm->rank],
                               .sequence = comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] +
                                           comm->operations.seed_shift};
  snprintf(header.policy, sizeof(header.policy), "%s", comm->settings.policy_text);
  header.file_size = lcomm_state_header_size(&header) + LCOMM_STATE_CHECKSUM_SIZE;
  visit_all(comm, scratch, count_portion, &header);
  return header;
}

static void write_visited(const portion *it, void *context) {
  write_portion(it, context);
}

uint64_t lcomm_state_written_size(const lcomm_comm *comm, float *scratch) {
  return header_of(comm, scratch).file_size;
}

void lcomm_state_write_to(const lcomm_comm *comm, float *scratch, lcomm_state_sink *sink) {
  uint8_t bytes[LCOMM_STATE_HEADER_MAX];
  lcomm_state_header header = header_of(comm, scratch);
  size_t size = lcomm_state_pack_header(&header, bytes);
  put(sink, bytes, size);
  visit_all(comm, scratch, write_visited, sink);
}
