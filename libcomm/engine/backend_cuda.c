/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs whose vector is on a CUDA device (run_device.h): what they compute is put into a stream
 * of the run. */

#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

/* Memory and streams are made while no stream is held. */
static lcomm_status make(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = 0;
  (void)table->current(&before);
  lcomm_status status = lcomm_device_quiesce(run->comm);
  status = status == LCOMM_OK ? lcomm_run_device_open(run, run->plan->location.device) : status;
  status = status == LCOMM_OK ? rest(run) : status;
  status = status == LCOMM_OK ? lcomm_run_device_make(run) : status;
  lcomm_device_resume();
  (void)table->use(before);
  return status;
}

static uint8_t *slots_memory(lcomm_run *run, size_t size) {
  void *memory = NULL;
  return run->device->table->memory.pinned_get(size, &memory) == 0 ? memory : NULL;
}

static bool get_memory(const lcomm_run *run, size_t size, uint8_t **memory) {
  return size == 0 || run->device->table->memory.get(size, (void **)memory) == 0;
}

static bool own_memory(lcomm_run *run) {
  return get_memory(run, lcomm_plan_vector_size(run->plan), &run->own_vector) &&
         get_memory(run, lcomm_plan_input_size(run->plan), &run->own_input);
}

static lcomm_status compute(lcomm_run *run, uint32_t step, bool *over) {
  *over = false;
  return lcomm_run_device_launch(run, step);
}

static void start(lcomm_run *run) {
  run->device->phase = LCOMM_DEVICE_RUNNING;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    run->device->slots[i].mapped = NULL;
  }
}

static bool is_full(const lcomm_run *run) {
  return run->device->works.count == LCOMM_DEVICE_WORKS;
}

static bool is_busy(const lcomm_run *run) {
  return run->device->works.count > 0 || run->device->phase == LCOMM_DEVICE_ENDING;
}

static bool is_over(const lcomm_run *run) {
  return run->device->phase == LCOMM_DEVICE_OVER;
}

static const lcomm_backend_queue queue = {
    .start = start,
    .is_full = is_full,
    .is_busy = is_busy,
    .is_over = is_over,
    .enter = lcomm_run_device_enter,
    .leave = lcomm_run_device_leave,
    .poll = lcomm_run_device_poll,
    .finish = lcomm_run_device_finish,
    .cancel = lcomm_run_device_cancel,
};

const lcomm_backend lcomm_backend_cuda = {
    .name = "cuda",
    .make = make,
    .slots_memory = slots_memory,
    .own_memory = own_memory,
    .free = lcomm_run_device_free,
    .compute = compute,
    .queue = &queue,
    .receive_place = lcomm_device_receive_place,
    .received = lcomm_device_received,
    .sent_bytes = lcomm_device_sent_bytes,
};
