/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tests/support/emulated/emulated_trainer.h"

#include "tests/support/emulated/emulated_device.h"

enum { EVENTS_MAX = BACKEND_MARKS + 1 };

static void *stream, *other;
static void *events[EVENTS_MAX];
static int event_count;

static int count(int *devices) {
  return emulated_table()->count(devices);
}

static int open_device(int device, void **made) {
  const lcomm_device_table *table = emulated_table();
  int error = table->use(device);
  error = error ? error : table->load();
  error = error ? error : table->stream.create(&stream);
  *made = stream;
  return error;
}

static const char *explain(int error) {
  return emulated_table()->explain(error);
}

static int get(size_t size, void **memory) {
  return emulated_table()->memory.get(size, memory);
}

static int release(void *memory) {
  return emulated_table()->memory.free(memory);
}

static int copy(void *to, const void *from, size_t size, void *in) {
  return emulated_table()->copy(to, from, size, in);
}

static int clear(void *memory, size_t size, void *in) {
  return emulated_table()->set(memory, 0, size, in);
}

static int finish(void *of) {
  return emulated_table()->stream.finish(of);
}

static int fork_stream(void **made) {
  int error = emulated_table()->stream.create(&other);
  *made = other;
  return error;
}

static int record(void **event, void *in) {
  const lcomm_device_table *table = emulated_table();
  if (!*event && event_count < EVENTS_MAX && table->event.create(false, event) == 0) {
    events[event_count++] = *event;
  }
  return table->event.record(*event, in);
}

static int follow(void *in, void *event) {
  return emulated_table()->stream.wait(in, event);
}

const backend *emulated_trainer_open(int number, precision_kind stored, const char **why) {
  static const train_cuda_calls calls = {.count = count,
                                         .open = open_device,
                                         .explain = explain,
                                         .get = get,
                                         .free = release,
                                         .copy = copy,
                                         .clear = clear,
                                         .finish = finish,
                                         .fork = fork_stream,
                                         .record = record,
                                         .follow = follow};
  return train_cuda_open(&calls, number, stored, why);
}

void emulated_trainer_close(void) {
  const lcomm_device_table *table = emulated_table();
  for (; event_count > 0; event_count--) {
    (void)table->event.destroy(events[event_count - 1]);
  }
  (void)table->stream.destroy(stream);
  if (other) {
    (void)table->stream.destroy(other);
  }
  stream = other = NULL;
}
