/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/tape_count.h"

#include <stdlib.h>

#include "codecs/lossless.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/device_batch.h"
#include "libcomm/engine/exec_internal.h"
#include "libcomm/engine/tape_internal.h"

enum { SLOT_ALIGN = 64 };

/* Where arrays would be: nobody reads or writes there. */
static const uintptr_t VECTOR = (uintptr_t)1 << 44, ARENA = (uintptr_t)2 << 44,
                       THERE = (uintptr_t)3 << 44;

/* All functions that put something into a stream have it as an argument: it counts. */
typedef struct counting_stream {
  lcomm_tape_calls *calls;
} counting_stream;

/* ------------------------------------------------------------------ a table */

static int launch(void *stream) {
  ((counting_stream *)stream)->calls->launches++;
  return 0;
}

static int encode(const lcomm_cuda_encode *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int sum(const lcomm_cuda_sum *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int combine(const lcomm_cuda_combine *a, void *stream) {
  (void)a;
  return launch(stream);
}

static int encode_list(const lcomm_cuda_encode *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int decode_list(const lcomm_cuda_decode *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int copy_list(const lcomm_cuda_copy *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int fetch_list(const lcomm_cuda_fetch *list, uint32_t count, void *stream) {
  (void)list;
  return count > 0 ? launch(stream) : 0;
}

static int count_launches(void *stream, uint32_t count) {
  ((counting_stream *)stream)->calls->launches += count;
  return 0;
}

/* An encoder is the number of its outputs. */
static int encode_topk(lcomm_cuda_topk *topk, const lcomm_cuda_topk_encode *a, void *stream) {
  (void)a;
  return count_launches(stream, lcomm_cuda_topk_launches((uint32_t)(uintptr_t)topk));
}

static int add_topk(const lcomm_cuda_sparse *a, float factor, float *base, void *stream) {
  (void)a, (void)factor, (void)base;
  return count_launches(stream, LCOMM_CUDA_TOPK_READS + 1);
}

static int decode_topk(const lcomm_cuda_sparse *a, float factor, float *base, void *stream) {
  return launch(stream) + add_topk(a, factor, base, stream);
}

static int commit_topk(const lcomm_cuda_sparse *sent, const lcomm_cuda_sparse *applied,
                       float *residual, void *stream) {
  (void)sent, (void)residual;
  return count_launches(stream, (applied ? 2 : 1) * (LCOMM_CUDA_TOPK_READS + 1));
}

static int count_floats(const float *source, uint64_t n, uint64_t *found, void *stream) {
  (void)source, (void)n, (void)found;
  return launch(stream);
}

static int count_doubles(const double *source, uint64_t n, uint64_t *found, void *stream) {
  (void)source, (void)n, (void)found;
  return launch(stream);
}

static int copy(void *destination, const void *source, size_t size, void *stream) {
  (void)destination, (void)source, (void)size;
  ((counting_stream *)stream)->calls->copies++;
  return 0;
}

static int set(void *memory, int byte, size_t size, void *stream) {
  (void)memory, (void)byte, (void)size;
  ((counting_stream *)stream)->calls->copies++;
  return 0;
}

static int record(void *event, void *stream) {
  (void)event;
  ((counting_stream *)stream)->calls->events++;
  return 0;
}

static int wait(void *stream, void *event) {
  (void)event;
  ((counting_stream *)stream)->calls->events++;
  return 0;
}

static int numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  (void)list, (void)count;
  ((counting_stream *)stream)->calls->numbers++;
  return 0;
}

static const lcomm_cuda_kernels kernels = {.encode = encode,
                                           .sum = sum,
                                           .combine = combine,
                                           .encode_list = encode_list,
                                           .decode_list = decode_list,
                                           .copy_list = copy_list,
                                           .fetch_list = fetch_list,
                                           .topk_encode = encode_topk,
                                           .topk_decode = decode_topk,
                                           .topk_add = add_topk,
                                           .topk_commit = commit_topk,
                                           .topk_mask = commit_topk,
                                           .count_not_finite = count_floats,
                                           .count_not_finite_f64 = count_doubles};

static const lcomm_device_table table = {.name = "counting",
                                         .kernels = &kernels,
                                         .copy = copy,
                                         .set = set,
                                         .stream.wait = wait,
                                         .stream.numbers = numbers,
                                         .event.record = record};

/* -------------------------------------------------------------------- a run */

/* A run of nothing but what is looked at while a tape is played. */
typedef struct counted_run {
  lcomm_comm *comm;
  lcomm_run run;
  lcomm_run_device device;
  lcomm_device_batch batch;
  lcomm_tape tape;
  lcomm_lanes lanes;
  counting_stream lane[LCOMM_LANE_COUNT], program;
} counted_run;

static size_t aligned(size_t size) {
  return (size + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
}

/* As in run_slots.c, but for the room that messages want. */
static void place_slots(counted_run *it) {
  const lcomm_plan *plan = it->run.plan;
  uintptr_t offset = 0;
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    lcomm_slot_memory *slot = &it->tape.slots[i];
    const lcomm_format *format = lcomm_run_format(&it->run, i);
    size_t bound = plan->slot_sizes[i].bound;
    slot->capacity = bound;
    slot->wire_capacity = format->zstd ? lcomm_lossless_bound(format, bound) : bound;
    offset += format->zstd ? aligned(SLOT_ALIGN + slot->wire_capacity) : SLOT_ALIGN;
    slot->own_payload = slot->own_wire = (uint8_t *)(ARENA + offset);
    it->device.slots[i].payload = (uint8_t *)(THERE + offset);
    offset += aligned(bound);
  }
  for (uint32_t i = 0; i < plan->schedule.step_count; i++) {
    const lcomm_step *step = &plan->schedule.steps[i];
    if (step->kind == LCOMM_STEP_RECV) {
      it->tape.slots[step->slot].traits |= LCOMM_SLOT_RECEIVED;
    }
  }
}

static size_t most_slots(const lcomm_schedule *schedule) {
  size_t most = 1;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    size_t here = schedule->steps[i].slot_count;
    most = here > most ? here : most;
  }
  return most;
}

static bool make_tables(counted_run *it) {
  const lcomm_schedule *schedule = &it->run.plan->schedule;
  size_t steps = (size_t)schedule->step_count + 1, slots = (size_t)schedule->slot_count + 1;
  size_t most = most_slots(schedule);
  it->comm = calloc(1, sizeof *it->comm);
  it->tape.steps = calloc(steps, sizeof *it->tape.steps);
  it->tape.waiting = calloc(steps, sizeof *it->tape.waiting);
  it->tape.numbers = calloc(2 * steps, sizeof *it->tape.numbers);
  it->tape.slots = calloc(slots, sizeof *it->tape.slots);
  it->device.slots = calloc(slots, sizeof *it->device.slots);
  it->device.launch.codes = calloc(most, sizeof *it->device.launch.codes);
  it->device.launch.addresses = calloc(most, sizeof *it->device.launch.addresses);
  it->device.launch.outputs = calloc(most, sizeof *it->device.launch.outputs);
  it->device.topk = calloc(steps, sizeof(lcomm_cuda_topk *));
  it->run.scratch.summands = calloc(most, sizeof *it->run.scratch.summands);
  return it->comm && it->tape.steps && it->tape.waiting && it->tape.numbers && it->tape.slots &&
         it->device.slots && it->device.launch.codes && it->device.launch.addresses &&
         it->device.launch.outputs && it->device.topk && it->run.scratch.summands;
}

static void free_tables(counted_run *it) {
  free(it->comm);
  free(it->tape.steps);
  free(it->tape.waiting);
  free(it->tape.numbers);
  free(it->tape.slots);
  free(it->device.slots);
  free(it->device.launch.codes);
  free(it->device.launch.addresses);
  free(it->device.launch.outputs);
  free(it->device.topk);
  free(it->run.scratch.summands);
}

static lcomm_status stage_out(lcomm_run *run) {
  lcomm_buffer result = {run->data.vector, run->plan->vector_count,
                         lcomm_sum_dtype(run->plan->dtype), run->plan->location};
  return run->plan->lossy ? run->backend->vectors->count_not_finite(run, &result) : LCOMM_OK;
}

static lcomm_status make(counted_run *it, lcomm_tape_calls *calls) {
  if (!make_tables(it)) {
    return LCOMM_ERR_MEMORY;
  }
  LCOMM_TRY(lcomm_tape_relate(it->run.plan, it->tape.steps, it->tape.waits_for_staging));
  it->run.comm = it->comm;
  it->run.backend = &lcomm_backend_taped;
  it->run.device = &it->device;
  it->run.tape = &it->tape;
  it->run.factor = 1.0;
  it->run.data = (lcomm_operation_data){.vector = (uint8_t *)VECTOR, .stage_out = stage_out};
  it->run.data.input = (uint8_t *)VECTOR;
  it->device.table = &table;
  it->device.batch = &it->batch;
  it->device.found = (uint64_t *)THERE;
  it->device.found_here = (uint64_t *)ARENA;
  it->tape.lanes = &it->lanes;
  it->program.calls = calls;
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    it->lane[i].calls = calls;
    it->lanes.stream[i] = &it->lane[i];
  }
  it->device.payload_sizes = (uint64_t *)ARENA;
  for (uint32_t i = 0; i < it->run.plan->schedule.step_count; i++) {
    uintptr_t outputs = it->run.plan->schedule.steps[i].slot_count;
    it->tape.steps[i].event = it->tape.steps[i].is_joined ? it : NULL;
    it->device.topk[i] = (lcomm_cuda_topk *)outputs;
  }
  place_slots(it);
  return LCOMM_OK;
}

static lcomm_status play(counted_run *it) {
  lcomm_run *run = &it->run;
  lcomm_tape_turn_to(run, LCOMM_LANE_ENCODE);
  LCOMM_TRY(lcomm_run_device_follow(run, &it->program));
  lcomm_tape_rewind(run);
  LCOMM_TRY(lcomm_tape_play(run));
  return lcomm_tape_join(run, &it->program);
}

lcomm_status lcomm_tape_count(lcomm_plan *plan, lcomm_tape_calls *calls) {
  *calls = (lcomm_tape_calls){0};
  counted_run *it = calloc(1, sizeof *it);
  if (!it) {
    return LCOMM_ERR_MEMORY;
  }
  it->run.plan = plan;
  lcomm_status status = lcomm_plan_part_slots(plan);
  status = status == LCOMM_OK ? make(it, calls) : status;
  status = status == LCOMM_OK ? play(it) : status;
  free_tables(it);
  free(it);
  return status;
}
