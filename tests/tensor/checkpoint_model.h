/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_CHECKPOINT_MODEL_H
#define LCOMM_TESTS_TENSOR_CHECKPOINT_MODEL_H

/* A small model over any ranks, and folders for its saved state. */

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/element.h"
#include "libcomm/tensor/bucket.h"
#include "tests/support/mpi_property.h"

enum { TENSORS = 4, LARGEST = 30000, TOTAL = 30000 + 700 + 12345 + 9000 };

static const uint64_t sizes[TENSORS] = {30000, 700, 12345, 9000};
static const char *const names[TENSORS] = {"fc.weight", "fc.bias", "conv.weight", "head.weight"};
static const lcomm_op ops[TENSORS] = {LCOMM_AVG, LCOMM_AVG, LCOMM_SUM, LCOMM_AVG};
static const lcomm_dtype dtypes[TENSORS] = {LCOMM_FLOAT32, LCOMM_FLOAT32, LCOMM_FLOAT32,
                                            LCOMM_BFLOAT16};

typedef struct model {
  MPI_Comm ranks;
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  void *data[TENSORS];
  int step; /* of the training, for the gradients */
} model;

/* A communicator over `ranks`, without tensors. */
static inline void make_ranks(model *m, MPI_Comm ranks, const char *policy, int nodes) {
  memset(m, 0, sizeof *m);
  m->ranks = ranks;
  m->comm = make_comm_over(ranks, policy, nodes);
}

static inline void add_tensor(model *m, int i, uint64_t count, lcomm_op op) {
  m->data[i] = calloc(count, lcomm_dtype_size(dtypes[i]));
  lcomm_status status =
      lcomm_tensor_add(m->comm, names[i], m->data[i], count, dtypes[i], op, &m->tensors[i]);
  require(status == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

static inline void make_model(model *m, MPI_Comm ranks, const char *policy, int nodes) {
  make_ranks(m, ranks, policy, nodes);
  for (int i = 0; i < TENSORS; i++) {
    add_tensor(m, i, sizes[i], ops[i]);
  }
}

static inline void free_model(model *m) {
  lcomm_destroy(m->comm);
  for (int i = 0; i < TENSORS; i++) {
    free(m->data[i]);
  }
}

static inline float value_of(const model *m, int tensor, uint64_t i) {
  return dtypes[tensor] == LCOMM_FLOAT32
             ? ((const float *)m->data[tensor])[i]
             : lcomm_bf16_to_f32(((const uint16_t *)m->data[tensor])[i]);
}

static inline void fill_model(model *m) {
  static float values[LARGEST];
  int rank = lcomm_rank(m->comm);
  for (int t = 0; t < TENSORS; t++) {
    fill_gradient(values, sizes[t], (uint64_t)(1 + t + 10 * m->step + 1000 * rank));
    for (uint64_t i = 0; i < sizes[t]; i++) {
      if (dtypes[t] == LCOMM_FLOAT32) {
        ((float *)m->data[t])[i] = values[i];
      } else {
        ((uint16_t *)m->data[t])[i] = lcomm_f32_to_bf16(values[i]);
      }
    }
  }
}

/* One step with the gradients of its number. */
static inline void step_model(model *m) {
  fill_model(m);
  for (int t = 0; t < TENSORS; t++) {
    require(lcomm_tensor_ready(m->comm, m->tensors[t]) == LCOMM_OK, "%s",
            lcomm_last_error(m->comm));
  }
  require(lcomm_tensors_wait(m->comm) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
  m->step++;
}

static inline void run_model(model *m, int steps) {
  for (int i = 0; i < steps; i++) {
    step_model(m);
  }
}

/* The results of the last step, bit for bit. */
static inline uint64_t hash_results(const model *m) {
  uint64_t hash = 88172645463325252u;
  for (int t = 0; t < TENSORS; t++) {
    const uint8_t *bytes = m->data[t];
    for (size_t i = 0; i < sizes[t] * lcomm_dtype_size(dtypes[t]); i++) {
      hash = (hash ^ bytes[i]) * 1099511628211u;
    }
  }
  return hash;
}

/* Results of the next steps as one number. */
static inline uint64_t hash_steps(model *m, int steps) {
  uint64_t hash = 0;
  for (int i = 0; i < steps; i++) {
    step_model(m);
    hash = hash * 31 + hash_results(m);
  }
  return hash;
}

/* What is yet to be applied to the parameters: the sum over the ranks of the
 * residuals, divided as the tensor's results are. */
static inline void sum_residual(const model *m, int tensor, double *mass) {
  static float residual[LARGEST];
  require(lcomm_tensor_residual(m->comm, m->tensors[tensor], residual) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  double weight = ops[tensor] == LCOMM_AVG ? 1.0 / lcomm_size(m->comm) : 1.0;
  for (uint64_t i = 0; i < sizes[tensor]; i++) {
    mass[i] = weight * residual[i];
  }
  sum_over(m->ranks, mass, sizes[tensor]);
}

static inline void sum_residuals(const model *m, double *mass) {
  for (int t = 0; t < TENSORS; t++) {
    sum_residual(m, t, mass);
    mass += sizes[t];
  }
}

/* ---------------------------------------------------------------- folders */

typedef struct folder {
  char path[256];
} folder;

/* A folder that does not exist yet, the same one on all ranks. */
static inline void make_folder(folder *f) {
  const char *parent = getenv("TMPDIR");
  if (mpi_rank == 0) {
    snprintf(f->path, sizeof(f->path), "%.200s/lcomm-state-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(f->path)) {
      perror(f->path);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    rmdir(f->path);
  }
  MPI_Bcast(f->path, sizeof(f->path), MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* Number of files whose name contains `part`. */
static inline int count_files(const folder *f, const char *part) {
  int count = 0;
  DIR *opened = opendir(f->path);
  for (struct dirent *entry = opened ? readdir(opened) : NULL; entry; entry = readdir(opened)) {
    count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
  }
  if (opened) {
    closedir(opened);
  }
  return count;
}

static inline void remove_folder(const folder *f) {
  char path[600];
  MPI_Barrier(MPI_COMM_WORLD);
  DIR *opened = mpi_rank == 0 ? opendir(f->path) : NULL;
  for (struct dirent *entry = opened ? readdir(opened) : NULL; entry; entry = readdir(opened)) {
    snprintf(path, sizeof(path), "%s/%s", f->path, entry->d_name);
    unlink(path);
  }
  if (opened) {
    closedir(opened);
    rmdir(f->path);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline void save_model(const model *m, const folder *f) {
  require(lcomm_state_save(m->comm, f->path) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
  MPI_Barrier(m->ranks);
}

static inline void load_model(model *m, const folder *f) {
  require(lcomm_state_load(m->comm, f->path) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

/* Of two vectors, relative to the norm of `b`. */
static inline double distance(const double *a, const double *b, int count) {
  double miss = 0, norm = 1e-300;
  for (int i = 0; i < count; i++) {
    miss += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return sqrt(miss / norm);
}

#endif
