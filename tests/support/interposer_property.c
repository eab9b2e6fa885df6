/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/interposer_property.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void set_default(const char *variable, const char *value) {
  setenv(variable, value, 0);
}

static int number_of(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

int launched_ranks(void) {
  return number_of("OMPI_COMM_WORLD_SIZE", number_of("PMI_SIZE", 1));
}

int launched_rank(void) {
  return number_of("OMPI_COMM_WORLD_RANK", number_of("PMI_RANK", 0));
}

bool mpi_is_mpich(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  return strstr(version, "MPICH") != NULL;
}

bool interposer_is_there(void) {
  return dlsym(RTLD_DEFAULT, "lcomm_version") != NULL;
}

bool interposer_is_on(void) {
  const char *interposer = getenv("LCOMM_INTERPOSE"), *policy = getenv("LCOMM_POLICY");
  bool on = !interposer || !*interposer || strcmp(interposer, "on") == 0;
  return on && policy && *policy && interposer_is_there() && launched_ranks() > 1;
}

bool needs_interposer(void) {
  if (!interposer_is_on()) {
    skip_property("the interposer is off, and plain MPI need not do it");
  }
  return interposer_is_on();
}

int node_of(int world_rank) {
  return mpi_size > 1 && world_rank >= (mpi_size + 1) / 2;
}

/* Ranks share processors with each other and with the queue's thread: who waits yields. */
static void set_environment(void (*before)(void)) {
  if (before) {
    before();
  }
  set_default("OMPI_MCA_mpi_yield_when_idle", "1");
  set_default("LCOMM_NODES", launched_ranks() > 1 ? "2" : "1");
  set_default("LCOMM_TRANSPORT", "shm,mpi");
}

int interposer_property_main(int *argc, char ***argv, void (*before)(void),
                             const mpi_property *properties, int count) {
  set_environment(before);
  MPI_Init(argc, argv);
  MPI_Query_thread(&mpi_threads);
  return run_properties(*argv, properties, count);
}

int interposer_property_main_threads(int *argc, char ***argv, void (*before)(void), int level,
                                     const mpi_property *properties, int count) {
  set_environment(before);
  MPI_Init_thread(argc, argv, level, &mpi_threads);
  return run_properties(*argv, properties, count);
}
