/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Every call that the MPI interposer takes over gives the bits of MPI where the policy is
 * exact: random sizes, types and operations on communicators of all kinds. The
 * policy here lets libcomm do all that it can do; script_interposer_policies.sh runs this
 * with others. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_kinds.h"
#include "tests/support/interposer_calls.h"
#include "tests/support/interposer_comms.h"
#include "tests/support/interposer_property.h"

static data_kinds kinds;

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0 match=dtype=float32,dtype=float64,dtype=int32,"
                              "dtype=int64,dtype=float32&op=max,dtype=int64&op=max,"
                              "dtype=int32&op=min,dtype=float64&op=max,"
                              "call=allgather,call=allgather&dtype=float64,"
                              "call=allgather&dtype=int32,dtype=float32&op=min,"
                              "call=broadcast,call=broadcast&dtype=float64,"
                              "call=broadcast&dtype=int32,call=broadcast&dtype=int64");
}

/* ------------------------------------------------------------ random calls */

/* Few, none, about 64 KiB of floats, many. */
static int draw_count(uint64_t *state) {
  switch (draw_below(state, 8)) {
  case 0:
    return 0;
  case 1:
    return 1;
  case 2:
  case 3:
    return 2 + draw_below(state, 99);
  case 4:
    return 200 + draw_below(state, 2000);
  case 5:
    return 20000 + draw_below(state, 40000);
  default:
    return 16384 - 2 + draw_below(state, 5);
  }
}

/* Parts of a whole: as large as each other, or some of them empty. */
static void draw_parts(uint64_t *state, interposer_call *call, int whole) {
  int size = interposer_comm_size(call->comm), left = whole;
  bool even = draw_below(state, 2) == 0;
  for (int i = 0; i < size; i++) {
    int part = even ? whole / size : draw_below(state, left + 1) * draw_below(state, 2);
    call->parts[i] = part;
    left -= part;
  }
  if (!even) {
    call->parts[draw_below(state, size)] += left;
  }
}

/* The root is the first rank of the group that has the lowest one of the world. */
static int root_between(MPI_Comm comm) {
  MPI_Group all, group[2];
  int first = 0, leader[2], rank;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Comm_group(comm, &group[0]);
  PMPI_Comm_remote_group(comm, &group[1]);
  for (int i = 0; i < 2; i++) {
    PMPI_Group_translate_ranks(group[i], 1, &first, all, &leader[i]);
    PMPI_Group_free(&group[i]);
  }
  PMPI_Group_free(&all);
  PMPI_Comm_rank(comm, &rank);
  if (leader[0] > leader[1]) {
    return 0;
  }
  return rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

/* Between groups, what is scattered must be as long on both sides, and nothing is in
 * place. */
static void make_inter(interposer_call *call, int whole) {
  int size = interposer_comm_size(call->comm), remote = 0;
  PMPI_Comm_remote_size(call->comm, &remote);
  call->in_place = false;
  call->root = root_between(call->comm);
  for (int i = 0; i < INTERPOSER_RANKS_MAX; i++) {
    int part = i < size ? whole / size + (i < whole % size) : 0;
    call->parts[i] = call->function == INTERPOSER_ALLGATHERV ? (7 * i + whole) % 50 : part;
  }
  if (call->function == INTERPOSER_REDUCE_SCATTER_BLOCK ||
      call->function == INTERPOSER_IREDUCE_SCATTER_BLOCK) {
    call->count *= remote;
  }
}

static const data_kind *draw_kind(uint64_t *state, interposer_call *call) {
  const data_kind *kind = &kinds.kind[draw_below(state, kinds.count)];
  call->type = kind->type;
  call->op = kind->op;
  return kind;
}

/* The rest of a call, in which communicator and function are given. */
static void draw_rest(uint64_t *state, interposer_call *call, int whole) {
  int size = interposer_comm_size(call->comm);
  bool in_parts = call->function != INTERPOSER_ALLREDUCE &&
                  call->function != INTERPOSER_IALLREDUCE &&
                  call->function != INTERPOSER_ALLREDUCE_INIT && call->function != INTERPOSER_BCAST;
  call->count = in_parts ? (whole + size - 1) / size : whole;
  call->in_place = call->function != INTERPOSER_BCAST && draw_below(state, 2) == 0;
  call->root = draw_below(state, size);
  if (interposer_comm_is_inter(call->comm)) {
    call->count = in_parts ? whole % 1000 : whole;
    make_inter(call, whole);
  } else {
    draw_parts(state, call, whole);
  }
}

/* --------------------------------------------------------------- comparison */

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t size) {
  size_t at = 0;
  while (at < size && a[at] == b[at]) {
    at++;
  }
  return at;
}

static int class_of(int code) {
  int class = 0;
  PMPI_Error_class(code, &class);
  return class;
}

