/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Operations that go step by step: computations are put into a stream of the run when what they
 * need is there, and asked after. For communicators without a thread that moves messages: they move
 * in calls of the program, and so does this. Nothing in the stream waits for a message. */

#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"

static bool is_full(const lcomm_run *run) {
  return run->device->works.count == LCOMM_DEVICE_WORKS;
}

static bool is_busy(const lcomm_run *run) {
  return run->device->works.count > 0 || run->device->is_closed;
}

static lcomm_status compute(lcomm_run *run, const lcomm_computation *it) {
  lcomm_run_device *device = run->device;
  unsigned place = (device->works.first + device->works.count) % LCOMM_DEVICE_WORKS;
  lcomm_device_work *work = &device->works.ring[place];
  LCOMM_TRY(lcomm_exec_compute(run, it->step));
  LCOMM_TRY(lcomm_run_device_check(run, "a computation",
                                   device->table->event.record(work->event, device->stream)));
  work->computation = *it;
  device->works.count++;
  run->comm->runs.device_works++;
  return LCOMM_OK;
}

/* The ring without its oldest. Its event is used again. */
static void drop_oldest(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  device->works.first = (device->works.first + 1) % LCOMM_DEVICE_WORKS;
  device->works.count--;
  run->comm->runs.device_works--;
}

static lcomm_status pop(lcomm_run *run, lcomm_computation *it, bool *over) {
  const lcomm_run_device *device = run->device;
  const lcomm_device_work *oldest = &device->works.ring[device->works.first];
  *over = false;
  if (device->works.count == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_run_device_check(run, "a computation",
                                   device->table->event.query(oldest->event, over)));
  if (*over) {
    *it = oldest->computation;
    drop_oldest(run);
  }
  return LCOMM_OK;
}

static lcomm_status close_queue(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  LCOMM_TRY(lcomm_exec_stage_out(run));
  LCOMM_TRY(lcomm_run_device_check(run, "bringing out the result",
                                   device->table->event.record(device->end, device->stream)));
  device->is_closed = true;
  run->comm->runs.device_works++;
  return LCOMM_OK;
}

static void end_queue(lcomm_run *run) {
  run->device->is_closed = false;
  run->comm->runs.device_works--;
}

static lcomm_status poll_end(lcomm_run *run, bool *over) {
  lcomm_run_device *device = run->device;
  LCOMM_TRY(lcomm_run_device_check(run, "bringing out the result",
                                   device->table->event.query(device->end, over)));
  if (*over) {
    run->not_finite = *device->found_here;
    end_queue(run);
  }
  return LCOMM_OK;
}

static void cancel(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  if (is_busy(run)) {
    int before = lcomm_run_device_enter(run);
    (void)device->table->stream.finish(device->stream); /* it failed already */
    lcomm_run_device_leave(run, before);
  }
  while (device->works.count > 0) {
    drop_oldest(run);
  }
  if (device->is_closed) {
    end_queue(run);
  }
}

const lcomm_backend_queue lcomm_stepped_queue = {
    .start = lcomm_run_device_start,
    .is_full = is_full,
    .is_busy = is_busy,
    .enter = lcomm_run_device_enter,
    .leave = lcomm_run_device_leave,
    .round_begin = lcomm_run_device_enter,
    .round_end = lcomm_run_device_leave,
    .follow = lcomm_run_device_follow,
    .follow_event = lcomm_run_device_follow_event,
    .compute = compute,
    .pop = pop,
    .close = close_queue,
    .poll_end = poll_end,
    .cancel = cancel,
};
