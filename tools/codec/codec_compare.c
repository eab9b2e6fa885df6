/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_compare.h"

#include <stdlib.h>

#include "codecs/codec_sum.h"
#include "codecs/codec_topk.h"
#include "tools/codec/codec_quickselect.h"
#include "tools/common/tool_pages.h"

/* ------------------------------------------------------------ what they share */

typedef struct task {
  const lcomm_kernels *const *tables;
  size_t table_count;
} task;

/* The variants of a timing: one way by every table, then the other way, by every
 * table (stride 1) or once for all (stride 0). */
typedef struct pairing {
  const char *name, *other_name;
  tool_timing_runner run;
  size_t variants, other; /* all of them; number of the first of the other way */
  size_t stride;
  /* What `run` needs besides, in worker->own; freed also when it could not all be made. */
  lcomm_status (*create)(const lcomm_bench_options *options, const lcomm_codec_spec *choice,
                         lcomm_worker *worker);
  void (*destroy)(void *own);
} pairing;

static lcomm_status time_both(const lcomm_bench_options *options, lcomm_workers *workers,
                              const pairing *c, lcomm_result *result) {
  task t = {options->tables, options->table_count};
  double gb = lcomm_workers_gb(workers),
         *seconds = calloc(workers->repetitions * c->variants, sizeof gb);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  tool_timing timing;
  lcomm_status status = lcomm_workers_time(workers, &t, c->run, c->variants, &timing, seconds);
  for (size_t i = 0; status == LCOMM_OK && i < t.table_count; i++) {
    size_t other = c->other + i * c->stride;
    result->comparisons[result->comparison_count++] =
        (lcomm_comparison){.name = c->name,
                           .other = c->other_name,
                           .kernels = t.tables[i],
                           .size_bytes = workers->size_bytes,
                           .gb_s = tool_timing_rate(&timing, seconds, i, gb),
                           .other_gb_s = tool_timing_rate(&timing, seconds, other, gb),
                           .times = tool_timing_ratio(&timing, seconds, i, other)};
  }
  free(seconds);
  return status;
}

static lcomm_status compare(const lcomm_bench_options *options, lcomm_workers *workers,
                            const pairing *c, lcomm_result *result) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < workers->threads; i++) {
    status = c->create(options, &result->codec->choice, &workers->worker[i]);
  }
  if (status == LCOMM_OK) {
    status = time_both(options, workers, c, result);
  }
  for (size_t i = 0; i < workers->threads; i++) {
    c->destroy(workers->worker[i].own);
    workers->worker[i].own = NULL;
  }
  return status;
}

/* ----------------------------------------------------------------------- sums */

/* The payloads of a worker's peers. */
typedef struct peers {
  size_t count;
  lcomm_under_test *tested[LCOMM_BENCH_PEERS_MAX];
  lcomm_summand summand[LCOMM_BENCH_PEERS_MAX];
} peers;

static void sum_in_passes(const lcomm_worker *worker, const lcomm_kernels *kernels) {
  const peers *p = worker->own;
  const lcomm_format *format = p->summand[0].format;
  lcomm_range range = lcomm_range_whole(worker->count);
  lcomm_decode(format, kernels, p->summand[0].payload, range, 1.0f, worker->destination);
  for (size_t i = 1; i < p->count; i++) {
    lcomm_accumulate(format, kernels, p->summand[i].payload, range, 1.0f, worker->destination);
  }
}

static void run_sum(void *argument, size_t variant) {
  const lcomm_worker *worker = argument;
  const task *t = worker->task;
  const peers *p = worker->own;
  if (variant < t->table_count) {
    lcomm_sum(t->tables[variant], p->summand, p->count, lcomm_range_whole(worker->count), 1.0f,
              worker->destination);
  } else {
    sum_in_passes(worker, t->tables[variant - t->table_count]);
  }
}

static void destroy_peers(void *own) {
  peers *p = own;
  for (size_t i = 0; p != NULL && i < p->count; i++) {
    lcomm_under_test_destroy(p->tested[i]);
  }
  free(p);
}

