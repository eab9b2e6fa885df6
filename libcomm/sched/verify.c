/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The verifier: properties of a schedule that can be checked without running it. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm/sched/sched.h"

typedef struct verdict {
  const lcomm_schedule *schedule;
  lcomm_why *why;
  uint32_t *written; /* per slot: number of steps that write it so far */
  bool *taken;       /* per slot: another has its memory now */
} verdict;

__attribute__((format(printf, 3, 4))) static bool reject(const verdict *v, uint32_t step,
                                                         const char *format, ...) {
  char text[160];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  (void)lcomm_why_set(v->why, LCOMM_ERR_INTERNAL, "schedule of rank %d, step %u: %s",
                      v->schedule->rank, step, text);
  return false;
}

static bool span_is_inside(const verdict *v, uint32_t index, lcomm_span span) {
  if (span.parts < 1 || span.part >= span.parts) {
    return reject(v, index, "part %u of %u", span.part, span.parts);
  }
  if (span.first > v->schedule->count || span.count > v->schedule->count - span.first) {
    return reject(v, index, "span %llu+%llu leaves the vector", (unsigned long long)span.first,
                  (unsigned long long)span.count);
  }
  return true;
}

static bool slot_is_readable(const verdict *v, uint32_t index, uint32_t slot) {
  if (slot >= v->schedule->slot_count) {
    return reject(v, index, "slot %u does not exist", slot);
  }
  if (v->written[slot] != 1) {
    return reject(v, index, "slot %u is read before it is written", slot);
  }
  if (v->taken[slot]) {
    return reject(v, index, "slot %u is read after another has taken its memory", slot);
  }
  return true;
}

static bool takes_memory(const verdict *v, uint32_t index, uint32_t slot) {
  uint32_t before = v->schedule->slots[slot].before;
  if (before == LCOMM_NO_SLOT) {
    return true;
  }
  if (before >= v->schedule->slot_count || before == slot || v->written[before] != 1 ||
      v->taken[before] || v->schedule->slots[slot].place != v->schedule->slots[before].place) {
    return reject(v, index, "slot %u cannot take the memory of slot %u", slot, before);
  }
  v->taken[before] = true;
  return true;
}

static bool write_slot(const verdict *v, uint32_t index, uint32_t slot) {
  if (slot >= v->schedule->slot_count) {
    return reject(v, index, "slot %u does not exist", slot);
  }
  if (v->written[slot]++ > 0) {
    return reject(v, index, "slot %u is written twice", slot);
  }
  return takes_memory(v, index, slot);
}

static bool message_is_valid(const verdict *v, uint32_t index, const lcomm_step *step) {
  int peer = step->peer;
  if (step->message >= LCOMM_MESSAGES_MAX) {
    return reject(v, index, "message %u is one too many for peer %d", step->message, peer);
  }
  if (peer < 0 || peer >= v->schedule->size || peer == v->schedule->rank) {
    return reject(v, index, "peer %d", peer);
  }
  return true;
}

static bool size_matches(const verdict *v, uint32_t index, uint32_t slot, uint64_t count) {
  if (v->schedule->slots[slot].count != count) {
    return reject(v, index, "slot %u holds %llu elements, its span %llu", slot,
                  (unsigned long long)v->schedule->slots[slot].count, (unsigned long long)count);
  }
  return true;
}

static bool check_encode(const verdict *v, uint32_t index, const lcomm_step *step) {
  if (!span_is_inside(v, index, step->span)) {
    return false;
  }
  if (step->slot_count < 1 || (step->slot_count > 1 && step->span.parts != 1)) {
    return reject(v, index, "%u outputs of a span in %u parts", step->slot_count, step->span.parts);
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_span part = step->span;
    if (step->slot_count > 1) {
      part.parts = step->slot_count;
      part.part = i;
    }
    if (!write_slot(v, index, step->slot + i) ||
        !size_matches(v, index, step->slot + i, lcomm_span_count(part))) {
      return false;
    }
  }
  return true;
}

static bool check_decode(const verdict *v, uint32_t index, const lcomm_step *step) {
  if (!span_is_inside(v, index, step->span) || !slot_is_readable(v, index, step->slot)) {
    return false;
  }
  if (step->commit != LCOMM_NO_SLOT && !slot_is_readable(v, index, step->commit)) {
    return false;
  }
  return size_matches(v, index, step->slot, lcomm_span_count(step->span));
}

static bool check_reduce(const verdict *v, uint32_t index, const lcomm_step *step) {
  if (!span_is_inside(v, index, step->span)) {
    return false;
  }
  if (step->slot_count < 1 || step->sources > v->schedule->source_count ||
      step->slot_count > v->schedule->source_count - step->sources) {
    return reject(v, index, "sources leave the list");
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint32_t slot = v->schedule->sources[step->sources + i];
    if (slot == LCOMM_SOURCE_SELF) {
      continue;
    }
    if (!slot_is_readable(v, index, slot) ||
        !size_matches(v, index, slot, lcomm_span_count(step->span))) {
      return false;
    }
  }
  return true;
}

static bool check_step(const verdict *v, uint32_t index) {
  const lcomm_step *step = &v->schedule->steps[index];
  switch (step->kind) {
  case LCOMM_STEP_ENCODE:
    return check_encode(v, index, step);
  case LCOMM_STEP_SEND:
    return message_is_valid(v, index, step) && slot_is_readable(v, index, step->slot);
  case LCOMM_STEP_RECV:
    return message_is_valid(v, index, step) && write_slot(v, index, step->slot);
  case LCOMM_STEP_DECODE:
    return check_decode(v, index, step);
  case LCOMM_STEP_REDUCE:
    return check_reduce(v, index, step);
  }
  return reject(v, index, "unknown kind %d", (int)step->kind);
}

