/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/residual_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/shards/shards.h"
#include "libcomm/tensor/residual_quorum.h"
#include "libcomm/tensor/residual_staging.h"

/* ---------------------------------------------------------- life cycle */

static bool is_known(const lcomm_comm *comm, const char *name) {
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    if (strcmp(it->name, name) == 0) {
      return true;
    }
  }
  return false;
}

static lcomm_status check_name(lcomm_comm *comm, const char *name) {
  if (!name) {
    return LCOMM_OK;
  }
  if (!name[0] || strlen(name) >= LCOMM_RESIDUAL_NAME_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: a name has 1 to %d bytes, this one %zu",
                        LCOMM_RESIDUAL_NAME_MAX - 1, strlen(name));
  }
  if (is_known(comm, name)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: there is a residual '%s' already; a name belongs "
                        "to one residual",
                        name);
  }
  return LCOMM_OK;
}

static lcomm_status check_new(lcomm_comm *comm, const char *name, uint64_t count, lcomm_op op) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (op != LCOMM_SUM && op != LCOMM_AVG) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: %d is no operation with error feedback; use "
                        "LCOMM_SUM or LCOMM_AVG",
                        (int)op);
  }
  if (count > LCOMM_VECTOR_SIZE_MAX / sizeof(float)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: %llu float32 elements are more than fits into "
                        "memory",
                        (unsigned long long)count);
  }
  return check_name(comm, name);
}

/* Of a reduce-scatter the result is this rank's part. */
static void take_parts(lcomm_residual *residual, uint64_t *counts) {
  lcomm_ef *ef = &residual->ef;
  residual->part_counts = counts;
  ef->result = lcomm_span_whole(0, ef->request.count);
  if (!counts) {
    return;
  }
  for (int i = 0; i < ef->comm->rank; i++) {
    ef->result.first += counts[i];
  }
  ef->result.count = counts[ef->comm->rank];
  ef->request.part_counts = counts;
  ef->request.collective = LCOMM_COLLECTIVE_REDUCE_SCATTERV;
}

void lcomm_residual_place(lcomm_residual *residual, lcomm_comm *comm, uint64_t *part_counts) {
  const lcomm_plan_request *before = &residual->ef.request;
  residual->ef = (lcomm_ef){.comm = comm,
                            .request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                        .count = before->count,
                                        .dtype = LCOMM_FLOAT32,
                                        .op = before->op,
                                        .error_feedback = true},
                            .keeps_all = !part_counts && before->count > 0 &&
                                         lcomm_shards_sum_calls(comm->deferred.shards)};
  take_parts(residual, part_counts);
  lcomm_residual_set_policy(residual);
}

void lcomm_residual_set_number(lcomm_residual *residual, uint64_t number) {
  residual->number = number;
  snprintf(residual->key, sizeof(residual->key), "%llu", (unsigned long long)number);
}

static void link_residual(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  lcomm_residual_set_number(residual, ++comm->residuals->made);
  residual->next = comm->residuals->first;
  if (residual->next) {
    residual->next->previous = residual;
  }
  comm->residuals->first = residual;
}

static lcomm_status create(lcomm_comm *comm, const char *name, uint64_t count,
                           const uint64_t *counts, lcomm_op op, lcomm_residual **residual) {
  LCOMM_TRY(check_new(comm, name, count, op));
  size_t parts_size = counts ? (size_t)comm->size * sizeof *counts : 0;
  uint64_t *parts = counts ? malloc(parts_size) : NULL;
  lcomm_residual *made = calloc(1, sizeof *made);
  if (!made || (counts && !parts) || !lcomm_handle_add(made, comm)) {
    free(parts);
    free(made);
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a residual");
  }
  if (counts) {
    memcpy(parts, counts, parts_size);
  }
  snprintf(made->name, sizeof(made->name), "%s", name ? name : "");
  made->ef.request = (lcomm_plan_request){.count = count, .op = op};
  lcomm_residual_place(made, comm, parts);
  link_residual(made);
  *residual = made;
  return LCOMM_OK;
}

