/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TYPED_COPY_H
#define LCOMM_ENGINE_TYPED_COPY_H

/* Copies between callers' buffers, of any data type, and vectors, whose elements are
 * lcomm_sum_dtype(dtype). Pointers may be NULL when `count` is 0. A factor of 1 changes no bit;
 * integers have no other.
 */

#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"

static inline bool lcomm_factor_is_one(double factor) {
  return !(factor < 1.0 || factor > 1.0);
}

/* vector[i] = factor * buffer[i], in float32, or float64 for float64. The two
 * may be the same memory where the elements are not converted. */
void lcomm_vector_load(const lcomm_comm *comm, const void *buffer, lcomm_dtype dtype,
                       uint64_t count, double factor, void *vector);

/* buffer[i] = vector[i], converted. */
void lcomm_vector_store(const lcomm_comm *comm, const void *vector, lcomm_dtype dtype,
                        uint64_t count, void *buffer);

void lcomm_vector_scale(const lcomm_comm *comm, void *vector, lcomm_dtype dtype, uint64_t count,
                        double factor);

/* The finished sum of an average of integers, divided by the number of ranks
 * towards zero. Other types are divided where the sum is made. */
void lcomm_vector_average(const lcomm_comm *comm, void *vector, lcomm_dtype dtype, uint64_t count);

/* When a copy begins; 0 where nobody traces. */
static inline double lcomm_copy_begin(const lcomm_comm *comm) {
  return comm->trace ? lcomm_clock_s() : 0.0;
}

/* Add a copy to the trace, if there is one: begun at begin_s, `bytes` of the data called `name`
 * (NULL: none). */
void lcomm_copy_trace(const lcomm_comm *comm, double begin_s, uint64_t bytes, const char *name);

/* How many elements are NaN or Inf. */
uint64_t lcomm_vector_not_finite(const lcomm_comm *comm, const void *vector, lcomm_dtype dtype,
                                 uint64_t count);

#endif
