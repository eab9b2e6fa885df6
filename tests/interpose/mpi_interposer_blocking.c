/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* LCOMM_INTERPOSE=blocking: calls that block are compressed, the others are MPI's, whose thread
 * level stays as the program asked. */

#include "tests/interpose/interposer_probe.h"

enum { COUNT = 40000 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=4K"); /* min= counts one part */
  set_default("LCOMM_INTERPOSE", "blocking");
}

static bool is_compressed_by(interposer_function function) {
  interposer_call call = float_sum(function, MPI_COMM_WORLD, COUNT);
  return is_compressed(&call);
}

static void calls_that_block_are_compressed(void) {
  require(is_compressed_by(INTERPOSER_ALLREDUCE), "all-reduce");
  require(is_compressed_by(INTERPOSER_REDUCE_SCATTER_BLOCK), "reduce-scatter");
}

static void calls_that_do_not_block_are_those_of_mpi(void) {
  require(!is_compressed_by(INTERPOSER_IALLREDUCE), "non-blocking all-reduce");
  require(!is_compressed_by(INTERPOSER_IREDUCE_SCATTER_BLOCK), "non-blocking reduce-scatter");
}

static void persistent_calls_are_those_of_mpi(void) {
  require(!is_compressed_by(INTERPOSER_ALLREDUCE_INIT), "persistent all-reduce");
}

static void the_thread_level_of_mpi_is_what_was_asked_for(void) {
  int level = -1;
  PMPI_Query_thread(&level);
  require(level == MPI_THREAD_FUNNELED, "MPI runs with level %d", level);
}

static const mpi_property properties[] = {
    PROPERTY(calls_that_block_are_compressed),
    PROPERTY(calls_that_do_not_block_are_those_of_mpi),
    PROPERTY(persistent_calls_are_those_of_mpi),
    PROPERTY(the_thread_level_of_mpi_is_what_was_asked_for),
};
RUN_INTERPOSER_PROPERTIES_THREADS(before, MPI_THREAD_FUNNELED, properties)
