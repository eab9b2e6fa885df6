/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 3 4 */

/* Capturing gradients: which files appear, and what is in them. */

#include <sys/stat.h>
#include <xxhash.h>

#include "tests/tensor/checkpoint_model.h"

#define POLICY "net=topk:0.01+ef min=8K clip=0.001 bucket=64K"

static void ask(const folder *f, const char *steps) {
  setenv("LCOMM_CAPTURE", f->path, 1);
  if (steps) {
    setenv("LCOMM_CAPTURE_STEPS", steps, 1);
  } else {
    unsetenv("LCOMM_CAPTURE_STEPS");
  }
}

static void ask_nothing(void) {
  unsetenv("LCOMM_CAPTURE");
  unsetenv("LCOMM_CAPTURE_STEPS");
}

/* ---------------------------------------------------------------- expected */

/* A file as the format says, put together here. */
typedef struct image {
  uint8_t bytes[4 * TOTAL + 4096];
  size_t size;
} image;

static void put(image *it, uint64_t value, int size) {
  for (int i = 0; i < size; i++) {
    it->bytes[it->size++] = (uint8_t)(value >> (8 * i));
  }
}

static void put_header(image *it, int step, int nodes, uint32_t tensors) {
  it->size = 0;
  memcpy(it->bytes, "LCMG", 4);
  it->size = 4;
  put(it, 2, 4);
  put(it, (uint64_t)step, 8);
  put(it, (uint64_t)mpi_rank, 4);
  put(it, (uint64_t)mpi_size, 4);
  put(it, (uint64_t)nodes, 4);
  put(it, tensors, 4);
}

static void put_matrix(image *it, const char *name, uint64_t count, uint64_t rows,
                       uint64_t columns) {
  put(it, strlen(name), 4);
  memcpy(it->bytes + it->size, name, strlen(name));
  it->size += strlen(name);
  put(it, count, 8);
  put(it, rows, 8);
  put(it, columns, 8);
}

static void put_tensor(image *it, const char *name, uint64_t count) {
  put_matrix(it, name, count, 0, 0);
}

static void put_zeros(image *it) {
  while (it->size % 64 != 0) {
    put(it, 0, 1);
  }
}

static void put_values(image *it, const float *values, uint64_t count) {
  memcpy(it->bytes + it->size, values, 4 * count);
  it->size += 4 * count;
}

static void put_checksum(image *it) {
  put(it, XXH3_64bits(it->bytes, it->size), 8);
}

static void check_file(const folder *f, int step, int bucket, const image *wanted) {
  static uint8_t found[sizeof(wanted->bytes)];
  char path[600];
  snprintf(path, sizeof(path), "%s/step%06d-bucket%03d-rank%04d.lcg", f->path, step, bucket,
           mpi_rank);
  FILE *file = fopen(path, "rb");
  require(file != NULL, "there is no %s", path);
  if (!file) {
    return;
  }
  size_t size = fread(found, 1, sizeof(found), file);
  fclose(file);
  require(size == wanted->size && memcmp(found, wanted->bytes, size) == 0,
          "%s, %zu bytes, differs from the %zu expected", path, size, wanted->size);
}

/* ------------------------------------------------------------------ tensors */

/* The gradient that fill_model() made for a step, as float32. */
static void gradient_of(int tensor, int step, float *values) {
  fill_gradient(values, sizes[tensor], (uint64_t)(1 + tensor + 10 * step + 1000 * mpi_rank));
  for (uint64_t i = 0; dtypes[tensor] == LCOMM_BFLOAT16 && i < sizes[tensor]; i++) {
    values[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(values[i]));
  }
}

static int number_of(const model *m, const lcomm_tensor *tensor) {
  int t = 0;
  while (m->tensors[t] != tensor) {
    t++;
  }
  return t;
}

static void check_bucket(const model *m, const folder *f, int step, size_t index) {
  static image wanted;
  static float values[LARGEST];
  const lcomm_bucket *bucket = &m->comm->tensors->buckets[index];
  put_header(&wanted, step, two_nodes(), (uint32_t)bucket->tensor_count);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    put_tensor(&wanted, bucket->tensors[i]->name, bucket->tensors[i]->count);
  }
  put_zeros(&wanted);
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    int t = number_of(m, bucket->tensors[i]);
    gradient_of(t, step, values);
    put_values(&wanted, values, sizes[t]);
  }
  put_checksum(&wanted);
  check_file(f, step, (int)index, &wanted);
}

