/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Options that are usable, and yet do not go together. */

#include <stddef.h>

#include "tools/perf/perf_options.h"

static int has_dtype(const lcomm_perf_options *o, lcomm_dtype dtype) {
  for (int d = 0; d < o->dtype_count; d++) {
    if (o->dtypes[d] == dtype) {
      return 1;
    }
  }
  return 0;
}

/* Through MPI there is nothing of libcomm's to choose here. */
static const char *conflict_through_mpi(const lcomm_perf_options *o) {
  if (!o->through_mpi) {
    return NULL;
  }
  if (o->boot == LCOMM_PERF_BOOT_ENV) {
    return "--through mpi needs MPI, which --boot env does without";
  }
  if (o->policy_count > 0 || o->transport || o->progress != LCOMM_PROGRESS_DEFAULT) {
    return "--through mpi measures what is preloaded, as LCOMM_POLICY, LCOMM_TRANSPORT and "
           "LCOMM_PROGRESS say; leave out --policy, --transport and --progress";
  }
  if (o->tensors || o->overlap.wanted) {
    return "MPI has no tensors and no lcomm_progress; leave out --tensors and --overlap";
  }
  return NULL;
}

const char *lcomm_perf_options_conflict(const lcomm_perf_options *o) {
  int has_16_bits_only = !has_dtype(o, LCOMM_FLOAT32) && !has_dtype(o, LCOMM_FLOAT64) &&
                         !has_dtype(o, LCOMM_INT32) && !has_dtype(o, LCOMM_INT64) &&
                         !has_dtype(o, LCOMM_INT8) && !has_dtype(o, LCOMM_UINT8);
  int extremes = 0;
  for (int i = 0; i < o->op_count; i++) {
    extremes += o->ops[i] == LCOMM_MIN || o->ops[i] == LCOMM_MAX;
  }
  if (o->sizes.step_bytes > 0 && o->sizes.factor > 0.0) {
    return "--stepbytes and --stepfactor are two ways to the next size; give one";
  }
  if (o->against_mpi && o->boot == LCOMM_PERF_BOOT_ENV) {
    return "--against mpi needs MPI, which --boot env does without";
  }
  if ((o->against_mpi || o->through_mpi) && o->collective->reduces && has_16_bits_only) {
    return "MPI sums no float16 and no bfloat16; measure the other types with it";
  }
  if (o->data_path && (o->check || o->dtype_count != 1 || !has_dtype(o, LCOMM_FLOAT32))) {
    return "--data goes with float32 and without --check, which knows the built-in numbers only";
  }
  if (!o->in_place && o->collective->has_root) {
    return "a broadcast has one buffer; --no-in-place is for the other collectives";
  }
  if (o->tensors && o->collective->kind != LCOMM_PERF_ALLREDUCE) {
    return "tensors are all-reduced; --tensors and --tensors-count belong to allreduce_perf";
  }
  if (o->tensors && (extremes > 0 || !o->in_place)) {
    return "tensors are summed or averaged in place; leave out min, max and --no-in-place";
  }
  if (o->sampling.late_s > 0.0 && (o->overlap.wanted || o->sampling.batch > 1)) {
    return "--late measures single operations by themselves; leave out --overlap and --batch";
  }
  if (o->overlap.wanted && (o->against_mpi || o->sampling.batch > 0 || o->interface_name)) {
    return "--overlap measures single operations of libcomm; leave out --against, --batch and "
           "--interface";
  }
  return conflict_through_mpi(o);
}
