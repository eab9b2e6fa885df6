/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The process: MPI's functions that begin and end it, a program of another MPI, and a program that
 * bypasses this library. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/mpi/interpose.h"

/* ------------------------------------------------------------ MPI's functions */

LCOMM_INTERPOSE_API int MPI_Init(int *argc, char ***argv) {
  int granted = MPI_THREAD_SINGLE;
  int level = lcomm_interpose_thread_level_to_ask(MPI_THREAD_SINGLE);
  int code = level == MPI_THREAD_SINGLE ? PMPI_Init(argc, argv)
                                        : PMPI_Init_thread(argc, argv, level, &granted);
  if (code == MPI_SUCCESS) {
    lcomm_interpose_thread_level_to_tell(MPI_THREAD_SINGLE, granted);
    code = lcomm_interpose_start();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int level = lcomm_interpose_thread_level_to_ask(required);
  int code = PMPI_Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) {
    *provided = lcomm_interpose_thread_level_to_tell(required, *provided);
    code = lcomm_interpose_start();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Query_thread(int *provided) {
  int code = PMPI_Query_thread(provided);
  if (code == MPI_SUCCESS && lcomm_interpose_thread_level() >= MPI_THREAD_SINGLE) {
    *provided = lcomm_interpose_thread_level();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Finalize(void) {
  lcomm_interpose_stop();
  return PMPI_Finalize();
}

/* -------------------------------------------------------------- environment */

/* As the launcher says, because MPI cannot be asked here. Without a launcher the process is rank
 * 0. */
static bool is_rank_0(void) {
  static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                                          "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof(variables) / sizeof *variables; i++) {
    const char *rank = lcomm_setting(variables[i]);
    if (rank) {
      return strcmp(rank, "0") == 0;
    }
  }
  return true;
}

/* LCOMM_INTERPOSE has this value. */
static bool mode_is(const char *value) {
  const char *mode = lcomm_setting("LCOMM_INTERPOSE");
  return mode && strcmp(mode, value) == 0;
}

/* ---------------------------------------------------- a program of another MPI */

/* The handles of another MPI have other sizes, so this library can not even pass them on. Before
 * main() the process therefore executes itself again without this preload. */

/* The file name of this library. */
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

/* Remove this library from LD_PRELOAD. False: it is not in there, because it was loaded in another
 * way. */
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

/* The words of the process's command line, with NULL at the end. */
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

__attribute__((constructor)) static void leave_other_mpi(void) {
  const char *why = lcomm_mpi_other();
  if (!why) {
    return;
  }
  if (mode_is("require")) {
    if (is_rank_0()) {
      lcomm_interpose_log("%s. LCOMM_INTERPOSE=require does not let it run on plain MPI", why);
    }
    _exit(EXIT_FAILURE);
  }
  if (is_rank_0()) {
    lcomm_interpose_log("%s. The program runs on plain MPI", why);
  }
  char **command = leave_preload() ? read_command() : NULL;
  if (command) {
    execv("/proc/self/exe", command);
  }
}

/* --------------------------------------------- a program that bypasses the library */

/* Programs that look MPI's functions up in its library (dlopen, dlsym), and tools that call
 * PMPI_Init, bypass this library. It learns that only when the process ends. */

/* A child of fork() that exits logs nothing. */
static pid_t process;

__attribute__((constructor)) static void remember_process(void) {
  process = getpid();
}

__attribute__((destructor)) static void log_bypass(void) {
  int begun = 0;
  bool wanted = lcomm_setting("LCOMM_POLICY") && !mode_is("off");
  if (lcomm_interpose_thread_level() >= MPI_THREAD_SINGLE || getpid() != process || !wanted ||
      !is_rank_0() || PMPI_Initialized(&begun) != MPI_SUCCESS || !begun) {
    return;
  }
  lcomm_interpose_log(
      "the program has called MPI_Init past the preload, so nothing was compressed: it "
      "looks MPI's functions up with dlopen and dlsym (ctypes, Julia's ccall). Let it "
      "look them up in libcomm-mpi.so, which has those that it takes and is linked with "
      "MPI, or in the whole process (dlopen(NULL))");
}
