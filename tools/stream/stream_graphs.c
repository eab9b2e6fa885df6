/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_graphs.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The mode of programs that ask for none: meanwhile a call of any thread that may wait for a device
 * spoils the capture. */
enum { CAPTURE_GLOBAL = 0 };

/* The driver as its manual has it; its headers need not be there. */
static struct {
  int (*capture_begin)(void *stream, int mode);
  int (*capture_end)(void *stream, void **graph);
  int (*instantiate)(void **executable, void *graph, unsigned long long flags);
  int (*launch)(void *executable, void *stream);
  int (*executable_destroy)(void *executable);
  int (*graph_destroy)(void *graph);
} driver;

static int capture_begin(void *stream) {
  return driver.capture_begin(stream, CAPTURE_GLOBAL);
}

static int instantiate(void *graph, void **executable) {
  return driver.instantiate(executable, graph, 0);
}

static bool find(void *library, const char *name, void *function, lcomm_why *why) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof(symbol));
  return symbol ||
         lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                       "the CUDA driver has no %s: update it to one of CUDA 11.4 or newer",
                       name) == LCOMM_OK;
}

bool stream_graphs_driver(stream_graphs *graphs, lcomm_why *why) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* the library's own; it stays */
  if (!library) {
    return lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                         "there is no libcuda.so.1 where the loader looks: install NVIDIA's "
                         "driver") == LCOMM_OK;
  }
  if (!find(library, "cuStreamBeginCapture_v2", &driver.capture_begin, why) ||
      !find(library, "cuStreamEndCapture", &driver.capture_end, why) ||
      !find(library, "cuGraphInstantiateWithFlags", &driver.instantiate, why) ||
      !find(library, "cuGraphLaunch", &driver.launch, why) ||
      !find(library, "cuGraphExecDestroy", &driver.executable_destroy, why) ||
      !find(library, "cuGraphDestroy", &driver.graph_destroy, why)) {
    return false;
  }
  *graphs = (stream_graphs){capture_begin, driver.capture_end,        instantiate,
                            driver.launch, driver.executable_destroy, driver.graph_destroy};
  return true;
}
