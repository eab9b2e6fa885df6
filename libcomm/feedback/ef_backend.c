/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/feedback/ef_backend.h"

#include <stdlib.h>

#include "codecs/codec_residual.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/feedback/ef_state.h"

/* ------------------------------------------------------------------ host */

static int host_scale(const lcomm_run *run, float *values, uint64_t n, float factor) {
  run->comm->kernels->f32_scale(values, factor, values, n);
  return 0;
}

static int host_fold(const lcomm_run *run, float *values, float *residual, uint64_t n) {
  lcomm_residual_fold(run->comm->kernels, values, residual, n);
  return 0;
}

static int host_fold_doubles(const lcomm_run *run, double *sums, const float *carried, uint64_t n) {
  (void)run;
  for (uint64_t i = 0; i < n; i++) {
    sums[i] += (double)carried[i];
  }
  return 0;
}

static int host_momentum(const lcomm_run *run, float factor, float *momentum, float *values,
                         uint64_t n) {
  run->comm->kernels->ef.f32_momentum(factor, momentum, values, n);
  return 0;
}

static int host_clip(const lcomm_run *run, float *values, uint64_t n, double norm) {
  lcomm_feedback_clip(run->comm->kernels, values, n, norm);
  return 0;
}

/* ---------------------------------------------------------------- device */

static int device_scale(const lcomm_run *run, float *values, uint64_t n, float factor) {
  return lcomm_device_load(run->device, values, LCOMM_FLOAT32, n, factor, values);
}

static int device_fold(const lcomm_run *run, float *values, float *residual, uint64_t n) {
  return run->device->table->kernels->fold(values, residual, n, run->device->stream);
}

/* On the host: it happens once after a state was loaded. Plain memory: to get pinned memory now
 * could wait for streams that are held. */
static int device_fold_doubles(const lcomm_run *run, double *sums, const float *carried,
                               uint64_t n) {
  const lcomm_run_device *device = run->device;
  size_t size = n * sizeof(double);
  double *here = malloc(size + 1);
  int error = here ? device->table->copy(here, sums, size, device->stream) : -1;
  error = error ? error : device->table->stream.finish(device->stream);
  if (!error) {
    host_fold_doubles(run, here, carried, n);
  }
  error = error ? error : device->table->copy(sums, here, size, device->stream);
  error = error ? error : device->table->stream.finish(device->stream);
  free(here);
  return error;
}

static int device_momentum(const lcomm_run *run, float factor, float *momentum, float *values,
                           uint64_t n) {
  return run->device->table->kernels->momentum(factor, momentum, values, n, run->device->stream);
}

static int device_clip(const lcomm_run *run, float *values, uint64_t n, double norm) {
  const lcomm_run_device *device = run->device;
  return device->table->kernels->clip(values, n, norm, device->scratch, device->stream);
}

const lcomm_ef_backend *lcomm_ef_backend_of(const lcomm_run *run) {
  static const lcomm_ef_backend host = {host_scale, host_fold, host_fold_doubles, host_momentum,
                                        host_clip};
  static const lcomm_ef_backend device = {device_scale, device_fold, device_fold_doubles,
                                          device_momentum, device_clip};
  return run->device ? &device : &host;
}
