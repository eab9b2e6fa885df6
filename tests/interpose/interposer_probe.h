/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSE_INTERPOSER_PROBE_H
#define LCOMM_TESTS_INTERPOSE_INTERPOSER_PROBE_H

/* Was a call compressed? It is fed with numbers that every lossy codec must change
 * and whose exact sum has the same bits in every order: whole ones of 13 bits. */

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/interposer_calls.h"
#include "tests/support/interposer_comms.h"
#include "tests/support/interposer_property.h"

enum { PROBE_MAX = 4095 };

static inline void fill_probe(float *values, size_t count, uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 88172645463325252u;
  for (size_t i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    values[i] = (float)((int)((state >> 20) % (2 * PROBE_MAX + 1)) - PROBE_MAX);
  }
}

static inline bool is_success(const char *what, interposer_codes codes) {
  require(codes.called == MPI_SUCCESS, "%s: error %d", what, codes.called);
  require(codes.plain == MPI_SUCCESS, "%s: error %d of MPI", what, codes.plain);
  return codes.called == MPI_SUCCESS && codes.plain == MPI_SUCCESS;
}

/* Is the call's result the same everywhere, and on each rank that of MPI, bit for bit?
 * The buffers' send was filled. Collective over the call's communicator. */
static inline bool gives_bits_of_mpi(const interposer_call *call, interposer_buffers *buffers) {
  const char *name = interposer_function_names[call->function];
  if (!is_success(name, interposer_make_both(call, buffers))) {
    return false;
  }
  const char *trouble = interposer_trouble(call, buffers);
  require(!trouble, "%s: %s", name, trouble);
  interposer_result result = interposer_result_of(call, buffers);
  int same = memcmp(buffers->called, buffers->plain, result.size) == 0, all = 0;
  PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, call->comm);
  return all;
}

/* A sum of `count` floats by MPI_SUM, each part as large as the others. */
static inline interposer_call float_sum(interposer_function function, MPI_Comm comm, int count) {
  interposer_call call = {.function = function, .comm = comm, .type = MPI_FLOAT, .op = MPI_SUM};
  int size = interposer_comm_size(comm);
  bool in_parts = function >= INTERPOSER_REDUCE_SCATTER;
  call.count = in_parts ? count / size : count;
  for (int i = 0; i < size; i++) {
    call.parts[i] = count / size;
  }
  return call;
}

/* Make the sum of the probe; true when some bit differs from MPI's. Collective. */
static inline bool is_compressed(const interposer_call *call) {
  interposer_buffers buffers = interposer_buffers_for(call);
  fill_probe((float *)(void *)buffers.send, buffers.send_bytes / sizeof(float),
             (uint64_t)mpi_rank + 1);
  bool exact = gives_bits_of_mpi(call, &buffers);
  interposer_buffers_free(&buffers);
  return !exact;
}

static inline bool sum_is_compressed(MPI_Comm comm, int count) {
  interposer_call call = float_sum(INTERPOSER_ALLREDUCE, comm, count);
  return is_compressed(&call);
}

/* Does a lossy policy act on this communicator at all? */
static inline bool compresses(MPI_Comm comm) {
  return interposer_is_on() && !interposer_comm_is_inter(comm) && interposer_comm_nodes(comm) > 1;
}

#endif
