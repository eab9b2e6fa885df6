/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Between the buffers of callers, of any data type, and float32 vectors. */

#include "libcomm/comm.h"

void lcomm_copy_in(const lcomm_comm *comm, const void *buffer, lcomm_dtype dtype, uint64_t count,
                   float *vector) {
  lcomm_format format = lcomm_format_exact(dtype);
  uint32_t environment = lcomm_fp_enter();
  lcomm_decode(&format, comm->kernels, buffer, lcomm_range_whole(count), 1.0f, vector);
  lcomm_fp_leave(environment);
}

void lcomm_copy_out(const lcomm_comm *comm, const float *vector, lcomm_dtype dtype, uint64_t count,
                    void *buffer) {
  lcomm_format format = lcomm_format_exact(dtype);
  uint32_t environment = lcomm_fp_enter();
  lcomm_encode(&format, comm->kernels, vector, lcomm_range_whole(count), 0, buffer);
  lcomm_fp_leave(environment);
}
