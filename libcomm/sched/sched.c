/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The schedule as a container: append steps, slots and sources. */

#include "libcomm/sched/sched.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/stripe.h"

lcomm_status lcomm_schedule_init(lcomm_schedule *schedule, int rank, int size, uint64_t count) {
  memset(schedule, 0, sizeof *schedule);
  schedule->rank = rank;
  schedule->size = size;
  schedule->count = count;
  schedule->sent_to = calloc((size_t)size, sizeof *schedule->sent_to);
  schedule->received_from = calloc((size_t)size, sizeof *schedule->received_from);
  if (schedule->sent_to && schedule->received_from) {
    return LCOMM_OK;
  }
  lcomm_schedule_free(schedule);
  return LCOMM_ERR_MEMORY;
}

void lcomm_schedule_free(lcomm_schedule *schedule) {
  free(schedule->steps);
  free(schedule->slots);
  free(schedule->sources);
  free(schedule->next);
  free(schedule->sent_to);
  free(schedule->received_from);
  memset(schedule, 0, sizeof *schedule);
}

/* Make room for `more` further elements; false and a sticky error if not. */
static bool grow(lcomm_schedule *schedule, void **array, uint32_t *room, uint32_t used,
                 uint32_t more, size_t element_size) {
  if (schedule->status != LCOMM_OK) {
    return false;
  }
  if (more <= *room - used) {
    return true;
  }
  uint64_t wanted = (uint64_t)used + more;
  uint64_t doubled = (uint64_t)*room * 2 + 64;
  uint64_t target = doubled > wanted ? doubled : wanted;
  void *bigger = target < UINT32_MAX ? realloc(*array, (size_t)target * element_size) : NULL;
  if (!bigger) {
    schedule->status = LCOMM_ERR_MEMORY;
    return false;
  }
  *array = bigger;
  *room = (uint32_t)target;
  return true;
}

static lcomm_step *add_step(lcomm_schedule *schedule, lcomm_step_kind kind) {
  static lcomm_step discarded; /* written, never read, once memory has run out */
  if (!grow(schedule, (void **)&schedule->steps, &schedule->step_room, schedule->step_count, 1,
            sizeof(lcomm_step))) {
    return &discarded;
  }
  lcomm_step *step = &schedule->steps[schedule->step_count++];
  memset(step, 0, sizeof *step);
  step->kind = kind;
  step->peer = -1;
  step->slot = LCOMM_NO_SLOT;
  step->commit = LCOMM_NO_SLOT;
  return step;
}

uint32_t lcomm_schedule_slot(lcomm_schedule *schedule, lcomm_stage stage, uint64_t count) {
  if (!grow(schedule, (void **)&schedule->slots, &schedule->slot_room, schedule->slot_count, 1,
            sizeof(lcomm_slot))) {
    return 0;
  }
  lcomm_slot *slot = &schedule->slots[schedule->slot_count];
  memset(slot, 0, sizeof *slot);
  slot->count = count;
  slot->stage = stage;
  slot->before = LCOMM_NO_SLOT;
  slot->place = schedule->slot_count;
  return schedule->slot_count++;
}

void lcomm_schedule_share(lcomm_schedule *schedule, uint32_t slot, uint32_t before) {
  if (schedule->status == LCOMM_OK) {
    schedule->slots[slot].before = before;
    schedule->slots[slot].place = schedule->slots[before].place;
  }
}

void lcomm_schedule_encode(lcomm_schedule *schedule, lcomm_span span, uint32_t slot,
                           uint32_t outputs, lcomm_feedback feedback) {
  lcomm_step *step = add_step(schedule, LCOMM_STEP_ENCODE);
  step->span = span;
  step->slot = slot;
  step->slot_count = outputs;
  step->feedback = feedback;
}

/* messages: those of this kind so far, by peer. */
static void add_message(lcomm_schedule *schedule, lcomm_step_kind kind, uint32_t slot, int peer,
                        uint32_t *messages) {
  lcomm_step *step = add_step(schedule, kind);
  step->slot = slot;
  step->slot_count = 1;
  step->peer = peer;
  step->message = messages[peer]++;
}

void lcomm_schedule_send(lcomm_schedule *schedule, uint32_t slot, int peer) {
  add_message(schedule, LCOMM_STEP_SEND, slot, peer, schedule->sent_to);
}

void lcomm_schedule_receive(lcomm_schedule *schedule, uint32_t slot, int peer) {
  add_message(schedule, LCOMM_STEP_RECV, slot, peer, schedule->received_from);
}

void lcomm_schedule_decode(lcomm_schedule *schedule, uint32_t slot, lcomm_span span,
                           uint32_t commit) {
  lcomm_step *step = add_step(schedule, LCOMM_STEP_DECODE);
  step->span = span;
  step->slot = slot;
  step->slot_count = 1;
  step->commit = commit;
  step->feedback = commit == LCOMM_NO_SLOT ? LCOMM_FEEDBACK_NONE : LCOMM_FEEDBACK_COMMIT;
}

static lcomm_step *add_reduce(lcomm_schedule *schedule, lcomm_span span, const uint32_t *sources,
                              uint32_t source_count) {
  uint32_t first = schedule->source_count;
  if (grow(schedule, (void **)&schedule->sources, &schedule->source_room, first, source_count,
           sizeof(uint32_t))) {
    memcpy(schedule->sources + first, sources, source_count * sizeof(uint32_t));
    schedule->source_count += source_count;
  }
  lcomm_step *step = add_step(schedule, LCOMM_STEP_REDUCE);
  step->span = span;
  step->sources = first;
  step->slot_count = source_count;
  return step;
}

void lcomm_schedule_sum(lcomm_schedule *schedule, lcomm_span span, const uint32_t *sources,
                        uint32_t source_count, lcomm_feedback feedback) {
  lcomm_step *step = add_reduce(schedule, span, sources, source_count);
  step->summed = true;
  step->feedback = feedback;
}

void lcomm_schedule_partial(lcomm_schedule *schedule, lcomm_span span, const uint32_t *sources,
                            uint32_t source_count) {
  add_reduce(schedule, span, sources, source_count);
}

uint64_t lcomm_span_count(lcomm_span span) {
  return lcomm_stripe_count(span.count, span.parts, span.part);
}

lcomm_span lcomm_span_piece(lcomm_span span, uint32_t pieces, uint32_t index) {
  uint64_t unit = span.count >= (uint64_t)pieces * LCOMM_BLOCK ? LCOMM_BLOCK : 1;
  uint64_t units = span.count / unit; /* the remainder goes to the last piece */
  uint64_t each = units / pieces, longer = units % pieces;
  uint64_t before = index * each + (index < longer ? index : longer);
  uint64_t here = each + (index < longer ? 1 : 0);
  uint64_t count = here * unit + (index + 1 == pieces ? span.count % unit : 0);
  return lcomm_span_whole(span.first + before * unit, count);
}

bool lcomm_span_overlap(lcomm_span a, lcomm_span b) {
  if (a.count == 0 || b.count == 0) {
    return false;
  }
  if (a.first == b.first && a.count == b.count && a.parts == b.parts && a.parts > 1) {
    return a.part == b.part;
  }
  return a.first < b.first + b.count && b.first < a.first + a.count;
}
