/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Writing this rank's file. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/entry.h"
#include "libcomm/state.h"

const char *lcomm_state_file(int rank, int ranks, char name[LCOMM_STATE_FILE_MAX]) {
  snprintf(name, LCOMM_STATE_FILE_MAX, "rank-%05d-of-%05d.lcs", rank, ranks);
  return name;
}

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

static void write_header(const lcomm_comm *comm, float *owed, lcomm_file *file) {
  uint8_t bytes[LCOMM_STATE_HEADER_MAX];
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
  size_t size = lcomm_state_pack_header(&header, bytes);
  lcomm_file_write(file, bytes, size);
}

static void write_tensor(const lcomm_tensor *tensor, float *owed, lcomm_file *file) {
  static const uint8_t zeros[8];
  uint8_t bytes[LCOMM_STATE_RECORD_MAX];
  portion it = describe(tensor, owed);
  size_t size = lcomm_state_pack_record(&it.record, bytes);
  lcomm_file_write(file, bytes, size);
  lcomm_file_write(file, it.residual, it.record.n * sizeof(float));
  if (it.record.has_momentum) {
    lcomm_file_write(file, it.momentum, it.record.n * sizeof(float));
  }
  if (it.record.has_velocity) {
    lcomm_file_write(file, it.velocity, it.record.count * sizeof(float));
  }
  lcomm_file_write(file, zeros, lcomm_state_padding(&it.record));
}

/* Room for what is owed of one tensor at a time. */
static lcomm_status make_owed(const lcomm_comm *comm, float **owed) {
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

static lcomm_status save(const lcomm_comm *comm, const char *folder, float *owed, char *why) {
  lcomm_file file;
  char name[LCOMM_STATE_FILE_MAX];
  lcomm_status status = lcomm_folder_make(folder, why);
  if (status == LCOMM_OK) {
    status = lcomm_file_begin(&file, folder, lcomm_state_file(comm->rank, comm->size, name), why);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  write_header(comm, owed, &file);
  for (size_t i = 0; i < comm->tensor_count; i++) {
    write_tensor(comm->tensors[i], owed, &file);
  }
  return lcomm_file_finish(&file, why);
}

static lcomm_status save_to(lcomm_comm *comm, const char *folder) {
  char why[LCOMM_FILE_WHY_MAX] = "out of memory";
  float *owed = NULL;
  lcomm_status status = lcomm_comm_listen(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  if (!folder || !folder[0]) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "lcomm_state_save: no folder was given");
  }
  if (atomic_load(&comm->step_open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_state_save: a step is under way; call it between the steps");
  }
  status = make_owed(comm, &owed);
  if (status == LCOMM_OK) {
    status = save(comm, folder, owed, why);
  }
  free(owed);
  return status == LCOMM_OK ? LCOMM_OK : lcomm_refuse(comm, status, "lcomm_state_save: %s", why);
}

lcomm_status lcomm_state_save(lcomm_comm *comm, const char *folder) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_state_save: no communicator was given");
  }
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = save_to(comm, folder);
  lcomm_leave(comm);
  return status;
}
