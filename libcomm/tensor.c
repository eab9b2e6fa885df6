/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tensor calls of the public interface. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/bucket.h"

static lcomm_status check_new(lcomm_comm *comm, const char *name, const void *data, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op) {
  if (!name || !name[0] || strlen(name) >= sizeof(((lcomm_tensor *)NULL)->name)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add: a tensor needs a name of 1 to 127 bytes");
  }
  if ((!data && count > 0) || lcomm_dtype_size(dtype) == 0 ||
      (op != LCOMM_SUM && op != LCOMM_AVG) || count > SIZE_MAX / 16) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): bad data, count, type or operation", name);
  }
  if (comm->buckets || comm->step_open) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_add(%s): a step has begun; add all tensors before the first "
                        "lcomm_tensor_ready",
                        name);
  }
  for (size_t i = 0; i < comm->tensor_count; i++) {
    if (strcmp(comm->tensors[i]->name, name) == 0) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_tensor_add(%s): there is a tensor of this name already", name);
    }
  }
  return LCOMM_OK;
}

static bool make_room(lcomm_comm *comm) {
  if (comm->tensor_count < comm->tensor_room) {
    return true;
  }
  size_t room = comm->tensor_room * 2 + 64;
  lcomm_tensor **bigger = realloc(comm->tensors, room * sizeof(lcomm_tensor *));
  if (!bigger) {
    return false;
  }
  comm->tensors = bigger;
  comm->tensor_room = room;
  return true;
}

lcomm_status lcomm_tensor_add(lcomm_comm *comm, const char *name, void *data, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op, lcomm_tensor **tensor) {
  if (!comm || !tensor) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_tensor_add: a pointer is NULL");
  }
  lcomm_status status = check_new(comm, name, data, count, dtype, op);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_tensor *made = calloc(1, sizeof(*made));
  if (!made || !make_room(comm)) {
    free(made);
    return lcomm_refuse(comm, LCOMM_ERR_MEMORY, "out of memory for tensor %s", name);
  }
  snprintf(made->name, sizeof(made->name), "%s", name);
  made->data = data;
  made->count = count;
  made->dtype = dtype;
  made->op = op;
  comm->tensors[comm->tensor_count++] = made;
  *tensor = made;
  return LCOMM_OK;
}

lcomm_status lcomm_tensor_ready(lcomm_comm *comm, lcomm_tensor *tensor) {
  if (!comm || !tensor) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_tensor_ready: a pointer is NULL");
  }
  lcomm_status status = (lcomm_status)atomic_load(&comm->status);
  if (status != LCOMM_OK) {
    return status;
  }
  atomic_store(&comm->step_open, true);
  if (atomic_exchange(&tensor->ready, true)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "tensor %s was reported ready twice in one step; call lcomm_tensors_wait "
                        "between the steps",
                        tensor->name);
  }
  return LCOMM_OK;
}

/* ------------------------------------------------- comparing the tensors */

/* What is compared, as it is broadcast by rank 0. Multiples of 4 bytes. */
typedef struct tensor_row {
  char name[128];
  uint64_t count;
  uint32_t dtype, op;
} tensor_row;

static void fill_row(const lcomm_tensor *tensor, tensor_row *row) {
  memset(row, 0, sizeof(*row));
  snprintf(row->name, sizeof(row->name), "%s", tensor->name);
  row->count = tensor->count;
  row->dtype = (uint32_t)tensor->dtype;
  row->op = (uint32_t)tensor->op;
}

static lcomm_status broadcast_bytes(lcomm_comm *comm, void *bytes, size_t size) {
  return lcomm_broadcast(comm, bytes, size / sizeof(float), LCOMM_FLOAT32, 0);
}

static lcomm_status compare_rows(lcomm_comm *comm, const tensor_row *rows) {
  char who[96];
  for (size_t i = 0; i < comm->tensor_count; i++) {
    tensor_row mine;
    fill_row(comm->tensors[i], &mine);
    if (memcmp(&mine, &rows[i], sizeof(mine)) == 0) {
      continue;
    }
    return lcomm_fail(
        comm, LCOMM_ERR_MISMATCH,
        "tensor number %zu is '%s' of %llu %s here, but '%.127s' of %llu %s on %s. "
        "All ranks must add the same tensors in the same order.",
        i, mine.name, (unsigned long long)mine.count, lcomm_dtype_name((lcomm_dtype)mine.dtype),
        rows[i].name, (unsigned long long)rows[i].count,
        lcomm_dtype_name((lcomm_dtype)rows[i].dtype), lcomm_comm_who(comm, 0, who, sizeof(who)));
  }
  return LCOMM_OK;
}

