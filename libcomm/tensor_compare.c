/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Do all ranks have the same tensors? Asked once, before the first step. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/text.h"
#include "libcomm/bucket.h"

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

/* A row may come from another rank: its numbers may be anything. */
static const char *describe(const tensor_row *row, char *text, size_t size) {
  static const char *const operations[] = {"summed", "averaged", "smallest", "largest"};
  snprintf(text, size, "'%.127s' of %llu %s, %s", row->name, (unsigned long long)row->count,
           lcomm_dtype_name((lcomm_dtype)row->dtype),
           row->op <= LCOMM_MAX ? operations[row->op] : "unknown operation");
  return text;
}

static lcomm_status compare_rows(lcomm_comm *comm, const tensor_row *rows) {
  char who[96], ours[256], theirs[256];
  tensor_row other;
  for (size_t i = 0; i < comm->tensor_count; i++) {
    tensor_row mine;
    fill_row(comm->tensors[i], &mine);
    if (memcmp(&mine, &rows[i], sizeof(mine)) == 0) {
      continue;
    }
    other = rows[i];
    lcomm_text_sanitize(other.name, sizeof(other.name));
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "tensor number %zu is %s here, but %s on %s. All ranks must add the same "
                      "tensors in the same order.",
                      i, describe(&mine, ours, sizeof(ours)),
                      describe(&other, theirs, sizeof(theirs)),
                      lcomm_comm_who(comm, 0, who, sizeof(who)));
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

/* Loading a state compares, too: its operations stay its own. */
static lcomm_status compare_inside(lcomm_comm *comm) {
  lcomm_purpose before = comm->inside;
  comm->inside = before == LCOMM_PURPOSE_CALL ? LCOMM_PURPOSE_COMPARE : before;
  lcomm_status status = compare(comm);
  comm->inside = before;
  return status;
}

lcomm_status lcomm_tensors_compare(lcomm_comm *comm) {
  lcomm_status status = comm->tensors_compared ? LCOMM_OK : compare_inside(comm);
  comm->tensors_compared = status == LCOMM_OK;
  return status;
}
