/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_buffers.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, PAGE = 4096, WIPED = 0xa5 };
#define SLOTS_BYTES_MAX ((size_t)16 << 20)
#define COPY_BYTES_MAX ((size_t)256 << 20) /* copied in place of made anew */

static void make_input(const lcomm_perf_buffers *buffers, void *send) {
  const lcomm_perf_input *input = &buffers->input;
  uint64_t count = buffers->send_bytes / lcomm_dtype_size(buffers->call->dtype);
  if (input->recording->count > 0) {
    lcomm_perf_recording_fill(input->recording, send, count);
  } else {
    lcomm_perf_pattern_fill(&input->pattern, input->rank, send, count);
  }
}

/* As -R of nccl-tests: buffers that peers read where they are. */
static void *memory_get(const lcomm_perf_call *call, size_t size) {
  void *memory = NULL;
  if (!call->libcomm_memory) {
    return aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
  }
  return lcomm_memory_alloc(size, &memory) == LCOMM_OK ? memory : NULL;
}

int lcomm_perf_buffers_make(lcomm_perf_buffers *buffers, const lcomm_perf_call *call,
                            const lcomm_perf_input *input, int slots) {
  size_t element = lcomm_dtype_size(call->dtype);
  int ranks = input->pattern.ranks;
  uint64_t whole = lcomm_perf_whole_count(call->collective, call->count, ranks);
  lcomm_perf_buffers b = {.call = call, .input = *input};
  b.send_bytes = lcomm_perf_send_count(call->collective, call->count, ranks) * element;
  b.area_bytes = (whole * element + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  b.slot_bytes = b.area_bytes * (call->in_place ? 1 : 2);
  size_t fitting = SLOTS_BYTES_MAX / b.slot_bytes;
  b.slots = fitting < 1 ? 1 : fitting < (size_t)slots ? (int)fitting : slots;
  b.memory = memory_get(call, b.slot_bytes * (size_t)b.slots);
  b.copy = b.send_bytes <= COPY_BYTES_MAX ? malloc(b.send_bytes) : NULL;
  if (!b.memory || (!b.copy && b.send_bytes <= COPY_BYTES_MAX)) {
    lcomm_perf_buffers_free(&b);
    return 0;
  }
  if (b.copy) {
    make_input(&b, b.copy);
  }
  for (int slot = 0; slot < b.slots; slot++) {
    lcomm_perf_buffers_renew(&b, slot);
  }
  *buffers = b;
  return 1;
}

void lcomm_perf_buffers_free(lcomm_perf_buffers *buffers) {
  if (buffers->call->libcomm_memory) {
    (void)lcomm_memory_free(buffers->memory);
  } else {
    free(buffers->memory);
  }
  free(buffers->copy);
  buffers->memory = NULL;
  buffers->copy = NULL;
}

lcomm_perf_place lcomm_perf_buffers_place(const lcomm_perf_buffers *buffers, int slot) {
  const lcomm_perf_call *call = buffers->call;
  const lcomm_perf_collective *collective = call->collective;
  char *first = buffers->memory + (size_t)slot * buffers->slot_bytes;
  if (!call->in_place) {
    return (lcomm_perf_place){first, first + buffers->area_bytes};
  }
  size_t part = call->count * lcomm_dtype_size(call->dtype) * (size_t)buffers->input.rank;
  int is_send_inside = collective->receive_is_whole && !collective->send_is_whole;
  int is_receive_inside = collective->send_is_whole && !collective->receive_is_whole;
  return (lcomm_perf_place){first + (is_send_inside ? part : 0),
                            first + (is_receive_inside ? part : 0)};
}

void lcomm_perf_buffers_refill(const lcomm_perf_buffers *buffers, int slot) {
  void *send = lcomm_perf_buffers_place(buffers, slot).send;
  if (buffers->copy) {
    memcpy(send, buffers->copy, buffers->send_bytes);
  } else {
    make_input(buffers, send);
  }
}

void lcomm_perf_buffers_renew(const lcomm_perf_buffers *buffers, int slot) {
  memset(buffers->memory + (size_t)slot * buffers->slot_bytes, WIPED, buffers->slot_bytes);
  lcomm_perf_buffers_refill(buffers, slot);
}