static void compare(const interposer_call *call, const data_kind *kind, const char *where) {
  char what[256];
  interposer_buffers buffers = interposer_buffers_for(call);
  kind->fill(buffers.send, buffers.send_bytes, (uint64_t)mpi_rank * 977 + (uint64_t)call->count);
  snprintf(what, sizeof(what), "%s of %d %s on %s%s", interposer_function_names[call->function],
           call->count, kind->name, where, call->in_place ? ", in place" : "");
  interposer_codes codes = interposer_make_both(call, &buffers);
  require(class_of(codes.called) == class_of(codes.plain), "%s: error class %d, not %d", what,
          class_of(codes.called), class_of(codes.plain));
  if (codes.called == MPI_SUCCESS && codes.plain == MPI_SUCCESS) {
    const char *trouble = interposer_trouble(call, &buffers);
    interposer_result result = interposer_result_of(call, &buffers);
    size_t at = first_difference(buffers.called, buffers.plain, result.size);
    require(!trouble, "%s: %s", what, trouble);
    require(at == result.size, "%s: byte %zu of %zu differs", what, at, result.size);
  }
  interposer_buffers_free(&buffers);
}

static void try_call(MPI_Comm comm, const char *where, interposer_function function,
                     uint64_t seed) {
  interposer_call call = {.function = function, .comm = comm};
  uint64_t state = seed * 1000 + function;
  if (interposer_function_exists(function)) {
    const data_kind *kind = draw_kind(&state, &call);
    draw_rest(&state, &call, draw_count(&state));
    compare(&call, kind, where);
  }
}

/* --------------------------------------------------------------- properties */

static void random_calls_give_the_bits_of_mpi(void) {
  kinds = make_data_kinds();
  for (int i = 0; i < INTERPOSER_COMM_KINDS; i++) {
    MPI_Comm comm = interposer_comm_kinds[i].make();
    if (comm == MPI_COMM_NULL) {
      continue;
    }
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int function = 0; function < INTERPOSER_FUNCTIONS; function++) {
      try_call(comm, interposer_comm_kinds[i].name, (interposer_function)function, (uint64_t)i + 1);
    }
    interposer_comm_free(&comm);
  }
  free_data_kinds(&kinds);
}

static void every_type_and_operation_gives_the_bits_of_mpi(void) {
  kinds = make_data_kinds();
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int k = 0; k < kinds.count; k++) {
    for (int function = 0; function < INTERPOSER_FUNCTIONS; function++) {
      uint64_t state = (uint64_t)(100 * k + function);
      interposer_call call = {.function = (interposer_function)function, .comm = MPI_COMM_WORLD};
      call.type = kinds.kind[k].type;
      call.op = kinds.kind[k].op;
      draw_rest(&state, &call, 1 + draw_below(&state, 3000));
      if (interposer_function_exists(call.function)) {
        compare(&call, &kinds.kind[k], "world");
      }
    }
  }
  free_data_kinds(&kinds);
}

static const data_kind floats = {"float SUM", MPI_FLOAT, MPI_SUM, fill_floats};

static void try_counts(interposer_function function, const int *counts, int how_many) {
  for (int i = 0; i < how_many; i++) {
    uint64_t state = (uint64_t)i + 5;
    interposer_call call = {.function = function, .comm = MPI_COMM_WORLD};
    call.type = floats.type;
    call.op = floats.op;
    draw_rest(&state, &call, counts[i]);
    compare(&call, &floats, "world");
  }
}

static void every_size_gives_the_bits_of_mpi(void) {
  static const int counts[] = {0, 1, 2, 7, 1023, 1024, 1025, 16383, 16384, 16385, 100003};
  for (int function = 0; function < INTERPOSER_FUNCTIONS; function++) {
    if (interposer_function_exists((interposer_function)function)) {
      try_counts((interposer_function)function, counts, sizeof(counts) / sizeof(counts[0]));
    }
  }
}

static void large_buffers_give_the_bits_of_mpi(void) {
  static const int counts[] = {1 << 20, (1 << 20) + 1};
  try_counts(INTERPOSER_ALLREDUCE, counts, 2);
  try_counts(INTERPOSER_IALLREDUCE, counts, 1);
  try_counts(INTERPOSER_REDUCE_SCATTER_BLOCK, counts, 1);
  try_counts(INTERPOSER_ALLGATHERV, counts, 1);
  try_counts(INTERPOSER_BCAST, counts + 1, 1);
}

/* Empty sums may come without any buffer. */
static void no_elements_need_no_buffer(void) {
  int none[INTERPOSER_RANKS_MAX] = {0};
  MPI_Comm comm = MPI_COMM_WORLD;
  require(MPI_Allreduce(NULL, NULL, 0, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS, "allreduce");
  require(MPI_Reduce_scatter(NULL, NULL, none, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS,
          "reduce_scatter");
  require(MPI_Reduce_scatter_block(NULL, NULL, 0, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS,
          "reduce_scatter_block");
  require(MPI_Allgather(NULL, 0, MPI_FLOAT, NULL, 0, MPI_FLOAT, comm) == MPI_SUCCESS, "allgather");
  require(MPI_Allgatherv(NULL, 0, MPI_FLOAT, NULL, none, none, MPI_FLOAT, comm) == MPI_SUCCESS,
          "allgatherv");
  require(MPI_Bcast(NULL, 0, MPI_FLOAT, 0, comm) == MPI_SUCCESS, "bcast");
}

static const mpi_property properties[] = {
    PROPERTY(random_calls_give_the_bits_of_mpi),
    PROPERTY(every_type_and_operation_gives_the_bits_of_mpi),
    PROPERTY(every_size_gives_the_bits_of_mpi),
    PROPERTY(large_buffers_give_the_bits_of_mpi),
    PROPERTY(no_elements_need_no_buffer),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
