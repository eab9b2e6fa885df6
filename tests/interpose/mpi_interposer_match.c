/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* The rules of match= choose calls: by the communicator's name, by size, by number
 * of ranks, by kind of call; what no rule fits stays exact. */

#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { KIB = 256 }; /* floats */

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=4K match=comm=grad*&size>=16K,size=40K,"
                              "ranks=2&count>=2000&count<=2100,comm=scatter&call=reduce-scatter,"
                              "comm=MPI_COMM_WORLD&size=50K,op=max&size=60K,"
                              "dtype=float64&size=60K");
}

/* A rule fits: compressed where the policy acts at all. */
static void require_chosen(MPI_Comm comm, int count, const char *what) {
  require(sum_is_compressed(comm, count) == compresses(comm), "%s", what);
}

static void require_left(MPI_Comm comm, int count, const char *what) {
  require(!sum_is_compressed(comm, count), "%s", what);
}

static MPI_Comm copy_named(const char *name) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, name);
  return comm;
}

static void names_choose_communicators(void) {
  MPI_Comm gradients = copy_named("gradients"), metrics = copy_named("metrics");
  MPI_Comm almost = copy_named("the grad"), empty = copy_named("");
  for (int i = 0; i < 3; i++) {
    require_chosen(gradients, 20 * KIB, "gradients, 20K");
    require_left(gradients, 15 * KIB, "gradients, 15K");
    require_left(metrics, 20 * KIB, "metrics, 20K");
    require_left(almost, 20 * KIB, "the grad, 20K");
    require_left(empty, 20 * KIB, "no name, 20K");
    require_left(MPI_COMM_WORLD, 20 * KIB, "the world, 20K");
  }
  MPI_Comm_free(&gradients);
  MPI_Comm_free(&metrics);
  MPI_Comm_free(&almost);
  MPI_Comm_free(&empty);
}

static void the_world_has_the_name_that_mpi_gives_it(void) {
  MPI_Comm dup = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  require_chosen(MPI_COMM_WORLD, 50 * KIB, "the world, 50K");
  require_left(dup, 50 * KIB, "a copy of the world, 50K");
  MPI_Comm_free(&dup);
}

/* The name counts that a communicator has at its first call. */
static void later_names_do_not_count(void) {
  MPI_Comm comm = copy_named("first");
  require_left(comm, 20 * KIB, "first, 20K");
  require_chosen(comm, 40 * KIB, "first, 40K");
  MPI_Comm_set_name(comm, "gradients");
  require_left(comm, 20 * KIB, "renamed, 20K");
  MPI_Comm_free(&comm);
}

/* Ranks that name it differently must still do the same. */
static void different_names_do_no_harm(void) {
  MPI_Comm comm = copy_named(mpi_rank % 2 ? "gradients" : "metrics");
  static float values[20 * KIB];
  for (int i = 0; i < 3; i++) {
    fill_probe(values, 20 * KIB, (uint64_t)mpi_rank);
    int code = MPI_Allreduce(MPI_IN_PLACE, values, 20 * KIB, MPI_FLOAT, MPI_SUM, comm);
    require(code == MPI_SUCCESS, "error %d", code);
    require(same_everywhere(values, sizeof(values)), "ranks differ");
  }
  MPI_Comm_free(&comm);
}

static void names_count_without_blocking(void) {
  MPI_Comm gradients = copy_named("gradients"), metrics = copy_named("metrics");
  require_left(metrics, 20 * KIB, "metrics, 20K");
  require_chosen(gradients, 20 * KIB, "gradients, 20K");
  interposer_call call = float_sum(INTERPOSER_IALLREDUCE, gradients, 20 * KIB);
  require(is_compressed(&call) == compresses(gradients), "gradients, MPI_Iallreduce");
  call.comm = metrics;
  require(!is_compressed(&call), "metrics, MPI_Iallreduce");
  MPI_Comm_free(&gradients);
  MPI_Comm_free(&metrics);
}

static void sizes_choose_calls(void) {
  require_chosen(MPI_COMM_WORLD, 40 * KIB, "40K");
  require_left(MPI_COMM_WORLD, 40 * KIB - 1, "a bit less");
  require_left(MPI_COMM_WORLD, 40 * KIB + 1, "a bit more");
  require_left(MPI_COMM_WORLD, 400 * KIB, "much more");
}

/* One rank of each node. */
static void ranks_and_counts_choose_calls(void) {
  MPI_Comm pair = MPI_COMM_NULL;
  int per_node = (mpi_size + 1) / 2;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % per_node, 0, &pair);
  require_chosen(pair, 2050, "2050 on two ranks");
  require_left(pair, 1999, "1999 on two ranks");
  require_left(pair, 2101, "2101 on two ranks");
  require(mpi_size == 2 || !sum_is_compressed(MPI_COMM_WORLD, 2050), "2050 on more ranks");
  MPI_Comm_free(&pair);
}

static void kinds_of_calls_are_told_apart(void) {
  MPI_Comm comm = copy_named("scatter");
  require_left(comm, 80 * KIB, "an all-reduce");
  interposer_call call = float_sum(INTERPOSER_REDUCE_SCATTER_BLOCK, comm, 80 * KIB);
  require(is_compressed(&call) == compresses(comm), "MPI_Reduce_scatter_block");
  call.function = INTERPOSER_IREDUCE_SCATTER_BLOCK;
  require(is_compressed(&call) == compresses(comm), "MPI_Ireduce_scatter_block");
  call = float_sum(INTERPOSER_REDUCE_SCATTER, comm, 80 * KIB);
  require(is_compressed(&call) == compresses(comm), "MPI_Reduce_scatter");
  require_left(comm, 80 * KIB, "an all-reduce afterwards");
  MPI_Comm_free(&comm);
}

/* A rule chooses them, and still no codec is for them. */
static void chosen_calls_without_a_codec_are_exact(void) {
  interposer_call call = float_sum(INTERPOSER_ALLREDUCE, MPI_COMM_WORLD, 60 * KIB);
  call.op = MPI_MAX;
  require(!is_compressed(&call), "a maximum");
  call = float_sum(INTERPOSER_ALLREDUCE, MPI_COMM_WORLD, 30 * KIB);
  call.type = MPI_DOUBLE;
  interposer_buffers buffers = interposer_buffers_for(&call);
  double *values = (double *)(void *)buffers.send;
  for (int i = 0; i < 30 * KIB; i++) {
    values[i] = 1e9 + i * (mpi_rank + 1);
  }
  require(gives_bits_of_mpi(&call, &buffers), "a sum of doubles");
  interposer_buffers_free(&buffers);
}

static const mpi_property properties[] = {
    PROPERTY(names_choose_communicators),
    PROPERTY(the_world_has_the_name_that_mpi_gives_it),
    PROPERTY(later_names_do_not_count),
    PROPERTY(different_names_do_no_harm),
    PROPERTY(names_count_without_blocking),
    PROPERTY(sizes_choose_calls),
    PROPERTY(ranks_and_counts_choose_calls),
    PROPERTY(kinds_of_calls_are_told_apart),
    PROPERTY(chosen_calls_without_a_codec_are_exact),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
