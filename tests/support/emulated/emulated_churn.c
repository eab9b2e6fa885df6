/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/emulated/emulated_churn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "kernels/element.h"
#include "tests/support/emulated/emulated_device.h"

enum { KEPT = 6, SIZE_MAX_BYTES = 100000, PAUSE_US_MAX = 2000 };

typedef struct churn {
  pthread_t thread;
  atomic_bool ends;
  uint64_t seed, drawn;
  int device, done;
  bool has_begun, failed; /* of who begins it; of the thread */
  void *memory[KEPT], *pinned[KEPT], *streams[KEPT];
} churn;

static churn it;

static uint32_t draw(uint32_t below) {
  return lcomm_random(it.seed, it.drawn++) % below;
}

static void expect(int error) {
  it.failed = it.failed || error != 0;
  it.done++;
}

/* Give back what is at this place, or get something. */
static void change_memory(const lcomm_device_table *device, void **place) {
  if (*place) {
    expect(device->memory.free(*place));
    *place = NULL;
  } else {
    expect(device->memory.get(1 + draw(SIZE_MAX_BYTES), place));
  }
}

static void change_pinned(const lcomm_device_table *device, void **place) {
  if (*place) {
    expect(device->memory.pinned_free(*place));
    *place = NULL;
  } else {
    expect(device->memory.pinned_get(1 + draw(SIZE_MAX_BYTES), place));
  }
}

static void change_stream(const lcomm_device_table *device, void **place) {
  if (*place) {
    expect(device->stream.destroy(*place));
    *place = NULL;
  } else {
    expect(device->stream.create(place));
  }
}

static void change(const lcomm_device_table *device) {
  uint32_t place = draw(KEPT);
  switch (draw(4)) {
  case 0:
    change_memory(device, &it.memory[place]);
    break;
  case 1:
    change_pinned(device, &it.pinned[place]);
    break;
  case 2:
    change_stream(device, &it.streams[place]);
    break;
  default:
    expect(device->load());
    break;
  }
}

static void give_all_back(const lcomm_device_table *device) {
  for (int i = 0; i < KEPT; i++) {
    if (it.memory[i]) {
      change_memory(device, &it.memory[i]);
    }
    if (it.pinned[i]) {
      change_pinned(device, &it.pinned[i]);
    }
    if (it.streams[i]) {
      change_stream(device, &it.streams[i]);
    }
  }
}

static void *run(void *argument) {
  const lcomm_device_table *device = argument;
  expect(device->use(it.device));
  while (!atomic_load(&it.ends)) {
    change(device);
    struct timespec pause = {0, (long)draw(PAUSE_US_MAX) * 1000};
    nanosleep(&pause, NULL);
  }
  give_all_back(device);
  return NULL;
}

void emulated_churn_begin(uint64_t seed) {
  const lcomm_device_table *device = emulated_table();
  it = (churn){.seed = seed};
  (void)device->current(&it.device);
  it.has_begun = pthread_create(&it.thread, NULL, run, (void *)(uintptr_t)device) == 0;
}

int emulated_churn_end(void) {
  if (!it.has_begun) {
    return -1;
  }
  atomic_store(&it.ends, true);
  pthread_join(it.thread, NULL);
  return it.failed ? -1 : it.done;
}