static lcomm_status enter_and_create(lcomm_comm *comm, const char *name, uint64_t count,
                                     const uint64_t *counts, lcomm_op op,
                                     lcomm_residual **residual) {
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = create(comm, name, count, counts, op, residual);
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_residual_create(lcomm_comm *comm, uint64_t count, lcomm_op op,
                                   lcomm_residual **residual) {
  if (!comm || !residual) {
    return lcomm_refuse_null(comm, "lcomm_residual_create", "residual");
  }
  return enter_and_create(comm, NULL, count, NULL, op, residual);
}

lcomm_status lcomm_residual_create_named(lcomm_comm *comm, const char *name, uint64_t count,
                                         lcomm_op op, lcomm_residual **residual) {
  if (!comm || !name || !residual) {
    return lcomm_refuse_null(comm, "lcomm_residual_create_named", name ? "residual" : "name");
  }
  return enter_and_create(comm, name, count, NULL, op, residual);
}

lcomm_status lcomm_residual_create_scatter(lcomm_comm *comm, const char *name,
                                           const uint64_t *counts, lcomm_op op,
                                           lcomm_residual **residual) {
  if (!comm || !counts || !residual) {
    return lcomm_refuse_null(comm, "lcomm_residual_create_scatter", counts ? "residual" : "counts");
  }
  uint64_t count = 0;
  for (int i = 0; i < comm->size; i++) {
    count = counts[i] < UINT64_MAX - count ? count + counts[i] : UINT64_MAX;
  }
  return enter_and_create(comm, name, count, counts, op, residual);
}

static void free_residual(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  if (residual->previous) {
    residual->previous->next = residual->next;
  } else {
    comm->residuals->first = residual->next;
  }
  if (residual->next) {
    residual->next->previous = residual->previous;
  }
  lcomm_handle_remove(residual);
  lcomm_residual_guard_free(residual);
  lcomm_residual_quorum_retire(residual);
  lcomm_residual_staging_free(residual);
  lcomm_ef_free(&residual->ef);
  free(residual->part_counts);
  free(residual);
}

lcomm_status lcomm_residual_set_make(lcomm_comm *comm) {
  comm->residuals = calloc(1, sizeof *comm->residuals);
  return comm->residuals ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

void lcomm_residual_set_free(lcomm_comm *comm) {
  while (comm->residuals && comm->residuals->first) {
    free_residual(comm->residuals->first);
  }
  if (comm->residuals) {
    lcomm_residual_quorums_free_retired(comm);
  }
  while (comm->residuals && comm->residuals->left) {
    lcomm_residual_left *left = comm->residuals->left;
    comm->residuals->left = left->next;
    lcomm_ef_free(&left->ef);
    free(left->part_counts);
    free(left);
  }
  free(comm->residuals);
  comm->residuals = NULL;
}

/* Nothing says on which communicator one that does not live did. */
lcomm_status lcomm_residual_check_lives(const lcomm_residual *residual, const char *call) {
  if (residual && lcomm_handle_owner(residual)) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                            residual ? "%s: the residual is none that lives: it was never made, or "
                                       "it or its communicator was destroyed"
                                     : "%s: no residual was given",
                            call);
}

lcomm_status lcomm_residual_join(const lcomm_residual *residual) {
  lcomm_residual *joined = (lcomm_residual *)(uintptr_t)residual; /* whose call is over then */
  return residual->left.internal ? lcomm_wait(residual->ef.comm, &joined->left) : LCOMM_OK;
}

lcomm_status lcomm_residuals_join(const lcomm_comm *comm) {
  lcomm_status status = LCOMM_OK;
  for (const lcomm_residual *it = comm->residuals->first; it && status == LCOMM_OK; it = it->next) {
    status = lcomm_residual_join(it);
  }
  return status;
}

lcomm_status lcomm_residual_check_idle(const lcomm_residual *residual, const char *call) {
  if (!residual->in_flight) {
    return LCOMM_OK;
  }
  return lcomm_refuse(residual->ef.comm, LCOMM_ERR_STATE,
                      "%s: residual %llu of %llu elements has a call in flight; wait for its "
                      "request first",
                      call, (unsigned long long)residual->number,
                      (unsigned long long)residual->ef.request.count);
}

lcomm_status lcomm_residual_destroy(lcomm_residual *residual) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_destroy"));
  lcomm_comm *comm = residual->ef.comm;
  LCOMM_TRY(lcomm_enter(comm));
  (void)lcomm_residual_join(residual); /* a failure is the communicator's */
  lcomm_status status = lcomm_residual_check_idle(residual, "lcomm_residual_destroy");
  if (status == LCOMM_OK) {
    free_residual(residual);
  }
  lcomm_exit(comm);
  return status;
}