static lcomm_status create_peers(const lcomm_bench_options *options, const lcomm_codec_spec *choice,
                                 lcomm_worker *worker) {
  lcomm_codec_spec plain = {.format = choice->format};
  lcomm_under_test_shape shape = {.choice = &plain, .count = worker->count};
  peers *p = calloc(1, sizeof *p);
  worker->own = p;
  lcomm_status status = p ? LCOMM_OK : LCOMM_ERR_MEMORY;
  for (size_t i = 0; status == LCOMM_OK && i < options->peers; i++) {
    status = lcomm_under_test_create(&shape, &p->tested[i]);
    if (status != LCOMM_OK) {
      return status;
    }
    p->count++;
    lcomm_under_test_encode(p->tested[i], lcomm_kernels_best(), worker->source, i);
    p->summand[i] = (lcomm_summand){.format = &choice->format,
                                    .payload = lcomm_under_test_payload(p->tested[i])};
  }
  return status;
}

static lcomm_status sum_peers(const lcomm_bench_options *options, lcomm_workers *workers,
                              lcomm_result *result) {
  size_t tables = options->table_count;
  pairing c = {"sum in one pass", "one pass per peer", run_sum, 2 * tables, tables, 1,
               create_peers,      destroy_peers};
  return compare(options, workers, &c, result);
}

/* ---------------------------------------------------------------------- top-k */

/* What quickselect takes in a worker; the residual is the worker's scratch. */
typedef struct selector {
  bool feedback;
  size_t count, kept;
  uint32_t *key, *position;
  float *value;
} selector;

static void select_plainly(const lcomm_worker *worker, const lcomm_kernels *kernels) {
  const selector *s = worker->own;
  const float *values = worker->source;
  if (s->feedback) {
    kernels->f32_add(worker->source, 1.0f, worker->scratch, worker->count);
    values = worker->scratch;
  }
  size_t found =
      lcomm_fastpathselect(values, worker->count, s->kept, s->key, s->position, s->value);
  for (size_t i = 0; s->feedback && i < found; i++) {
    worker->scratch[s->position[i]] = 0.0f;
  }
}

static void run_topk(void *argument, size_t variant) {
  const lcomm_worker *worker = argument;
  const task *t = worker->task;
  if (variant < t->table_count) {
    lcomm_under_test_encode(worker->tested, t->tables[variant], worker->source, 1);
  } else {
    select_plainly(worker, t->tables[t->table_count - 1]);
  }
}

static void destroy_selector(void *own) {
  selector *s = own;
  if (!s) {
    return;
  }
  tool_pages_free(s->key, s->count * sizeof *s->key);
  tool_pages_free(s->position, s->kept * sizeof *s->position);
  tool_pages_free(s->value, s->kept * sizeof *s->value);
  free(s);
}

static lcomm_status create_selector(const lcomm_bench_options *options,
                                    const lcomm_codec_spec *choice, lcomm_worker *worker) {
  (void)options;
  const lcomm_format *format = &choice->format;
  selector *s = calloc(1, sizeof *s);
  worker->own = s;
  if (!s) {
    return LCOMM_ERR_MEMORY;
  }
  uint64_t kept =
      format->density > 0.0 ? lcomm_topk_entries(format->density, worker->count) : format->kept;
  s->feedback = choice->error_feedback;
  s->count = worker->count;
  s->kept = kept < worker->count ? (size_t)kept : worker->count;
  s->key = tool_pages_alloc(s->count * sizeof *s->key);
  s->position = tool_pages_alloc(s->kept * sizeof *s->position);
  s->value = tool_pages_alloc(s->kept * sizeof *s->value);
  for (size_t i = 0; i < worker->count; i++) {
    worker->scratch[i] = 0.0f;
  }
  return s->key != NULL && s->position && s->value ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

static lcomm_status against_quickselect(const lcomm_bench_options *options, lcomm_workers *workers,
                                        lcomm_result *result) {
  size_t tables = options->table_count;
  pairing c = {"top-k", "quickselect",   run_topk,        tables + 1, tables,
               0,       create_selector, destroy_selector};
  return compare(options, workers, &c, result);
}

lcomm_status lcomm_compare_run(const lcomm_results *results, lcomm_workers *workers,
                               lcomm_result *result) {
  const lcomm_bench_options *options = results->options;
  const lcomm_format *format = &result->codec->choice.format;
  lcomm_status status = LCOMM_OK;
  if (options->peers > 0 && !lcomm_format_is_sparse(format) && !format->zstd) {
    status = sum_peers(options, workers, result);
  }
  if (status == LCOMM_OK && options->baselines && lcomm_format_is_sparse(format) && !format->zstd) {
    status = against_quickselect(options, workers, result);
  }
  bool largest = workers->size_bytes == options->sizes[options->size_count - 1];
  if (status == LCOMM_OK && options->baselines && format->zstd && largest) {
    status = lcomm_compare_zstd(results, workers, result);
  }
  return status;
}
