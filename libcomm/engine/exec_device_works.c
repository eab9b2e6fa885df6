/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Computations of a run that are in flight on its device. */

#include "libcomm/base/clock.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

int lcomm_run_device_enter(const lcomm_run *run) {
  int before = run->device->ordinal;
  (void)run->device->table->current(&before);
  if (before != run->device->ordinal) {
    (void)run->device->table->use(run->device->ordinal);
  }
  return before;
}

void lcomm_run_device_leave(const lcomm_run *run, int before) {
  if (before != run->device->ordinal) {
    (void)run->device->table->use(before);
  }
}

static lcomm_device_work *add_work(lcomm_run_device *device, uint32_t step) {
  unsigned place = (device->works.first + device->works.count) % LCOMM_DEVICE_WORKS;
  lcomm_device_work *work = &device->works.ring[place];
  work->step = step;
  work->begun_s = lcomm_clock_s();
  work->sizes_known = false;
  return work;
}

lcomm_status lcomm_run_device_launch(lcomm_run *run, uint32_t index) {
  lcomm_run_device *device = run->device;
  lcomm_device_work *work = add_work(device, index);
  int error = lcomm_device_compute(run, index);
  error = error ? error : device->table->event.record(work->event, device->stream);
  if (error) {
    return lcomm_run_device_failed(run, "a computation", error);
  }
  device->works.count++;
  run->comm->runs.device_works++;
  return LCOMM_OK;
}

/* A computation is over on the device: what the host has to do with it. False
 * when it goes on, with the copies of payloads whose sizes are known now. */
static bool complete(lcomm_run *run, const lcomm_device_work *work, int *error) {
  const lcomm_step *step = &run->plan->schedule.steps[work->step];
  if (step->kind != LCOMM_STEP_ENCODE) {
    return true;
  }
  if (!lcomm_run_is_sparse(run, step->slot)) {
    lcomm_exec_finish_header(run, step->slot);
    return true;
  }
  if (!work->sizes_known) {
    *error = lcomm_device_copy_sparse(run, work->step);
    return false;
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_exec_finish_header(run, step->slot + i);
  }
  *error = lcomm_device_mask_sent(run, work->step);
  return true;
}

/* The ring without its oldest. Its event is used again. */
static lcomm_device_work take_oldest(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  lcomm_device_work work = device->works.ring[device->works.first];
  device->works.first = (device->works.first + 1) % LCOMM_DEVICE_WORKS;
  device->works.count--;
  run->comm->runs.device_works--;
  return work;
}

lcomm_status lcomm_run_device_poll(lcomm_run *run, uint32_t *step, bool *over) {
  lcomm_run_device *device = run->device;
  *over = false;
  while (device->works.count > 0) {
    bool reached = false;
    int error = device->table->event.query(device->works.ring[device->works.first].event, &reached);
    if (error) {
      return lcomm_run_device_failed(run, "a computation", error);
    }
    if (!reached) {
      return LCOMM_OK;
    }
    lcomm_device_work work = take_oldest(run);
    *over = complete(run, &work, &error);
    if (*over && error) {
      return lcomm_run_device_failed(run, "a computation", error);
    }
    if (*over) {
      *step = work.step;
      lcomm_exec_release(run, &run->plan->schedule.steps[work.step]);
      lcomm_exec_count_compute(run, work.step, work.begun_s, lcomm_clock_s());
      return LCOMM_OK;
    }
    lcomm_device_work *again = add_work(device, work.step);
    again->begun_s = work.begun_s;
    again->sizes_known = true;
    error = error ? error : device->table->event.record(again->event, device->stream);
    if (error) {
      return lcomm_run_device_failed(run, "a copy", error);
    }
    device->works.count++;
    run->comm->runs.device_works++;
  }
  return LCOMM_OK;
}

void lcomm_run_device_cancel(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  if (device->works.count > 0 || device->phase == LCOMM_DEVICE_ENDING) {
    int before = lcomm_run_device_enter(run);
    (void)device->table->stream.finish(device->stream); /* it failed already */
    lcomm_run_device_leave(run, before);
  }
  while (device->works.count > 0) {
    (void)take_oldest(run);
  }
  if (device->phase == LCOMM_DEVICE_ENDING) {
    device->phase = LCOMM_DEVICE_OVER;
    run->comm->runs.device_works--;
  }
}
