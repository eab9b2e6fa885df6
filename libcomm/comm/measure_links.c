/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/measure_links.h"

#include <math.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/call/call.h"

enum {
  SHORT_TIMES = 8,
  SHORT_LEAST = 2,       /* the first one opens connections */
  FIRST_COUNT = 1 << 10, /* elements of the first long sums; the next ones are four times longer */
  LAST_COUNT = 1 << 20,
  LONG_TIMES = 3
};

/* Long sums end when one took so long: on slow links with the first that is long enough, however
 * short. */
static const double ENOUGH_S = 10e-3;

typedef struct timing {
  lcomm_comm *comm;
  float *vector; /* LAST_COUNT elements */
  double begun_s;
} timing;

static double spent_s(const timing *t) {
  return lcomm_clock_s() - t->begun_s;
}

/* ------------------------------------------------------------------ the sums */

static lcomm_status make_call(lcomm_comm *comm, lcomm_call *call) {
  call->op_kind = LCOMM_OP_KIND_MEASURE;
  return lcomm_call_make(comm, call);
}

/* shape: NULL for that of the rules. */
static lcomm_status time_sum(const timing *t, uint64_t count, const lcomm_allreduce_shape *shape,
                             double *taken_s) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, t->vector, t->vector, count,
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.request.exact = true;
  call.request.shape = shape;
  double begun_s = lcomm_clock_s();
  lcomm_status status = make_call(t->comm, &call);
  *taken_s = lcomm_clock_s() - begun_s;
  return status;
}

lcomm_status lcomm_measure_tell(lcomm_comm *comm, void *bytes, size_t size) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, bytes, bytes, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  return make_call(comm, &call);
}

/* The sum itself says whether another one follows: rank 0's contribution is 1 then, and all others
 * are 0. */
static lcomm_status time_short(const timing *t, uint64_t count, const lcomm_allreduce_shape *shape,
                               double until_s, double *best_s) {
  bool more = true;
  for (int i = 0; more && i < SHORT_TIMES; i++) {
    double taken_s = 0;
    bool goes_on = t->comm->rank == 0 && (i + 1 < SHORT_LEAST || spent_s(t) < until_s);
    t->vector[0] = goes_on ? 1 : 0;
    LCOMM_TRY(time_sum(t, count, shape, &taken_s));
    more = t->vector[0] > 0;
    *best_s = i == 0 || taken_s < *best_s ? taken_s : *best_s;
  }
  return LCOMM_OK;
}

static lcomm_status time_chunks(const timing *t, uint32_t chunks, double until_s, double *best_s) {
  lcomm_allreduce_shape shape = lcomm_measure_shape(t->comm, chunks);
  return time_short(t, lcomm_measure_count(t->comm, chunks), &shape, until_s, best_s);
}

/* ------------------------------------------------------------------ long sums */

/* What follows a long sum; rank 0's word, which may be anything. */
typedef enum next_sum { NEXT_NONE, NEXT_AGAIN, NEXT_LONGER } next_sum;

/* A link that is limited in rate may let the first bytes pass at once, so the first time of a
 * length does not count where there is another; and others may use the processor, so the shorter
 * one of those does. */
static lcomm_status time_next(const timing *t, int number, lcomm_sum_times *times) {
  double taken_s = 0;
  LCOMM_TRY(time_sum(t, times->long_count, NULL, &taken_s));
  times->long_s = number < 2 ? taken_s : fmin(times->long_s, taken_s);
  return LCOMM_OK;
}

static next_sum find_next(int number, const lcomm_sum_times *times) {
  if (number + 1 < LONG_TIMES) {
    return NEXT_AGAIN;
  }
  return times->long_s < ENOUGH_S && times->long_count < LAST_COUNT ? NEXT_LONGER : NEXT_NONE;
}

/* All sums of one length. */
static lcomm_status time_length(const timing *t, double within_s, lcomm_sum_times *times,
                                uint64_t *next) {
  *next = NEXT_AGAIN;
  for (int number = 0; *next == NEXT_AGAIN && number < LONG_TIMES; number++) {
    LCOMM_TRY(time_next(t, number, times));
    *next = spent_s(t) < within_s ? find_next(number, times) : NEXT_NONE;
    LCOMM_TRY(lcomm_measure_tell(t->comm, next, sizeof *next));
  }
  return LCOMM_OK;
}

static lcomm_status time_long(const timing *t, double within_s, lcomm_sum_times *times) {
  uint64_t next = NEXT_LONGER;
  for (uint64_t count = FIRST_COUNT; next == NEXT_LONGER && count <= LAST_COUNT; count *= 4) {
    times->long_count = count;
    LCOMM_TRY(time_length(t, within_s, times, &next));
  }
  return LCOMM_OK;
}

/* Short sums have three eighths of the time. */
static lcomm_status time_all(const timing *t, double within_s, lcomm_sum_times *times) {
  LCOMM_TRY(time_short(t, LCOMM_MEASURE_SHORT, NULL, within_s / 8, &times->short_s));
  LCOMM_TRY(time_chunks(t, LCOMM_MEASURE_FEW, within_s / 4, &times->few_s));
  LCOMM_TRY(time_chunks(t, LCOMM_MEASURE_MANY, within_s * 3 / 8, &times->many_s));
  return time_long(t, within_s, times);
}

lcomm_status lcomm_links_time(lcomm_comm *comm, double within_s, lcomm_sum_times *times) {
  timing t = {
      .comm = comm, .vector = calloc(LAST_COUNT, sizeof *t.vector), .begun_s = lcomm_clock_s()};
  if (!t.vector) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "measuring for net=auto: out of memory");
  }
  lcomm_status status = time_all(&t, within_s, times);
  free(t.vector);
  return status;
}
