/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_summary.h"
#include "tools/common/tool_timing.h"

#include <stdlib.h>
#include <string.h>

int lcomm_perf_samples_make(lcomm_perf_samples *samples, int count) {
  double *values = calloc((size_t)count * (1 + LCOMM_PERF_PHASE_COUNT), sizeof *values);
  *samples = (lcomm_perf_samples){.batch = 1, .count = count, .seconds = values};
  for (int phase = 0; values != NULL && phase < LCOMM_PERF_PHASE_COUNT; phase++) {
    samples->phases[phase] = values + (ptrdiff_t)count * (1 + phase);
  }
  return values != NULL;
}

void lcomm_perf_samples_free(lcomm_perf_samples *samples) {
  free(samples->seconds);
  samples->seconds = NULL;
}

static double all_messages(const lcomm_stats *stats) {
  uint64_t messages = 0;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    messages += stats->sent_messages[link];
  }
  return (double)messages;
}

void lcomm_perf_samples_count(lcomm_perf_samples *samples, int i, const lcomm_stats *now) {
  const lcomm_stats *before = &samples->last;
  double deltas[LCOMM_PERF_PHASE_COUNT] = {[LCOMM_PERF_ENCODE] = now->encode_s - before->encode_s,
                                           [LCOMM_PERF_DECODE] = now->decode_s - before->decode_s,
                                           [LCOMM_PERF_WIRE] = now->wire_s - before->wire_s,
                                           [LCOMM_PERF_WAIT] = now->wait_s - before->wait_s,
                                           [LCOMM_PERF_MESSAGES] =
                                               all_messages(now) - all_messages(before)};
  for (int phase = 0; phase < LCOMM_PERF_PHASE_COUNT; phase++) {
    samples->phases[phase][i] = deltas[phase] / samples->batch;
  }
  samples->last = *now;
}

double lcomm_perf_hidden(double alone_s, double compute_s, double both_s) {
  return alone_s > 0.0 ? 1.0 - (both_s - compute_s) / alone_s : 0.0;
}

/* The slowest rank's time counts. */
static void summarise_times(const lcomm_perf_world *world, lcomm_perf_samples *samples,
                            lcomm_perf_row *row) {
  const double *sorted = samples->seconds;
  int n = samples->count;
  lcomm_perf_world_max(world, samples->seconds, (size_t)n);
  row->median_s = tool_median(samples->seconds, (size_t)n);
  row->min_s = sorted[0];
  row->max_s = sorted[n - 1];
  row->p10_s = tool_percentile(sorted, (size_t)n, 0.10);
  row->p90_s = tool_percentile(sorted, (size_t)n, 0.90);
  row->p99_s = tool_percentile(sorted, (size_t)n, 0.99);
}

static void summarise_counters(const lcomm_perf_world *world, const lcomm_perf_samples *samples,
                               lcomm_perf_row *row) {
  enum { CPU, BYTES, PACKETS, LINKS };
  double sums[LINKS + 3 * LCOMM_LINK_COUNT];
  double operations = (double)samples->count * samples->batch;
  const lcomm_stats *first = &samples->first, *last = &samples->last;
  sums[CPU] = samples->cpu_s;
  sums[BYTES] = samples->interface_bytes;
  sums[PACKETS] = samples->interface_packets;
  double *sent = sums + LINKS, *exact = sent + LCOMM_LINK_COUNT,
         *messages = exact + LCOMM_LINK_COUNT;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    sent[link] = (double)(last->sent_bytes[link] - first->sent_bytes[link]);
    exact[link] = (double)(last->exact_bytes[link] - first->exact_bytes[link]);
    messages[link] = (double)(last->sent_messages[link] - first->sent_messages[link]);
  }
  lcomm_perf_world_sum(world, sums, sizeof sums / sizeof sums[0]);
  row->cpu_s = sums[CPU] / operations;
  row->interface_bytes = sums[BYTES] / operations;
  row->interface_packets = sums[PACKETS] / operations;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    row->sent_bytes[link] = sent[link] / operations;
    row->exact_bytes[link] = exact[link] / operations;
    row->messages[link] = messages[link] / operations;
  }
  row->memory_bytes = (double)last->memory_bytes;
  lcomm_perf_world_max(world, &row->memory_bytes, 1);
}

/* Each rank puts its medians into its places, and the sum is all of them. */
static int summarise_phases(const lcomm_perf_world *world, lcomm_perf_samples *samples,
                            lcomm_perf_row *row) {
  size_t count = (size_t)world->ranks * LCOMM_PERF_PHASE_COUNT;
  row->rank_phases = calloc(count, sizeof *row->rank_phases);
  if (!row->rank_phases) {
    return 0;
  }
  for (int phase = 0; phase < LCOMM_PERF_PHASE_COUNT; phase++) {
    row->rank_phases[phase * world->ranks + world->rank] =
        tool_median(samples->phases[phase], (size_t)samples->count);
  }
  lcomm_perf_world_sum(world, row->rank_phases, count);
  return 1;
}

/* The rest of the line that begins with `key`; not terminated. */
static const char *find_line(const char *plan, const char *key, int *length) {
  const char *line = strstr(plan, key);
  line = line ? line + strlen(key) : "";
  line += strspn(line, " ");
  *length = (int)strcspn(line, "\n");
  return line;
}

void lcomm_perf_plan_words(const char *plan, char words[LCOMM_PERF_PLAN_MAX]) {
  int codec_length, algorithm_length;
  const char *codec = find_line(plan, "\n  between ", &codec_length);
  const char *algorithm = find_line(plan, "\n  algorithm ", &algorithm_length);
  snprintf(words, LCOMM_PERF_PLAN_MAX, "%.*s, %.*s", codec_length, codec, algorithm_length,
           algorithm);
}

/* After the last call: net=auto may have changed its mind. */
static void summarise_plan(const lcomm_perf_backend *backend, lcomm_perf_row *row) {
  char plan[4096];
  if (backend->comm && row->call.collective->kind == LCOMM_PERF_ALLREDUCE &&
      lcomm_plan_print(backend->comm, row->call.count, row->call.dtype, backend->tensors != NULL,
                       plan, sizeof plan) == LCOMM_OK) {
    lcomm_perf_plan_words(plan, row->plan);
  }
}

int lcomm_perf_summarise(const lcomm_perf_world *world, const lcomm_perf_backend *backend,
                         const lcomm_perf_call *call, lcomm_perf_samples *samples,
                         lcomm_perf_row *row) {
  uint64_t whole = lcomm_perf_whole_count(call->collective, call->count, world->ranks);
  *row = (lcomm_perf_row){.call = *call,
                          .label = backend->label,
                          .size_bytes = (double)whole * (double)lcomm_dtype_size(call->dtype),
                          .batch = samples->batch,
                          .is_libcomm = backend->comm != NULL};
  summarise_times(world, samples, row);
  summarise_counters(world, samples, row);
  summarise_plan(backend, row);
  return !row->is_libcomm || summarise_phases(world, samples, row);
}

void lcomm_perf_row_free(lcomm_perf_row *row) {
  free(row->rank_phases);
  row->rank_phases = NULL;
}

void lcomm_perf_row_check(const lcomm_perf_world *world, lcomm_perf_difference difference,
                          lcomm_perf_row *row) {
  double sums[3] = {difference.error_square, difference.result_square, (double)difference.wrong};
  lcomm_perf_world_sum(world, sums, 3);
  row->is_checked = 1;
  row->error = sums[1] > 0.0 ? sums[0] / sums[1] : 0.0;
  row->wrong = (uint64_t)sums[2];
}
