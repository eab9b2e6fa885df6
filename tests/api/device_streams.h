/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_DEVICE_STREAMS_H
#define LCOMM_TESTS_API_DEVICE_STREAMS_H

/* Properties of calls of uneven parts, and of calls with a residual, in order with a stream: data
 * is put there by the stream right before a call and taken out right behind it, and has the bits of
 * the same calls on the host. For an emulated device and for a real one. */

#include <math.h>

#include "tests/engine/on_device.h"

enum { STREAM_WHOLE = 9000, STREAM_CALLS = 7, STREAM_RANKS = 16, STREAM_NAN_CALL = 2 };

/* A communicator with a stream, and one for the same calls on the host. */
typedef struct streamed {
  lcomm_comm *here, *there;
  lcomm_residual *whole_here, *whole, *part_here, *part;
  uint64_t parts[STREAM_RANKS], first, own;
  void *stream;
  float *send, *receive;             /* on the device */
  float *given[STREAM_CALLS], *back; /* pinned: what each call begins with; results */
} streamed;

static inline float *pinned(size_t count) {
  void *memory = NULL;
  check(device->memory.pinned_get(count * sizeof(float) + 1, &memory));
  return memory;
}

/* Uneven, and one of them may be empty. */
static inline void choose_stream_parts(streamed *it) {
  uint64_t left = STREAM_WHOLE;
  for (int i = 0; i < mpi_size; i++) {
    it->parts[i] = i == mpi_size - 1 ? left : i == 1 ? 0 : left / 3 + (uint64_t)i;
    it->first += i < mpi_rank ? it->parts[i] : 0;
    left -= it->parts[i];
  }
  it->own = it->parts[mpi_rank];
}

/* False where a thread of the library is not possible, which the line says. */
static inline bool begin_streamed(streamed *it, const char *policy, int nodes,
                                  lcomm_progress_mode mode) {
  memset(it, 0, sizeof *it);
  choose_stream_parts(it);
  it->there = make_driven(policy, nodes, mode);
  if (!it->there) {
    return false;
  }
  it->here = make_comm(policy, nodes);
  check(device->stream.create(&it->stream));
  it->send = on_device(STREAM_WHOLE * sizeof(float));
  it->receive = on_device(STREAM_WHOLE * sizeof(float));
  it->back = pinned((size_t)STREAM_CALLS * STREAM_WHOLE);
  for (int i = 0; i < STREAM_CALLS; i++) {
    it->given[i] = pinned(STREAM_WHOLE);
    fill_gradient(it->given[i], STREAM_WHOLE, (uint64_t)(100 * i + mpi_rank));
  }
  return true;
}

static inline void end_streamed(streamed *it) {
  check(device->stream.finish(it->stream));
  require_fine(NULL, lcomm_destroy(it->here));
  require_fine(NULL, lcomm_destroy(it->there));
  check(device->memory.free(it->send));
  check(device->memory.free(it->receive));
  check(device->memory.pinned_free(it->back));
  for (int i = 0; i < STREAM_CALLS; i++) {
    check(device->memory.pinned_free(it->given[i]));
  }
  check(device->stream.destroy(it->stream));
}

static inline void copy_in_stream(const streamed *it, float *to, const float *from, size_t count) {
  check(device->copy(to, from, count * sizeof(float), it->stream));
}

/* Place of the result of a call. */
static inline float *back_of(const streamed *it, int call) {
  return it->back + (size_t)call * STREAM_WHOLE;
}

static inline void require_same(const streamed *it, int call, const float *wanted, size_t count,
                                const char *what) {
  require(memcmp(back_of(it, call), wanted, count * sizeof(float)) == 0,
          "'%s', call %d: the stream has other bits", what, call);
}

/* ------------------------------------------------------------ uneven parts */

