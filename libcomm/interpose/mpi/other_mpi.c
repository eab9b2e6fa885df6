/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program of another MPI than the one this library was built for. No handle may be
 * touched then, and not even be passed on: MPIs have handles of other lengths. So before
 * the program has begun, its process is replaced by itself without this preload. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/mpi/interpose.h"

/* This library's own file name. */
static const char *own_name(void) {
  Dl_info about;
  if (!dladdr(&lcomm_interpose_mode_now, &about) || !about.dli_fname) {
    return NULL;
  }
  const char *slash = strrchr(about.dli_fname, '/');
  return slash ? slash + 1 : about.dli_fname;
}

static bool is_own(const char *entry, size_t length, const char *own) {
  const char *slash = memrchr(entry, '/', length);
  const char *name = slash ? slash + 1 : entry;
  size_t rest = length - (size_t)(name - entry);
  return rest == strlen(own) && memcmp(name, own, rest) == 0;
}

/* Take this library out of LD_PRELOAD. False when it is not in there: it was loaded in some
 * other way. */
static bool leave_preload(void) {
  const char *at = getenv("LD_PRELOAD"), *own = own_name();
  char *others = at && own ? calloc(1, strlen(at) + 2) : NULL;
  bool found = false;
  while (others && *(at += strspn(at, ": "))) {
    size_t length = strcspn(at, ": ");
    if (is_own(at, length, own)) {
      found = true;
    } else {
      strncat(others, at, length);
      strcat(others, ":");
    }
    at += length;
  }
  if (found) {
    *others ? setenv("LD_PRELOAD", others, 1) : unsetenv("LD_PRELOAD");
  }
  free(others);
  return found;
}

/* The words that the process was started with, ended by NULL; all of one block. */
static char **read_command(void) {
  char *text = NULL, **words = NULL;
  size_t room = 0, count = 0;
  FILE *file = fopen("/proc/self/cmdline", "re");
  if (!file) {
    return NULL;
  }
  while (getdelim(&text, &room, '\0', file) >= 0) {
    char **more = realloc(words, (count + 2) * sizeof *words);
    if (!more || !(more[count] = strdup(text))) {
      break;
    }
    words = more;
    words[++count] = NULL;
  }
  free(text);
  fclose(file);
  return words;
}

/* MPI cannot be asked, so the launcher's variables are. Without any each process is one. */
static bool is_rank_0(void) {
  static const char *const variables[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                          "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof(variables) / sizeof *variables; i++) {
    const char *rank = getenv(variables[i]);
    if (rank) {
      return strcmp(rank, "0") == 0;
    }
  }
  return true;
}

/* The word of LCOMM_INTERPOSE for programs that must not run uncompressed. */
static bool must_open(void) {
  const char *word = lcomm_setting("LCOMM_INTERPOSE");
  return word && strcmp(word, "require") == 0;
}

__attribute__((constructor)) static void leave_other_mpi(void) {
  const char *why = lcomm_mpi_other();
  if (!why) {
    return;
  }
  if (must_open()) {
    if (is_rank_0()) {
      lcomm_interpose_say("%s. LCOMM_INTERPOSE=require does not let it run on plain MPI", why);
    }
    _exit(EXIT_FAILURE);
  }
  if (is_rank_0()) {
    lcomm_interpose_say("%s. The program runs on plain MPI", why);
  }
  char **command = leave_preload() ? read_command() : NULL;
  if (command) {
    execv("/proc/self/exe", command);
  }
}
