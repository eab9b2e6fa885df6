/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Computations of the executor: what ENCODE, DECODE and REDUCE do with slots, spans and error
 * feedback, over the operations of a backend. */

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/exec_internal.h"

/* Are payloads of this step the elements of the vector, in a row? */
static bool is_copy(const lcomm_run *run, const lcomm_step *step) {
  bool none = lcomm_run_format(run, step->slot)->codec->id == LCOMM_CODEC_NONE;
  return run->plan->plain || (none && step->span.parts == 1);
}

static lcomm_status join_momentum(lcomm_run *run, const lcomm_step *step) {
  lcomm_ef_array momentum = lcomm_run_momentum(run, step);
  if (!momentum.now) {
    return LCOMM_OK;
  }
  return run->backend->vectors->momentum(run, run->feedback->momentum_factor, momentum,
                                         lcomm_run_floats(run, step->span.first), step->span.count);
}

/* ---------------------------------------------------------------- ENCODE */

/* A payload is complete: the lossless stage, then the header. */
static void finish_header(lcomm_run *run, uint32_t slot) {
  const lcomm_format *format = lcomm_run_format(run, slot);
  lcomm_slot_memory *memory = &run->slots[slot];
  uint64_t count = run->plan->schedule.slots[slot].count;
  memory->wire_size = memory->payload_size;
  if (format->zstd) {
    memory->wire_size =
        lcomm_lossless_encode(run->codecs.lossless[lcomm_run_stage(run, slot)], run->comm->kernels,
                              memory->payload, memory->payload_size, count, memory->wire);
  }
  lcomm_wire_header header = lcomm_exec_header(run, format, count, memory->wire_size);
  if (run->plan->checksum) {
    header.checksum = lcomm_wire_checksum(memory->wire, memory->wire_size);
  }
  lcomm_wire_pack(&header, memory->header);
  if (memory->state == LCOMM_PAYLOAD_EXPORTED) {
    lcomm_wire_set_handle(memory->header);
  }
}

lcomm_status lcomm_exec_unpack(lcomm_run *run, uint32_t slot, const char **why) {
  lcomm_slot_memory *memory = &run->slots[slot];
  double begin = lcomm_clock_s();
  lcomm_status status =
      lcomm_lossless_decode(run->codecs.lossless[lcomm_run_stage(run, slot)], run->comm->kernels,
                            memory->wire, memory->wire_size, run->plan->schedule.slots[slot].count,
                            memory->payload, memory->capacity, &memory->payload_size, why);
  run->stats.decode_s += lcomm_clock_s() - begin;
  return status;
}

static lcomm_encoding encoding_of(const lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  return (lcomm_encoding){.step = step,
                          .index = index,
                          .source = lcomm_run_floats(run, step->span.first),
                          .residual = lcomm_run_residual(run, step),
                          .weight = 1.0f / (float)run->factor};
}

static lcomm_status encode_dense(lcomm_run *run, uint32_t index) {
  lcomm_encoding it = encoding_of(run, index);
  const lcomm_step *step = it.step;
  lcomm_slot_memory *slot = &run->slots[step->slot];
  bool copies = is_copy(run, step);
  bool is_made = lcomm_slot_is(slot, LCOMM_SLOT_ALIAS) || slot->state == LCOMM_PAYLOAD_ENCODED;
  bool fed = step->feedback == LCOMM_FEEDBACK_SEND || step->feedback == LCOMM_FEEDBACK_OWNER;
  it.residual = fed ? it.residual : (lcomm_ef_array){NULL, NULL};
  slot->payload_size = slot->capacity;
  if (copies && it.residual.now) { /* an exact contribution: nothing of the residual stays */
    LCOMM_TRY(run->backend->vectors->fold(run, lcomm_run_floats(run, step->span.first), it.residual,
                                          step->span.count));
  }
  if (!copies && !is_made) {
    LCOMM_TRY(run->backend->payloads->encode(run, &it));
  }
  const uint8_t *elements = copies && !is_made ? (const uint8_t *)it.source : NULL;
  return run->backend->payloads->publish(run, step, elements);
}

