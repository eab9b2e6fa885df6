/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs whose vector is on a CUDA device (run_device.h): their operations are put into a stream of
 * the run. */

#include "libcomm/device/stream_gate.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

lcomm_status lcomm_run_device_check(lcomm_run *run, const char *what, int error) {
  const lcomm_run_device *device = run->device;
  if (error == 0) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(run->comm)); /* a caller that plays a tape is not inside */
  lcomm_status status =
      lcomm_fail(run->comm, LCOMM_ERR_SYSTEM,
                 "%s #%u: %s on device %d failed: %s. Other work of the program may have broken "
                 "the device; run it under compute-sanitizer.",
                 lcomm_collective_name(run->plan->collective), run->sequence, what, device->ordinal,
                 device->table->explain(error));
  lcomm_leave(run->comm);
  return status;
}

/* ---------------------------------------------------------------- memory */

static lcomm_status make_all(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  LCOMM_TRY(lcomm_device_quiesce(run->comm));
  LCOMM_TRY(lcomm_run_device_open(run, run->plan->location.device));
  LCOMM_TRY(lcomm_run_device_make_stream(run));
  LCOMM_TRY(rest(run));
  return lcomm_run_device_make(run);
}

/* Memory and streams are made while no stream is held. */
static lcomm_status make(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = 0;
  (void)table->current(&before);
  lcomm_status status = make_all(run, rest);
  lcomm_device_resume();
  (void)table->use(before);
  return status;
}

/* The same of a run that plays tapes: streams may wait for messages meanwhile, which others move.
 */
static lcomm_status make_taped(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  unsigned depth = lcomm_turn_give(run->comm);
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = 0;
  (void)table->current(&before);
  lcomm_status status = lcomm_run_device_open(run, run->plan->location.device);
  status = status == LCOMM_OK ? lcomm_tape_open(run) : status;
  lcomm_turn_take(run->comm, depth);
  status = status == LCOMM_OK ? rest(run) : status;
  depth = lcomm_turn_give(run->comm);
  status = status == LCOMM_OK ? lcomm_run_device_make(run) : status;
  status = status == LCOMM_OK ? lcomm_tape_make(run) : status;
  (void)table->use(before);
  lcomm_turn_take(run->comm, depth);
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

static uint8_t *slots_memory_taped(lcomm_run *run, size_t size) {
  unsigned depth = lcomm_turn_give(run->comm);
  uint8_t *memory = slots_memory(run, size);
  lcomm_turn_take(run->comm, depth);
  return memory;
}

static bool own_memory_taped(lcomm_run *run) {
  unsigned depth = lcomm_turn_give(run->comm);
  bool made = own_memory(run);
  lcomm_turn_take(run->comm, depth);
  return made;
}

static void free_taped(lcomm_run *run) {
  unsigned depth = lcomm_turn_give(run->comm);
  lcomm_run_device_free(run);
  lcomm_turn_take(run->comm, depth);
}

/* ----------------------------------------------------------------- queue */

void lcomm_run_device_start(lcomm_run *run) {
  *run->device->found_here = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    run->device->slots[i].mapped = NULL;
  }
}

static bool is_full(const lcomm_run *run) {
  return run->device->works.count == LCOMM_DEVICE_WORKS;
}

static bool is_busy(const lcomm_run *run) {
  return run->device->works.count > 0 || run->device->is_closed;
}

lcomm_status lcomm_run_device_follow_event(lcomm_run *run, void *event) {
  const lcomm_run_device *device = run->device;
  return lcomm_run_device_check(run, "waiting for a stream",
                                device->table->stream.wait(device->stream, event));
}

lcomm_status lcomm_run_device_follow(lcomm_run *run, void *stream) {
  const lcomm_run_device *device = run->device;
  LCOMM_TRY(lcomm_run_device_check(run, "marking a stream",
                                   device->table->event.record(device->begin, stream)));
  return lcomm_run_device_follow_event(run, device->begin);
}

static lcomm_status push(lcomm_run *run, const lcomm_computation *it) {
  lcomm_run_device *device = run->device;
  unsigned place = (device->works.first + device->works.count) % LCOMM_DEVICE_WORKS;
  lcomm_device_work *work = &device->works.ring[place];
  LCOMM_TRY(lcomm_run_device_check(run, "a computation",
                                   device->table->event.record(work->event, device->stream)));
  work->computation = *it;
  device->works.count++;
  run->comm->runs.device_works++;
  return LCOMM_OK;
}

static lcomm_status compute(lcomm_run *run, const lcomm_computation *it) {
  LCOMM_TRY(lcomm_exec_compute(run, it->step));
  return push(run, it);
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
    device->is_tried = true;
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

/* Not by the first operation of a run: it opens memory of peers, which might wait for the
 * stream. */
static lcomm_stream_gate *close_gate(const lcomm_run *run, void *stream) {
  const lcomm_run_device *device = run->device;
  if (!device->can_gate || !device->is_tried) {
    return NULL;
  }
  int before = lcomm_run_device_enter(run);
  lcomm_stream_gate *gate = lcomm_stream_gate_close(device->table, stream);
  lcomm_run_device_leave(run, before);
  return gate;
}

static const lcomm_backend_queue queue = {
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
    .push = push,
    .pop = pop,
    .close = close_queue,
    .poll_end = poll_end,
    .cancel = cancel,
    .close_gate = close_gate,
};

const lcomm_backend lcomm_backend_taped = {
    .name = "cuda",
    .make = make_taped,
    .slots_memory = slots_memory_taped,
    .own_memory = own_memory_taped,
    .free = free_taped,
    .payloads = &lcomm_backend_cuda_payloads,
    .vectors = &lcomm_backend_cuda_vectors,
    .queue = &lcomm_proxy_queue,
};

const lcomm_backend lcomm_backend_cuda = {
    .name = "cuda",
    .make = make,
    .slots_memory = slots_memory,
    .own_memory = own_memory,
    .free = lcomm_run_device_free,
    .payloads = &lcomm_backend_cuda_payloads,
    .vectors = &lcomm_backend_cuda_vectors,
    .queue = &queue,
    .receive_place = lcomm_device_receive_place,
    .received = lcomm_device_received,
    .sent_bytes = lcomm_device_sent_bytes,
};
