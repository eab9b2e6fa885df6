/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_device.h"

#include <dlfcn.h>
#include <string.h>

#include "trainer/train_name.h"

#define MODULE "libtrainer-cuda.so"

static const char *const names[] = {
    [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", [DEVICE_AUTO] = "auto"};

static trainer_cuda_open_function *replaced;

const char *device_name(device_kind kind) {
  return names[kind];
}

device_kind device_find(const char *name) {
  return (device_kind)name_find(names, DEVICE_COUNT, name);
}

void device_replace(trainer_cuda_open_function *open) {
  replaced = open;
}

/* The module stays open to the end of the process. */
static trainer_cuda_open_function *find_cuda(const char **why) {
  if (replaced) {
    return replaced;
  }
  trainer_cuda_open_function *found = NULL;
  void *module = dlopen(MODULE, RTLD_NOW | RTLD_LOCAL);
  void *symbol = module ? dlsym(module, "trainer_cuda_open") : NULL;
  if (symbol) {
    memcpy(&found, &symbol, sizeof found);
  } else {
    *why = dlerror();
  }
  return found;
}

static const backend *open_cuda(int rank, precision_kind stored, failure *why) {
  const char *reason = "no reason given";
  trainer_cuda_open_function *open = find_cuda(&reason);
  const backend *found = open ? open(rank, stored, &reason) : NULL;
  if (!found) {
    failure_set(why, EXIT_SETUP,
                "--device cuda: %s; " MODULE " is built where make finds nvcc, and needs a GPU",
                reason);
  }
  return found;
}

const backend *device_open(device_kind kind, int rank, precision_kind stored, failure *why) {
  failure ignored = {0};
  const backend *found = NULL;
  if (kind != DEVICE_CPU) {
    found = open_cuda(rank, stored, kind == DEVICE_AUTO ? &ignored : why);
  }
  return found || kind == DEVICE_CUDA ? found : backend_cpu();
}
