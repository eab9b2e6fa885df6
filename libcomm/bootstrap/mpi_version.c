/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The MPI that this library was built for, and the one that the process has: handles of
 * one mean nothing to another. */

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/include/libcomm_mpi.h"

/* How its library calls itself, as far as all versions that understand each other's
 * handles do; what it is in a sentence; how to build for it. */
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#if defined(OMPI_MAJOR_VERSION)
#define NAME "Open MPI"
#define MAJOR OMPI_MAJOR_VERSION
#define BUILT_FOR NAME " " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION)
#elif defined(I_MPI_VERSION)
#define NAME "Intel(R) MPI"
#define MAJOR 0
#define BUILT_FOR NAME " " I_MPI_VERSION
#elif defined(MVAPICH2_VERSION)
#define NAME "MVAPICH"
#define MAJOR 0
#define BUILT_FOR NAME " " MVAPICH2_VERSION
#elif defined(MPICH_NUMVERSION)
#define NAME "MPICH"
#define MAJOR (MPICH_NUMVERSION / 10000000)
#define BUILT_FOR NAME " " MPICH_VERSION
#else
#error "which MPI is this? libcomm knows Open MPI, MPICH, MVAPICH and Intel MPI"
#endif

/* Another MPI writes its own string, which may be longer than the header of this one says. */
enum { VERSION_STRING_MAX = 16384 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char running[128], sentence[512];
static bool is_other;

/* "MPICH Version:\t4.0.2\n..." as "MPICH 4.0.2", "Open MPI v4.1.4, ..." likewise. */
static void shorten(const char *text) {
  size_t name = strcspn(text, "0123456789");
  const char *number = text + name;
  while (name > 0 && strchr(" \t:v", text[name - 1])) {
    name--;
  }
  const char *word = strstr(text, " Version");
  if (word && word < text + name) {
    name = (size_t)(word - text);
  }
  size_t digits = strspn(number, "0123456789.");
  snprintf(running, sizeof(running), "%.*s %.*s", (int)(name < 80 ? name : 80), text,
           (int)(digits < 40 ? digits : 40), number);
}

static void compare(void) {
  static char text[VERSION_STRING_MAX];
  int length = 0;
  PMPI_Get_library_version(text, &length);
  shorten(text);
  int major = atoi(running + strcspn(running, "0123456789"));
  is_other = strncmp(running, NAME, strlen(NAME)) != 0 || (MAJOR != 0 && major != MAJOR);
  snprintf(sentence, sizeof(sentence),
           "this program runs on %s, and this libcomm was built for %s; use one that is built for "
           "the program's MPI (make MPI=openmpi or MPI=mpich)",
           running, BUILT_FOR);
}

const char *lcomm_mpi_other(void) {
  pthread_once(&once, compare);
  return is_other ? sentence : NULL;
}

const char *lcomm_mpi_running(void) {
  pthread_once(&once, compare);
  return running;
}

const char *lcomm_mpi_built_for(void) {
  return BUILT_FOR;
}
