/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What a run on a device owns there, all of it made with the plan. */

#include "libcomm/engine/run_device.h"

#include <stdlib.h>

#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/tape.h"

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

/* OK where `error`, of a call of the table for `what`, is 0. */
static lcomm_status got(const lcomm_run_device *device, const char *what, int error) {
  if (error == 0) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_SYSTEM, "device %d gives no %s: %s", device->ordinal, what,
                            device->table->explain(error));
}

/* Events that are used again and again. */
static lcomm_status make_events(lcomm_run_device *device) {
  const lcomm_device_table *table = device->table;
  LCOMM_TRY(got(device, "event", table->event.create(false, &device->begin)));
  LCOMM_TRY(got(device, "event", table->event.create(false, &device->end)));
  return got(device, "event", table->event.create(false, &device->counted));
}

lcomm_status lcomm_run_device_open(lcomm_run *run, int ordinal) {
  lcomm_device_facts facts = {0};
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_run_device *device = calloc(1, sizeof *device);
  run->device = device;
  if (!device) {
    return LCOMM_ERR_MEMORY;
  }
  device->table = table;
  device->ordinal = ordinal;
  LCOMM_TRY(got(device, "stream", table->use(ordinal)));
  LCOMM_TRY(got(device, "stream", table->facts(ordinal, &facts)));
  device->can_share = facts.shares_memory;
  LCOMM_TRY(got(device, "kernels", table->load()));
  LCOMM_TRY(make_events(device));
  void **here = (void **)&device->found_here, **found = (void **)&device->found;
  LCOMM_TRY(got(device, "memory", table->memory.pinned_get(sizeof(uint64_t), here)));
  LCOMM_TRY(got(device, "memory", table->memory.get(sizeof(uint64_t), found)));
  return got(device, "memory",
             table->memory.get(LCOMM_CUDA_SQUARES * sizeof(double), (void **)&device->squares));
}

lcomm_status lcomm_run_device_make_stream(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  const lcomm_device_table *table = device->table;
  LCOMM_TRY(got(device, "stream", table->stream.work_create(&device->own_stream)));
  device->stream = device->own_stream;
  for (int i = 0; i < LCOMM_DEVICE_WORKS; i++) {
    LCOMM_TRY(got(device, "event", table->event.create(false, &device->works.ring[i].event)));
  }
  return LCOMM_OK;
}

void *lcomm_device_vector(lcomm_comm *comm, int ordinal, size_t size) {
  unsigned depth = lcomm_turn_give(comm);
  void *memory = lcomm_device_memory_of(ordinal, size, lcomm_device_get(NULL)->memory.get);
  lcomm_turn_take(comm, depth);
  return memory;
}

void lcomm_device_vector_free(lcomm_comm *comm, void *memory) {
  unsigned depth = lcomm_turn_give(comm);
  (void)lcomm_device_get(NULL)->memory.free(memory);
  lcomm_turn_take(comm, depth);
}

/* --------------------------------------------------------------- memory */

/* Bytes of payloads that lie as in pinned memory. */
static size_t mirrored_size(const lcomm_run *run) {
  size_t end = 0;
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    if (run->slots[i].own_payload) {
      size_t here = (size_t)(run->slots[i].own_payload - run->memory.arena);
      end = here + run->plan->slot_sizes[i].bound;
    }
  }
  return lcomm_run_device_aligned(end);
}

/* Where the payload of a slot is, from the first. As in pinned memory, so that those of slots that
 * follow each other cross as one; slots without memory there have theirs at the end. */
static size_t place_of(const lcomm_run *run, uint32_t slot, size_t *end) {
  const lcomm_slot_memory *it = &run->slots[slot];
  size_t size = lcomm_run_device_aligned(run->plan->slot_sizes[slot].bound);
  if (it->own_payload) {
    return (size_t)(it->own_payload - run->memory.arena);
  }
  *end += size;
  return *end - size;
}

static size_t payloads_size(const lcomm_run *run) {
  size_t end = mirrored_size(run);
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    (void)place_of(run, i, &end);
  }
  return end;
}

/* Who has scratch for payloads of top-k. */
enum { SPARSE_READERS = LCOMM_LANE_COUNT + 1 };

static void place_payloads(lcomm_run *run) {
  size_t end = mirrored_size(run);
  for (uint32_t i = 0; i < run->plan->schedule.slot_count; i++) {
    run->device->slots[i].payload = run->device->memory + place_of(run, i, &end);
  }
}