/* What is sent, and leaves the residual with that, loses its momentum. */
static lcomm_status mask_sent(lcomm_run *run, const lcomm_step *step) {
  float *momentum = lcomm_run_momentum(run, step).now;
  bool leaves = step->feedback != LCOMM_FEEDBACK_OWNER && step->feedback != LCOMM_FEEDBACK_HOLD;
  if (!momentum || !leaves) {
    return LCOMM_OK;
  }
  return run->backend->payloads->topk_mask(run, step->slot, step->span, momentum);
}

static lcomm_status encode_topk(lcomm_run *run, uint32_t index) {
  lcomm_encoding it = encoding_of(run, index);
  if (it.step->feedback != LCOMM_FEEDBACK_OWNER) { /* the result overwrites the vector later on */
    LCOMM_TRY(join_momentum(run, it.step));
  }
  LCOMM_TRY(run->backend->payloads->topk_encode(run, &it));
  return mask_sent(run, it.step);
}

/* Entries in payloads of top-k of this step. */
static uint64_t count_sent(const lcomm_run *run, const lcomm_step *step) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint32_t entries = 0;
    memcpy(&entries, run->slots[step->slot + i].payload, sizeof(entries)); /* little-endian */
    sum += entries;
  }
  return sum;
}

/* What was picked and found no room waits in the residual. An owner picks again from what others
 * have sent: that counts there. */
static uint64_t count_waiting(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->feedback == LCOMM_FEEDBACK_OWNER || !lcomm_run_is_sparse(run, step->slot)) {
    return 0;
  }
  uint64_t picked = run->codecs.picks[index], waited = picked - count_sent(run, step);
  run->stats.topk_picked += picked;
  run->stats.topk_waited += waited;
  return waited;
}

/* The payloads are made. */
static void end_encode(lcomm_run *run, const lcomm_step *step) {
  if (lcomm_run_is_sparse(run, step->slot)) {
    run->backend->payloads->topk_sizes(run, step);
  }
  for (uint32_t i = 0; i < step->slot_count; i++) {
    finish_header(run, step->slot + i);
  }
}

/* ---------------------------------------------------------------- DECODE */

static lcomm_status decode_payload(lcomm_run *run, const lcomm_step *step) {
  const lcomm_backend *backend = run->backend;
  float *destination = lcomm_run_floats(run, step->span.first);
  if (lcomm_run_is_sparse(run, step->slot)) {
    return backend->payloads->topk_decode(run, step->slot, step->span, 1.0f, destination);
  }
  if (is_copy(run, step)) {
    return backend->vectors->copy(run, destination, backend->payloads->at(run, step->slot),
                                  step->span.count * run->plan->element_size);
  }
  uint8_t *payload = NULL;
  LCOMM_TRY(backend->payloads->read(run, step->slot, &payload));
  return backend->payloads->decode(run, step, payload);
}

/* What was sent in slot `commit` and is applied leaves the residual. */
static lcomm_status apply(lcomm_run *run, const lcomm_step *step) {
  bool sparse = lcomm_run_is_sparse(run, step->slot);
  lcomm_applying it = {.slot = sparse ? step->slot : LCOMM_NO_SLOT,
                       .span = step->span,
                       .destination = lcomm_run_floats(run, step->span.first),
                       .sent = step->commit,
                       .residual = lcomm_run_residual(run, step).now,
                       .momentum = lcomm_run_momentum(run, step).now};
  LCOMM_TRY(sparse ? LCOMM_OK : decode_payload(run, step));
  return run->backend->payloads->topk_apply(run, &it);
}

