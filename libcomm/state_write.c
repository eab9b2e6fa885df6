/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The bytes that this rank saves, to a file or to memory. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/state.h"

/* What this rank keeps of a tensor, with the memory it lies in. */
typedef struct portion {
  lcomm_state_tensor record;
  const float *residual, *momentum, *velocity;
} portion;

static void describe_kept(const lcomm_tensor *tensor, portion *it) {
  const lcomm_feedback_state *feedback = tensor->bucket->feedback;
  lcomm_kept kept = lcomm_tensor_kept(tensor, feedback);
  if (kept.n == 0) {
    return;
  }
  it->record.first = kept.first;
  it->record.n = kept.n;
  it->record.has_momentum = feedback->momentum != NULL;
  it->residual = feedback->residual + kept.at;
  it->momentum = feedback->momentum ? feedback->momentum + kept.at : NULL;
}

/* `owed` has room for the largest tensor, or is NULL when nothing is owed. */
static portion describe(const lcomm_tensor *tensor, float *owed) {
  portion it = {.record = {.dtype = (uint8_t)tensor->dtype,
                           .op = (uint8_t)tensor->op,
                           .count = tensor->count}};
  snprintf(it.record.name, sizeof(it.record.name), "%s", tensor->name);
  const lcomm_bucket *bucket = tensor->bucket;
  if (!bucket) {
    return it;
  }
  describe_kept(tensor, &it);
  if (owed && lcomm_tensor_owed(tensor, owed)) {
    it.record.first = 0;
    it.record.n = tensor->count;
    it.record.has_momentum = false;
    it.residual = owed;
  }
  if (bucket->velocity) {
    it.record.has_velocity = true;
    it.velocity = bucket->velocity + tensor->offset;
  }
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

static lcomm_state_header header_of(const lcomm_comm *comm, float *owed) {
  lcomm_state_header header = {.step = comm->step,
                               .rank = (uint32_t)comm->rank,
                               .ranks = (uint32_t)comm->size,
                               .nodes = (uint32_t)comm->topo.nodes,
                               .node = (uint32_t)comm->topo.node[comm->rank],
                               .sequence = comm->next[LCOMM_SERIES_BUCKETS] + comm->seed_shift,
                               .tensors = (uint32_t)comm->tensor_count};
  snprintf(header.policy, sizeof(header.policy), "%s", comm->policy_text);
  header.file_size = lcomm_state_header_size(&header) + LCOMM_STATE_CHECKSUM_SIZE;
  for (size_t i = 0; i < comm->tensor_count; i++) {
    portion it = describe(comm->tensors[i], owed);
    header.file_size += lcomm_state_tensor_size(&it.record);
  }
  return header;
}

static void write_tensor(const lcomm_tensor *tensor, float *owed, lcomm_state_sink *sink) {
  static const uint8_t zeros[8];
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  portion it = describe(tensor, owed);
  size_t size = lcomm_state_pack_record(&it.record, bytes);
  put(sink, bytes, size);
  put(sink, it.residual, it.record.n * sizeof(float));
  if (it.record.has_momentum) {
    put(sink, it.momentum, it.record.n * sizeof(float));
  }
  if (it.record.has_velocity) {
    put(sink, it.velocity, it.record.count * sizeof(float));
  }
  put(sink, zeros, lcomm_state_padding(&it.record));
}

/* Room for what is owed of one tensor at a time. */
lcomm_status lcomm_state_scratch(const lcomm_comm *comm, float **owed) {
  uint64_t most = 0;
  for (size_t i = 0; i < comm->tensor_count; i++) {
    const lcomm_tensor *tensor = comm->tensors[i];
    if (tensor->bucket && tensor->bucket->owed && tensor->count > most) {
      most = tensor->count;
    }
  }
  *owed = most > 0 ? malloc(most * sizeof(float)) : NULL;
  return most > 0 && !*owed ? LCOMM_ERR_MEMORY : LCOMM_OK;
}

uint64_t lcomm_state_written_size(const lcomm_comm *comm, float *scratch) {
  return header_of(comm, scratch).file_size;
}

void lcomm_state_write_to(const lcomm_comm *comm, float *scratch, lcomm_state_sink *sink) {
  uint8_t bytes[LCOMM_STATE_HEADER_MAX];
  lcomm_state_header header = header_of(comm, scratch);
  size_t size = lcomm_state_pack_header(&header, bytes);
  put(sink, bytes, size);
  for (size_t i = 0; i < comm->tensor_count; i++) {
    write_tensor(comm->tensors[i], scratch, sink);
  }
}