static inline void scatter_and_gather(streamed *it, int call) {
  copy_in_stream(it, it->send, it->given[call], STREAM_WHOLE);
  require_fine(it->there,
               lcomm_reduce_scatterv_on_stream(it->there, it->send, it->receive, it->parts,
                                               LCOMM_FLOAT32, LCOMM_AVG, it->stream));
  require_fine(it->there, lcomm_allgatherv_on_stream(it->there, it->receive, it->send, it->parts,
                                                     LCOMM_FLOAT32, it->stream));
  copy_in_stream(it, back_of(it, call), it->send, STREAM_WHOLE);
}

static inline void scatter_and_gather_here(const streamed *it, int call, float *all) {
  static float mine[STREAM_WHOLE];
  require_fine(it->here, lcomm_reduce_scatterv(it->here, it->given[call], mine, it->parts,
                                               LCOMM_FLOAT32, LCOMM_AVG));
  require_fine(it->here, lcomm_allgatherv(it->here, mine, all, it->parts, LCOMM_FLOAT32));
}

static inline void uneven_parts_in_a_stream_have_the_bits_of_the_host(void) {
  static const char *const policies[] = {"", "net=int8 min=1", "net=bf16 node=bf16 min=1",
                                         "net=topk:0.05 min=1"};
  static float all[STREAM_WHOLE];
  for (int p = 0; p < 8; p++) {
    streamed it;
    lcomm_progress_mode mode = p < 4 ? LCOMM_PROGRESS_CALLS : LCOMM_PROGRESS_THREAD;
    if (!begin_streamed(&it, policies[p % 4], mpi_size < 3 ? mpi_size : 1 + p % 3, mode)) {
      return;
    }
    for (int call = 0; call < STREAM_CALLS; call++) {
      scatter_and_gather(&it, call);
    }
    check(device->stream.finish(it.stream));
    for (int call = 0; call < STREAM_CALLS; call++) {
      scatter_and_gather_here(&it, call, all);
      require_same(&it, call, all, STREAM_WHOLE, policies[p % 4]);
    }
    end_streamed(&it);
  }
}

/* ---------------------------------------------------------- with a residual */

static inline void make_residuals(streamed *it) {
  require_fine(it->here, lcomm_residual_create_named(it->here, "all", STREAM_WHOLE, LCOMM_AVG,
                                                     &it->whole_here));
  require_fine(it->there,
               lcomm_residual_create_named(it->there, "all", STREAM_WHOLE, LCOMM_AVG, &it->whole));
  require_fine(it->here, lcomm_residual_create_scatter(it->here, "part", it->parts, LCOMM_SUM,
                                                       &it->part_here));
  require_fine(it->there,
               lcomm_residual_create_scatter(it->there, "part", it->parts, LCOMM_SUM, &it->part));
}

/* Both kinds in turn, the second in place; a call finds the one before it with the same residual in
 * flight. */
static inline void call_in_stream(streamed *it, int call) {
  bool scatters = call % 2;
  copy_in_stream(it, it->send, it->given[call], STREAM_WHOLE);
  if (scatters) {
    require_fine(it->there, lcomm_reduce_scatter_ef_on_stream(it->part, it->send,
                                                              it->send + it->first, it->stream));
    copy_in_stream(it, back_of(it, call), it->send + it->first, it->own);
  } else {
    require_fine(it->there,
                 lcomm_allreduce_ef_on_stream(it->whole, it->send, it->receive, it->stream));
    copy_in_stream(it, back_of(it, call), it->receive, STREAM_WHOLE);
  }
}

static inline size_t call_here(const streamed *it, int call, float *result) {
  bool scatters = call % 2;
  require_fine(it->here, scatters ? lcomm_reduce_scatter_ef(it->part_here, it->given[call], result)
                                  : lcomm_allreduce_ef(it->whole_here, it->given[call], result));
  return scatters ? it->own : STREAM_WHOLE;
}

