/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over another NCCL: it makes all calls, with the arguments that the program gave. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_calls.h"
#include "libcomm_interpose.h"

/* ------------------------------------------------- calls that are not forwarded as they are */

static ncclResult_t told_version(int *version) {
  if (!version) {
    return ncclInvalidArgument;
  }
  *version = lcomm_nccl_now()->version;
  return ncclSuccess;
}

/* Sentences of this library come before those of NCCL. */
static const char *last_error(ncclComm_t comm) {
  const char *failure = lcomm_nccl_last_failure();
  return failure ? failure : lcomm_nccl_now()->below.GetLastError(comm);
}

/* ------------------------------------------------------------- the functions */

static void look_up(void *handle, lcomm_nccl_calls *calls) {
  void *found;
#define LOOK_UP(name, kind, n, ...)                                                                \
  found = dlsym(handle, "nccl" #name);                                                             \
  if (found) {                                                                                     \
    memcpy(&calls->name, &found, sizeof found);                                                    \
  }
  LCOMM_NCCL_LIST(LOOK_UP)
#undef LOOK_UP
}

/* All calls are those of `handle`. */
static void forward(lcomm_nccl_choice *choice, void *handle, const char *path) {
  int version = 0;
  void *reset_debug = dlsym(handle, "ncclResetDebugInitInternal");
  memcpy(&choice->reset_debug_below, &reset_debug, sizeof reset_debug);
  look_up(handle, &choice->below);
  choice->calls = choice->below;
  choice->calls.GetLastError = last_error;
  choice->version = lcomm_nccl_version_to_tell();
  if (choice->version > 0) {
    choice->calls.GetVersion = told_version;
  }
  choice->below.GetVersion(&version);
  snprintf(choice->reason, sizeof(choice->reason),
           "NCCL %d.%d.%d (%s) does not have it; a later version may", version / 10000,
           version / 100 % 100, version % 100, path);
}

/* ---------------------------------------------------------------- the file */

/* This library once more, by another name. */
static bool is_this_library(void *function) {
  Dl_info there, here;
  return dladdr(function, &there) && dladdr(&lcomm_nccl_in_force, &here) &&
         there.dli_fbase == here.dli_fbase;
}

/* NULL: `path` is no other NCCL; `why` says what it is. */
static void *open_nccl(const char *path, char *why, size_t size) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(why, size, "%s", dlerror());
    return NULL;
  }
  void *function = dlsym(handle, "ncclGetVersion");
  if (function && !is_this_library(function)) {
    return handle;
  }
  snprintf(why, size, "%s is %s", path, function ? "libcomm-nccl.so itself" : "no NCCL");
  dlclose(handle);
  return NULL;
}

/* The one that is named. */
static bool forward_to_named(lcomm_nccl_choice *choice, const char *path) {
  char why[LCOMM_NCCL_PATH_MAX];
  void *handle = open_nccl(path, why, sizeof(why));
  if (!handle) {
    snprintf(choice->reason, sizeof(choice->reason), "LCOMM_NCCL_LIBRARY names no NCCL: %s", why);
    return false;
  }
  forward(choice, handle, path);
  return true;
}

/* The one that the program would call if this library were not there, because it is loaded already:
 * preloaded behind this one, or part of the program. */
static bool forward_to_next(lcomm_nccl_choice *choice) {
  Dl_info info;
  void *function = dlsym(RTLD_NEXT, "ncclGetVersion");
  if (!function || is_this_library(function) || !dladdr(function, &info)) {
    return false;
  }
  forward(choice, RTLD_NEXT, info.dli_fname);
  return true;
}

typedef struct candidates {
  lcomm_nccl_choice *choice;
  char why[LCOMM_NCCL_PATH_MAX]; /* the last one was not it */
} candidates;

static bool forward_to_candidate(void *context, const char *path) {
  candidates *here = context;
  void *handle = open_nccl(path, here->why, sizeof(here->why));
  if (handle) {
    forward(here->choice, handle, path);
  }
  return handle != NULL;
}

bool lcomm_nccl_over(lcomm_nccl_choice *choice) {
  const char *named = lcomm_setting("LCOMM_NCCL_LIBRARY");
  candidates found = {.choice = choice};
  if (named) {
    return forward_to_named(choice, named);
  }
  if (forward_to_next(choice) || lcomm_nccl_search(forward_to_candidate, &found)) {
    return true;
  }
  snprintf(choice->reason, sizeof(choice->reason),
           "no NCCL was found where the loader and Python packages keep libnccl.so.2%s%s; set "
           "LCOMM_NCCL_LIBRARY to its path",
           found.why[0] ? "; the last look failed: " : "", found.why);
  return false;
}