static lcomm_status compare(lcomm_comm *comm) {
  char who[96];
  uint64_t count = comm->tensor_count;
  lcomm_status status = broadcast_bytes(comm, &count, sizeof(count));
  if (status != LCOMM_OK || comm->size == 1) {
    return status;
  }
  if (count != comm->tensor_count) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "%zu tensors were added here, but %llu on %s. All ranks must add the same "
                      "tensors in the same order.",
                      comm->tensor_count, (unsigned long long)count,
                      lcomm_comm_who(comm, 0, who, sizeof(who)));
  }
  tensor_row *rows = calloc(comm->tensor_count + 1, sizeof(*rows));
  if (!rows) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %zu tensors", comm->tensor_count);
  }
  for (size_t i = 0; i < comm->tensor_count; i++) {
    fill_row(comm->tensors[i], &rows[i]);
  }
  status = broadcast_bytes(comm, rows, comm->tensor_count * sizeof(*rows));
  if (status == LCOMM_OK) {
    status = compare_rows(comm, rows);
  }
  free(rows);
  return status;
}

lcomm_status lcomm_tensors_compare(lcomm_comm *comm) {
  lcomm_status status = comm->tensors_compared ? LCOMM_OK : compare(comm);
  comm->tensors_compared = status == LCOMM_OK;
  return status;
}

/* --------------------------------------------------------------- waiting */

static lcomm_status check_all_ready(lcomm_comm *comm) {
  for (size_t i = 0; i < comm->tensor_count; i++) {
    if (!atomic_load(&comm->tensors[i]->ready)) {
      return lcomm_refuse(comm, LCOMM_ERR_STATE,
                          "lcomm_tensors_wait: tensor %s has not been reported ready in this step",
                          comm->tensors[i]->name);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_tensors_wait(lcomm_comm *comm) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_tensors_wait: no communicator was given");
  }
  lcomm_status status = lcomm_comm_listen(comm);
  if (status != LCOMM_OK || comm->tensor_count == 0) {
    return status;
  }
  status = check_all_ready(comm);
  if (status == LCOMM_OK) {
    status = lcomm_tensors_compare(comm);
  }
  if (status == LCOMM_OK) {
    status = lcomm_buckets_start(comm);
  }
  for (size_t i = 0; status == LCOMM_OK && i < comm->bucket_count; i++) {
    status = lcomm_operations_wait(comm, &comm->buckets[i].over);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  for (size_t i = 0; i < comm->tensor_count; i++) {
    atomic_store(&comm->tensors[i]->ready, false);
  }
  comm->buckets_started = 0;
  comm->last_not_finite = comm->step_not_finite;
  comm->step_not_finite = 0;
  comm->step++;
  atomic_store(&comm->step_open, false);
  return LCOMM_OK;
}

uint64_t lcomm_tensors_not_finite(const lcomm_comm *comm) {
  return comm ? comm->last_not_finite : 0;
}

/* -------------------------------------------------------------- residuals */

lcomm_kept lcomm_tensor_kept(const lcomm_tensor *tensor, const lcomm_feedback_state *feedback) {
  lcomm_kept kept = {0, 0, 0};
  if (!feedback) {
    return kept;
  }
  uint64_t begin = feedback->first, end = feedback->first + feedback->count;
  uint64_t first = tensor->offset > begin ? tensor->offset : begin;
  uint64_t last = tensor->offset + tensor->count < end ? tensor->offset + tensor->count : end;
  if (first < last) {
    kept = (lcomm_kept){first - tensor->offset, last - first, first - begin};
  }
  return kept;
}

bool lcomm_tensor_owed(const lcomm_tensor *tensor, float *residual) {
  const lcomm_bucket *bucket = tensor->bucket;
  if (!bucket || !bucket->owed || bucket->comm->rank != 0) {
    return false;
  }
  float units = bucket->op == LCOMM_AVG ? (float)bucket->comm->size : 1.0f;
  for (uint64_t i = 0; i < tensor->count; i++) {
    residual[i] = units * bucket->owed[tensor->offset + i];
  }
  return true;
}

lcomm_status lcomm_tensor_residual(lcomm_comm *comm, const lcomm_tensor *tensor, float *residual) {
  if (!comm || !tensor || !residual) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_tensor_residual: a pointer is NULL");
  }
  if (atomic_load(&comm->step_open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_residual: a step is under way; call it between the steps");
  }
  if (lcomm_tensor_owed(tensor, residual)) {
    return LCOMM_OK;
  }
  memset(residual, 0, tensor->count * sizeof(float));
  const lcomm_feedback_state *feedback = tensor->bucket ? tensor->bucket->feedback : NULL;
  lcomm_kept kept = lcomm_tensor_kept(tensor, feedback);
  if (kept.n > 0) {
    memcpy(residual + kept.first, feedback->residual + kept.at, kept.n * sizeof(float));
  }
  return LCOMM_OK;
}
