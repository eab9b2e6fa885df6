/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_compare.h"

#include <stdlib.h>

#include "codecs/codec_sum.h"
#include "codecs/codec_topk.h"
#include "tools/codec/codec_compare_zstd.h"
#include "tools/codec/codec_quickselect.h"
#include "tools/common/tool_pages.h"

/* ------------------------------------------------------------ what they share */

typedef struct task {
  const lcomm_kernels *const *tables;
  size_t table_count;
} task;

/* The rivals of a race: one way by every table, then the other way, by every
 * table (stride 1) or once for all (stride 0). */
typedef struct card {
  const char *name, *rival;
  lcomm_lane_runner run;
  size_t rivals, other; /* all of them; number of the first of the other way */
  size_t stride;
} card;

static lcomm_status fight(const lcomm_bench_options *options, lcomm_lanes *lanes, const card *c,
                          lcomm_result *result) {
  task t = {options->tables, options->table_count};
  double gb = lcomm_lanes_gb(lanes), *seconds = calloc(lanes->repetitions * c->rivals, sizeof gb);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_race race;
  lcomm_status status = lcomm_lanes_race(lanes, &t, c->run, c->rivals, &race, seconds);
  for (size_t i = 0; status == LCOMM_OK && i < t.table_count; i++) {
    size_t other = c->other + i * c->stride;
    result->duels[result->duel_count++] =
        (lcomm_duel){.name = c->name,
                     .rival = c->rival,
                     .kernels = t.tables[i],
                     .size_bytes = lanes->size_bytes,
                     .gb_s = lcomm_race_rate(&race, seconds, i, gb),
                     .rival_gb_s = lcomm_race_rate(&race, seconds, other, gb),
                     .times = lcomm_race_ratio(&race, seconds, i, other)};
  }
  free(seconds);
  return status;
}

/* ----------------------------------------------------------------------- sums */

/* The payloads of a lane's peers. */
typedef struct peers {
  size_t count;
  lcomm_subject *subject[LCOMM_BENCH_PEERS_MAX];
  lcomm_summand summand[LCOMM_BENCH_PEERS_MAX];
} peers;

static void sum_in_passes(const lcomm_lane *lane, const lcomm_kernels *kernels) {
  const peers *p = lane->own;
  const lcomm_format *format = p->summand[0].format;
  lcomm_range range = lcomm_range_whole(lane->count);
  lcomm_decode(format, kernels, p->summand[0].payload, range, 1.0f, lane->destination);
  for (size_t i = 1; i < p->count; i++) {
    lcomm_accumulate(format, kernels, p->summand[i].payload, range, 1.0f, lane->destination);
  }
}

static void run_sum(void *argument, size_t rival) {
  const lcomm_lane *lane = argument;
  const task *t = lane->task;
  const peers *p = lane->own;
  if (rival < t->table_count) {
    lcomm_sum(t->tables[rival], p->summand, p->count, lcomm_range_whole(lane->count), 1.0f,
              lane->destination);
  } else {
    sum_in_passes(lane, t->tables[rival - t->table_count]);
  }
}

static void destroy_peers(peers *p) {
  for (size_t i = 0; p != NULL && i < p->count; i++) {
    lcomm_subject_destroy(p->subject[i]);
  }
  free(p);
}

static lcomm_status create_peers(const lcomm_bench_codec *codec, uint64_t count, lcomm_lane *lane) {
  lcomm_codec_choice plain = {.format = codec->choice.format};
  lcomm_subject_shape shape = {.choice = &plain, .count = lane->count};
  peers *p = calloc(1, sizeof *p);
  lane->own = p;
  lcomm_status status = p ? LCOMM_OK : LCOMM_ERR_MEMORY;
  for (size_t i = 0; status == LCOMM_OK && i < count; i++) {
    status = lcomm_subject_create(&shape, &p->subject[i]);
    if (status != LCOMM_OK) {
      return status;
    }
    p->count++;
    lcomm_subject_encode(p->subject[i], lcomm_kernels_best(), lane->source, i);
    p->summand[i] = (lcomm_summand){.format = &codec->choice.format,
                                    .payload = lcomm_subject_payload(p->subject[i])};
  }
  return status;
}

