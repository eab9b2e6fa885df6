/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The comparison of tensors: do all ranks have the same ones, and the same ones frozen? Made before
 * the first step, and again when tensors were added, frozen or unfrozen. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/text.h"
#include "libcomm/call/call.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/tensor/tensor_carry.h"

/* What is compared, as rank 0 broadcasts it. Multiples of 4 bytes. */
typedef struct tensor_row {
  char name[128];
  uint64_t count, rows, columns;
  uint32_t dtype, op, frozen, zero;
} tensor_row;

static void fill_row(const lcomm_tensor *tensor, tensor_row *row) {
  memset(row, 0, sizeof *row);
  snprintf(row->name, sizeof(row->name), "%s", tensor->name);
  row->count = tensor->count;
  row->rows = tensor->rows;
  row->columns = tensor->columns;
  row->dtype = (uint32_t)tensor->dtype;
  row->op = (uint32_t)tensor->op;
  row->frozen = tensor->frozen;
}

/* The number of this call does not count in the seeds of stochastic rounding. */
lcomm_status lcomm_tensors_call(lcomm_comm *comm, lcomm_call *call) {
  uint32_t before = comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS];
  lcomm_status status = lcomm_call_make(comm, call);
  comm->operations.seed_shift -= comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] - before;
  return status;
}

/* Before the first step the comparison is in the sequence space of calls, under the name of the
 * public call that makes it; later it is in that of buckets, because ranks that changed nothing
 * start theirs. */
static lcomm_status broadcast_bytes(lcomm_comm *comm, void *bytes, size_t size) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, bytes, bytes, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  if (comm->tensors->grouped) {
    call.op_kind = LCOMM_OP_KIND_TENSORS;
    return lcomm_tensors_call(comm, &call);
  }
  call.op_kind = comm->operations.inside == LCOMM_OP_KIND_CALL ? LCOMM_OP_KIND_COMPARE
                                                               : comm->operations.inside;
  return lcomm_call_make(comm, &call);
}

/* A row may come from another rank: its numbers may be anything. */
static const char *describe(const tensor_row *row, char *text, size_t size) {
  static const char *const operations[] = {"summed", "averaged", "smallest", "largest"};
  char shape[64] = "";
  if (row->rows > 0) {
    snprintf(shape, sizeof(shape), " in %llu rows of %llu", (unsigned long long)row->rows,
             (unsigned long long)row->columns);
  }
  snprintf(text, size, "'%.127s' of %llu %s%s, %s%s", row->name, (unsigned long long)row->count,
           lcomm_dtype_name((lcomm_dtype)row->dtype), shape,
           row->op <= LCOMM_MAX ? operations[row->op] : "unknown operation",
           row->frozen ? ", frozen" : "");
  return text;
}

static lcomm_status compare_rows(lcomm_comm *comm, const tensor_row *rows) {
  char who[96], ours[320], theirs[320];
  tensor_row other;
  for (size_t i = 0; i < comm->tensors->count; i++) {
    tensor_row mine;
    fill_row(comm->tensors->list[i], &mine);
    if (memcmp(&mine, &rows[i], sizeof(mine)) == 0) {
      continue;
    }
    other = rows[i];
    lcomm_text_sanitize(other.name, sizeof(other.name));
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "tensor number %zu is %s here, but %s on %s. All ranks must add the same "
                      "tensors in the same order, and freeze the same ones.",
                      i, describe(&mine, ours, sizeof(ours)),
                      describe(&other, theirs, sizeof(theirs)),
                      lcomm_comm_who(comm, 0, who, sizeof(who)));
  }
  return LCOMM_OK;
}

static lcomm_status compare(lcomm_comm *comm) {
  char who[96];
  uint64_t count = comm->tensors->count;
  lcomm_status status = broadcast_bytes(comm, &count, sizeof(count));
  if (status != LCOMM_OK || comm->size == 1) {
    return status;
  }
  if (count != comm->tensors->count) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "%zu tensors were added here, but %llu on %s. All ranks must add the same "
                      "tensors in the same order, and freeze the same ones.",
                      comm->tensors->count, (unsigned long long)count,
                      lcomm_comm_who(comm, 0, who, sizeof(who)));
  }
  tensor_row *rows = calloc(comm->tensors->count + 1, sizeof *rows);
  if (!rows) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %zu tensors",
                      comm->tensors->count);
  }
  for (size_t i = 0; i < comm->tensors->count; i++) {
    fill_row(comm->tensors->list[i], &rows[i]);
  }
  status = broadcast_bytes(comm, rows, comm->tensors->count * sizeof *rows);
  if (status == LCOMM_OK) {
    status = compare_rows(comm, rows);
  }
  free(rows);
  return status;
}

/* Unless they agree already. Collective; MISMATCH and transport errors, sticky. */
static lcomm_status compare_anew(lcomm_comm *comm) {
  bool same = comm->tensors->compared && comm->tensors->pending == 0;
  lcomm_status status = same ? LCOMM_OK : compare(comm);
  comm->tensors->compared = status == LCOMM_OK;
  return status;
}

/* -------------------------------------------------------------- planning */

bool lcomm_tensors_are_planned(const lcomm_comm *comm) {
  return comm->tensors->buckets && comm->tensors->compared && comm->tensors->pending == 0;
}

static lcomm_status plan(lcomm_comm *comm) {
  if (lcomm_tensors_are_planned(comm)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(compare_anew(comm));
  LCOMM_TRY(lcomm_carry_resume(comm));
  for (size_t i = 0; i < comm->tensors->count; i++) {
    comm->tensors->list[i]->planned = !comm->tensors->list[i]->frozen;
  }
  comm->tensors->pending = 0;
  return lcomm_buckets_plan(comm);
}

/* On a device memory is got meanwhile without the communicator's turn: no bucket starts before all
 * are whole, as the device's turn is taken. */
lcomm_status lcomm_tensors_plan(lcomm_comm *comm) {
  if (lcomm_tensors_are_planned(comm) || !lcomm_memory_is_on_device(comm->tensors->location)) {
    return plan(comm);
  }
  lcomm_device_turn_enter(comm);
  lcomm_status status = plan(comm);
  lcomm_device_turn_leave(comm);
  return status;
}
