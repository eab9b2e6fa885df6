/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A build without MPI: one process, whatever started it. */

#include <string.h>

#include "tools/info/info_ranks.h"

void info_ranks_begin(int *argc, char ***argv) {
  (void)argc, (void)argv;
}

void info_ranks_end(void) {
}

int info_rank(void) {
  return 0;
}

int info_ranks(void) {
  return 1;
}

int info_local_rank(void) {
  return 0;
}

void info_gather(const void *mine, void *all, size_t size) {
  memcpy(all, mine, size);
}

lcomm_status info_ranks_join(const lcomm_config *config, lcomm_comm **comm) {
  return lcomm_create_env(config, comm);
}

void info_ranks_abort(int code) {
  (void)code;
}

const char *info_mpi_name(void) {
  return "none in this build";
}