static lcomm_status sum_peers(const lcomm_bench_options *options, lcomm_lanes *lanes,
                              lcomm_result *result) {
  size_t tables = options->table_count;
  card c = {"sum in one pass", "one pass per peer", run_sum, 2 * tables, tables, 1};
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < lanes->threads; i++) {
    status = create_peers(result->codec, options->peers, &lanes->lane[i]);
  }
  if (status == LCOMM_OK) {
    status = fight(options, lanes, &c, result);
  }
  for (size_t i = 0; i < lanes->threads; i++) {
    destroy_peers(lanes->lane[i].own);
    lanes->lane[i].own = NULL;
  }
  return status;
}

/* ---------------------------------------------------------------------- top-k */

/* What quickselect takes in a lane; the residual is the lane's scratch. */
typedef struct selector {
  bool feedback;
  size_t count, kept;
  uint32_t *key, *position;
  float *value;
} selector;

static void select_plainly(const lcomm_lane *lane, const lcomm_kernels *kernels) {
  const selector *s = lane->own;
  const float *values = lane->source;
  if (s->feedback) {
    kernels->f32_add(lane->source, 1.0f, lane->scratch, lane->count);
    values = lane->scratch;
  }
  size_t found = lcomm_fastpathselect(values, lane->count, s->kept, s->key, s->position, s->value);
  for (size_t i = 0; s->feedback && i < found; i++) {
    lane->scratch[s->position[i]] = 0.0f;
  }
}

static void run_topk(void *argument, size_t rival) {
  const lcomm_lane *lane = argument;
  const task *t = lane->task;
  if (rival < t->table_count) {
    lcomm_subject_encode(lane->subject, t->tables[rival], lane->source, 1);
  } else {
    select_plainly(lane, t->tables[t->table_count - 1]);
  }
}

static void destroy_selector(selector *s) {
  if (!s) {
    return;
  }
  lcomm_pages_free(s->key, s->count * sizeof *s->key);
  lcomm_pages_free(s->position, s->kept * sizeof *s->position);
  lcomm_pages_free(s->value, s->kept * sizeof *s->value);
  free(s);
}

static lcomm_status create_selector(const lcomm_codec_choice *choice, lcomm_lane *lane) {
  const lcomm_format *format = &choice->format;
  selector *s = calloc(1, sizeof *s);
  lane->own = s;
  if (!s) {
    return LCOMM_ERR_MEMORY;
  }
  uint64_t kept =
      format->density > 0.0 ? lcomm_topk_entries(format->density, lane->count) : format->kept;
  s->feedback = choice->error_feedback;
  s->count = lane->count;
  s->kept = kept < lane->count ? (size_t)kept : lane->count;
  s->key = lcomm_pages_alloc(s->count * sizeof *s->key);
  s->position = lcomm_pages_alloc(s->kept * sizeof *s->position);
  s->value = lcomm_pages_alloc(s->kept * sizeof *s->value);
  for (size_t i = 0; i < lane->count; i++) {
    lane->scratch[i] = 0.0f;
  }
  return s->key != NULL && s->position && s->value ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status against_quickselect(const lcomm_bench_options *options, lcomm_lanes *lanes,
                                        lcomm_result *result) {
  size_t tables = options->table_count;
  card c = {"top-k", "quickselect", run_topk, tables + 1, tables, 0};
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < lanes->threads; i++) {
    status = create_selector(&result->codec->choice, &lanes->lane[i]);
  }
  if (status == LCOMM_OK) {
    status = fight(options, lanes, &c, result);
  }
  for (size_t i = 0; i < lanes->threads; i++) {
    destroy_selector(lanes->lane[i].own);
    lanes->lane[i].own = NULL;
  }
  return status;
}

lcomm_status lcomm_duel_run(const lcomm_results *results, lcomm_lanes *lanes,
                            lcomm_result *result) {
  const lcomm_bench_options *options = results->options;
  const lcomm_format *format = &result->codec->choice.format;
  lcomm_status status = LCOMM_OK;
  if (options->peers > 0 && !lcomm_format_is_sparse(format) && !format->zstd) {
    status = sum_peers(options, lanes, result);
  }
  if (status == LCOMM_OK && options->baselines && lcomm_format_is_sparse(format) && !format->zstd) {
    status = against_quickselect(options, lanes, result);
  }
  bool largest = lanes->size_bytes == options->sizes[options->size_count - 1];
  if (status == LCOMM_OK && options->baselines && format->zstd && largest) {
    status = lcomm_duel_zstd(results, lanes, result);
  }
  return status;
}
