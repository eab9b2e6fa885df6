/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-to-all: every rank sends straight to every other one.
 *
 * Peers are visited in rotated order: to me + 1, me + 2, ..., and from me - 1,
 * me - 2, ... So the i-th sends of all ranks are a permutation, for any number
 * of ranks. Exchanging in pairs (me XOR i) would be one for powers of two only,
 * and gains nothing here: a rank does not wait for the end of one exchange to
 * begin the next. Receives come first, so that messages find their place ready.
 */

#include "libcomm/sched/builders.h"

static bool is_all_to_all(const lcomm_schedule *schedule, const lcomm_topo *topo, uint64_t count) {
  uint64_t segments = 2 * (uint64_t)topo->size;
  return topo->size == schedule->size && schedule->count % segments == 0 &&
         schedule->count / segments == count;
}

/* Segment `rank` of the input, and of the output behind it. */
static lcomm_span input_of(uint64_t count, int rank) {
  return lcomm_span_whole((uint64_t)rank * count, count);
}

static lcomm_span output_of(const lcomm_schedule *schedule, uint64_t count, int rank) {
  return lcomm_span_whole(schedule->count / 2 + (uint64_t)rank * count, count);
}

lcomm_status lcomm_alltoall_build(lcomm_schedule *schedule, const lcomm_topo *topo,
                                  uint64_t count) {
  int me = schedule->rank, size = topo->size;
  if (!is_all_to_all(schedule, topo, count)) {
    return LCOMM_ERR_ARGUMENT;
  }
  if (count == 0) {
    return schedule->status;
  }
  uint32_t arrivals = schedule->slot_count; /* one slot after the other */
  for (int i = 1; i < size; i++) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
    lcomm_schedule_receive(schedule, slot, (me + size - i) % size);
  }
  for (int i = 1; i < size; i++) {
    int peer = (me + i) % size;
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
    lcomm_schedule_encode(schedule, input_of(count, peer), slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(schedule, slot, peer);
  }
  uint32_t own = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, count);
  lcomm_schedule_encode(schedule, input_of(count, me), own, 1, LCOMM_FEEDBACK_NONE);
  lcomm_schedule_decode(schedule, own, output_of(schedule, count, me), LCOMM_NO_SLOT);
  for (int i = 1; i < size; i++) {
    int peer = (me + size - i) % size;
    lcomm_schedule_decode(schedule, arrivals + (uint32_t)i - 1, output_of(schedule, count, peer),
                          LCOMM_NO_SLOT);
  }
  return schedule->status;
}
