/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSE_INTERPOSER_SUMS_H
#define LCOMM_TESTS_INTERPOSE_INTERPOSER_SUMS_H

/* Sums that do not block, and whose results are known. */

#include <mpi.h>
#include <stdlib.h>

#include "tests/support/interposer_property.h"

/* Whole numbers: the sum has the same bits in every order. */
static inline float given(int rank, int i, int seed) {
  return (float)((rank * 31 + i * 7 + seed * 13) % 1000);
}

static inline float sum_of(int i, int seed) {
  float sum = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    sum += given(rank, i, seed);
  }
  return sum;
}

typedef struct sum_call {
  int count, seed;
  float *send, *receive;
} sum_call;

static inline sum_call new_call(int count, int seed) {
  float *memory = malloc(2 * (size_t)count * sizeof(float));
  if (!memory) {
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
  }
  sum_call call = {.count = count, .seed = seed, .send = memory, .receive = memory + count};
  for (int i = 0; i < count; i++) {
    call.send[i] = given(mpi_rank, i, seed);
    call.receive[i] = -1;
  }
  return call;
}

static inline void start(const sum_call *call, MPI_Comm comm, MPI_Request *request) {
  MPI_Iallreduce(call->send, call->receive, call->count, MPI_FLOAT, MPI_SUM, comm, request);
}

/* Is the result here? */
static inline void check(const sum_call *call, const char *what) {
  for (int i = 0; i < call->count; i++) {
    float want = sum_of(i, call->seed);
    require(call->receive[i] == want, "%s: element %d of %d is %g, not %g", what, i, call->count,
            (double)call->receive[i], (double)want);
  }
}

/* And the call is over. */
static inline void end(sum_call *call, const char *what) {
  check(call, what);
  free(call->send);
}

/* Once the handle of a call and its communicator are gone, only the result tells that it is over:
 * every element, because they come in no order. And nothing tells whether a peer still reads the
 * buffers, so they stay. */
static inline void end_unseen(sum_call *call, const char *what) {
  enum { KEPT = 8, NO_TAG = 32000 };
  static void *kept[KEPT]; /* for the leak checker */
  const volatile float *result = call->receive;
  double limit_s = MPI_Wtime() + 120;
  int at = 0, found = 0;
  while (at < call->count && MPI_Wtime() < limit_s) {
    at = result[at] == sum_of(at, call->seed) ? at + 1 : at;
    if (at < call->count && at % 64 == 0) { /* MPI makes progress in its calls */
      MPI_Iprobe(MPI_ANY_SOURCE, NO_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  }
  check(call, what);
  for (int i = 0; i < KEPT; i++) {
    if (!kept[i]) {
      kept[i] = call->send;
      return;
    }
  }
}

#endif
