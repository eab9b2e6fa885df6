/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/include/libcomm.h"

static const char symbol[] = "lcomm_device_module";

const char *lcomm_device_library = "libcomm-cuda.so";

/* -------------------------------------------------------------- finding */

/* The file that this code was loaded from, libcomm.so or a program with it inside;
 * "" where that is not known. */
static void find_own_file(char file[PATH_MAX]) {
  Dl_info facts;
  struct link_map *map = NULL;
  file[0] = '\0';
  if (!dladdr1((void *)lcomm_device_get, &facts, (void **)&map, RTLD_DL_LINKMAP) || !map) {
    return;
  }
  if (map->l_name[0] != '\0') {
    snprintf(file, PATH_MAX, "%s", map->l_name);
    return;
  }
  ssize_t length = readlink("/proc/self/exe", file, PATH_MAX - 1); /* the program has no name */
  file[length > 0 ? length : 0] = '\0';
}

/* The module's path beside that file; false where nothing lies there. */
static bool find_beside(char path[PATH_MAX]) {
  char own[PATH_MAX];
  find_own_file(own);
  char *end = strrchr(own, '/');
  if (!end) {
    return false;
  }
  *end = '\0';
  int length = snprintf(path, PATH_MAX, "%s/%s", own, lcomm_device_library);
  return length > 0 && length < PATH_MAX && access(path, F_OK) == 0;
}

/* The loader says the same of a file that is not there and of one that lacks
 * another library, but begins with the name of what is not there. */
static bool is_missing(const char *trouble) {
  size_t length = strlen(lcomm_device_library);
  return strncmp(trouble, lcomm_device_library, length) == 0 && trouble[length] == ':' &&
         strstr(trouble, "No such file") != NULL;
}

const struct lcomm_device_module *lcomm_device_module_open(lcomm_why *why) {
  char path[PATH_MAX];
  bool beside = find_beside(path);
  void *library = dlopen(beside ? path : lcomm_device_library, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *trouble = dlerror();
    trouble = trouble ? trouble : "no reason given";
    if (!beside && is_missing(trouble)) {
      (void)lcomm_why_set(
          why, LCOMM_ERR_UNSUPPORTED,
          "%s is neither beside libcomm nor where the loader looks: build libcomm with nvcc in "
          "PATH ('make config' says what is missing) and keep the two together",
          lcomm_device_library);
    } else {
      (void)lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                          "%s cannot be loaded, so install libcomm anew: %s", lcomm_device_library,
                          trouble);
    }
    return NULL;
  }
  const struct lcomm_device_module *module = dlsym(library, symbol);
  if (!module) {
    dlclose(library);
    (void)lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                        "%s has no %s, so it is not libcomm's: remove it, or install libcomm anew",
                        lcomm_device_library, symbol);
  }
  return module; /* never unloaded: the driver has threads and handlers of exit */
}

/* ------------------------------------------------------------- checking */

/* Only `size` is where it always was before it was compared. */
static bool is_ours(const struct lcomm_device_module *module, lcomm_why *why) {
  unsigned own = (unsigned)lcomm_version();
  if (module->size != LCOMM_DEVICE_MODULE_SIZE || module->version != own || !module->table) {
    unsigned its = module->size >= sizeof(uint32_t) * 2 ? module->version : 0;
    (void)lcomm_why_set(
        why, LCOMM_ERR_UNSUPPORTED,
        "%s is of version %u.%u.%u, libcomm of %u.%u.%u: they must come from one build; "
        "install both anew",
        lcomm_device_library, its / 10000, its / 100 % 100, its % 100, own / 10000, own / 100 % 100,
        own % 100);
    return false;
  }
  return true;
}

/* Versions as CUDA counts them. A driver runs all runtimes of its major version. */
static void explain_failure(const lcomm_device_table *table, int error, lcomm_why *why) {
  int driver = 0, runtime = 0;
  if (table->version(&driver, &runtime) == 0 && driver == 0) {
    (void)lcomm_why_set(
        why, LCOMM_ERR_UNSUPPORTED,
        "there is no CUDA driver (libcuda.so.1): install NVIDIA's, or start the container "
        "with its GPUs");
  } else if (driver / 1000 < runtime / 1000) {
    (void)lcomm_why_set(
        why, LCOMM_ERR_UNSUPPORTED,
        "the CUDA driver is of version %d.%d and too old for %s, which needs %d.0: update the "
        "driver, or build libcomm with CUDA %d",
        driver / 1000, driver % 1000 / 10, lcomm_device_library, runtime / 1000, driver / 1000);
  } else {
    (void)lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                        "CUDA devices cannot be used: %s; nvidia-smi says more",
                        table->explain(error));
  }
}

const lcomm_device_table *lcomm_device_module_check(const struct lcomm_device_module *module,
                                                    lcomm_why *why) {
  int count = 0;
  if (!is_ours(module, why)) {
    return NULL;
  }
  if (module->is_barred) {
    *module->is_barred = lcomm_device_is_barred;
  }
  int error = module->table->count(&count);
  if (error != 0) {
    explain_failure(module->table, error, why);
    return NULL;
  }
  if (count <= 0) {
    (void)lcomm_why_set(why, LCOMM_ERR_UNSUPPORTED,
                        "no CUDA device: 'nvidia-smi -L' lists those of this host, and "
                        "CUDA_VISIBLE_DEVICES, where it is set, must leave one");
    return NULL;
  }
  return module->table;
}
