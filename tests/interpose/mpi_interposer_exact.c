/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* A lossy policy touches large sums of floats and nothing else: all other calls give
 * the bits that MPI gives. script_interposer_policies.sh runs this with other policies. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_kinds.h"
#include "tests/interpose/interposer_probe.h"

enum { MIN_FLOATS = 16384, MANY = 40000 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=64K");
}

/* --------------------------------------------------------------- by size */

static void sums_below_the_minimum_are_exact(void) {
  static const int counts[] = {1, 100, MIN_FLOATS - 1};
  for (int function = 0; function < INTERPOSER_ALLGATHER; function++) {
    for (int i = 0; i < 3 && interposer_function_exists((interposer_function)function); i++) {
      interposer_call call = float_sum((interposer_function)function, MPI_COMM_WORLD, counts[i]);
      require(!is_compressed(&call), "%s of %d", interposer_function_names[function], counts[i]);
    }
  }
}

static void sums_of_the_minimum_are_compressed(void) {
  for (int function = 0; function < INTERPOSER_REDUCE_SCATTER; function++) {
    if (interposer_function_exists((interposer_function)function)) {
      interposer_call call = float_sum((interposer_function)function, MPI_COMM_WORLD, MIN_FLOATS);
      require(is_compressed(&call) == compresses(MPI_COMM_WORLD), "%s of 64 KiB",
              interposer_function_names[function]);
    }
  }
}

/* ----------------------------------------------- by type and operation */

/* Real numbers: MPI's own order of summation shows in the bits. */
static void fill_reals(void *bytes, size_t size, uint64_t seed) {
  double *values = bytes;
  for (size_t i = 0; i < size / sizeof *values; i++) {
    values[i] = (double)draw_below(&seed, 1 << 30) / 1e9 - 0.5;
  }
}

static void fill_real_floats(void *bytes, size_t size, uint64_t seed) {
  fill_gradient(bytes, size / sizeof(float), seed);
}

static void require_bits_of_mpi(const interposer_call *call, const char *name, fill_function fill) {
  interposer_buffers buffers = interposer_buffers_for(call);
  fill(buffers.send, buffers.send_bytes, (uint64_t)mpi_rank + 7);
  require(gives_bits_of_mpi(call, &buffers), "%s of %s differs%s",
          interposer_function_names[call->function], name, call->in_place ? " in place" : "");
  interposer_buffers_free(&buffers);
}

static void sum_other_kinds(const data_kind *kind) {
  for (int function = 0; function < INTERPOSER_ALLGATHER; function++) {
    interposer_call call = float_sum((interposer_function)function, MPI_COMM_WORLD, MANY);
    call.type = kind->type;
    call.op = kind->op;
    for (int i = 0; i < 2 && interposer_function_exists((interposer_function)function); i++) {
      call.in_place = i;
      require_bits_of_mpi(&call, kind->name, kind->fill);
    }
  }
}

static void other_types_and_operations_are_exact(void) {
  MPI_Op larger_op, first_op;
  MPI_Op_create(larger, 1, &larger_op);
  MPI_Op_create(first_of_all, 0, &first_op);
  const data_kind kinds[] = {
      {"double SUM", MPI_DOUBLE, MPI_SUM, fill_reals},
      {"int SUM", MPI_INT, MPI_SUM, fill_ints},
      {"long long SUM", MPI_LONG_LONG, MPI_SUM, fill_longs},
      {"float MIN", MPI_FLOAT, MPI_MIN, fill_real_floats},
      {"float MAX", MPI_FLOAT, MPI_MAX, fill_real_floats},
      {"float PROD", MPI_FLOAT, MPI_PROD, fill_real_floats},
      {"FLOAT_INT MINLOC", MPI_FLOAT_INT, MPI_MINLOC, fill_float_ints},
      {"byte BXOR", MPI_BYTE, MPI_BXOR, fill_bytes},
      {"float of an operation", MPI_FLOAT, larger_op, fill_real_floats},
      {"float of one that does not commute", MPI_FLOAT, first_op, fill_real_floats},
  };
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    sum_other_kinds(&kinds[i]);
  }
  MPI_Op_free(&larger_op);
  MPI_Op_free(&first_op);
}

