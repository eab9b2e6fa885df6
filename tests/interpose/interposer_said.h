/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSE_INTERPOSER_SAID_H
#define LCOMM_TESTS_INTERPOSE_INTERPOSER_SAID_H

/* What this process says on standard error meanwhile, and the file by which the interposer
 * is told something while the program runs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/interposer_property.h"

/* Standard error goes to a file from here on. */
typedef struct listening {
  FILE *file;
  int before;
} listening;

static inline listening listen_begin(void) {
  listening to = {tmpfile(), dup(STDERR_FILENO)};
  fflush(stderr);
  if (to.file && to.before >= 0) {
    dup2(fileno(to.file), STDERR_FILENO);
  }
  return to;
}

/* How many lines with `word` the interposer said; what it said is shown when it is not as
 * many as expected. */
static inline int listen_end(listening to, const char *word, int expected) {
  char line[1024];
  int count = 0;
  fflush(stderr);
  dup2(to.before, STDERR_FILENO);
  close(to.before);
  if (!to.file) {
    return 0;
  }
  for (int round = 0; round < 2; round++) {
    rewind(to.file);
    while (fgets(line, sizeof(line), to.file)) {
      bool said = strstr(line, "libcomm-mpi:") && strstr(line, word);
      count += said && round == 0;
      if (round == 1 && count != expected) {
        fputs(line, stderr);
      }
    }
  }
  fclose(to.file);
  return count;
}

/* ------------------------------------------------------- the control file */

/* The same on all ranks of a run, and no other's. */
static inline const char *control_path(void) {
  static char path[256];
  const char *folder = getenv("TMPDIR"), *job = getenv("PMIX_NAMESPACE");
  if (!path[0]) {
    snprintf(path, sizeof(path), "%s/lcomm-interposer-control-%s-%d", folder ? folder : "/tmp",
             job ? job : "of", job ? 0 : (int)getppid()); /* of MPICH's launcher */
  }
  return path;
}

static inline void use_control_file(void) {
  remove(control_path());
  setenv("LCOMM_INTERPOSE_CONTROL", control_path(), 1);
}

static inline void write_words(const char *words) {
  char other[300];
  snprintf(other, sizeof(other), "%s.new", control_path());
  FILE *file = fopen(other, "w");
  require(file && fprintf(file, "%s\n", words) > 0 && fclose(file) == 0, "cannot write %s", other);
  require(rename(other, control_path()) == 0, "cannot rename %s", other);
}

/* Tell all ranks; no words: there is no file. Collective. */
static inline void tell_interposer(const char *words) {
  PMPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0 && words) {
    write_words(words);
  } else if (mpi_rank == 0) {
    remove(control_path());
  }
  PMPI_Barrier(MPI_COMM_WORLD);
}

#endif
