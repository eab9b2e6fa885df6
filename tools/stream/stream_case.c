/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm_collectives.h"

static const double MICRO = 1e-6, MILLI = 1e-3;

/* What a case works on. */
typedef struct work {
  stream_world *world;
  stream_result *result;
  uint64_t count;
  float *send, *receive; /* on the device */
} work;

__attribute__((format(printf, 3, 4))) static bool fail(stream_result *result, bool is_wrong,
                                                       const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->why, sizeof(result->why), format, arguments);
  va_end(arguments);
  result->is_wrong = is_wrong;
  return false;
}

static bool is_fine(const work *w, int error) {
  return error == 0 || fail(w->result, true, "the device: %s", w->world->device->explain(error));
}

static bool is_made(const work *w, lcomm_status status) {
  return status == LCOMM_OK || fail(w->result, true, "%s: %s", lcomm_status_name(status),
                                    lcomm_last_error(w->world->comm));
}

/* ---------------------------------------------------------------- beginning */

/* All values are one: every sum is the number of ranks. */
static bool fill(const work *w) {
  const lcomm_device_table *device = w->world->device;
  size_t size = w->count * sizeof(float);
  float *ones = malloc(size);
  for (uint64_t i = 0; ones && i < w->count; i++) {
    ones[i] = 1;
  }
  bool good = ones && is_fine(w, device->copy(w->send, ones, size, NULL)) &&
              is_fine(w, device->stream.finish(NULL));
  free(ones);
  return good || (ones == NULL && fail(w->result, true, "out of memory"));
}

static bool begin(work *w) {
  const lcomm_device_table *device = w->world->device;
  size_t size = w->count * sizeof(float);
  return is_fine(w, device->memory.get(size, (void **)&w->send)) &&
         is_fine(w, device->memory.get(size, (void **)&w->receive)) && fill(w);
}

static void end(work *w) {
  (void)w->world->device->memory.free(w->send);
  (void)w->world->device->memory.free(w->receive);
}

static bool put_sum(const work *w) {
  return is_made(w, lcomm_allreduce_on_stream(w->world->comm, w->send, w->receive, w->count,
                                              LCOMM_FLOAT32, LCOMM_SUM, w->world->stream));
}

static bool finish(const work *w, void *stream) {
  return is_fine(w, w->world->device->stream.finish(stream));
}

/* A sum begins on all ranks at once. */
static bool meet(const work *w) {
  return is_made(w, lcomm_barrier(w->world->comm));
}

static bool is_right(const work *w) {
  const lcomm_device_table *device = w->world->device;
  const uint64_t places[] = {0, w->count / 3, w->count - 1};
  float wanted = (float)lcomm_size(w->world->comm);
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    float value = -1;
    if (!is_fine(w, device->copy(&value, w->receive + places[i], sizeof(value), NULL)) ||
        !finish(w, NULL)) {
      return false;
    }
    if (value != wanted) {
      return fail(w->result, true, "value %llu of the sum is %g, not %g",
                  (unsigned long long)places[i], (double)value, (double)wanted);
    }
  }
  return true;
}

/* -------------------------------------------------------------------- times */

typedef bool timed(const work *w, double *seconds);

static bool time_of_sum(const work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_sum(w) && finish(w, w->world->stream);
  *seconds = tool_now_s() - begin_s;
  return good;
}

static bool time_of_call(const work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_sum(w);
  *seconds = tool_now_s() - begin_s;
  return good && finish(w, w->world->stream);
}

/* Two that do not count come first: the first makes what all share. */
static bool measure(work *w, timed *run, double unit) {
  enum { UNCOUNTED = 2 };
  stream_world *world = w->world;
  double seconds = 0;
  for (uint64_t i = 0; i < UNCOUNTED + world->options->samples; i++) {
    if (!meet(w) || !run(w, &seconds)) {
      return false;
    }
    if (i >= UNCOUNTED) {
      world->times[i - UNCOUNTED] = seconds / unit;
    }
  }
  w->result->value = tool_spread_of(world->times, world->options->samples);
  return is_right(w);
}

static void run_timed(stream_world *world, stream_result *result, timed *run) {
  work w = {world, result, result->what->count, NULL, NULL};
  result->measured = begin(&w) && measure(&w, run, MICRO);
  end(&w);
}

static void latency(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_sum);
}

static void host(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_call);
}

/* ------------------------------------------------------------------- hidden */

