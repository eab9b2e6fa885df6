/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/engine/exec.h"

/* ------------------------------------------------------------ computations */

typedef struct stage_speeds {
  simulate_speed stage[LCOMM_STAGE_COUNT];
  simulate_speed plain; /* of results, without error feedback */
  double read_gb_s;     /* entries of a payload, which are few bytes and in a cache */
  double copy_gb_s, sum_gb_s;
  simulate_time launch;
} stage_speeds;

static stage_speeds speeds_of(const lcomm_plan *plan, const simulate_speeds *speeds,
                              const simulate_speeds *cached) {
  stage_speeds it = {.copy_gb_s = speeds->copy_gb_s,
                     .sum_gb_s = speeds->sum_gb_s,
                     .launch = simulate_time_of(speeds->launch_us * 1e-6)};
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    it.stage[i] = simulate_speeds_of(speeds, &plan->stages[i]);
  }
  lcomm_codec_spec plain = plan->stages[LCOMM_STAGE_RESULT];
  plain.error_feedback = false;
  it.plain = simulate_speeds_of(speeds, &plain);
  it.read_gb_s = simulate_speeds_of(cached, &plan->stages[LCOMM_STAGE_NET]).add_gb_s;
  return it;
}

static bool is_sparse(const lcomm_plan *plan, uint32_t slot) {
  lcomm_stage stage = plan->schedule.slots[slot].stage;
  return !plan->plain && lcomm_format_is_sparse(&plan->stages[stage].format);
}

/* The first source is where the sum begins: it is copied, entries of a selection among zeros. Each
 * further one is added to it. */
static simulate_time reduce_time(const lcomm_plan *plan, const lcomm_step *step,
                                 const stage_speeds *speeds) {
  const lcomm_schedule *schedule = &plan->schedule;
  double count = (double)lcomm_span_count(step->span);
  simulate_time time = 0;
  bool own = false, sparse = false;
  for (uint32_t i = 0; i < step->slot_count; i++) {
    uint32_t source = schedule->sources[step->sources + i];
    if (source == LCOMM_SOURCE_SELF) {
      own = true;
    } else {
      time += simulate_speeds_time(count, speeds->stage[schedule->slots[source].stage].add_gb_s);
      sparse |= is_sparse(plan, source);
    }
  }
  if (own || step->slot_count == 0) {
    return time;
  }
  simulate_time one = time / step->slot_count;
  double first_gb_s = sparse ? speeds->stage[LCOMM_STAGE_NET].decode_gb_s : speeds->copy_gb_s;
  return time - one + simulate_speeds_time(count, first_gb_s);
}

/* What was sent and is applied leaves the residual: as many entries as an addition has, and those
 * of the other payload are read too, as by an addition in a cache. */
static simulate_time commit_time(const lcomm_plan *plan, const lcomm_step *step,
                                 const stage_speeds *speeds) {
  const lcomm_codec_spec *net = &plan->stages[LCOMM_STAGE_NET];
  double count = (double)lcomm_span_count(step->span);
  if (step->commit == LCOMM_NO_SLOT || !net->error_feedback) {
    return 0;
  }
  return simulate_speeds_time(count, speeds->stage[LCOMM_STAGE_NET].add_gb_s) +
         simulate_speeds_time(count, speeds->read_gb_s);
}

/* An owner selects from a sum, which no residual is added to; the errors of what it sends are added
 * to its residual. */
static simulate_time owner_time(const lcomm_plan *plan, double count, const stage_speeds *speeds) {
  bool feeds_back = plan->stages[LCOMM_STAGE_NET].error_feedback;
  double add_gb_s = feeds_back ? speeds->stage[LCOMM_STAGE_NET].add_gb_s : 0;
  return simulate_speeds_time(count, speeds->plain.encode_gb_s) +
         simulate_speeds_time(count, add_gb_s);
}

static simulate_time compute_time(const lcomm_plan *plan, const lcomm_step *step,
                                  const stage_speeds *speeds) {
  if (step->kind == LCOMM_STEP_REDUCE) {
    return reduce_time(plan, step, speeds) + speeds->launch;
  }
  const lcomm_slot *slot = &plan->schedule.slots[step->slot];
  double count = (double)lcomm_span_count(step->span);
  if (slot->alias.count > 0) {
    return 0;
  }
  if (step->kind == LCOMM_STEP_DECODE) {
    return simulate_speeds_time(count, speeds->stage[slot->stage].decode_gb_s) +
           commit_time(plan, step, speeds) + speeds->launch;
  }
  if (step->feedback == LCOMM_FEEDBACK_OWNER && is_sparse(plan, step->slot)) {
    return owner_time(plan, count, speeds) + speeds->launch;
  }
  return simulate_speeds_time(count, speeds->stage[slot->stage].encode_gb_s) + speeds->launch;
}

