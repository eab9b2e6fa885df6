/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What all functions of the table have in common: they are counted, and some of them wait for the
 * whole device, during which those of other threads wait for them. */

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/engine/progress_thread.h"
#include "tests/support/emulated/emulated_stream.h"

typedef enum call_manner {
  TELLS = 0,     /* a text, to any thread */
  ASKS = 8,      /* uses no device */
  USES = 1,      /* waits while another thread waits for the device */
  ENQUEUES = 2,  /* puts something into a stream */
  WAITS_ALL = 4, /* waits for all streams */
} call_manner;

static const struct {
  const char *name;
  unsigned manner;
} kinds[EMULATED_CALL_COUNT] = {
    [EMULATED_CALL_COUNT_DEVICES] = {"count", ASKS},
    [EMULATED_CALL_EXPLAIN] = {"explain", TELLS},
    [EMULATED_CALL_FACTS] = {"facts", ASKS},
    [EMULATED_CALL_VERSION] = {"version", ASKS},
    [EMULATED_CALL_CURRENT] = {"current", USES},
    [EMULATED_CALL_USE] = {"use", USES},
    [EMULATED_CALL_LOAD] = {"load", USES | WAITS_ALL},
    [EMULATED_CALL_LOCATE] = {"locate", USES},
    [EMULATED_CALL_GET] = {"memory.get", USES | WAITS_ALL},
    [EMULATED_CALL_FREE] = {"memory.free", USES | WAITS_ALL},
    [EMULATED_CALL_MANAGED_GET] = {"memory.managed_get", USES | WAITS_ALL},
    [EMULATED_CALL_PINNED_GET] = {"memory.pinned_get", USES | WAITS_ALL},
    [EMULATED_CALL_PINNED_FREE] = {"memory.pinned_free", USES | WAITS_ALL},
    [EMULATED_CALL_PIN] = {"memory.pin", USES | WAITS_ALL},
    [EMULATED_CALL_UNPIN] = {"memory.unpin", USES | WAITS_ALL},
    [EMULATED_CALL_STREAM_CREATE] = {"stream.create", USES | WAITS_ALL},
    [EMULATED_CALL_STREAM_DESTROY] = {"stream.destroy", USES},
    [EMULATED_CALL_STREAM_FINISH] = {"stream.finish", USES},
    [EMULATED_CALL_STREAM_CAPTURED] = {"stream.captured", USES},
    [EMULATED_CALL_STREAM_RETAIN] = {"stream.retain", USES},
    [EMULATED_CALL_STREAM_WAIT] = {"stream.wait", USES | ENQUEUES},
    [EMULATED_CALL_STREAM_NUMBERS] = {"stream.numbers", USES | ENQUEUES},
    [EMULATED_CALL_STREAM_GATES] = {"stream.gates", USES | ENQUEUES},
    [EMULATED_CALL_EVENT_CREATE] = {"event.create", USES},
    [EMULATED_CALL_EVENT_DESTROY] = {"event.destroy", USES},
    [EMULATED_CALL_EVENT_RECORD] = {"event.record", USES | ENQUEUES},
    [EMULATED_CALL_EVENT_QUERY] = {"event.query", USES},
    [EMULATED_CALL_IPC_GET] = {"ipc.get", USES},
    [EMULATED_CALL_IPC_OPEN] = {"ipc.open", USES | WAITS_ALL},
    [EMULATED_CALL_IPC_CLOSE] = {"ipc.close", USES | WAITS_ALL},
    [EMULATED_CALL_EVENT_IPC_GET] = {"ipc.event_get", USES},
    [EMULATED_CALL_EVENT_IPC_OPEN] = {"ipc.event_open", USES},
    [EMULATED_CALL_PEER_ACCESS] = {"ipc.peer_access", USES},
    [EMULATED_CALL_COPY] = {"copy", USES | ENQUEUES},
    [EMULATED_CALL_SET] = {"set", USES | ENQUEUES},
    [EMULATED_CALL_LAUNCH] = {"launch", USES | ENQUEUES},
    [EMULATED_CALL_GRAPH_LAUNCH] = {"a launch of a graph", USES | ENQUEUES},
};

static _Atomic uint64_t counts[EMULATED_CALL_COUNT];
static bool is_waited_for[EMULATED_DEVICES_MAX]; /* a whole device, by a thread; the first: all */

/* The device in use, or the first one for all. */
static int waited_device(void) {
  return emulated.setup.apart ? emulated_current() : 0;
}

/* ----------------------------------------------------------------- counting */

uint64_t emulated_calls(emulated_call call) {
  return atomic_load(&counts[call]);
}

uint64_t emulated_calls_enqueuing(void) {
  uint64_t sum = 0;
  for (int i = 0; i < EMULATED_CALL_COUNT; i++) {
    sum += kinds[i].manner & ENQUEUES ? emulated_calls((emulated_call)i) : 0;
  }
  return sum;
}

void emulated_calls_reset(void) {
  for (int i = 0; i < EMULATED_CALL_COUNT; i++) {
    atomic_store(&counts[i], 0);
  }
}

const char *emulated_call_name(emulated_call call) {
  return kinds[call].name;
}

/* ------------------------------------------------------------------- waiting */

/* With the lock. */
static void wait_for_turn(const char *what) {
  emulated_watch watch;
  const bool *is_waited = &is_waited_for[waited_device()];
  if (!*is_waited) {
    return;
  }
  emulated_watch_begin(&watch, what, "a thread that waits for all streams");
  while (*is_waited && !atomic_load(&emulated.ending)) {
    emulated_watch_step(&watch);
  }
  emulated_watch_end(&watch);
}

/* With the lock. */
static void wait_for_device(const char *what) {
  int device = waited_device();
  is_waited_for[device] = true;
  emulated_finish_all(what, emulated.setup.apart ? device : LCOMM_DEVICE_NONE);
  is_waited_for[device] = false;
  emulated_tell();
}

bool emulated_device_is_waited_for(void) {
  emulated_lock();
  bool is = is_waited_for[waited_device()];
  emulated_unlock();
  return is;
}

static void need_no_bar(const char *what) {
  if (lcomm_device_is_barred()) {
    fprintf(stderr, "emulated device: %s is called by a thread that is barred from devices\n",
            what);
    abort();
  }
  if (lcomm_progress_thread_turns > 0) {
    fprintf(stderr,
            "emulated device: %s is called by a thread that holds the turn of a communicator, "
            "whose progress thread needs it while devices are waited for\n",
            what);
    abort();
  }
}

void emulated_enter(emulated_call call) {
  unsigned manner = kinds[call].manner;
  atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
  if (manner == TELLS) {
    return;
  }
  need_no_bar(kinds[call].name);
  if (manner == ASKS) {
    return;
  }
  emulated_lock();
  wait_for_turn(kinds[call].name);
  if (manner & WAITS_ALL) {
    wait_for_device(kinds[call].name);
  }
  emulated_unlock();
}

void emulated_need_device(const char *what) {
  emulated_lock();
  wait_for_turn(what);
  wait_for_device(what);
  emulated_unlock();
}
