/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/typed_copy.h"

#include <string.h>

#include "kernels/plain.h"

enum { SCALE_BLOCK = 2048 }; /* elements of float64 that stay in the first-level cache */

static bool is_converted(lcomm_dtype dtype) {
  return lcomm_sum_dtype(dtype) != dtype;
}

/* Copied and scaled block by block: one pass over the memory. */
static void load_f64(const double *buffer, uint64_t count, double factor, double *vector) {
  for (uint64_t at = 0; at < count; at += SCALE_BLOCK) {
    size_t n = (size_t)(count - at < SCALE_BLOCK ? count - at : SCALE_BLOCK);
    if (vector != buffer) {
      memcpy(vector + at, buffer + at, n * sizeof *vector);
    }
    lcomm_plain_scale_f64(vector + at, factor, n);
  }
}

void lcomm_vector_load(const lcomm_comm *comm, const void *buffer, lcomm_dtype dtype,
                       uint64_t count, double factor, void *vector) {
  if (count == 0) {
    return;
  }
  uint32_t environment = lcomm_fp_enter();
  if (is_converted(dtype)) {
    lcomm_format format = lcomm_format_exact(dtype);
    lcomm_decode(&format, comm->kernels, buffer, lcomm_range_whole(count), (float)factor, vector);
  } else if (dtype == LCOMM_FLOAT32 && !lcomm_factor_is_one(factor)) {
    comm->kernels->f32_scale(buffer, (float)factor, vector, count);
  } else if (dtype == LCOMM_FLOAT64 && !lcomm_factor_is_one(factor)) {
    load_f64(buffer, count, factor, vector);
  } else if (vector != buffer) {
    memcpy(vector, buffer, count * lcomm_dtype_size(dtype));
  }
  lcomm_fp_leave(environment);
}

void lcomm_vector_store(const lcomm_comm *comm, const void *vector, lcomm_dtype dtype,
                        uint64_t count, void *buffer) {
  if (count == 0 || vector == buffer) {
    return;
  }
  if (!is_converted(dtype)) {
    memcpy(buffer, vector, count * lcomm_dtype_size(dtype));
    return;
  }
  lcomm_format format = lcomm_format_exact(dtype);
  uint32_t environment = lcomm_fp_enter();
  lcomm_encode(&format, comm->kernels, vector, lcomm_range_whole(count), 0, buffer);
  lcomm_fp_leave(environment);
}

void lcomm_vector_scale(const lcomm_comm *comm, void *vector, lcomm_dtype dtype, uint64_t count,
                        double factor) {
  if (!lcomm_factor_is_one(factor)) {
    lcomm_vector_load(comm, vector, lcomm_sum_dtype(dtype), count, factor, vector);
  }
}

void lcomm_vector_average(const lcomm_comm *comm, void *vector, lcomm_dtype dtype, uint64_t count) {
  if (dtype == LCOMM_INT32) {
    lcomm_plain_divide_i32(vector, comm->size, count);
  } else if (dtype == LCOMM_INT64) {
    lcomm_plain_divide_i64(vector, comm->size, count);
  } else if (dtype == LCOMM_INT8) {
    lcomm_plain_divide_i8(vector, comm->size, count);
  } else if (dtype == LCOMM_UINT8) {
    lcomm_plain_divide_u8(vector, comm->size, count);
  }
}

void lcomm_copy_trace(const lcomm_comm *comm, double begin_s, uint64_t bytes, const char *name) {
  if (!comm->trace || bytes == 0) {
    return;
  }
  lcomm_trace_event event = {.kind = LCOMM_TRACE_COPY,
                             .begin_s = begin_s,
                             .end_s = lcomm_clock_s(),
                             .peer = -1,
                             .bytes = bytes,
                             .name = name};
  lcomm_trace_add(comm->trace, &event);
}

static uint64_t count_f64(const double *values, uint64_t count) {
  const uint64_t infinity = UINT64_C(0x7ff) << 52;
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof(bits));
    found += (bits & infinity) == infinity;
  }
  return found;
}

uint64_t lcomm_vector_not_finite(const lcomm_comm *comm, const void *vector, lcomm_dtype dtype,
                                 uint64_t count) {
  if (count == 0) {
    return 0;
  }
  if (lcomm_sum_dtype(dtype) == LCOMM_FLOAT32) {
    return comm->kernels->f32_count_not_finite(vector, count);
  }
  return dtype == LCOMM_FLOAT64 ? count_f64(vector, count) : 0;
}
