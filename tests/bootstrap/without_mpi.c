/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program of a user who has no MPI: linked with libcomm.so alone. */

#include <libcomm.h>
#include <stdio.h>
#include <string.h>

/* Also nothing that was opened later. */
static int mpi_is_mapped(void) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  int found = !maps;
  while (maps && fgets(line, sizeof(line), maps)) {
    found |= strstr(line, "libmpi") != NULL || strstr(line, "libopen-") != NULL;
  }
  if (maps) {
    fclose(maps);
  }
  return found;
}

int main(void) {
  lcomm_comm *comm = NULL;
  float values[50000];
  if (lcomm_create_env(NULL, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  for (int i = 0; i < 50000; i++) {
    values[i] = (float)lcomm_rank(comm) + 1;
  }
  if (lcomm_allreduce(comm, values, values, 50000, LCOMM_FLOAT32, LCOMM_SUM) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
    return 1;
  }
  printf("the sum of %d ranks is %g\n", lcomm_size(comm), (double)values[49999]);
  printf("%s file of MPI is mapped\n", mpi_is_mapped() ? "a" : "no");
  return lcomm_destroy(comm) == LCOMM_OK ? 0 : 1;
}
