/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* The control file changes what the interposer does while the program runs: at the same
 * call on all ranks, and only to what makes sense. */

#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"
#include "tests/interpose/interposer_said.h"

enum { COUNT = 8192, CALLS_MAX = 40, CALLS_AFTER = 20 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=16K");
  use_control_file();
}

/* ------------------------------------------------------ which codec is it? */

typedef enum codec { EXACT, BF16, INT8 } codec;

static const char *const codec_names[] = {"exact", "bf16", "int8"};

/* In the first half, small values beside large ones, which bf16 holds and int8 does
 * not; in the second, values that neither holds. Sums of both are exact in any order. */
static void fill(float *values) {
  for (int i = 0; i < COUNT / 2; i++) {
    values[i] = i % 64 == 0 ? 1024 : 1;
    values[COUNT / 2 + i] = 1 + (float)(i % 7 + 1) * 0x1p-12F;
  }
}

/* Make one sum, and tell by the result what was done with it. */
static codec codec_of_sum(MPI_Comm comm) {
  static float sum[COUNT], exact[COUNT];
  size_t half = sizeof(sum) / 2;
  fill(sum);
  PMPI_Allreduce(sum, exact, COUNT, MPI_FLOAT, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, sum, COUNT, MPI_FLOAT, MPI_SUM, comm);
  require(same_on(comm, sum, sizeof(sum)), "ranks differ");
  if (memcmp(sum + COUNT / 2, exact + COUNT / 2, half) == 0) {
    return memcmp(sum, exact, half) == 0 ? EXACT : INT8;
  }
  return memcmp(sum, exact, half) == 0 ? BF16 : INT8;
}

/* Calls until it is so, and then always so. The calls that it took. */
static int calls_until(MPI_Comm comm, codec wanted) {
  int calls = 1;
  codec is = codec_of_sum(comm);
  while (is != wanted && calls < CALLS_MAX) {
    is = codec_of_sum(comm);
    calls++;
  }
  require(is == wanted, "after %d calls sums are %s, not %s", calls, codec_names[is],
          codec_names[wanted]);
  for (int i = 0; i < CALLS_AFTER && is == wanted; i++) {
    is = codec_of_sum(comm);
    require(is == wanted, "sums are %s again, not %s", codec_names[is], codec_names[wanted]);
  }
  require(equal_everywhere(calls), "it took %d calls here", calls);
  return calls;
}

/* The file says these words, and calls on the communicator obey. */
static void expect_obeyed(MPI_Comm comm, const char *words, codec wanted) {
  tell_interposer(words);
  calls_until(comm, wanted);
}

static bool is_on(void) {
  if (!compresses(MPI_COMM_WORLD)) {
    tell_interposer("off");
    codec is = codec_of_sum(MPI_COMM_WORLD);
    require(is == EXACT, "without the interposer sums are %s", codec_names[is]);
    tell_interposer(NULL);
    skip_property("the interposer is off");
    return false;
  }
  return true;
}

/* --------------------------------------------------------------- properties */

static void off_makes_later_calls_exact(void) {
  require(codec_of_sum(MPI_COMM_WORLD) == INT8, "sums are int8 at first");
  expect_obeyed(MPI_COMM_WORLD, "off", EXACT);
  expect_obeyed(MPI_COMM_WORLD, "on", INT8);
}

static void no_file_means_on(void) {
  expect_obeyed(MPI_COMM_WORLD, "off", EXACT);
  expect_obeyed(MPI_COMM_WORLD, NULL, INT8);
  expect_obeyed(MPI_COMM_WORLD, "off", EXACT);
  expect_obeyed(MPI_COMM_WORLD, "", INT8);
}

static void another_policy_takes_its_place(void) {
  expect_obeyed(MPI_COMM_WORLD, "policy net=bf16 min=16K", BF16);
  expect_obeyed(MPI_COMM_WORLD, "  policy net=none min=16K  ", EXACT);
  expect_obeyed(MPI_COMM_WORLD, "policy net=bf16 min=16K", BF16);
  expect_obeyed(MPI_COMM_WORLD, "off", EXACT);
  expect_obeyed(MPI_COMM_WORLD, "on", INT8);
}

/* Also one that chooses none of the calls can be taken back. */
static void another_policy_chooses_anew(void) {
  expect_obeyed(MPI_COMM_WORLD, "policy net=int8 min=1M", EXACT);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(codec_of_sum(comm) == EXACT, "a new one begins so");
  tell_interposer(NULL);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(codec_of_sum(comm) == INT8, "a new one begins with the policy of the start");
  MPI_Comm_free(&comm);
  calls_until(MPI_COMM_WORLD, INT8);
}

