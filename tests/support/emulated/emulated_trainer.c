/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tests/support/emulated/emulated_trainer.h"

#include "tests/support/emulated/emulated_device.h"

static void *stream;

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

const backend *emulated_trainer_open(int number, const char **why) {
  static const train_cuda_calls calls = {.count = count,
                                         .open = open_device,
                                         .explain = explain,
                                         .get = get,
                                         .free = release,
                                         .copy = copy,
                                         .clear = clear,
                                         .finish = finish};
  return train_cuda_open(&calls, number, why);
}

void emulated_trainer_close(void) {
  emulated_table()->stream.destroy(stream);
  stream = NULL;
}
