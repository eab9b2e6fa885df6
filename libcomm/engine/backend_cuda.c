/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs whose vector is on a CUDA device (run_device.h): their memory, and the tables of both ways
 * in which their operations go: played as tapes (proxy.c), or step by step (backend_cuda_queue.c).
 */

#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/left_memory.h"
#include "libcomm/engine/operation.h"
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
  lcomm_exit(run->comm);
  return status;
}

/* ---------------------------------------------------------------- memory */

/* What is in lanes goes on: CUDA may wait for it, and so for messages, which others move meanwhile.
 */

typedef struct stay {
  unsigned depth; /* how often the communicator was entered */
  int before;     /* the device that was in use */
} stay;

static stay go_there(const lcomm_run *run) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  stay it = {lcomm_turn_give(run->comm), run->plan->location.device};
  (void)table->current(&it.before);
  (void)table->use(run->plan->location.device); /* what needs it finds out */
  return it;
}

static void come_back(const lcomm_run *run, stay it) {
  (void)lcomm_device_get(NULL)->use(it.before);
  lcomm_turn_take(run->comm, it.depth);
}

static lcomm_status make_there(lcomm_run *run, lcomm_status (*part)(lcomm_run *run)) {
  stay it = go_there(run);
  lcomm_status status = part(run);
  come_back(run, it);
  return status;
}

static lcomm_status open_stepped(lcomm_run *run) {
  lcomm_device_do_deferred();
  LCOMM_TRY(lcomm_run_device_open(run, run->plan->location.device));
  return lcomm_run_device_make_stream(run);
}

static lcomm_status make_stepped(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  lcomm_runs_free_spent(run->comm);
  LCOMM_TRY(make_there(run, open_stepped));
  LCOMM_TRY(rest(run));
  return make_there(run, lcomm_run_device_make);
}

static lcomm_status open_taped(lcomm_run *run) {
  lcomm_device_do_deferred();
  lcomm_left_memory_free();
  LCOMM_TRY(lcomm_run_device_open(run, run->plan->location.device));
  return lcomm_tape_open(run);
}

static lcomm_status complete_taped(lcomm_run *run) {
  LCOMM_TRY(lcomm_run_device_make(run));
  LCOMM_TRY(lcomm_share_make(run));
  lcomm_device_zcopy_describe(run);
  return lcomm_tape_make(run);
}

static lcomm_status make_taped(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  lcomm_runs_free_spent(run->comm);
  LCOMM_TRY(make_there(run, open_taped));
  LCOMM_TRY(rest(run));
  LCOMM_TRY(lcomm_device_zcopy_make(run));
  LCOMM_TRY(make_there(run, complete_taped));
  lcomm_share_list(run);
  return LCOMM_OK;
}

static uint8_t *slots_memory(lcomm_run *run, size_t size) {
  void *memory = NULL;
  stay it = go_there(run);
  int error = run->device->table->memory.pinned_get(size, &memory);
  come_back(run, it);
  return error == 0 ? memory : NULL;
}

static bool get_memory(const lcomm_run *run, size_t size, uint8_t **memory) {
  return size == 0 || run->device->table->memory.get(size, (void **)memory) == 0;
}

static bool own_memory(lcomm_run *run) {
  stay it = go_there(run);
  bool made = get_memory(run, lcomm_plan_vector_size(run->plan), &run->memory.own_vector) &&
              get_memory(run, lcomm_plan_input_size(run->plan), &run->memory.own_input);
  come_back(run, it);
  return made;
}

static void free_there(lcomm_run *run) {
  stay it = go_there(run);
  lcomm_run_device_free(run);
  come_back(run, it);
}

static void free_taped(lcomm_run *run) {
  if (run->device) {
    lcomm_share_free(run);
    lcomm_device_zcopy_free(run);
  }
  free_there(run);
}

/* What is in lanes works on the rest, too. */
static bool leave_sent(lcomm_run *run) {
  bool can = run->device && run->tape && !run->recording && !lcomm_tape_is_in_lanes(run);
  if (can) {
    lcomm_left_memory_keep(run);
  }
  return can;
}

/* -------------------------------------------------- both kinds of operations */

void lcomm_run_device_start(lcomm_run *run) {
  *run->device->found_here = 0;
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

const lcomm_backend lcomm_backend_taped = {
    .name = "cuda",
    .make = make_taped,
    .slots_memory = slots_memory,
    .own_memory = own_memory,
    .free = free_taped,
    .leave_sent = leave_sent,
    .payloads = &lcomm_backend_cuda_payloads,
    .vectors = &lcomm_backend_cuda_vectors,
    .lowrank = &lcomm_backend_cuda_lowrank,
    .queue = &lcomm_proxy_queue,
    .sent_bytes = lcomm_device_sent_bytes,
};

const lcomm_backend lcomm_backend_cuda = {
    .name = "cuda",
    .make = make_stepped,
    .slots_memory = slots_memory,
    .own_memory = own_memory,
    .free = free_there,
    .payloads = &lcomm_backend_cuda_payloads,
    .vectors = &lcomm_backend_cuda_vectors,
    .lowrank = &lcomm_backend_cuda_lowrank,
    .queue = &lcomm_stepped_queue,
};
