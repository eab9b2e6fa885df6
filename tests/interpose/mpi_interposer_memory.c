/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* MPI_Alloc_mem gives memory that the ranks of a host share while calls are taken, MPI's
 * otherwise; MPI_Free_mem frees both. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { FLOATS = 100000 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=4K");
}

/* Does this address lie in memory of libcomm's that others can view? */
static bool is_shared(const void *memory) {
  char line[512];
  bool found = false;
  FILE *file = fopen("/proc/self/maps", "r");
  while (file && !found && fgets(line, sizeof(line), file)) {
    unsigned long long from = 0, to = 0;
    found = sscanf(line, "%llx-%llx", &from, &to) == 2 && (uintptr_t)memory >= from &&
            (uintptr_t)memory < to && strstr(line, "memfd:libcomm memory");
  }
  if (file) {
    fclose(file);
  }
  return found;
}

static bool takes_calls(void) {
  const char *mode = getenv("LCOMM_INTERPOSE"), *policy = getenv("LCOMM_POLICY");
  bool open = !mode || !*mode || strcmp(mode, "on") == 0 || strcmp(mode, "blocking") == 0;
  return open && policy && *policy && interposer_is_there();
}

static float *get(size_t size, MPI_Info info) {
  float *memory = NULL;
  int code = MPI_Alloc_mem((MPI_Aint)size, info, &memory);
  require(code == MPI_SUCCESS && memory, "%zu bytes: error %d", size, code);
  return memory;
}

static void give_back(float *memory) {
  require(MPI_Free_mem(memory) == MPI_SUCCESS, "it is not freed");
}

static void sums_in_it_are_right(void) {
  for (int round = 0; round < 3; round++) {
    float *send = get(FLOATS * sizeof(float), MPI_INFO_NULL);
    float *receive = get(FLOATS * sizeof(float), MPI_INFO_NULL);
    fill_probe(send, FLOATS, 1);
    require(MPI_Allreduce(send, receive, FLOATS, MPI_FLOAT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS,
            "error");
    require(memcmp(send, receive, FLOATS * sizeof(float)) == 0, "the minimum of equals differs");
    require(MPI_Allreduce(MPI_IN_PLACE, receive, FLOATS, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD) ==
                MPI_SUCCESS,
            "error");
    require(memcmp(send, receive, FLOATS * sizeof(float)) == 0, "the maximum of equals differs");
    give_back(send);
    give_back(receive);
  }
}

static void it_is_shared_where_calls_are_taken(void) {
  float *large = get(FLOATS * sizeof(float), MPI_INFO_NULL), *small = get(100, MPI_INFO_NULL);
  require(is_shared(large) == takes_calls(), "long memory is %s",
          is_shared(large) ? "shared" : "not");
  require(!is_shared(small), "whole pages for 100 bytes");
  give_back(small);
  give_back(large);
}

static void what_an_info_asks_for_is_left_to_mpi(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  float *memory = get(FLOATS * sizeof(float), info);
  require(!is_shared(memory), "an info was passed over");
  give_back(memory);
  MPI_Info_free(&info);
}

static void memory_of_mpi_itself_is_freed(void) {
  float *memory = NULL;
  require(PMPI_Alloc_mem(FLOATS, MPI_INFO_NULL, &memory) == MPI_SUCCESS, "no memory");
  give_back(memory);
}

static const mpi_property properties[] = {
    PROPERTY(sums_in_it_are_right),
    PROPERTY(it_is_shared_where_calls_are_taken),
    PROPERTY(what_an_info_asks_for_is_left_to_mpi),
    PROPERTY(memory_of_mpi_itself_is_freed),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
