/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators of some ranks of another one: split, and shrunk without those that were lost. */

#include "libcomm/interpose/nccl/nccl_comm.h"

enum { SHRINK_DEFAULT = 0, SHRINK_ABORT = 1 };

static ncclResult_t check_part(const char *name, ncclComm_t comm, const ncclComm_t *part) {
  return part ? lcomm_nccl_check(name, comm)
              : lcomm_nccl_fail(ncclInvalidArgument, "%s: newcomm is NULL", name);
}

/* ------------------------------------------------------------------- split */

static ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *part,
                          ncclConfig_t *config) {
  ncclResult_t result = check_part("ncclCommSplit", comm, part);
  lcomm_nccl_making it = {.receiver = part, .parent = comm, .color = color, .key = key};
  if (result != ncclSuccess) {
    return result;
  }
  result = lcomm_nccl_comm_new("ncclCommSplit", comm, config, &it.comm);
  return result == ncclSuccess ? lcomm_nccl_submit_making(&it) : result;
}

/* ------------------------------------------------------------------ shrink */

static bool is_among(int rank, const int *ranks, int count) {
  for (int i = 0; i < count; i++) {
    if (ranks[i] == rank) {
      return true;
    }
  }
  return false;
}

/* Those that are left, in their order, meet where the first of them can. */
static ncclResult_t find_survivors(const struct ncclComm *comm, const int *without, int count,
                                   lcomm_nccl_making *it) {
  int first = -1;
  for (int rank = 0; rank < comm->size; rank++) {
    if (!is_among(rank, without, count)) {
      first = first < 0 ? rank : first;
      it->comm->rank += rank < comm->rank;
      it->comm->size++;
    }
  }
  return lcomm_nccl_id_read(&comm->places[first], &it->place)
             ? ncclSuccess
             : lcomm_nccl_fail(ncclSystemError,
                               "ncclCommShrink: rank %d has told no place to meet, for want of a "
                               "TCP port",
                               first);
}

static ncclResult_t check_shrink(ncclComm_t comm, const int *without, int count, int flags) {
  if (count < 0 || (count > 0 && !without) || (flags != SHRINK_DEFAULT && flags != SHRINK_ABORT)) {
    return lcomm_nccl_fail(ncclInvalidArgument,
                           "ncclCommShrink: %d ranks to exclude at %p, flags %d", count,
                           (const void *)without, flags);
  }
  for (int i = 0; i < count; i++) {
    if (without[i] < 0 || without[i] >= comm->size) {
      return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommShrink: %d is not a rank of 0 to %d",
                             without[i], comm->size - 1);
    }
  }
  return is_among(comm->rank, without, count)
             ? lcomm_nccl_fail(ncclInvalidUsage,
                               "ncclCommShrink: rank %d is excluded, and does not call it",
                               comm->rank)
             : ncclSuccess;
}

static ncclResult_t shrink(ncclComm_t comm, int *without, int count, ncclComm_t *part,
                           ncclConfig_t *config, int flags) {
  ncclResult_t result = check_part("ncclCommShrink", comm, part);
  lcomm_nccl_making it = {.receiver = part, .parent = comm, .shrinks = true};
  if (result == ncclSuccess) {
    result = check_shrink(comm, without, count, flags);
  }
  if (result != ncclSuccess) {
    return result;
  }
  result = lcomm_nccl_comm_new("ncclCommShrink", comm, config, &it.comm);
  if (result != ncclSuccess) {
    return result;
  }
  result = find_survivors(comm, without, count, &it);
  if (result != ncclSuccess) {
    lcomm_nccl_comm_free(it.comm);
    return result;
  }
  if (flags == SHRINK_ABORT) {
    lcomm_nccl_give_up(comm, "ncclCommShrink was called with NCCL_SHRINK_ABORT");
  }
  return lcomm_nccl_submit_making(&it);
}

void lcomm_nccl_take_parts(lcomm_nccl_calls *calls) {
  calls->CommSplit = split;
  calls->CommShrink = shrink;
}