static inline void require_same_residual(lcomm_residual *here, lcomm_residual *there,
                                         const char *what) {
  static float wanted[STREAM_WHOLE], got[STREAM_WHOLE];
  require_fine(NULL, lcomm_residual_get(here, wanted));
  require_fine(NULL, lcomm_residual_get(there, got));
  require(memcmp(got, wanted, sizeof(got)) == 0, "'%s': the stream left another residual", what);
}

static inline void calls_with_a_residual_in_a_stream_have_the_bits_of_the_host(void) {
  static const char *const policies[] = {"net=int8+ef min=1",
                                         "net=topk:0.05+ef min=1 momentum=0.9 clip=0.05",
                                         "net=topk:0.05+ef min=1 warmup=1 ramp=0.25@1",
                                         "net=int8+ef min=1 nonfinite=discard", "net=none"};
  enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };
  static float result[STREAM_WHOLE];
  for (int p = 0; p < 2 * POLICIES; p++) {
    streamed it;
    const char *policy = policies[p % POLICIES];
    lcomm_progress_mode mode = p < POLICIES ? LCOMM_PROGRESS_CALLS : LCOMM_PROGRESS_THREAD;
    if (!begin_streamed(&it, policy, mpi_size < 3 ? mpi_size : 1 + p % 3, mode)) {
      return;
    }
    make_residuals(&it);
    if (strstr(policy, "nonfinite") && mpi_rank == 0) { /* one of each kind is undone */
      it.given[STREAM_NAN_CALL][5] = it.given[STREAM_NAN_CALL + 1][5] = NAN;
    }
    for (int call = 0; call < STREAM_CALLS; call++) {
      call_in_stream(&it, call);
    }
    for (int call = 0; call < STREAM_CALLS; call++) {
      size_t count = call_here(&it, call, result);
      check(device->stream.finish(it.stream));
      require_same(&it, call, result, count, policy);
    }
    require_same_residual(it.whole_here, it.whole, policy);
    require_same_residual(it.part_here, it.part, policy);
    lcomm_stats here, there;
    require_fine(it.here, lcomm_stats_get(it.here, &here));
    require_fine(it.there, lcomm_stats_get(it.there, &there));
    require(here.discarded == there.discarded &&
                (!strstr(policy, "nonfinite") || mpi_size == 1 || there.discarded == 2),
            "'%s': %d and %d calls were undone", policy, (int)here.discarded, (int)there.discarded);
    end_streamed(&it);
  }
}

/* What uses a residual next waits for its call in the stream. */
static inline void what_follows_waits_for_the_call_in_the_stream(void) {
  static float result[STREAM_WHOLE];
  static uint8_t state[1 << 20];
  streamed it;
  size_t size = 0;
  if (!begin_streamed(&it, "net=int8+ef min=1 undo=on", mpi_size, LCOMM_PROGRESS_THREAD)) {
    return;
  }
  make_residuals(&it);
  for (int call = 0; call < 4; call++) {
    call_in_stream(&it, call);
    (void)call_here(&it, call, result);
  }
  require_fine(it.there, lcomm_residual_discard(it.part));
  require_fine(it.here, lcomm_residual_discard(it.part_here));
  require_same_residual(it.part_here, it.part, "discarded");
  call_in_stream(&it, 4);
  require_fine(it.there, lcomm_state_size(it.there, &size));
  require_fine(it.there, lcomm_state_write(it.there, state, size));
  call_in_stream(&it, 5);
  require_fine(it.there, lcomm_policy_set(it.there, "net=none undo=on"));
  call_in_stream(&it, 6);
  require_fine(it.there, lcomm_residual_destroy(it.whole));
  call_in_stream(&it, 5);
  end_streamed(&it); /* with a call in the stream */
}

#define STREAM_PROPERTIES                                                                          \
  PROPERTY(uneven_parts_in_a_stream_have_the_bits_of_the_host),                                    \
      PROPERTY(calls_with_a_residual_in_a_stream_have_the_bits_of_the_host),                       \
      PROPERTY(what_follows_waits_for_the_call_in_the_stream)

#endif