static bool put_products(const work *w, uint64_t products) {
  const stream_load *load = w->world->load;
  for (uint64_t i = 0; i < products; i++) {
    if (load->put(load->state, w->world->compute) != 0) {
      return fail(w->result, true, "a product of matrices could not be put into its stream");
    }
  }
  return true;
}

static bool time_of_products(const work *w, uint64_t products, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_products(w, products) && finish(w, w->world->compute);
  *seconds = tool_now_s() - begin_s;
  return good;
}

static bool time_of_both(const work *w, uint64_t products, double *seconds) {
  double begin_s = tool_now_s();
  bool good = put_products(w, products) && put_sum(w) && finish(w, w->world->stream) &&
              finish(w, w->world->compute);
  *seconds = tool_now_s() - begin_s;
  return good;
}

/* As many products as take half as long again as a sum, the same number on all ranks. */
static bool choose_products(const work *w, uint64_t *products) {
  enum { TRIED = 4 };
  double one = 0, sum = 0;
  if (!meet(w) || !time_of_sum(w, &sum) || !meet(w) || !time_of_sum(w, &sum) ||
      !time_of_products(w, TRIED, &one) || !meet(w) || !time_of_products(w, TRIED, &one)) {
    return false;
  }
  *products = 1 + (uint64_t)(1.5 * sum / (one / TRIED));
  return is_made(w, lcomm_allreduce(w->world->comm, products, products, 1, LCOMM_INT64, LCOMM_MAX));
}

static bool measure_hidden(work *w) {
  stream_world *world = w->world;
  uint64_t products = 0;
  if (!choose_products(w, &products)) {
    return false;
  }
  for (uint64_t i = 0; i < world->options->samples; i++) {
    double sum = 0, alone = 0, both = 0;
    if (!meet(w) || !time_of_sum(w, &sum) || !meet(w) || !time_of_products(w, products, &alone) ||
        !meet(w) || !time_of_both(w, products, &both)) {
      return false;
    }
    world->times[i] = (alone + sum - both) / sum;
  }
  w->result->value = tool_spread_of(world->times, world->options->samples);
  return is_right(w);
}

static void hidden(stream_world *world, stream_result *result) {
  work w = {world, result, result->what->count, NULL, NULL};
  if (!world->load) {
    (void)fail(result, false, "%s", world->no_load);
    return;
  }
  result->measured = begin(&w) && measure_hidden(&w);
  end(&w);
}

/* ----------------------------------------------------------------- allocate */

/* Some sums in flight, and memory that comes and goes meanwhile. */
static bool time_of_allocations(const work *w, double *seconds) {
  enum { SUMS = 4, PIECES = 4 };
  static const size_t size = (size_t)5 << 20;
  const lcomm_device_table *device = w->world->device;
  bool good = true;
  for (int i = 0; i < SUMS && good; i++) {
    good = put_sum(w);
  }
  double begin_s = tool_now_s();
  for (int i = 0; i < PIECES && good; i++) {
    void *memory = NULL, *pinned = NULL;
    good = is_fine(w, device->memory.get(size, &memory)) &&
           is_fine(w, device->memory.pinned_get(size, &pinned)) &&
           is_fine(w, device->memory.free(memory)) &&
           is_fine(w, device->memory.pinned_free(pinned));
  }
  *seconds = (tool_now_s() - begin_s) / PIECES;
  return good && finish(w, w->world->stream);
}

static void allocate(stream_world *world, stream_result *result) {
  work w = {world, result, result->what->count, NULL, NULL};
  result->measured = begin(&w) && measure(&w, time_of_allocations, MILLI);
  end(&w);
}

/* -------------------------------------------------------------------- cases */

#define MIB(n) ((uint64_t)(n) << 18) /* float32 */

const stream_case stream_cases[] = {
    {"latency 8 B", "us", 0, false, 2, latency},
    {"latency 1 MiB", "us", 0, false, MIB(1), latency},
    {"host 1 MiB", "us", 30, false, MIB(1), host},
    {"host 100 MiB", "us", 300, false, MIB(100), host},
    {"hidden 100 MiB", "", 0.85, true, MIB(100), hidden},
    {"allocate", "ms", 0, false, MIB(16), allocate},
};
const size_t stream_case_count = sizeof(stream_cases) / sizeof(stream_cases[0]);

void stream_case_run(stream_world *world, const stream_case *what, stream_result *result) {
  *result = (stream_result){.what = what};
  what->run(world, result);
}

bool stream_case_met(const stream_result *result) {
  double value = result->value.median, target = result->what->target;
  return result->measured &&
         (target <= 0 || (result->what->is_least ? value >= target : value <= target));
}
