/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_shard_calls.h"

bool shard_calls_in_stream(const shard *self) {
  return !self->on->is_host && lcomm_nodes(self->comm) == lcomm_size(self->comm);
}

/* What a call put into the stream beside the work returned. */
static lcomm_status begun(const shard *self, int number, lcomm_status status) {
  self->on->mark(number);
  return status;
}

lcomm_status shard_calls_average(shard *self, int number, const void *values, void *result) {
  const uint64_t *counts = self->plan.buckets[number].counts;
  lcomm_dtype dtype = precision_dtype(self->net->precision);
  if (self->streams) {
    return begun(self, number,
                 lcomm_reduce_scatterv_on_stream(self->comm, values, result, counts, dtype,
                                                 LCOMM_AVG, self->on->beside()));
  }
  self->on->finish();
  return lcomm_ireduce_scatterv(self->comm, values, result, counts, dtype, LCOMM_AVG,
                                &self->requests[number]);
}

lcomm_status shard_calls_average_ef(shard *self, int number, const float *values, float *result) {
  lcomm_residual *residual = self->residuals[number];
  if (self->streams) {
    return begun(self, number,
                 lcomm_reduce_scatter_ef_on_stream(residual, values, result, self->on->beside()));
  }
  self->on->finish();
  return lcomm_ireduce_scatter_ef(residual, values, result, &self->requests[number]);
}

lcomm_status shard_calls_gather(shard *self, int number, const void *mine, void *all) {
  const uint64_t *counts = self->plan.buckets[number].counts;
  lcomm_dtype dtype = precision_dtype(self->net->precision);
  if (self->streams) {
    return begun(
        self, number,
        lcomm_allgatherv_on_stream(self->comm, mine, all, counts, dtype, self->on->beside()));
  }
  self->on->finish();
  return lcomm_iallgatherv(self->comm, mine, all, counts, dtype, &self->requests[number]);
}

lcomm_status shard_calls_wait(shard *self, int number) {
  if (self->streams) {
    self->on->await(number);
    return LCOMM_OK; /* a failure is told by the next call */
  }
  return lcomm_wait(self->comm, &self->requests[number]);
}
