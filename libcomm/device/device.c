/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/device.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/device/device_deferred.h"
#include "libcomm/device/module.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool known; /* the rest is: */
static const lcomm_device_table *table;
static lcomm_why reason;
static atomic_bool in_use; /* by this process, as far as was seen */

/* Does the user want devices? */
static bool is_wanted(void) {
  const char *mode = lcomm_env_get(LCOMM_ENV_CUDA);
  if (!mode || strcmp(mode, "auto") == 0) {
    return true;
  }
  if (strcmp(mode, "off") == 0) {
    (void)lcomm_why_set(&reason, LCOMM_ERR_UNSUPPORTED,
                        "LCOMM_CUDA=off: unset it to use CUDA devices");
  } else {
    (void)lcomm_why_set(&reason, LCOMM_ERR_UNSUPPORTED,
                        "LCOMM_CUDA=%.80s is neither auto nor off: no CUDA device is used", mode);
  }
  return false;
}

static const lcomm_device_table *find(void) {
  if (!is_wanted()) {
    return NULL;
  }
  const struct lcomm_device_module *module = lcomm_device_module_open(&reason);
  return module ? lcomm_device_module_check(module, &reason) : NULL;
}

const lcomm_device_table *lcomm_device_get(lcomm_why *why) {
  pthread_mutex_lock(&lock);
  if (!known) {
    table = find();
    known = true;
  }
  const lcomm_device_table *found = table;
  if (!found && why) {
    *why = reason;
  }
  pthread_mutex_unlock(&lock);
  return lcomm_device_freeing(found);
}

int lcomm_device_enter(const lcomm_device_table *of, int ordinal, int *before) {
  *before = ordinal;
  (void)of->current(before);
  return of->use(ordinal);
}

void *lcomm_device_memory_of(int ordinal, size_t size, int (*get)(size_t size, void **memory)) {
  const lcomm_device_table *of = lcomm_device_get(NULL);
  void *memory = NULL;
  int before = ordinal;
  if (lcomm_device_enter(of, ordinal, &before) != 0 || get(size, &memory) != 0) {
    memory = NULL;
  }
  (void)of->use(before);
  return memory;
}

int lcomm_device_stream_of(int ordinal, void **stream) {
  const lcomm_device_table *of = lcomm_device_get(NULL);
  int before = ordinal;
  int error = lcomm_device_enter(of, ordinal, &before);
  if (!error) {
    error = of->stream.create(stream);
  }
  (void)of->use(before);
  return error;
}

int lcomm_device_copy_now(int ordinal, void *to, const void *from, size_t size, void *stream) {
  const lcomm_device_table *of = lcomm_device_get(NULL);
  int before = ordinal;
  int error = lcomm_device_enter(of, ordinal, &before);
  if (!error) {
    error = of->copy(to, from, size, stream);
  }
  if (!error) {
    error = of->stream.finish(stream);
  }
  (void)of->use(before);
  return error;
}

static int copy_in(void **stream, const lcomm_device_table *of, void *to, const void *from,
                   size_t size) {
  LCOMM_DEVICE_TRY(of->stream.work_create(stream));
  LCOMM_DEVICE_TRY(of->copy(to, from, size, *stream));
  return of->stream.finish(*stream);
}

int lcomm_device_copy_apart(int ordinal, void *to, const void *from, size_t size) {
  const lcomm_device_table *of = lcomm_device_get(NULL);
  void *stream = NULL;
  int before = ordinal;
  int error = lcomm_device_enter(of, ordinal, &before);
  error = error ? error : copy_in(&stream, of, to, from, size);
  (void)of->stream.destroy(stream);
  (void)of->use(before);
  return error;
}

static int read_loads(struct dl_phdr_info *info, size_t size, void *loads) {
  (void)size;
  *(unsigned long long *)loads = info->dlpi_adds;
  return 1; /* the first object tells */
}

/* Whoever has an address of a device has loaded the driver. To look for it takes
 * some 20 us, so that is done only when a library was loaded since the last look;
 * to see that takes 20 ns. */
static bool driver_is_loaded(void) {
  static _Atomic unsigned long long loads_seen;
  unsigned long long loads = 0;
  dl_iterate_phdr(read_loads, &loads);
  if (loads == atomic_load_explicit(&loads_seen, memory_order_relaxed)) {
    return false;
  }
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!driver) {
    atomic_store_explicit(&loads_seen, loads, memory_order_relaxed);
    return false;
  }
  dlclose(driver);
  return true;
}

const lcomm_device_table *lcomm_device_in_use(void) {
  if (!atomic_load(&in_use)) {
    if (!driver_is_loaded()) {
      return NULL;
    }
    atomic_store(&in_use, true);
  }
  return lcomm_device_get(NULL);
}

static _Thread_local bool is_barred;

bool lcomm_device_bar(void) {
  bool before = is_barred;
  is_barred = true;
  return before;
}

void lcomm_device_unbar(bool before) {
  is_barred = before;
}

bool lcomm_device_is_barred(void) {
  return is_barred;
}

void lcomm_device_replace(const lcomm_device_table *other) {
  pthread_mutex_lock(&lock);
  table = other;
  known = true;
  atomic_store(&in_use, true);
  (void)lcomm_why_set(&reason, LCOMM_ERR_UNSUPPORTED, "the program replaced the device by none");
  pthread_mutex_unlock(&lock);
}