static void place_scratch(lcomm_run_device *device, uint8_t *place, size_t size) {
  size_t together = device->sparse.count * device->sparse.size;
  for (int lane = 0; lane < LCOMM_LANE_COUNT; lane++) {
    device->sparse.alone[lane] = place + (size_t)lane * size;
    device->sparse.together[lane] = place + SPARSE_READERS * size + (size_t)lane * together;
  }
  device->sparse.applied = place + LCOMM_LANE_COUNT * size;
  device->sparse.positions = place + SPARSE_READERS * size + LCOMM_LANE_COUNT * together;
}

/* Bytes of scratch for reading; each place has as many, and those that are read together theirs. */
static size_t reading_size(lcomm_run *run, size_t *sparse) {
  lcomm_run_device *device = run->device;
  *sparse = lcomm_run_device_topk_scratch(run);
  device->sparse.count = lcomm_run_device_topk_together(run, &device->sparse.size);
  device->sparse.commits = lcomm_run_device_topk_commits(run, &device->sparse.positions_size);
  return SPARSE_READERS * *sparse + LCOMM_LANE_COUNT * device->sparse.count * device->sparse.size +
         device->sparse.commits * device->sparse.positions_size;
}

static bool make_tables(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  const lcomm_schedule *schedule = &run->plan->schedule;
  size_t slots = (size_t)schedule->slot_count + 1, most = 1;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    size_t here = schedule->steps[i].slot_count;
    most = here > most ? here : most;
  }
  device->slots = calloc(slots, sizeof *device->slots);
  device->topk = calloc((size_t)schedule->step_count + 1, sizeof(lcomm_cuda_topk *));
  device->launch.codes = calloc(most, sizeof *device->launch.codes);
  device->launch.addresses = calloc(most, sizeof *device->launch.addresses);
  device->launch.outputs = calloc(most, sizeof *device->launch.outputs);
  return device->slots && device->topk && device->launch.codes && device->launch.addresses &&
         device->launch.outputs;
}

lcomm_status lcomm_run_device_make(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  size_t sparse = 0, scratch = 0;
  size_t payloads = payloads_size(run), reading = reading_size(run, &sparse);
  if (!make_tables(run) || lcomm_run_device_topk_make(run, NULL, &scratch) != LCOMM_OK) {
    return LCOMM_ERR_MEMORY;
  }
  size_t slots = (size_t)run->plan->schedule.slot_count + 1;
  size_t all = payloads + reading + scratch + LCOMM_DEVICE_ALIGN;
  LCOMM_TRY(got(device, "memory", device->table->memory.get(all, (void **)&device->memory)));
  LCOMM_TRY(got(
      device, "pinned memory",
      device->table->memory.pinned_get(slots * sizeof(uint64_t), (void **)&device->payload_sizes)));
  place_payloads(run);
  place_scratch(device, device->memory + payloads, sparse);
  return lcomm_run_device_topk_make(run, device->memory + payloads + reading, &scratch);
}

static void free_events(lcomm_run_device *device) {
  enum { OTHERS = 3 };
  void *all[LCOMM_DEVICE_WORKS + OTHERS] = {device->begin, device->end, device->counted};
  for (int i = 0; i < LCOMM_DEVICE_WORKS; i++) {
    all[i + OTHERS] = device->works.ring[i].event;
  }
  for (int i = 0; i < LCOMM_DEVICE_WORKS + OTHERS; i++) {
    if (all[i]) {
      (void)device->table->event.destroy(all[i]);
    }
  }
}

void lcomm_run_device_free(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  if (!device) {
    return;
  }
  const lcomm_device_table *table = lcomm_device_freeing(device->table);
  device->table = table;
  int before = lcomm_run_device_enter(run);
  if (device->own_stream) {
    (void)table->stream.finish(device->own_stream);
  }
  lcomm_tape_free(run);
  for (uint32_t i = 0; device->topk && i < run->plan->schedule.step_count; i++) {
    table->kernels->topk_destroy(device->topk[i]);
  }
  free_events(device);
  (void)table->memory.free(run->memory.own_vector);
  (void)table->memory.free(run->memory.own_input);
  (void)table->memory.pinned_free(run->memory.arena);
  (void)table->memory.free(device->memory);
  (void)table->memory.free(device->found);
  (void)table->memory.free(device->squares);
  (void)table->memory.pinned_free(device->payload_sizes);
  (void)table->memory.pinned_free(device->found_here);
  (void)table->stream.destroy(device->own_stream);
  free(device->slots);
  free(device->topk);
  free(device->launch.codes);
  free(device->launch.addresses);
  free(device->launch.outputs);
  lcomm_run_device_leave(run, before);
  free(device);
  run->device = NULL;
}
