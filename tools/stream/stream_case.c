/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_case.h"

#include <string.h>

#include "libcomm_collectives.h"
#include "tools/stream/stream_bits.h"
#include "tools/stream/stream_replay.h"
#include "tools/stream/stream_work.h"

static const double MICRO = 1e-6, MILLI = 1e-3;

/* -------------------------------------------------------------------- times */

static bool time_of_sum(const stream_work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = stream_put_sum(w) && stream_finish(w, w->world->stream);
  *seconds = tool_now_s() - begin_s;
  return good;
}

static bool time_of_call(const stream_work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = stream_put_sum(w);
  *seconds = tool_now_s() - begin_s;
  return good && stream_finish(w, w->world->stream);
}

static void run_timed(stream_world *world, stream_result *result, stream_timed *run) {
  stream_work w = stream_work_of(world, result);
  result->measured = stream_work_begin(&w) && stream_measure(&w, run, MICRO);
  stream_work_end(&w);
}

static void latency(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_sum);
}

static void host(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_call);
}

/* ------------------------------------------------------------------- hidden */

static bool put_products(const stream_work *w, uint64_t products) {
  const stream_load *load = w->world->load;
  for (uint64_t i = 0; i < products; i++) {
    if (load->put(load->state, w->world->compute) != 0) {
      return stream_fail(w->result, true, "a product of matrices could not be put into its stream");
    }
  }
  return true;
}

static bool time_of_products(const stream_work *w, uint64_t products, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_products(w, products) && stream_finish(w, w->world->compute);
  *seconds = tool_now_s() - begin_s;
  return good;
}

static bool time_of_both(const stream_work *w, uint64_t products, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_products(w, products) && stream_put_sum(w) &&
              stream_finish(w, w->world->stream) && stream_finish(w, w->world->compute);
  *seconds = tool_now_s() - begin_s;
  return good;
}

/* As many products as take half as long again as a sum, the same number on all ranks. */
static bool choose_products(const stream_work *w, uint64_t *products) {
  enum { TRIED = 4 };
  double one = 0, sum = 0;
  if (!stream_meet(w) || !time_of_sum(w, &sum) || !stream_meet(w) || !time_of_sum(w, &sum) ||
      !time_of_products(w, TRIED, &one) || !stream_meet(w) || !time_of_products(w, TRIED, &one)) {
    return false;
  }
  *products = 1 + (uint64_t)(1.5 * sum / (one / TRIED));
  return stream_is_made(
      w, lcomm_allreduce(w->world->comm, products, products, 1, LCOMM_INT64, LCOMM_MAX));
}

static bool measure_hidden(stream_work *w) {
  stream_world *world = w->world;
  uint64_t products = 0;
  if (!choose_products(w, &products)) {
    return false;
  }
  for (uint64_t i = 0; i < world->options->samples; i++) {
    double sum = 0, alone = 0, both = 0;
    if (!stream_meet(w) || !time_of_sum(w, &sum) || !stream_meet(w) ||
        !time_of_products(w, products, &alone) || !stream_meet(w) ||
        !time_of_both(w, products, &both)) {
      return false;
    }
    world->times[i] = (alone + sum - both) / sum;
  }
  w->result->value = tool_spread_of(world->times, world->options->samples);
  return stream_is_right(w);
}

static void hidden(stream_world *world, stream_result *result) {
  stream_work w = stream_work_of(world, result);
  if (!world->load) {
    (void)stream_fail(result, false, "%s", world->no_load);
    return;
  }
  result->measured = stream_work_begin(&w) && measure_hidden(&w);
  stream_work_end(&w);
}

/* ----------------------------------------------------------------- allocate */

/* Some sums in flight, and memory that comes and goes meanwhile. */
static bool time_of_allocations(const stream_work *w, double *seconds) {
  enum { SUMS = 4, PIECES = 4 };
  static const size_t size = (size_t)5 << 20;
  const lcomm_device_table *device = w->world->device;
  bool good = true;
  for (int i = 0; i < SUMS && good; i++) {
    good = stream_put_sum(w);
  }
  double begin_s = tool_now_s();
  for (int i = 0; i < PIECES && good; i++) {
    void *memory = NULL, *pinned = NULL;
    good = stream_is_fine(w, device->memory.get(size, &memory)) &&
           stream_is_fine(w, device->memory.pinned_get(size, &pinned)) &&
           stream_is_fine(w, device->memory.free(memory)) &&
           stream_is_fine(w, device->memory.pinned_free(pinned));
  }
  *seconds = (tool_now_s() - begin_s) / PIECES;
  return good && stream_finish(w, w->world->stream);
}

static void allocate(stream_world *world, stream_result *result) {
  stream_work w = stream_work_of(world, result);
  result->measured = stream_work_begin(&w) && stream_measure(&w, time_of_allocations, MILLI);
  stream_work_end(&w);
}

/* -------------------------------------------------------------------- cases */

#define MIB(n) ((uint64_t)(n) << 18) /* float32 */

const stream_case stream_cases[] = {
    {"latency 8 B", "us", 0, false, 2, latency, false},
    {"latency 1 MiB", "us", 0, false, MIB(1), latency, false},
    {"host 1 MiB", "us", 30, false, MIB(1), host, false},
    {"host 100 MiB", "us", 300, false, MIB(100), host, false},
    {"same bits", "us", 0, false, MIB(1), stream_bits_of_calls, false},
    {"graph bits", "us", 0, false, MIB(1), stream_bits_of_replays, false},
    {"graph 8 B", "us", 0, false, 2, stream_replay_latency, false},
    {"graph 1 MiB", "us", 0, false, MIB(1), stream_replay_latency, false},
    {"graph launch 1 MiB", "us", 0, false, MIB(1), stream_replay_launch, false},
    {"hidden 100 MiB", "", 0.85, true, MIB(100), hidden, true},
    {"allocate", "ms", 0, false, MIB(16), allocate, false},
};
const size_t stream_case_count = sizeof(stream_cases) / sizeof(stream_cases[0]);

bool stream_case_is_wanted(const stream_case *what, const stream_options *options) {
  return !options->only || strstr(what->name, options->only);
}

void stream_case_run(stream_world *world, const stream_case *what, stream_result *result) {
  *result = (stream_result){.what = what};
  what->run(world, result);
}

bool stream_case_met(const stream_result *result) {
  double value = result->value.median, target = result->what->target;
  return result->measured &&
         (target <= 0 || (result->what->is_least ? value >= target : value <= target));
}
