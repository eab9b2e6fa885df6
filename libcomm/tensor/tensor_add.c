/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A tensor is added: what is asked of it, and its factors. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/device/memory_location.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/handles.h"
#include "libcomm/tensor/tensor_mirror.h"

static lcomm_status check_data(lcomm_comm *comm, const lcomm_tensor *tensor) {
  size_t element = lcomm_dtype_size(tensor->dtype);
  if (element == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "lcomm_tensor_add(%s): %d is no data type",
                        tensor->name, (int)tensor->dtype);
  }
  if (tensor->op != LCOMM_SUM && tensor->op != LCOMM_AVG) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): %d is no operation of tensors; use LCOMM_SUM or "
                        "LCOMM_AVG, and lcomm_allreduce for the smallest or largest",
                        tensor->name, (int)tensor->op);
  }
  if ((!tensor->data && tensor->count > 0) ||
      tensor->count > LCOMM_VECTOR_SIZE_MAX / sizeof(double)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): bad data or count: %llu elements at %p",
                        tensor->name, (unsigned long long)tensor->count, tensor->data);
  }
  if ((uintptr_t)tensor->data % element != 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): its address is no multiple of the %zu bytes of a %s",
                        tensor->name, element, lcomm_dtype_name(tensor->dtype));
  }
  if ((comm->settings.policy.momentum > 0 || comm->settings.policy.adam.onebit) &&
      tensor->dtype == LCOMM_FLOAT64 && lcomm_plan_op(tensor->op) == LCOMM_SUM) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add(%s): the policy's momentum is float32, so float64 sums "
                        "cannot have it; add it as float32, or leave momentum to the optimiser",
                        tensor->name);
  }
  return LCOMM_OK;
}

/* The results of two tensors cannot both be in one place. */
static lcomm_status check_alone(lcomm_comm *comm, const lcomm_tensor *tensor) {
  for (size_t i = 0; i < comm->tensors->count; i++) {
    const lcomm_tensor *other = comm->tensors->list[i];
    if (lcomm_tensors_overlap(tensor, other)) {
      return lcomm_refuse(
          comm, LCOMM_ERR_ARGUMENT,
          "lcomm_tensor_add(%s): its buffer overlaps that of tensor %s; each tensor "
          "needs a buffer of its own",
          tensor->name, other->name);
    }
  }
  return LCOMM_OK;
}

/* Owners of pieces sum on the host. */
static lcomm_memory_location summed_in(const lcomm_comm *comm, lcomm_memory_location given) {
  lcomm_memory_location host = {.kind = LCOMM_MEMORY_HOST};
  return comm->deferred.shards ? host : given;
}

/* Buckets are the same on all ranks, whatever is where, so each is in one place. */
static lcomm_memory_location locate(lcomm_comm *comm, const lcomm_tensor *tensor) {
  unsigned depth = lcomm_turn_give(comm);
  lcomm_memory_location location = lcomm_memory_location_of(tensor->data, tensor->count);
  lcomm_turn_take(comm, depth);
  return location;
}

static lcomm_status check_place(lcomm_comm *comm, const lcomm_tensor *tensor) {
  char one[LCOMM_MEMORY_LOCATION_NAME_MAX], other[LCOMM_MEMORY_LOCATION_NAME_MAX];
  lcomm_memory_location location = locate(comm, tensor);
  for (size_t i = 0; i < comm->tensors->count; i++) {
    const lcomm_tensor *before = comm->tensors->list[i];
    if (tensor->count > 0 && before->count > 0 &&
        !lcomm_memory_is_beside(location, comm->tensors->place.given)) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_tensor_add(%s): it is %s, tensor %s is %s; put all tensors of a "
                          "communicator into one place",
                          tensor->name, lcomm_memory_location_name(location, one), before->name,
                          lcomm_memory_location_name(comm->tensors->place.given, other));
    }
  }
  LCOMM_TRY(lcomm_quorum_check(comm, tensor, location));
  if (lcomm_memory_is_on_device(location)) {
    comm->tensors->place.given = location;
    comm->tensors->location = summed_in(comm, location);
  }
  return LCOMM_OK;
}

static lcomm_status check_new(lcomm_comm *comm, const lcomm_tensor *tensor) {
  if (comm->deferred.open) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_add(%s): a step is in flight; add tensors between the steps",
                        tensor->name);
  }
  for (size_t i = 0; i < comm->tensors->count; i++) {
    if (strcmp(comm->tensors->list[i]->name, tensor->name) == 0) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                          "lcomm_tensor_add(%s): there is a tensor of this name already",
                          tensor->name);
    }
  }
  return check_data(comm, tensor);
}