static lcomm_status decode(lcomm_run *run, const lcomm_step *step) {
  if (lcomm_slot_is(&run->slots[step->slot], LCOMM_SLOT_ALIAS)) {
    return LCOMM_OK;
  }
  bool commits = lcomm_run_residual(run, step).now && step->commit != LCOMM_NO_SLOT;
  return commits ? apply(run, step) : decode_payload(run, step);
}

/* ---------------------------------------------------------------- REDUCE */

/* My own part joins unquantised. Its momentum is not masked: it is that of a sum that travels
 * exactly. */
static lcomm_status join(lcomm_run *run, const lcomm_step *step) {
  lcomm_ef_array residual = lcomm_run_residual(run, step);
  if (step->feedback != LCOMM_FEEDBACK_KEEP) {
    return LCOMM_OK;
  }
  LCOMM_TRY(join_momentum(run, step));
  return residual.now ? run->backend->vectors->fold(run, lcomm_run_floats(run, step->span.first),
                                                    residual, step->span.count)
                      : LCOMM_OK;
}

/* Is it a sum of what top-k has selected? */
static bool sums_topk(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  uint32_t other = sources[0] == LCOMM_SOURCE_SELF && step->slot_count > 1 ? 1 : 0;
  return sources[other] != LCOMM_SOURCE_SELF && lcomm_run_is_sparse(run, sources[other]);
}

static bool has_self(const lcomm_run *run, const lcomm_step *step) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  uint32_t i = 0;
  while (i < step->slot_count && sources[i] != LCOMM_SOURCE_SELF) {
    i++;
  }
  return i < step->slot_count;
}

/* Selections, onto the rank's own part where that is a source: it is whole. */
static lcomm_status sum_topk(lcomm_run *run, const lcomm_step *step, float factor) {
  const lcomm_backend_payloads *payloads = run->backend->payloads;
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = lcomm_run_floats(run, step->span.first);
  lcomm_buffer own = {.data = destination, .count = step->span.count, .dtype = LCOMM_FLOAT32};
  bool begun = has_self(run, step);
  LCOMM_TRY(begun ? lcomm_run_scale(run, &own, (double)factor) : LCOMM_OK);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    if (sources[i] != LCOMM_SOURCE_SELF) {
      LCOMM_TRY((begun ? payloads->topk_add : payloads->topk_decode)(run, sources[i], step->span,
                                                                     factor, destination));
      begun = true;
    }
  }
  return LCOMM_OK;
}

/* The ENCODE that waits for nothing but this sum now and reads just its span, so that its values
 * can be encoded as they are made. NULL when there is none. */
static const lcomm_step *encode_after(const lcomm_run *run, const lcomm_step *sum) {
  const lcomm_schedule *schedule = &run->plan->schedule;
  uint32_t nth = 0;
  while (nth < sum->next_count &&
         lcomm_step_is_message(&schedule->steps[schedule->next[sum->next_first + nth]])) {
    nth++;
  }
  if (nth == sum->next_count) {
    return NULL;
  }
  uint32_t index = schedule->next[sum->next_first + nth];
  const lcomm_step *next = &schedule->steps[index];
  bool fits = next->kind == LCOMM_STEP_ENCODE && run->steps.waiting[index] == 1 &&
              next->slot_count == 1 && next->span.parts == 1 &&
              next->span.first == sum->span.first && next->span.count == sum->span.count;
  if (!fits || lcomm_run_is_sparse(run, next->slot) ||
      lcomm_slot_is(&run->slots[next->slot], LCOMM_SLOT_ALIAS) ||
      lcomm_run_residual(run, next).now) {
    return NULL;
  }
  return next;
}