/* An operation of the program that sums is not MPI_SUM. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
  float *a = in, *b = inout;
  (void)type;
  for (int i = 0; i < *count; i++) {
    b[i] += a[i];
  }
}

static void sums_by_an_operation_of_the_program_are_exact(void) {
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  interposer_call call = float_sum(INTERPOSER_ALLREDUCE, MPI_COMM_WORLD, MANY);
  call.op = own;
  require(!is_compressed(&call), "it was compressed");
  call.function = INTERPOSER_IALLREDUCE;
  require(!is_compressed(&call), "it was compressed without blocking");
  MPI_Op_free(&own);
}

static void fortran_names_of_floats_are_floats(void) {
  MPI_Datatype names[] = {MPI_REAL, MPI_REAL4};
  for (int i = 0; i < 2; i++) {
    int size = 0;
    if (names[i] != MPI_DATATYPE_NULL) {
      PMPI_Type_size(names[i], &size);
    }
    if (size == (int)sizeof(float)) {
      interposer_call call = float_sum(INTERPOSER_ALLREDUCE, MPI_COMM_WORLD, MANY);
      call.type = names[i];
      require(is_compressed(&call) == compresses(MPI_COMM_WORLD), "type %d of two", i + 1);
    }
  }
}

static void data_that_is_moved_is_exact(void) {
  static const interposer_function moves[] = {INTERPOSER_ALLGATHER, INTERPOSER_ALLGATHERV,
                                              INTERPOSER_BCAST};
  for (int i = 0; i < 6; i++) {
    interposer_call call = float_sum(INTERPOSER_REDUCE_SCATTER, MPI_COMM_WORLD, 5 * MANY);
    call.function = moves[i / 2];
    call.count = MANY;
    call.root = mpi_size - 1;
    call.in_place = i % 2 && call.function != INTERPOSER_BCAST;
    require_bits_of_mpi(&call, "floats", fill_real_floats);
  }
}

static void reductions_to_one_rank_are_exact(void) {
  static float values[MANY], called[MANY], plain[MANY];
  fill_gradient(values, MANY, (uint64_t)mpi_rank);
  memset(called, 0, sizeof(called));
  memset(plain, 0, sizeof(plain));
  MPI_Reduce(values, called, MANY, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  PMPI_Reduce(values, plain, MANY, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
  require(memcmp(called, plain, sizeof(plain)) == 0, "MPI_Reduce differs");
  MPI_Scan(values, called, MANY, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Scan(values, plain, MANY, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  require(memcmp(called, plain, sizeof(plain)) == 0, "MPI_Scan differs");
}

/* ----------------------------------------------------- by communicator */

static void communicators_of_one_node_and_between_groups_are_exact(void) {
  for (int i = 0; i < INTERPOSER_COMM_KINDS; i++) {
    MPI_Comm comm = interposer_comm_kinds[i].make();
    bool plain = comm != MPI_COMM_NULL &&
                 (interposer_comm_is_inter(comm) || interposer_comm_size(comm) == 1 ||
                  interposer_comm_nodes(comm) == 1);
    if (plain) {
      interposer_call call = {INTERPOSER_ALLREDUCE, comm, MPI_FLOAT, MPI_SUM, MANY, {0}, 0, false};
      require_bits_of_mpi(&call, interposer_comm_kinds[i].name, fill_real_floats);
      call.function = INTERPOSER_IALLREDUCE;
      require_bits_of_mpi(&call, interposer_comm_kinds[i].name, fill_real_floats);
    }
    interposer_comm_free(&comm);
  }
}

static const mpi_property properties[] = {
    PROPERTY(sums_below_the_minimum_are_exact),
    PROPERTY(sums_of_the_minimum_are_compressed),
    PROPERTY(other_types_and_operations_are_exact),
    PROPERTY(sums_by_an_operation_of_the_program_are_exact),
    PROPERTY(fortran_names_of_floats_are_floats),
    PROPERTY(data_that_is_moved_is_exact),
    PROPERTY(reductions_to_one_rank_are_exact),
    PROPERTY(communicators_of_one_node_and_between_groups_are_exact),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
