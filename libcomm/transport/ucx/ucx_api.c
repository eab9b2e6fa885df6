/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_api.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/transport/transport.h"
#include "libcomm/transport/ucx/ucx_environment.h"

enum { MAJOR = 1, MINOR_MIN = 11 }; /* the first with ucp_worker_query of net addresses */

/* UCX is a guest in the user's program: no signal handlers, no service thread,
 * and no lines on standard output about failures that are reported here. What
 * the user has set for UCX counts, as MPI may share the library. */
#define QUIET "UCX_ERROR_SIGNALS=", "UCX_DEBUG_SIGNO=0", "UCX_VFS_ENABLE=n", "UCX_LOG_LEVEL=fatal"

/* To learn of memory that goes, UCX rewrites mmap and its like in the running
 * program. Only devices that read memory by themselves need that. */
static const char *const quiet_with_rdma[] = {QUIET, NULL};
static const char *const quiet[] = {QUIET, "UCX_MEM_MMAP_HOOK_MODE=none", NULL};

static const struct {
  const char *name;
  size_t place;
} functions[] = {
#define ENTRY(function) {#function, offsetof(lcomm_ucx_api, function)},
    LCOMM_UCX_FUNCTIONS(ENTRY)
#undef ENTRY
};

lcomm_ucx_api lcomm_ucx;
const char *lcomm_ucx_library = "libucp.so.0";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char trouble[LCOMM_TRANSPORT_WHY_MAX];

/* All functions into `api`; false with a phrase in trouble. */
static bool find_functions(void *library, lcomm_ucx_api *api) {
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    void *address = dlsym(library, functions[i].name);
    if (!address) {
      snprintf(trouble, sizeof(trouble), "%s has no function %s: it is too old", lcomm_ucx_library,
               functions[i].name);
      return false;
    }
    memcpy((char *)api + functions[i].place, &address, sizeof(address));
  }
  return true;
}

int lcomm_ucx_count_entries(const char *folder) {
  int count = 0;
  DIR *it = opendir(folder);
  for (const struct dirent *entry = it ? readdir(it) : NULL; entry; entry = readdir(it)) {
    count += entry->d_name[0] != '.';
  }
  if (it) {
    closedir(it);
  }
  return count;
}

/* The library is never unloaded: UCX has a thread of its own and hooks. */
static void load(void) {
  if (!lcomm_ucx_environment_enter(
          NULL, lcomm_ucx_count_entries(LCOMM_UCX_RDMA_DEVICES) > 0 ? quiet_with_rdma : quiet)) {
    snprintf(trouble, sizeof(trouble), "out of memory");
    return;
  }
  void *library = dlopen(lcomm_ucx_library, RTLD_NOW | RTLD_LOCAL);
  lcomm_ucx_environment_leave();
  if (!library) {
    const char *why = dlerror();
    snprintf(trouble, sizeof(trouble), "%s cannot be loaded: %s", lcomm_ucx_library,
             why ? why : "no reason given");
    return;
  }
  lcomm_ucx_api api = {0};
  unsigned major = 0, minor = 0, patch = 0;
  if (!find_functions(library, &api)) {
    return;
  }
  api.ucp_get_version(&major, &minor, &patch);
  if (major != MAJOR || minor < MINOR_MIN) {
    snprintf(trouble, sizeof(trouble), "%s is UCX %u.%u.%u; %d.%d or a later %d.x is needed",
             lcomm_ucx_library, major, minor, patch, MAJOR, MINOR_MIN, MAJOR);
    return;
  }
  lcomm_ucx = api;
  loaded = true;
}

lcomm_status lcomm_ucx_load(lcomm_why *why) {
  pthread_once(&once, load);
  if (!loaded) {
    return lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED, "%s", trouble);
  }
  return LCOMM_OK;
}

const char *lcomm_ucx_version(void) {
  lcomm_why why;
  return lcomm_ucx_load(&why) == LCOMM_OK ? lcomm_ucx.ucp_get_version_string() : NULL;
}