static lcomm_status sum_dense(lcomm_run *run, const lcomm_step *step, float factor) {
  const uint32_t *sources = run->plan->schedule.sources + step->sources;
  float *destination = lcomm_run_floats(run, step->span.first);
  for (uint32_t i = 0; i < step->slot_count; i++) {
    lcomm_summand *summand = &run->scratch.summands[i];
    *summand = (lcomm_summand){.values = destination};
    if (sources[i] != LCOMM_SOURCE_SELF) {
      uint8_t *payload = NULL;
      LCOMM_TRY(run->backend->payloads->read(run, sources[i], &payload));
      summand->format = lcomm_run_format(run, sources[i]);
      summand->payload = payload;
    }
  }
  bool sums = run->plan->op == LCOMM_SUM, encoded = false;
  lcomm_summing it = {.step = step,
                      .summands = run->scratch.summands,
                      .factor = factor,
                      .destination = destination,
                      .next = sums ? encode_after(run, step) : NULL};
  LCOMM_TRY(run->backend->payloads->sum(run, &it, &encoded));
  if (encoded) {
    lcomm_payload_encoded(&run->slots[it.next->slot]);
  }
  return LCOMM_OK;
}

static lcomm_status reduce(lcomm_run *run, const lcomm_step *step) {
  float factor = step->summed ? (float)run->factor : 1.0f;
  if (run->plan->plain) {
    return run->backend->payloads->sum_plain(run, step);
  }
  LCOMM_TRY(join(run, step));
  return sums_topk(run, step) ? sum_topk(run, step, factor) : sum_dense(run, step, factor);
}

/* ------------------------------------------------------------------ all */

lcomm_status lcomm_exec_compute(lcomm_run *run, uint32_t index) {
  const lcomm_step *step = &run->plan->schedule.steps[index];
  if (step->kind == LCOMM_STEP_DECODE) {
    return decode(run, step);
  }
  if (step->kind == LCOMM_STEP_REDUCE) {
    return reduce(run, step);
  }
  return lcomm_run_is_sparse(run, step->slot) ? encode_topk(run, index) : encode_dense(run, index);
}

static void trace_compute(const lcomm_run *run, const lcomm_computation *it, uint64_t waited,
                          double end_s) {
  const lcomm_step *step = &run->plan->schedule.steps[it->step];
  uint32_t slot = step->kind == LCOMM_STEP_REDUCE
                      ? run->plan->schedule.sources[step->sources + step->slot_count - 1]
                      : step->slot;
  const lcomm_format *format = slot == LCOMM_SOURCE_SELF ? NULL : lcomm_run_format(run, slot);
  lcomm_trace_event event = {.kind = (lcomm_trace_kind)step->kind,
                             .begin_s = it->begun_s,
                             .end_s = end_s,
                             .operation = lcomm_collective_name(run->plan->collective),
                             .sequence = run->sequence,
                             .step = it->step,
                             .peer = -1,
                             .bytes = lcomm_span_count(step->span) * run->plan->element_size,
                             .name = run->data.name,
                             .codec = format ? format->codec->name : NULL,
                             .waited = waited};
  lcomm_trace_add(run->comm->observers.trace, &event);
}

void lcomm_exec_end_compute(lcomm_run *run, const lcomm_computation *it) {
  const lcomm_step *step = &run->plan->schedule.steps[it->step];
  bool encodes = step->kind == LCOMM_STEP_ENCODE;
  if (encodes) {
    end_encode(run, step);
  }
  double end_s = lcomm_clock_s();
  uint64_t waited = encodes ? count_waiting(run, it->step) : 0;
  lcomm_exec_release(run, step);
  *(encodes ? &run->stats.encode_s : &run->stats.decode_s) += end_s - it->begun_s;
  if (run->comm->observers.trace) {
    trace_compute(run, it, waited, end_s);
  }
}

void lcomm_exec_trace_copy(const lcomm_run *run, double begin_s, uint64_t bytes, const char *name) {
  if (!run->comm->observers.trace || !run->backend->is_host || bytes == 0) {
    return;
  }
  lcomm_trace_event event = {.kind = LCOMM_TRACE_COPY,
                             .begin_s = begin_s,
                             .end_s = lcomm_clock_s(),
                             .peer = -1,
                             .bytes = bytes,
                             .name = name};
  lcomm_trace_add(run->comm->observers.trace, &event);
}
