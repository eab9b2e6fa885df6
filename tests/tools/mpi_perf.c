/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* mpirun: 1 3 */

/* What the perf programs measure against: MPI's calls, whole and in parts, give
 * the exact results under both of their names, only one of which comes to a library
 * that took them over, and a result that is not exact is seen. */

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/mpi_property.h"
#include "tools/common/tool_element.h"
#include "tools/perf/perf_backend.h"
#include "tools/perf/perf_buffers.h"
#include "tools/perf/perf_check.h"
#include "tools/perf/perf_mpi_call.h"

enum { DTYPES = 6, OPS = 4 };

/* ------------------------------------------ what a preloaded library would do */

static int taken_over; /* calls that came here */

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  taken_over++;
  return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *send, void *receive, int count, MPI_Datatype type,
                             MPI_Op op, MPI_Comm comm) {
  taken_over++;
  return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm);
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  taken_over++;
  return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive,
                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
  taken_over++;
  return PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  taken_over++;
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm) {
  taken_over++;
  return PMPI_Barrier(comm);
}

/* ----------------------------------------------------------------- the results */

static const lcomm_perf_recording none = {NULL, 0};
static lcomm_perf_world world;

static void meet(void) {
  world = (lcomm_perf_world){.tool = "mpi_perf", .rank = mpi_rank, .ranks = mpi_size};
}

static lcomm_perf_difference total(lcomm_perf_difference d) {
  double wrong = (double)d.wrong;
  lcomm_perf_world_sum(&world, &wrong, 1);
  d.wrong = (uint64_t)wrong;
  return d;
}

/* Do one call in parts of `part` elements; how many elements are wrong. */
static uint64_t wrong_after(lcomm_perf_mpi mpi, const lcomm_perf_call *call, uint64_t part,
                            void (*spoil)(void *)) {
  lcomm_perf_input input = {lcomm_perf_pattern_make(call->dtype, world.ranks), &none, world.rank};
  lcomm_perf_buffers buffers;
  if (!lcomm_perf_buffers_make(&buffers, call, &input, 1)) {
    return UINT64_MAX;
  }
  lcomm_perf_place place = lcomm_perf_buffers_place(&buffers, 0);
  lcomm_perf_mpi_call(mpi, call, place, part);
  void *result = lcomm_perf_mpi_result(call, place, part);
  if (spoil) {
    spoil(result);
  }
  lcomm_perf_difference d = total(lcomm_perf_check_result(&world, &input.pattern, call, 1, result));
  lcomm_perf_buffers_free(&buffers);
  return d.wrong;
}

static void check_parts(lcomm_perf_kind kind, int in_place) {
  static const uint64_t counts[] = {1, 1000, 2048, 4099};
  for (int d = 0; d < DTYPES; d++) {
    for (int op = 0; op < OPS; op++) {
      for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        lcomm_perf_call call = {lcomm_perf_collective_of(kind),
                                counts[c],
                                (lcomm_dtype)d,
                                (lcomm_op)op,
                                mpi_size - 1,
                                in_place,
                                0};
        if (!lcomm_perf_mpi_can(&call)) {
          continue;
        }
        uint64_t whole = wrong_after(LCOMM_PERF_MPI, &call, LCOMM_PERF_MPI_PART, NULL);
        uint64_t parts = wrong_after(LCOMM_PERF_PMPI, &call, 1024, NULL);
        require(whole == 0 && parts == 0, "%s of %llu %s, operation %d, %s place: %llu, %llu wrong",
                call.collective->mpi_name, (unsigned long long)call.count,
                lcomm_dtype_name(call.dtype), op, in_place ? "in" : "out of",
                (unsigned long long)whole, (unsigned long long)parts);
      }
    }
  }
}

static void mpi_calls_in_parts_give_the_same_results(void) {
  meet();
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    check_parts((lcomm_perf_kind)kind, 1);
    if (!lcomm_perf_collective_of((lcomm_perf_kind)kind)->has_root) {
      check_parts((lcomm_perf_kind)kind, 0);
    }
  }
}

static void spoil_one_rank(void *result) {
  if (world.rank == world.ranks - 1) {
    ((float *)result)[1000] += 1.0f;
  }
}

/* A NaN, which is in no hash by chance. */
static void spoil_all_ranks(void *result) {
  ((uint32_t *)result)[1000] = UINT32_C(0x7fc00000);
}

static void a_result_that_differs_is_wrong(void) {
  meet();
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    lcomm_perf_call call = {
        lcomm_perf_collective_of((lcomm_perf_kind)kind), 3000, LCOMM_FLOAT32, LCOMM_SUM, 0, 1, 0};
    uint64_t one = wrong_after(LCOMM_PERF_PMPI, &call, LCOMM_PERF_MPI_PART, spoil_one_rank);
    uint64_t all = wrong_after(LCOMM_PERF_MPI, &call, LCOMM_PERF_MPI_PART, spoil_all_ranks);
    require(one > 0 && all > 0, "%s: %llu and %llu are wrong", call.collective->name,
            (unsigned long long)one, (unsigned long long)all);
    require(!call.collective->is_alike || all == 1, "%s: %llu are wrong instead of 1",
            call.collective->name, (unsigned long long)all);
  }
}