static bool make_room(lcomm_comm *comm) {
  if (comm->tensors->count < comm->tensors->room) {
    return true;
  }
  size_t room = comm->tensors->room * 2 + 64;
  lcomm_tensor **bigger = realloc(comm->tensors->list, room * sizeof(lcomm_tensor *));
  if (!bigger) {
    return false;
  }
  comm->tensors->list = bigger;
  comm->tensors->room = room;
  return true;
}

static lcomm_status add(lcomm_comm *comm, const char *name, lcomm_tensor *wanted,
                        lcomm_tensor **tensor) {
  if (!name || !name[0] || strlen(name) >= sizeof(wanted->name)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add: a tensor needs a name of 1 to 127 bytes");
  }
  snprintf(wanted->name, sizeof(wanted->name), "%s", name);
  LCOMM_TRY(check_new(comm, wanted));
  LCOMM_TRY(check_alone(comm, wanted));
  LCOMM_TRY(check_place(comm, wanted));
  lcomm_tensor *made = malloc(sizeof *made);
  if (!made || !make_room(comm) || !lcomm_tensor_mirror_make(comm, wanted) ||
      !lcomm_handle_add(made, comm)) {
    lcomm_tensor_mirror_free(wanted);
    free(made);
    LCOMM_TRY(lcomm_enter(comm)); /* other ranks go on with one tensor more */
    lcomm_status status = lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for tensor %s", name);
    lcomm_exit(comm);
    return status;
  }
  *made = *wanted;
  comm->tensors->list[comm->tensors->count++] = made;
  comm->tensors->compared = false;
  comm->tensors->pending++;
  comm->deferred.counts_steps = true;
  *tensor = made;
  return LCOMM_OK;
}

static lcomm_status enter_and_add(lcomm_comm *comm, const char *name, lcomm_tensor *wanted,
                                  lcomm_tensor **tensor) {
  LCOMM_TRY(lcomm_enter(comm));
  wanted->comm = comm;
  wanted->before = wanted->after = 1;
  lcomm_status status = add(comm, name, wanted, tensor);
  if (status == LCOMM_OK) {
    lcomm_expect_overlap(comm);
  }
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_tensor_add(lcomm_comm *comm, const char *name, void *data, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op, lcomm_tensor **tensor) {
  lcomm_tensor wanted = {.data = data, .count = count, .dtype = dtype, .op = op};
  if (!comm || !tensor) {
    return lcomm_refuse_null(comm, "lcomm_tensor_add", "tensor");
  }
  return enter_and_add(comm, name, &wanted, tensor);
}

lcomm_status lcomm_tensor_add_shaped(lcomm_comm *comm, const char *name, void *data, uint64_t rows,
                                     uint64_t columns, lcomm_dtype dtype, lcomm_op op,
                                     lcomm_tensor **tensor) {
  lcomm_tensor wanted = {.data = data, .rows = rows, .columns = columns, .dtype = dtype, .op = op};
  if (!comm || !tensor) {
    return lcomm_refuse_null(comm, "lcomm_tensor_add_shaped", "tensor");
  }
  if (rows == 0 || columns == 0 || __builtin_mul_overflow(rows, columns, &wanted.count)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_add_shaped(%s): %llu rows of %llu columns are no matrix that "
                        "has elements and fits into memory",
                        name ? name : "", (unsigned long long)rows, (unsigned long long)columns);
  }
  return enter_and_add(comm, name, &wanted, tensor);
}

lcomm_status lcomm_tensor_check(lcomm_comm *comm, const lcomm_tensor *tensor, const char *call) {
  if (!comm || !tensor) {
    return lcomm_refuse_null(comm, call, "tensor");
  }
  return lcomm_handle_check(comm, tensor, call, "tensor");
}

static bool is_factor(const lcomm_tensor *tensor, double factor) {
  double used = tensor->dtype == LCOMM_FLOAT64 ? factor : (double)(float)factor;
  return isfinite(used) && (used < 0 || used > 0);
}

lcomm_status lcomm_tensor_scale(lcomm_comm *comm, lcomm_tensor *tensor, double before,
                                double after) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_scale"));
  if (LCOMM_DTYPE_IS_WHOLE(tensor->dtype) || lcomm_plan_op(tensor->op) != LCOMM_SUM) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_scale(%s): only sums and averages of floating-point types "
                        "have factors",
                        tensor->name);
  }
  if (!is_factor(tensor, before) || !is_factor(tensor, after)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_tensor_scale(%s): the factors are %g and %g; in %s they must be "
                        "finite and not 0",
                        tensor->name, before, after,
                        lcomm_dtype_name(lcomm_sum_dtype(tensor->dtype)));
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensor_scale(%s): a step is in flight; call it between the steps",
                        tensor->name);
  }
  tensor->before = before;
  tensor->after = after;
  return LCOMM_OK;
}
