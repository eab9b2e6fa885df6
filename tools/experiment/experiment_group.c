/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_units.h"

double experiment_rate_bits(const char *rate) {
  double bytes_per_s = 0.0;
  return rate[0] != '\0' && tool_units_read_bandwidth(rate, &bytes_per_s) ? 8.0 * bytes_per_s : 0.0;
}

bool experiment_group_is_exact(const experiment_group *of) {
  return of->policy[0] == '\0' || strcmp(of->policy, "net=none") == 0;
}

bool experiment_same_place(const experiment_group *a, const experiment_group *b) {
  return a->of == b->of && a->world.hosts == b->world.hosts && a->world.ranks == b->world.ranks &&
         a->model == b->model && !(a->delay_ms < b->delay_ms || a->delay_ms > b->delay_ms);
}

const char *experiment_place_name(const experiment_group *of, char *text, size_t size) {
  char delay[32] = "";
  if (of->delay_ms > 0.0) {
    snprintf(delay, sizeof delay, ", %g ms", of->delay_ms);
  }
  snprintf(text, size, "%s: %d host%s x %d%s%s%s", of->of->name, of->world.hosts,
           of->world.hosts == 1 ? "" : "s", of->world.ranks, of->model[0] ? ", " : "", of->model,
           delay);
  return text;
}

/* --------------------------------------------------------------------- means */

/* The mean so far, with one more. */
static void add(double *mean, double value, size_t before) {
  *mean += (value - *mean) / (double)(before + 1);
}

static void add_epochs(experiment_group *to, const experiment_result *run) {
  size_t count = run->epoch_count;
  to->epoch_count = to->runs == 0 || count < to->epoch_count ? count : to->epoch_count;
  for (size_t i = 0; i < to->epoch_count; i++) {
    const experiment_epoch *it = &run->epochs[i];
    add(&to->epochs[i].seconds, it->seconds, to->runs);
    add(&to->epochs[i].accuracy, it->accuracy, to->runs);
    add(&to->epochs[i].sent_bytes, it->sent_bytes, to->runs);
    to->least[i] = to->runs == 0 ? it->accuracy : fmin(to->least[i], it->accuracy);
    to->most[i] = to->runs == 0 ? it->accuracy : fmax(to->most[i], it->accuracy);
  }
  if (to->epoch_count > 0) {
    to->accuracy = to->epochs[to->epoch_count - 1].accuracy;
    to->accuracy_least = to->least[to->epoch_count - 1];
    to->accuracy_most = to->most[to->epoch_count - 1];
    to->sent_bytes = to->epochs[to->epoch_count - 1].sent_bytes;
  }
}

static void add_rows(experiment_group *to, const experiment_result *run) {
  to->row_count = to->runs == 0 || run->row_count < to->row_count ? run->row_count : to->row_count;
  for (size_t i = 0; i < to->row_count; i++) {
    to->rows[i].size = run->rows[i].size;
    add(&to->rows[i].median_s, run->rows[i].median_s, to->runs);
    add(&to->rows[i].busbw_gb_s, run->rows[i].busbw_gb_s, to->runs);
    add(&to->rows[i].net_bytes, run->rows[i].net_bytes, to->runs);
  }
}

static void add_run(experiment_group *to, const experiment_result *run, double accuracy) {
  double to_s = experiment_result_time_to(run, accuracy);
  double epoch_s = experiment_result_epoch_s(run);
  add(&to->epoch_s, epoch_s, to->runs);
  to->to_s = to_s > 0.0 && (to->runs == 0 || to->to_s > 0.0)
                 ? to->to_s + (to_s - to->to_s) / (double)(to->runs + 1)
                 : 0.0;
  add(&to->interface_bytes, run->interface_bytes, to->runs);
  add(&to->steps, run->steps, to->runs);
  add(&to->step_s, run->step_s, to->runs);
  add(&to->compute_s, run->compute_s, to->runs);
  add(&to->encode_s, run->encode_s, to->runs);
  add(&to->decode_s, run->decode_s, to->runs);
  add(&to->wait_s, run->wait_s, to->runs);
  add(&to->wire_s, run->wire_s, to->runs);
  add_epochs(to, run);
  add_rows(to, run);
  to->runs++;
}

