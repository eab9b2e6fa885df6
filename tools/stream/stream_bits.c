/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_bits.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm_collectives.h"
#include "tools/stream/stream_replay.h"

/* Sums in place of PIECES of the buffer, in one row; ROWS of them without waiting. */
enum { PIECES = 3, ROWS = 4 };

static const double MICRO = 1e-6;

/* On the host: what goes in, what has to come out, what comes. */
typedef struct bits {
  float *sent, *wanted, *received;
} bits;

static void piece_of(uint64_t count, int piece, uint64_t *first, uint64_t *length) {
  uint64_t small = count < 2 ? count : 2, third = count / 3;
  const uint64_t ends[PIECES + 1] = {0, small, small + third < count ? small + third : count,
                                     count};
  *first = ends[piece];
  *length = ends[piece + 1] - ends[piece];
}

static bool put_row(const stream_work *w) {
  bool good = true;
  for (int i = 0; i < PIECES && good; i++) {
    uint64_t first = 0, length = 0;
    piece_of(w->count, i, &first, &length);
    float *at = w->receive + first;
    good = stream_is_made(w, lcomm_allreduce_on_stream(w->world->comm, at, at, length,
                                                       LCOMM_FLOAT32, LCOMM_SUM, w->world->stream));
  }
  return good;
}

static bool sum_on_host(const stream_work *w, float *values) {
  bool good = true;
  for (int i = 0; i < PIECES * ROWS && good; i++) {
    uint64_t first = 0, length = 0;
    piece_of(w->count, i % PIECES, &first, &length);
    float *at = values + first;
    good = stream_is_made(
        w, lcomm_allreduce(w->world->comm, at, at, length, LCOMM_FLOAT32, LCOMM_SUM));
  }
  return good;
}

/* Between -1 and 1, others on each rank and in each round. */
static void draw(float *values, uint64_t count, uint64_t seed) {
  uint64_t state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
  for (uint64_t i = 0; i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    values[i] = (float)(int32_t)(state >> 32) / 2147483648.0f;
  }
}

static bool are_equal(const stream_work *w, const bits *v, uint64_t round) {
  for (uint64_t i = 0; i < w->count; i++) {
    if (memcmp(&v->received[i], &v->wanted[i], sizeof(float)) != 0) {
      return stream_fail(w->result, true, "round %llu, value %llu is %.9g, and of the host %.9g",
                         (unsigned long long)round, (unsigned long long)i, (double)v->received[i],
                         (double)v->wanted[i]);
    }
  }
  return true;
}

static bool time_of_round(const stream_work *w, const bits *v, stream_put *put, uint64_t round,
                          double *seconds) {
  const stream_world *world = w->world;
  size_t size = w->count * sizeof(float);
  draw(v->sent, w->count,
       round * (uint64_t)lcomm_size(world->comm) + (uint64_t)lcomm_rank(world->comm));
  memcpy(v->wanted, v->sent, size);
  if (!sum_on_host(w, v->wanted) ||
      !stream_is_fine(w, world->device->copy(w->receive, v->sent, size, world->stream)) ||
      !stream_finish(w, world->stream) || !stream_meet(w)) {
    return false;
  }
  bool good = true;
  double begin_s = tool_now_s();
  for (int i = 0; i < ROWS && good; i++) {
    good = put(w);
  }
  good = good && stream_finish(w, world->stream);
  *seconds = (tool_now_s() - begin_s) / ROWS;
  return good &&
         stream_is_fine(w, world->device->copy(v->received, w->receive, size, world->stream)) &&
         stream_finish(w, world->stream) && are_equal(w, v, round);
}

static bool compare(const stream_work *w, stream_put *put) {
  const stream_world *world = w->world;
  size_t size = w->count * sizeof(float);
  bits v = {malloc(size), malloc(size), malloc(size)};
  bool good = v.sent && v.wanted && v.received;
  if (!good) {
    (void)stream_fail(w->result, true, "out of memory");
  }
  for (uint64_t i = 0; i < world->options->samples && good; i++) {
    double seconds = 0;
    good = time_of_round(w, &v, put, i, &seconds);
    world->times[i] = seconds / MICRO;
  }
  free(v.sent);
  free(v.wanted);
  free(v.received);
  if (good) {
    w->result->value = tool_spread_of(world->times, world->options->samples);
  }
  return good;
}

void stream_bits_of_calls(stream_world *world, stream_result *result) {
  stream_work w = stream_work_of(world, result);
  result->measured = stream_work_begin(&w) && compare(&w, put_row);
  stream_work_end(&w);
}

void stream_bits_of_replays(stream_world *world, stream_result *result) {
  stream_work w = stream_work_of(world, result);
  result->measured =
      stream_work_begin(&w) && stream_replay_begin(&w, put_row) && compare(&w, stream_replay_put);
  stream_replay_end(&w);
  stream_work_end(&w);
}
