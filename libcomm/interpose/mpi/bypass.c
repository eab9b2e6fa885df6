/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Programs that look MPI's functions up in its library (dlopen, dlsym) call them past this
 * one, and so do tools that call PMPI_Init. Nothing of theirs is taken, which they are told
 * when they end: no call of theirs comes by before. */

#include "libcomm/interpose/mpi/start.h"

#include <string.h>
#include <unistd.h>

/* A child of fork() that exits has nothing to tell. */
static pid_t process;

__attribute__((constructor)) static void remember_process(void) {
  process = getpid();
}

static bool is_first_rank(void) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof(variables) / sizeof *variables; i++) {
    const char *rank = lcomm_setting(variables[i]);
    if (rank) {
      return strcmp(rank, "0") == 0;
    }
  }
  return true;
}

static bool was_wanted(void) {
  const char *mode = lcomm_setting("LCOMM_INTERPOSE");
  return lcomm_setting("LCOMM_POLICY") && !(mode && strcmp(mode, "off") == 0);
}

__attribute__((destructor)) static void tell_of_bypass(void) {
  int begun = 0;
  if (lcomm_interpose_level() >= MPI_THREAD_SINGLE || getpid() != process || !was_wanted() ||
      !is_first_rank() || PMPI_Initialized(&begun) != MPI_SUCCESS || !begun) {
    return;
  }
  lcomm_interpose_say(
      "the program has called MPI_Init past the preload, so nothing was compressed: it "
      "looks MPI's functions up with dlopen and dlsym (ctypes, Julia's ccall). Let it "
      "look them up in libcomm-mpi.so, which has those that it takes and is linked with "
      "MPI, or in the whole process (dlopen(NULL))");
}