static void new_communicators_obey_at_once(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  tell_interposer("off");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(codec_of_sum(comm) == EXACT, "off");
  expect_obeyed(comm, "policy net=bf16 min=16K", BF16);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(codec_of_sum(comm) == BF16, "another policy");
  expect_obeyed(comm, NULL, INT8);
  MPI_Comm_free(&comm);
}

/* What was wrong is said once, by rank 0 of the communicator. */
static void expect_ignored(MPI_Comm comm, const char *words) {
  listening to = listen_begin();
  tell_interposer(words);
  for (int i = 0; i < CALLS_MAX; i++) {
    codec is = codec_of_sum(comm);
    require(is == INT8, "after '%.30s' sums are %s", words, codec_names[is]);
  }
  int said = listen_end(to, "LCOMM_INTERPOSE_CONTROL", mpi_rank == 0);
  require(said == (mpi_rank == 0), "'%.30s': said %d times", words, said);
}

static void nonsense_is_said_once_and_ignored(void) {
  static char much[100000];
  MPI_Comm comm = MPI_COMM_NULL;
  memset(much, 'x', sizeof(much) - 1);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(codec_of_sum(comm) == INT8, "at first");
  expect_ignored(comm, "off with it");
  expect_ignored(comm, "policy net=nothing");
  expect_ignored(comm, "policy");
  expect_ignored(comm, "OFF");
  expect_ignored(comm, "\x01\xff\x80%s%n");
  expect_ignored(comm, much);
  expect_obeyed(comm, "off", EXACT);
  expect_obeyed(comm, NULL, INT8);
  MPI_Comm_free(&comm);
}

static void a_folder_is_no_control_file(void) {
  tell_interposer(NULL);
  require(mpi_rank > 0 || mkdir(control_path(), 0700) == 0, "cannot make a folder");
  PMPI_Barrier(MPI_COMM_WORLD);
  calls_until(MPI_COMM_WORLD, INT8);
  PMPI_Barrier(MPI_COMM_WORLD);
  require(mpi_rank > 0 || rmdir(control_path()) == 0, "cannot remove it");
}

/* A communicator whose rank 0 is another one, and whose calls are not blocking. */
static void other_calls_follow(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -mpi_rank, &comm);
  interposer_call call = float_sum(INTERPOSER_IALLREDUCE, comm, COUNT);
  require(is_compressed(&call), "at first");
  expect_obeyed(comm, "off", EXACT);
  require(!is_compressed(&call), "MPI_Iallreduce after off");
  call.function = INTERPOSER_REDUCE_SCATTER_BLOCK;
  call.count = 2 * COUNT;
  require(!is_compressed(&call), "MPI_Reduce_scatter_block after off");
  expect_obeyed(comm, NULL, INT8);
  require(is_compressed(&call), "MPI_Reduce_scatter_block after on");
  MPI_Comm_free(&comm);
}

/* Nobody waits for the one who writes: who is ahead has read another file. */
static void all_change_at_the_same_call(void) {
  static const char *const words[] = {"off", "on", "policy net=bf16 min=16K"};
  static float sum[COUNT];
  uint64_t bits[200] = {0};
  for (int call = 0; call < 200; call++) {
    if (mpi_rank == 0 && call % 7 == 0) {
      write_words(words[call / 7 % 3]);
    }
    fill(sum);
    require(MPI_Allreduce(MPI_IN_PLACE, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) ==
                MPI_SUCCESS,
            "call %d fails", call);
    for (int i = 0; i < COUNT; i++) {
      uint32_t value;
      memcpy(&value, &sum[i], sizeof(value));
      bits[call] = bits[call] * 31 + value;
    }
  }
  require(same_everywhere(bits, sizeof(bits)), "ranks differ");
  tell_interposer(NULL);
}

static void the_file_may_go(void) {
  tell_interposer(NULL);
}

static const mpi_property properties[] = {
    PROPERTY_WHERE(is_on, off_makes_later_calls_exact),
    PROPERTY_WHERE(is_on, no_file_means_on),
    PROPERTY_WHERE(is_on, another_policy_takes_its_place),
    PROPERTY_WHERE(is_on, another_policy_chooses_anew),
    PROPERTY_WHERE(is_on, new_communicators_obey_at_once),
    PROPERTY_WHERE(is_on, nonsense_is_said_once_and_ignored),
    PROPERTY_WHERE(is_on, a_folder_is_no_control_file),
    PROPERTY_WHERE(is_on, other_calls_follow),
    PROPERTY(all_change_at_the_same_call),
    PROPERTY(the_file_may_go),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