/* ------------------------------------------------------------------ arrays */

enum { LINE = 16 }; /* elements of a line of a cache */

/* Lines of the residual that entries of a selection lie on: each on one of its own. */
static double entries_share(const lcomm_plan *plan) {
  const lcomm_format *format = &plan->stages[LCOMM_STAGE_NET].format;
  double share = lcomm_format_is_sparse(format) ? LINE * format->density : 1;
  return share < 1 ? share : 1;
}

static double residual_share(const lcomm_plan *plan, const lcomm_step *step) {
  bool commits = step->kind == LCOMM_STEP_DECODE && step->commit != LCOMM_NO_SLOT;
  bool folds = step->feedback != LCOMM_FEEDBACK_NONE && step->feedback != LCOMM_FEEDBACK_OWNER;
  if (!plan->stages[LCOMM_STAGE_NET].error_feedback || !(commits || folds)) {
    return 0;
  }
  return commits ? entries_share(plan) : 1;
}

static bool same_span(const lcomm_step *a, const lcomm_step *b) {
  return b && a->span.first == b->span.first && a->span.count == b->span.count &&
         a->span.parts == b->span.parts && a->span.part == b->span.part;
}

/* What a computation touches. sum: the REDUCE before it, whose sum is encoded and decoded next. */
static void fill_touched(const lcomm_plan *plan, const lcomm_step *step, const lcomm_step *sum,
                         simulate_step *made) {
  double part = (double)lcomm_span_count(step->span) / (double)plan->vector_count;
  made->is_again = step != sum && same_span(step, sum);
  made->vector = (float)part;
  made->residual = (float)(part * residual_share(plan, step));
}

/* ---------------------------------------------------------------- messages */

/* Of its bound a payload of top-k fills this share: 25.4 bits for an entry where there is room for
 * 28.8 (allreduce_perf, 1 %). */
static const double SPARSE_FILL = 0.882;

/* What is sent. A bound counts as if no entry of a selection stayed with its owner. */
static uint64_t payload_size(const lcomm_plan *plan, uint32_t slot, int parties) {
  lcomm_stage stage = plan->schedule.slots[slot].stage;
  double size = (double)plan->slot_sizes[slot].share;
  bool is_split = plan->shape.exchange == LCOMM_EXCHANGE_SPARSE && stage == LCOMM_STAGE_NET;
  if (plan->plain || !lcomm_format_is_sparse(&plan->stages[stage].format)) {
    return plan->slot_sizes[slot].share;
  }
  return (uint64_t)(size * SPARSE_FILL * (is_split ? (parties - 1.0) / parties : 1) + 0.5);
}

static void fill_message(const lcomm_plan *plan, const lcomm_topo *topo, const lcomm_step *step,
                         simulate_step *made) {
  const lcomm_slot_size *size = &plan->slot_sizes[step->slot];
  int rank = plan->schedule.rank;
  int parties = plan->shape.hierarchical ? topo->nodes : topo->size;
  made->work = payload_size(plan, step->slot, parties) + LCOMM_WIRE_HEADER_SIZE;
  made->peer = (uint32_t)step->peer;
  made->message = step->message;
  made->link = (uint8_t)lcomm_topo_link(topo, rank, step->peer);
  made->is_paced = step->kind == LCOMM_STEP_SEND && size->bound > LCOMM_INLINE_SIZE &&
                   topo->node[rank] != topo->node[step->peer];
}

/* --------------------------------------------------------------- the whole */

static bool fill(const lcomm_plan *plan, const lcomm_topo *topo, const simulate_speeds *speeds,
                 const simulate_speeds *cached, simulate_program *program) {
  const lcomm_schedule *schedule = &plan->schedule;
  stage_speeds in_memory = speeds_of(plan, speeds, cached);
  stage_speeds in_cache = speeds_of(plan, cached, cached);
  const lcomm_step *sum = NULL;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    simulate_step *made = &program->steps[i];
    if (step->waits_for > UINT16_MAX) {
      return false;
    }
    *made = (simulate_step){.kind = (uint8_t)step->kind,
                            .waits_for = (uint16_t)step->waits_for,
                            .next_first = step->next_first,
                            .next_count = step->next_count};
    if (step->kind == LCOMM_STEP_SEND || step->kind == LCOMM_STEP_RECV) {
      fill_message(plan, topo, step, made);
    } else {
      sum = step->kind == LCOMM_STEP_REDUCE ? step : sum;
      made->work = compute_time(plan, step, &in_memory);
      made->cached = compute_time(plan, step, &in_cache);
      fill_touched(plan, step, sum, made);
    }
  }
  return true;
}