static void check_capture(const char *policy, const char *steps, const int *wanted, int count) {
  folder f;
  model m;
  make_folder(&f);
  ask(&f, steps);
  make_model(&m, MPI_COMM_WORLD, policy, two_nodes());
  run_model(&m, 12);
  for (int i = 0; i < count; i++) {
    for (size_t b = 0; b < m.comm->tensors->bucket_count; b++) {
      check_bucket(&m, &f, wanted[i], b);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int files = count * (int)m.comm->tensors->bucket_count * mpi_size;
  require(count_files(&f, "") == files, "%d files, not %d", count_files(&f, ""), files);
  free_model(&m);
  ask_nothing();
  remove_folder(&f);
}

static void asked_steps_are_captured_as_they_came(void) {
  check_capture(POLICY, "0,2,7", (const int[]){0, 2, 7}, 3);
  check_capture(POLICY, "5", (const int[]){5}, 1);
  check_capture(POLICY, NULL, (const int[]){0, 10}, 2); /* the standard list */
  check_capture("net=topk:0.01+ef min=1 momentum=0.9", "3", (const int[]){3}, 1);
  check_capture("net=int4 min=1 warmup=2", "1,4", (const int[]){1, 4}, 2);
  check_capture("net=none", "11", (const int[]){11}, 1);
}

static void capturing_changes_no_result(void) {
  folder f;
  model m, captured;
  make_folder(&f);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  ask(&f, "0,1,2");
  make_model(&captured, MPI_COMM_WORLD, POLICY, two_nodes());
  require(hash_steps(&m, 4) == hash_steps(&captured, 4), "the results differ");
  free_model(&m);
  free_model(&captured);
  ask_nothing();
  remove_folder(&f);
}

/* The shape of a matrix is in its record, whatever it travels by, and its contribution is captured
 * once, though low rank is two sums. A record with a name of so many bytes ends where values may
 * begin. */
#define LONG_NAME "a name of sixty-eight bytes, behind which no zeros come, or too many"

enum { ROWS = 40, COLUMNS = 36, MATRIX = ROWS * COLUMNS };

static void check_alone(const folder *f, int step, int bucket, const char *name, uint64_t rows) {
  static image wanted;
  float values[MATRIX];
  fill_gradient(values, MATRIX, (uint64_t)(1 + step + 10 * bucket + 100 * mpi_rank));
  put_header(&wanted, step, two_nodes(), 1);
  put_matrix(&wanted, name, MATRIX, rows, rows > 0 ? COLUMNS : 0);
  put_zeros(&wanted);
  put_values(&wanted, values, MATRIX);
  put_checksum(&wanted);
  check_file(f, step, bucket, &wanted);
}

static void train_matrix(lcomm_comm *comm, int steps) {
  static float data[2][MATRIX];
  lcomm_tensor *tensors[2] = {NULL, NULL};
  lcomm_tensor_add_shaped(comm, "w", data[0], ROWS, COLUMNS, LCOMM_FLOAT32, LCOMM_AVG, &tensors[0]);
  lcomm_tensor_add(comm, LONG_NAME, data[1], MATRIX, LCOMM_FLOAT32, LCOMM_AVG, &tensors[1]);
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < 2; i++) {
      fill_gradient(data[i], MATRIX, (uint64_t)(1 + step + 10 * i + 100 * mpi_rank));
      lcomm_tensor_ready(comm, tensors[i]);
    }
    require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
}

static void matrices_are_captured_with_their_shapes(void) {
  static const char *const policies[] = {"net=lowrank:2 min=1 bucket=4K",
                                         "net=int8 min=1 bucket=4K"};
  for (int i = 0; i < 2; i++) {
    folder f;
    make_folder(&f);
    ask(&f, "0,2");
    lcomm_comm *comm = make_comm(policies[i], two_nodes());
    train_matrix(comm, 3);
    lcomm_destroy(comm);
    ask_nothing();
    for (int step = 0; step < 3; step += 2) {
      check_alone(&f, step, 0, "w", ROWS);
      check_alone(&f, step, 1, LONG_NAME, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    require(count_files(&f, "") == 4 * mpi_size, "%d files", count_files(&f, ""));
    remove_folder(&f);
  }
}

/* -------------------------------------------------------------- plain calls */

enum { COUNT = 10100, SMALL = 10, CALL_MAX = 4 * COUNT };

static void fill_call(float *values, uint64_t count, int step) {
  fill_gradient(values, count, (uint64_t)(77 + mpi_rank + 100 * step));
}

static void check_call(const folder *f, int step, int bucket, const char *name, const float *values,
                       uint64_t count) {
  static image wanted;
  put_header(&wanted, step, two_nodes(), 1);
  put_tensor(&wanted, name, count);
  put_zeros(&wanted);
  put_values(&wanted, values, count);
  put_checksum(&wanted);
  check_file(f, step, bucket, &wanted);
}

static void check_calls(const folder *f, int step) {
  static float values[CALL_MAX];
  char reduced[64], scattered[64];
  snprintf(reduced, sizeof(reduced), "allreduce-%d", COUNT);
  snprintf(scattered, sizeof(scattered), "reduce-scatter-%d", COUNT);
  fill_call(values, COUNT, step);
  check_call(f, step, 900, reduced, values, COUNT);
  for (int i = 0; i < COUNT; i++) {
    values[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(values[i]));
  }
  check_call(f, step, 901, reduced, values, COUNT);
  fill_call(values, (uint64_t)(mpi_size * COUNT), step);
  check_call(f, step, 902, scattered, values, (uint64_t)(mpi_size * COUNT));
}

static void call_all(lcomm_comm *comm, int step) {
  static float send[CALL_MAX], receive[CALL_MAX];
  static uint16_t brain[COUNT];
  static int32_t whole[COUNT];
  fill_call(send, COUNT, step);
  for (int i = 0; i < COUNT; i++) {
    brain[i] = lcomm_f32_to_bf16(send[i]);
  }
  lcomm_allreduce(comm, send, send, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_allreduce(comm, brain, brain, COUNT, LCOMM_BFLOAT16, LCOMM_SUM);
  lcomm_allreduce(comm, send, receive, SMALL, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_allreduce(comm, whole, whole, COUNT, LCOMM_INT32, LCOMM_SUM);
  lcomm_allreduce(comm, send, receive, COUNT, LCOMM_FLOAT32, LCOMM_MAX);
  lcomm_allgather(comm, send, receive, COUNT, LCOMM_FLOAT32);
  lcomm_broadcast(comm, receive, COUNT, LCOMM_FLOAT32, 0);
  lcomm_barrier(comm);
  fill_call(send, (uint64_t)(mpi_size * COUNT), step);
  lcomm_status status = lcomm_reduce_scatter(comm, send, receive, COUNT, LCOMM_FLOAT32, LCOMM_AVG);
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
}

static void plain_sums_are_captured_by_shape(void) {
  folder f;
  make_folder(&f);
  ask(&f, "0,2");
  lcomm_comm *comm = make_comm("net=bf16 min=8K", two_nodes());
  for (int step = 0; step < 4; step++) {
    call_all(comm, step);
  }
  lcomm_destroy(comm);
  ask_nothing();
  check_calls(&f, 0);
  check_calls(&f, 2);
  MPI_Barrier(MPI_COMM_WORLD);
  require(count_files(&f, "") == 6 * mpi_size, "%d files", count_files(&f, ""));
  remove_folder(&f);
}

/* ------------------------------------------------------------- what is not */

static void nothing_is_written_unless_asked(void) {
  folder f;
  model m;
  make_folder(&f);
  setenv("LCOMM_CAPTURE_STEPS", "0,1", 1);
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 2);
  free_model(&m);
  ask(&f, "100");
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 2);
  free_model(&m);
  ask_nothing();
  require(access(f.path, F_OK) != 0, "the folder was made for nothing");
}

static void make_file(const char *path) {
  FILE *file = mpi_rank == 0 ? fopen(path, "wb") : NULL;
  require(mpi_rank != 0 || file != NULL, "cannot write %s", path);
  if (file) {
    fclose(file);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* From the first step on, and in the middle of a run. */
static void a_folder_that_cannot_be_written_does_not_disturb(void) {
  folder f, below;
  model m, undisturbed;
  make_folder(&f);
  make_file(f.path);
  snprintf(below.path, sizeof(below.path), "%.200s/below", f.path);
  make_model(&undisturbed, MPI_COMM_WORLD, POLICY, two_nodes());
  ask(&below, "0,1,2,3");
  make_model(&m, MPI_COMM_WORLD, POLICY, two_nodes());
  run_model(&m, 1);
  run_model(&undisturbed, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    unlink(f.path);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  require(hash_steps(&m, 3) == hash_steps(&undisturbed, 3), "the results differ");
  require(access(below.path, F_OK) != 0, "it went on after a failure");
  free_model(&m);
  free_model(&undisturbed);
  ask_nothing();
}

static void a_list_that_is_none_is_refused_at_creation(void) {
  static const char *const bad[] = {"0,,1", "a",   "1,",  ",",    "-1",
                                    " 1",   "1 2", "1;2", "0x10", "99999999999999999999"};
  folder f;
  make_folder(&f);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    lcomm_comm *comm = NULL;
    ask(&f, bad[i]);
    lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, NULL, &comm);
    require(status == LCOMM_ERR_ARGUMENT && !comm, "\"%s\": %s", bad[i], lcomm_status_name(status));
    require(strstr(lcomm_last_error(NULL), "LCOMM_CAPTURE_STEPS") != NULL, "%s",
            lcomm_last_error(NULL));
  }
  ask_nothing();
}

static const mpi_property properties[] = {
    PROPERTY(asked_steps_are_captured_as_they_came),
    PROPERTY(capturing_changes_no_result),
    PROPERTY(matrices_are_captured_with_their_shapes),
    PROPERTY(plain_sums_are_captured_by_shape),
    PROPERTY(nothing_is_written_unless_asked),
    PROPERTY(a_folder_that_cannot_be_written_does_not_disturb),
    PROPERTY(a_list_that_is_none_is_refused_at_creation),
};
RUN_PROPERTIES(mpi_property_main, properties)
