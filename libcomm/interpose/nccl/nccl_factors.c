/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations that programs make: sums of elements that are multiplied by a factor before. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_comm.h"

/* ------------------------------------------------------------------ the table */

bool lcomm_nccl_factor_find(const struct ncclComm *comm, ncclRedOp_t op,
                            lcomm_nccl_factor *factor) {
  int index = (int)op - ncclNumOps;
  bool found = index >= 0 && index < comm->factor_count && comm->factors[index].is_used;
  if (found) {
    *factor = comm->factors[index];
  }
  return found;
}

ncclResult_t lcomm_nccl_factor_read(const lcomm_nccl_factor *factor, cudaStream_t stream,
                                    unsigned char bytes[LCOMM_NCCL_ELEMENT_MAX]) {
  lcomm_dtype type = LCOMM_FLOAT32;
  memcpy(bytes, factor->bytes, LCOMM_NCCL_ELEMENT_MAX);
  if (!factor->there) {
    return ncclSuccess;
  }
  (void)lcomm_nccl_moved_type(factor->type, &type);
  return lcomm_nccl_ended(NULL,
                          lcomm_device_read(bytes, factor->there, lcomm_dtype_size(type), stream));
}

/* A place that is free; NULL without memory. */
static lcomm_nccl_factor *find_place(ncclComm_t comm, ncclRedOp_t *op) {
  int index = 0;
  while (index < comm->factor_count && comm->factors[index].is_used) {
    index++;
  }
  if (index == comm->factor_count) {
    size_t count = (size_t)index + 8;
    lcomm_nccl_factor *more = realloc(comm->factors, count * sizeof *more);
    if (!more) {
      return NULL;
    }
    memset(more + index, 0, (count - (size_t)index) * sizeof *more);
    comm->factors = more;
    comm->factor_count = (int)count;
  }
  *op = (ncclRedOp_t)(ncclNumOps + index);
  return &comm->factors[index];
}

/* ---------------------------------------------------------- NCCL's functions */

static ncclResult_t check(ncclRedOp_t *op, const void *scalar, ncclDataType_t type,
                          ncclScalarResidence_t residence, ncclComm_t comm, lcomm_dtype *as) {
  static const char name[] = "ncclRedOpCreatePreMulSum";
  ncclResult_t result = lcomm_nccl_check(name, comm);
  if (result != ncclSuccess) {
    return result;
  }
  if (!op || !scalar || (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: a pointer is NULL, or residence is %d", name,
                           (int)residence);
  }
  return lcomm_nccl_moved_type(type, as)
             ? ncclSuccess
             : lcomm_nccl_fail(ncclInvalidArgument, "%s: there is no type %d", name, (int)type);
}

static ncclResult_t create(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                           ncclScalarResidence_t residence, ncclComm_t comm) {
  lcomm_dtype as = LCOMM_FLOAT32;
  ncclResult_t result = check(op, scalar, type, residence, comm, &as);
  if (result != ncclSuccess) {
    return result;
  }
  pthread_mutex_lock(&comm->lock);
  lcomm_nccl_factor *it = find_place(comm, op);
  if (it) {
    *it = (lcomm_nccl_factor){.is_used = true, .type = type};
    if (residence == ncclScalarDevice) {
      it->there = scalar;
    } else {
      memcpy(it->bytes, scalar, lcomm_dtype_size(as));
    }
  }
  pthread_mutex_unlock(&comm->lock);
  return it ? ncclSuccess
            : lcomm_nccl_fail(ncclSystemError, "ncclRedOpCreatePreMulSum: there is no memory");
}

/* Calls that were made with it have its number. */
static ncclResult_t destroy(ncclRedOp_t op, ncclComm_t comm) {
  lcomm_nccl_factor found;
  ncclResult_t result = lcomm_nccl_check("ncclRedOpDestroy", comm);
  if (result != ncclSuccess) {
    return result;
  }
  pthread_mutex_lock(&comm->lock);
  bool is_there = lcomm_nccl_factor_find(comm, op, &found);
  if (is_there) {
    comm->factors[(int)op - ncclNumOps].is_used = false;
  }
  pthread_mutex_unlock(&comm->lock);
  return is_there ? ncclSuccess
                  : lcomm_nccl_fail(ncclInvalidArgument,
                                    "ncclRedOpDestroy: %d is no operation that was made for comm",
                                    (int)op);
}

void lcomm_nccl_take_factors(lcomm_nccl_calls *calls) {
  calls->RedOpCreatePreMulSum = create;
  calls->RedOpDestroy = destroy;
}
