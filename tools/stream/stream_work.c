/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_work.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm_collectives.h"

bool stream_fail(stream_result *result, bool is_wrong, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(result->why, sizeof(result->why), format, arguments);
  va_end(arguments);
  result->is_wrong = is_wrong;
  return false;
}

bool stream_is_fine(const stream_work *w, int error) {
  return error == 0 ||
         stream_fail(w->result, true, "the device: %s", w->world->device->explain(error));
}

bool stream_is_made(const stream_work *w, lcomm_status status) {
  return status == LCOMM_OK || stream_fail(w->result, true, "%s: %s", lcomm_status_name(status),
                                           lcomm_last_error(w->world->comm));
}

stream_work stream_work_of(stream_world *world, stream_result *result) {
  return (stream_work){.world = world, .result = result, .count = result->what->count};
}

static bool fill(const stream_work *w) {
  const lcomm_device_table *device = w->world->device;
  size_t size = w->count * sizeof(float);
  float *ones = malloc(size);
  for (uint64_t i = 0; ones && i < w->count; i++) {
    ones[i] = 1;
  }
  bool good = ones && stream_is_fine(w, device->copy(w->send, ones, size, NULL)) &&
              stream_is_fine(w, device->set(w->receive, 0xff, size, NULL)) &&
              stream_is_fine(w, device->stream.finish(NULL));
  free(ones);
  return good || (ones == NULL && stream_fail(w->result, true, "out of memory"));
}

bool stream_work_begin(stream_work *w) {
  const lcomm_device_table *device = w->world->device;
  size_t size = w->count * sizeof(float);
  return stream_is_fine(w, device->memory.get(size, (void **)&w->send)) &&
         stream_is_fine(w, device->memory.get(size, (void **)&w->receive)) && fill(w);
}

void stream_work_end(stream_work *w) {
  (void)w->world->device->memory.free(w->send);
  (void)w->world->device->memory.free(w->receive);
}

bool stream_put_sum(const stream_work *w) {
  return stream_is_made(w, lcomm_allreduce_on_stream(w->world->comm, w->send, w->receive, w->count,
                                                     LCOMM_FLOAT32, LCOMM_SUM, w->world->stream));
}

bool stream_finish(const stream_work *w, void *stream) {
  return stream_is_fine(w, w->world->device->stream.finish(stream));
}

bool stream_meet(const stream_work *w) {
  return stream_is_made(w, lcomm_barrier(w->world->comm));
}

bool stream_is_right(const stream_work *w) {
  const lcomm_device_table *device = w->world->device;
  const uint64_t places[] = {0, w->count / 3, w->count - 1};
  float wanted = (float)lcomm_size(w->world->comm);
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    float value = -1;
    if (!stream_is_fine(w, device->copy(&value, w->receive + places[i], sizeof(value), NULL)) ||
        !stream_finish(w, NULL)) {
      return false;
    }
    if (value != wanted) {
      return stream_fail(w->result, true, "value %llu of the sum is %g, not %g",
                         (unsigned long long)places[i], (double)value, (double)wanted);
    }
  }
  return true;
}

bool stream_measure(stream_work *w, stream_timed *run, double unit) {
  enum { UNCOUNTED = 2 };
  stream_world *world = w->world;
  double seconds = 0;
  for (uint64_t i = 0; i < UNCOUNTED + world->options->samples; i++) {
    if (!stream_meet(w) || !run(w, &seconds)) {
      return false;
    }
    if (i >= UNCOUNTED) {
      world->times[i - UNCOUNTED] = seconds / unit;
    }
  }
  w->result->value = tool_spread_of(world->times, world->options->samples);
  return stream_is_right(w);
}
