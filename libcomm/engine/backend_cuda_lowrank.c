/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrices of low rank on a device, in the stream of a run. */

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

typedef int (*list_launch)(const lcomm_lowrank_matrix *list, uint32_t count, void *stream);

/* As many at once as a launch takes. */
static lcomm_status launch_all(lcomm_run *run, list_launch launch, const lcomm_lowrank_matrix *list,
                               size_t count) {
  for (size_t at = 0; at < count; at += LCOMM_CUDA_LIST_MAX) {
    size_t left = count - at;
    uint32_t some = left < LCOMM_CUDA_LIST_MAX ? (uint32_t)left : (uint32_t)LCOMM_CUDA_LIST_MAX;
    LCOMM_TRY(
        lcomm_run_device_check(run, "low rank", launch(list + at, some, run->device->stream)));
  }
  return LCOMM_OK;
}

static lcomm_status project(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  return launch_all(run, run->device->table->kernels->lowrank.project, list, count);
}

static lcomm_status turn(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  return launch_all(run, run->device->table->kernels->lowrank.turn, list, count);
}

static lcomm_status finish(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count) {
  return launch_all(run, run->device->table->kernels->lowrank.finish, list, count);
}

const lcomm_backend_lowrank lcomm_backend_cuda_lowrank = {
    .project = project, .turn = turn, .finish = finish};