/* How many calls of a backend and of what surrounds it come to who took MPI over. */
static int taken_over_by(lcomm_perf_backend backend, const lcomm_perf_call *call) {
  lcomm_perf_input input = {lcomm_perf_pattern_make(call->dtype, world.ranks), &none, world.rank};
  lcomm_perf_buffers buffers;
  double value = 1.0;
  taken_over = 0;
  if (!lcomm_perf_buffers_make(&buffers, call, &input, 1)) {
    return -1;
  }
  lcomm_perf_world_barrier(&world);
  lcomm_perf_world_sum(&world, &value, 1);
  lcomm_perf_backend_run(&backend, call, lcomm_perf_buffers_place(&buffers, 0));
  lcomm_perf_world_max(&world, &value, 1);
  lcomm_perf_buffers_free(&buffers);
  return taken_over;
}

static void only_what_is_measured_through_mpi_can_be_taken_over(void) {
  static const lcomm_perf_options through = {.through_mpi = 1}, alone = {.against_mpi = 1};
  meet();
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    lcomm_perf_call call = {
        lcomm_perf_collective_of((lcomm_perf_kind)kind), 300, LCOMM_FLOAT32, LCOMM_SUM, 0, 1, 0};
    lcomm_perf_backend measured = lcomm_perf_backend_through(&call);
    lcomm_perf_backend behind = lcomm_perf_backend_against(&through, &call);
    lcomm_perf_backend as_it_is = lcomm_perf_backend_against(&alone, &call);
    int counts[] = {taken_over_by(measured, &call), taken_over_by(behind, &call),
                    taken_over_by(as_it_is, &call)};
    require(counts[0] == 1 && counts[1] == 0 && counts[2] == 1, "%s: %d, %d and %d calls",
            call.collective->mpi_name, counts[0], counts[1], counts[2]);
    require(behind.is_baseline && !measured.is_baseline, "%s is compared with itself",
            call.collective->mpi_name);
    require(strcmp(behind.label + 1, measured.label) == 0 && behind.label[0] == 'P',
            "%s stands for %s", behind.label, measured.label);
  }
}

/* What may be lossy is said by the environment. */
static void through_mpi_the_policy_of_the_environment_says_what_is_exact(void) {
  static const struct {
    const char *policy;
    lcomm_dtype dtype;
    int is_exact;
  } cases[] = {{NULL, LCOMM_FLOAT32, 1},
               {"net=none", LCOMM_FLOAT32, 1},
               {"net=int8 min=1K", LCOMM_FLOAT32, 0},
               {"net=topk:0.01+ef", LCOMM_FLOAT32, 0},
               {"net=int8", LCOMM_FLOAT64, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lcomm_perf_call call = {
        lcomm_perf_collective_of(LCOMM_PERF_ALLREDUCE), 300, cases[i].dtype, LCOMM_SUM, 0, 1, 0};
    if (cases[i].policy) {
      setenv("LCOMM_POLICY", cases[i].policy, 1);
    } else {
      unsetenv("LCOMM_POLICY");
    }
    require(lcomm_perf_backend_through(&call).is_exact == cases[i].is_exact, "'%s'",
            cases[i].policy ? cases[i].policy : "");
  }
  unsetenv("LCOMM_POLICY");
}

static void sums_and_maxima_come_to_every_rank(void) {
  meet();
  double values[2] = {world.rank + 1.0, -1.0 - world.rank};
  lcomm_perf_world_sum(&world, values, 2);
  double sum = world.ranks * (world.ranks + 1) / 2.0;
  require(values[0] == sum && values[1] == -sum, "the sum is %g", values[0]);
  values[0] = world.rank;
  values[1] = -world.rank;
  lcomm_perf_world_max(&world, values, 2);
  require(values[0] == world.ranks - 1 && values[1] == 0.0, "the maximum is %g", values[0]);
}

static void one_rank_of_a_host_is_its_first(void) {
  meet();
  double firsts = lcomm_perf_world_is_host_first(&world);
  require(firsts == (world.rank == 0), "rank %d thinks otherwise", world.rank);
  lcomm_perf_world_sum(&world, &firsts, 1);
  require(firsts == 1.0, "there are %g", firsts);
}

static const mpi_property properties[] = {
    PROPERTY(mpi_calls_in_parts_give_the_same_results),
    PROPERTY(a_result_that_differs_is_wrong),
    PROPERTY(only_what_is_measured_through_mpi_can_be_taken_over),
    PROPERTY(through_mpi_the_policy_of_the_environment_says_what_is_exact),
    PROPERTY(sums_and_maxima_come_to_every_rank),
    PROPERTY(one_rank_of_a_host_is_its_first),
};
RUN_PROPERTIES(mpi_property_main, properties)
