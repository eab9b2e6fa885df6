/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 3 */

/* Capturing gradients that are on a device: the files are those of the same gradients on the host.
 */

#include "tests/engine/on_emulated_device.h"
#include "tests/support/remove_tree.h"

enum { COUNT = 5000, STEPS = 3 };

static char here[64], there[64];

static void make_folder(char *path) {
  snprintf(path, sizeof(here), "/tmp/libcomm-test-XXXXXX");
  require(mkdtemp(path) != NULL, "no folder");
}

/* A sum in a stream, a step of two tensors, and again. */
static void train(const char *folder, bool on_it) {
  static float gradients[3][COUNT];
  float *data[3];
  void *stream = NULL;
  lcomm_tensor *tensors[2];
  setenv("LCOMM_CAPTURE", folder, 1);
  setenv("LCOMM_CAPTURE_STEPS", "0,2", 1);
  lcomm_comm *comm = make_driven("net=int8+ef min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  check(device->stream.create(&stream));
  for (int i = 0; i < 3; i++) {
    data[i] = on_it ? on_device(sizeof(gradients[i])) : gradients[i];
  }
  for (int i = 0; i < 2; i++) {
    const char *names[] = {"first", "second"};
    require_fine(comm, lcomm_tensor_add(comm, names[i], data[i], COUNT - 7 * (uint64_t)i,
                                        LCOMM_FLOAT32, LCOMM_AVG, &tensors[i]));
  }
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < 3; i++) {
      fill_gradient(gradients[i], COUNT, (uint64_t)(100 * step + 10 * i + mpi_rank));
      if (on_it) {
        to_device(data[i], gradients[i], sizeof(gradients[i]));
      }
    }
    require_fine(comm, lcomm_tensor_ready(comm, tensors[1]));
    require_fine(comm, lcomm_tensor_ready(comm, tensors[0]));
    require_fine(comm, lcomm_tensors_wait(comm));
    require_fine(comm,
                 on_it ? lcomm_allreduce_on_stream(comm, data[2], data[2], COUNT, LCOMM_FLOAT32,
                                                   LCOMM_SUM, stream)
                       : lcomm_allreduce(comm, data[2], data[2], COUNT, LCOMM_FLOAT32, LCOMM_SUM));
    check(device->stream.finish(stream));
  }
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  for (int i = 0; i < 3 && on_it; i++) {
    check(device->memory.free(data[i]));
  }
  unsetenv("LCOMM_CAPTURE");
  unsetenv("LCOMM_CAPTURE_STEPS");
}

static size_t read_file(const char *folder, int step, int bucket, char *bytes, size_t most) {
  char path[160];
  snprintf(path, sizeof(path), "%s/step%06d-bucket%03d-rank%04d.lcg", folder, step, bucket,
           mpi_rank);
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(bytes, 1, most, file) : 0;
  if (file) {
    fclose(file);
  }
  return size;
}

static void files_are_those_of_the_host(void) {
  enum { MOST = 8 * COUNT * (int)sizeof(float) };
  static char mine[MOST], its[MOST];
  int buckets[] = {0, 900};
  make_folder(here);
  make_folder(there);
  train(here, false);
  train(there, true);
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < 2; i++) {
      size_t size = read_file(here, step, buckets[i], mine, MOST);
      require((size > 0) == (step != 1), "step %d, bucket %d", step, buckets[i]);
      require(read_file(there, step, buckets[i], its, MOST) == size && memcmp(mine, its, size) == 0,
              "step %d, bucket %d: another file", step, buckets[i]);
    }
  }
  (void)remove_tree(here);
  (void)remove_tree(there);
}

static const mpi_property properties[] = {
    PROPERTY(files_are_those_of_the_host),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)