/* As the engine lays them out: a slot that is no part of the vector, nor in the place of another,
 * has room for a short message at least. */
static uint64_t slots_size(const lcomm_plan *plan) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    uint64_t bound = plan->slot_sizes[i].memory + LCOMM_WIRE_HEADER_SIZE;
    const lcomm_slot *slot = &plan->schedule.slots[i];
    bool own = slot->alias.count == 0;
    if (slot->place == i) {
      size += !own ? LCOMM_WIRE_HEADER_SIZE : bound > LCOMM_INLINE_SIZE ? bound : LCOMM_INLINE_SIZE;
    }
  }
  return size;
}

/* Reading moves half of the bytes of a copy. */
static const double READ_TIMES = 2;

static simulate_pass pass_over(double floats, double memory_gb_s, double cache_gb_s) {
  return (simulate_pass){.memory = simulate_speeds_time(floats, memory_gb_s),
                         .cache = simulate_speeds_time(floats, cache_gb_s)};
}

static simulate_pass both(simulate_pass a, simulate_pass b) {
  return (simulate_pass){.memory = a.memory + b.memory, .cache = a.cache + b.cache};
}

static void describe_copies(const lcomm_plan *plan, const simulate_speeds *speeds,
                            const simulate_speeds *cached, simulate_program *program) {
  double floats = (double)plan->vector_count * (double)plan->element_size / sizeof(float);
  simulate_pass none = {0}, copy = pass_over(floats, speeds->copy_gb_s, cached->copy_gb_s);
  simulate_pass read =
      pass_over(floats, READ_TIMES * speeds->copy_gb_s, READ_TIMES * cached->copy_gb_s);
  bool copies = plan->segments > 1; /* a tensor alone is its bucket's vector */
  /* Values of tensors and of lossy sums that are not finite are counted: the result is read. */
  bool counts = plan->error_feedback || plan->lossy;
  program->data_size = plan->vector_count * plan->element_size;
  program->fill = copy;
  program->stage_in = copies ? copy : none;
  program->stage_out = both(program->stage_in, counts ? read : none);
  program->memory_size = slots_size(plan) + (copies ? program->data_size : 0);
}

static void describe(const lcomm_plan *plan, simulate_program *program) {
  uint64_t first, residual;
  if (lcomm_plan_feedback(plan, &first, &residual)) {
    program->memory_size += residual * sizeof(float);
  }
  lcomm_codec_spec_format(&plan->stages[LCOMM_STAGE_NET], program->codec, sizeof program->codec);
  snprintf(program->reason, sizeof program->reason, "%s", plan->reason);
}

bool simulate_program_make(const lcomm_plan *plan, const lcomm_topo *topo,
                           const simulate_speeds *speeds, const simulate_speeds *cached,
                           simulate_program *program, char *why) {
  const lcomm_schedule *schedule = &plan->schedule;
  cached = cached ? cached : speeds;
  *program = (simulate_program){.step_count = schedule->step_count,
                                .block = lcomm_allreduce_block(&plan->shape, topo->nodes)};
  program->steps = malloc((schedule->step_count + 1) * sizeof *program->steps);
  program->next = malloc((schedule->next_count + 1) * sizeof *program->next);
  if (!program->steps || !program->next) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for a schedule of %u steps",
             schedule->step_count);
    simulate_program_free(program);
    return false;
  }
  if (schedule->next_count > 0) {
    memcpy(program->next, schedule->next, schedule->next_count * sizeof *program->next);
  }
  if (!fill(plan, topo, speeds, cached, program)) {
    snprintf(why, SIMULATE_WHY_MAX, "a step waits for more than %d others", (int)UINT16_MAX);
    simulate_program_free(program);
    return false;
  }
  describe_copies(plan, speeds, cached, program);
  describe(plan, program);
  return true;
}

void simulate_program_free(simulate_program *program) {
  free(program->steps);
  free(program->next);
  *program = (simulate_program){0};
}