/* Every dependency goes from an earlier step to a later one, so dependencies cannot form a cycle.
 */
static bool check_order(const verdict *v, uint32_t index) {
  const lcomm_step *step = &v->schedule->steps[index];
  if (step->next_first > v->schedule->next_count ||
      step->next_count > v->schedule->next_count - step->next_first) {
    return reject(v, index, "dependencies leave the list");
  }
  for (uint32_t i = 0; i < step->next_count; i++) {
    uint32_t later = v->schedule->next[step->next_first + i];
    if (later <= index || later >= v->schedule->step_count) {
      return reject(v, index, "is waited for by step %u", later);
    }
  }
  return true;
}

lcomm_status lcomm_schedule_verify(const lcomm_schedule *schedule, lcomm_why *why) {
  uint32_t *written = calloc((size_t)schedule->slot_count + 1, sizeof *written);
  bool *taken = calloc((size_t)schedule->slot_count + 1, sizeof *taken);
  if (!written || !taken) {
    free(written);
    free(taken);
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory while verifying a schedule");
  }
  verdict v = {schedule, why, written, taken};
  bool good = true;
  for (uint32_t i = 0; good && i < schedule->step_count; i++) {
    good = check_step(&v, i) && check_order(&v, i);
  }
  free(written);
  free(taken);
  return good ? LCOMM_OK : LCOMM_ERR_INTERNAL;
}

/* ------------------------------------------------------------- all ranks */

/* A message of one schedule; the key holds its direction, peer and number. */
typedef struct message {
  uint64_t key;
  uint32_t step;
} message;

typedef struct message_list { /* by key */
  message *list;
  size_t count;
} message_list;

static uint64_t message_key(lcomm_step_kind kind, int peer, uint32_t number) {
  uint64_t direction = kind == LCOMM_STEP_SEND;
  return direction << 63 | (uint64_t)peer << 32 | number;
}

static int by_key(const void *left, const void *right) {
  const message *a = left, *b = right;
  return a->key < b->key ? -1 : a->key > b->key;
}

static bool list_messages(const lcomm_schedule *schedule, message_list *messages) {
  messages->list = malloc(((size_t)schedule->step_count + 1) * sizeof *messages->list);
  messages->count = 0;
  for (uint32_t i = 0; messages->list && i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      messages->list[messages->count++] =
          (message){message_key(step->kind, step->peer, step->message), i};
    }
  }
  if (messages->list) {
    qsort(messages->list, messages->count, sizeof *messages->list, by_key);
  }
  return messages->list;
}

static bool partner_fits(const lcomm_schedule *schedules, const message_list *messages, int rank,
                         uint32_t index, const verdict *v) {
  const lcomm_schedule *mine = &schedules[rank];
  const lcomm_step *step = &mine->steps[index];
  lcomm_step_kind kind = step->kind == LCOMM_STEP_SEND ? LCOMM_STEP_RECV : LCOMM_STEP_SEND;
  const lcomm_schedule *other = &schedules[step->peer];
  message wanted = {message_key(kind, rank, step->message), 0};
  const message *partner = bsearch(&wanted, messages[step->peer].list, messages[step->peer].count,
                                   sizeof(wanted), by_key);
  if (!partner) {
    return reject(v, index, "message %u has no partner on rank %d", step->message, step->peer);
  }
  const lcomm_slot *a = &mine->slots[step->slot];
  const lcomm_slot *b = &other->slots[other->steps[partner->step].slot];
  if (a->count != b->count || a->stage != b->stage) {
    return reject(v, index, "message %u to or from rank %d differs in size or stage", step->message,
                  step->peer);
  }
  return true;
}

static bool messages_fit(const lcomm_schedule *schedules, const message_list *messages, int rank,
                         const verdict *v) {
  const message_list *mine = &messages[rank];
  for (size_t i = 0; i < mine->count; i++) {
    uint32_t step = mine->list[i].step;
    if (i > 0 && mine->list[i].key == mine->list[i - 1].key) {
      return reject(v, step, "message %u is there twice", v->schedule->steps[step].message);
    }
    if (!partner_fits(schedules, messages, rank, step, v)) {
      return false;
    }
  }
  return true;
}

static lcomm_status verify_messages(const lcomm_schedule *schedules, int size,
                                    message_list *messages, lcomm_why *why) {
  for (int rank = 0; rank < size; rank++) {
    if (!list_messages(&schedules[rank], &messages[rank])) {
      return LCOMM_ERR_MEMORY;
    }
  }
  for (int rank = 0; rank < size; rank++) {
    verdict v = {&schedules[rank], why, NULL, NULL};
    if (!messages_fit(schedules, messages, rank, &v)) {
      return LCOMM_ERR_INTERNAL;
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_schedule_verify_all(const lcomm_schedule *schedules, int size, lcomm_why *why) {
  for (int rank = 0; rank < size; rank++) {
    LCOMM_TRY(lcomm_schedule_verify(&schedules[rank], why));
  }
  message_list *messages = size > 0 ? calloc((size_t)size, sizeof *messages) : NULL;
  lcomm_status status =
      messages ? verify_messages(schedules, size, messages, why) : LCOMM_ERR_MEMORY;
  if (status == LCOMM_ERR_MEMORY) {
    (void)lcomm_why_set(why, status, "out of memory while verifying schedules");
  }
  for (int rank = 0; messages && rank < size; rank++) {
    free(messages[rank].list);
  }
  free(messages);
  return status;
}