bool experiment_group_has(const experiment_group *to, const experiment_case *it) {
  return it->of == to->of && it->policy == to->policy && it->rate == to->rate &&
         it->model == to->model && !(it->delay_ms < to->delay_ms || it->delay_ms > to->delay_ms) &&
         it->world.hosts == to->world.hosts && it->world.ranks == to->world.ranks;
}

static void fill(experiment_group *to, const experiment *of) {
  for (size_t i = 0; i < of->count; i++) {
    if (!experiment_group_has(to, &of->cases[i]) || of->results[i].state == EXPERIMENT_MISSING) {
      continue;
    }
    if (of->results[i].state == EXPERIMENT_GOOD) {
      add_run(to, &of->results[i], of->file.accuracy);
    } else {
      to->failed++;
    }
  }
}

/* -------------------------------------------------------------------- groups */

/* Without one for each seed and repetition. */
static size_t add_workload(const experiment_workload *run, experiment_group *groups) {
  size_t made = 0;
  for (size_t w = 0; w < run->world_count; w++) {
    for (size_t m = 0; m < run->models.count; m++) {
      for (size_t d = 0; d < run->delays_ms.count; d++) {
        for (size_t i = 0; i < run->rates.count * run->policies.count; i++) {
          groups[made++] =
              (experiment_group){.of = run,
                                 .world = run->worlds[w],
                                 .model = run->models.words[m],
                                 .delay_ms = run->delays_ms.numbers[d],
                                 .rate = run->rates.words[i / run->policies.count],
                                 .policy = run->policies.words[i % run->policies.count]};
        }
      }
    }
  }
  return made;
}

/* Rates from slow to fast, within a place; all else stays as it is in the file. */
static void sort_rates(experiment_group *groups, size_t count) {
  for (size_t i = 1; i < count; i++) {
    experiment_group kept = groups[i];
    size_t at = i;
    for (; at > 0 && experiment_same_place(&groups[at - 1], &kept) &&
           experiment_rate_bits(groups[at - 1].rate) > experiment_rate_bits(kept.rate);
         at--) {
      groups[at] = groups[at - 1];
    }
    groups[at] = kept;
  }
}

/* Time per epoch, or of the largest size. */
static double time_of(const experiment_group *of) {
  return of->runs == 0       ? 0.0
         : of->epoch_s > 0.0 ? of->epoch_s
         : of->row_count > 0 ? of->rows[of->row_count - 1].median_s
                             : 0.0;
}

const experiment_group *experiment_find_exact(const experiment_groups *of,
                                              const experiment_group *as) {
  for (size_t i = 0; i < of->count; i++) {
    const experiment_group *it = &of->groups[i];
    if (experiment_group_is_exact(it) && it->rate == as->rate && it->runs > 0 &&
        experiment_same_place(it, as)) {
      return it;
    }
  }
  return NULL;
}

static void compare(const experiment_groups *of) {
  for (size_t i = 0; i < of->count; i++) {
    experiment_group *it = &of->groups[i];
    const experiment_group *exact = experiment_find_exact(of, it);
    it->speedup = exact && time_of(it) > 0.0 ? time_of(exact) / time_of(it) : 0.0;
  }
}

double experiment_simulated_share(const experiment_group *of) {
  return of->runs > 0 && of->step_s > 0.0 ? of->simulated.step_s / of->step_s : 0.0;
}

bool experiment_groups_make(const experiment *of, experiment_groups *made) {
  *made = (experiment_groups){of, 0, calloc(of->count, sizeof *made->groups)};
  for (size_t w = 0; made->groups && w < of->file.workload_count; w++) {
    made->count += add_workload(&of->file.workloads[w], made->groups + made->count);
  }
  for (size_t i = 0; i < made->count; i++) {
    fill(&made->groups[i], of);
  }
  sort_rates(made->groups, made->count);
  compare(made);
  return made->groups != NULL;
}

void experiment_groups_free(experiment_groups *of) {
  free(of->groups);
  *of = (experiment_groups){NULL, 0, NULL};
}
