/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_LIBCOMM_PROGRESS_MODEL_H
#define LCOMM_TESTS_LIBCOMM_PROGRESS_MODEL_H

/* What mpi_progress.c works with: communicators with and without a progress
 * thread, many operations at once, and a small model. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/engine/engine.h"
#include "tests/support/process_counts.h"
#include "tests/support/require_fine.h"

/* ----------------------------------------------------------- communicators */

static const char *const transports[] = {"auto", "mpi", "ucx"};

/* UCX comes last, and is not there everywhere. */
static inline int transport_count(void) {
  return lcomm_ucx_version() ? 3 : 2;
}

/* NULL where it cannot be; the property is skipped then. */
static inline lcomm_comm *make_nodes(int nodes, const char *policy, const char *transport,
                                     lcomm_progress_mode mode, double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.transport = transport;
  config.progress = mode;
  config.timeout_s = timeout_s;
  config.nodes = nodes;
  if (mode == LCOMM_PROGRESS_THREAD && strcmp(transport, "mpi") == 0 &&
      mpi_threads < MPI_THREAD_MULTIPLE) {
    skip_property("this MPI gives no MPI_THREAD_MULTIPLE");
    return NULL;
  }
  return make_comm_if_possible(&config);
}

static inline lcomm_comm *make_mode(const char *policy, const char *transport,
                                    lcomm_progress_mode mode, double timeout_s) {
  return make_nodes(mpi_size < 2 ? 1 : 2, policy, transport, mode, timeout_s);
}

static inline lcomm_comm *make_driven(const char *policy, const char *transport, double timeout_s) {
  return make_mode(policy, transport, LCOMM_PROGRESS_THREAD, timeout_s);
}

/* Until so many operations are over here, without a call that moves them. */
static inline bool await_operations(const lcomm_comm *comm, uint64_t count) {
  enum { LOOKS = 60000, LOOK_US = 500 };
  lcomm_stats stats = {0};
  for (int i = 0; i < LOOKS && stats.operations < count; i++) {
    usleep(LOOK_US);
    lcomm_stats_get(comm, &stats);
  }
  return stats.operations >= count;
}

/* ------------------------------------------------- many operations at once */

enum { FLYING = 64, PART_MAX = 3000, KINDS = 7 };

/* One communicator, for one thread. The first mistake is kept in `why`. */
typedef struct flier {
  lcomm_comm *comm;
  int rounds;
  char why[256];
  float *send[FLYING], *receive[FLYING];
  lcomm_request requests[FLYING];
} flier;

__attribute__((format(printf, 3, 4))) static inline void expect(flier *f, bool holds,
                                                                const char *format, ...) {
  va_list arguments;
  if (holds || f->why[0]) {
    return;
  }
  va_start(arguments, format);
  vsnprintf(f->why, sizeof(f->why), format, arguments);
  va_end(arguments);
}

static inline uint64_t part_of(int i) {
  static const uint64_t sizes[] = {1, 37, 700, 0, PART_MAX};
  return sizes[i % 5];
}

static inline float given(int rank, int i, uint64_t element) {
  return (float)((rank * 5 + i * 3 + (int)(element % 13)) % 17);
}

static inline lcomm_status start_one(flier *f, int i) {
  lcomm_comm *c = f->comm;
  uint64_t n = part_of(i), parts[64], whole = n * (uint64_t)mpi_size;
  for (uint64_t e = 0; e < whole; e++) {
    f->send[i][e] = given(mpi_rank, i, e);
    f->receive[i][e] = i % KINDS == 5 && mpi_rank == i % mpi_size ? given(mpi_rank, i, e) : -1;
  }
  for (int rank = 0; rank < mpi_size; rank++) {
    parts[rank] = n * (uint64_t)(rank + 1) / (uint64_t)mpi_size;
  }
  switch (i % KINDS) {
  case 0:
    return lcomm_iallreduce(c, f->send[i], f->receive[i], n, LCOMM_FLOAT32, LCOMM_SUM,
                            &f->requests[i]);
  case 1:
    return lcomm_ireduce_scatter(c, f->send[i], f->receive[i], n, LCOMM_FLOAT32, LCOMM_SUM,
                                 &f->requests[i]);
  case 2:
    return lcomm_iallgather(c, f->send[i], f->receive[i], n, LCOMM_FLOAT32, &f->requests[i]);
  case 3:
    return lcomm_iallgatherv(c, f->send[i], f->receive[i], parts, LCOMM_FLOAT32, &f->requests[i]);
  case 4:
    return lcomm_ialltoall(c, f->send[i], f->receive[i], n, LCOMM_FLOAT32, &f->requests[i]);
  case 5:
    return lcomm_ibroadcast(c, f->receive[i], n, LCOMM_FLOAT32, i % mpi_size, &f->requests[i]);
  default:
    return lcomm_ibarrier(c, &f->requests[i]);
  }
}

static inline float summed(int i, uint64_t element) {
  float sum = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    sum += given(rank, i, element);
  }
  return sum;
}

/* What is wanted of element e of rank r's part of the result. */
static inline float wanted_of(int i, int r, uint64_t e) {
  uint64_t n = part_of(i);
  switch (i % KINDS) {
  case 1:
    return summed(i, n * (uint64_t)mpi_rank + e);
  case 4:
    return given(r, i, n * (uint64_t)mpi_rank + e);
  case 0:
    return summed(i, e);
  case 5:
    return given(i % mpi_size, i, e);
  default:
    return given(r, i, e);
  }
}

static inline void check_one(flier *f, int i) {
  int kind = i % KINDS;
  bool parted = kind >= 2 && kind <= 4;
  uint64_t n = part_of(i), at = 0;
  for (int r = 0; kind != 6 && r < (parted ? mpi_size : 1); r++) {
    uint64_t part = kind == 3 ? n * (uint64_t)(r + 1) / (uint64_t)mpi_size : n;
    for (uint64_t e = 0; e < part; e++, at++) {
      expect(f, f->receive[i][at] == wanted_of(i, r, e),
             "operation %d of kind %d, part %d, element %d: %g, not %g", i, kind, r, (int)e,
             f->receive[i][at], wanted_of(i, r, e));
    }
  }
}

static inline void finish_one(flier *f, int i) {
  lcomm_status status = LCOMM_OK;
  int done = i % 2;
  while (status == LCOMM_OK && !done) { /* every other one is asked, not waited for */
    status = lcomm_test(f->comm, &f->requests[i], &done);
  }
  status = status == LCOMM_OK ? lcomm_wait(f->comm, &f->requests[i]) : status;
  expect(f, status == LCOMM_OK, "%s", lcomm_last_error(f->comm));
  if (status == LCOMM_OK) {
    check_one(f, i);
  }
}

static inline void *fly(void *argument) {
  flier *f = argument;
  size_t size = (size_t)mpi_size * PART_MAX * sizeof(float);
  for (int i = 0; i < FLYING; i++) {
    f->send[i] = malloc(size);
    f->receive[i] = malloc(size);
  }
  for (int round = 0; round < f->rounds && !f->why[0]; round++) {
    for (int i = 0; i < FLYING; i++) {
      expect(f, start_one(f, i) == LCOMM_OK, "%s", lcomm_last_error(f->comm));
    }
    for (int i = 0; i < FLYING; i++) {
      finish_one(f, (i * 37 + mpi_rank * 11) % FLYING);
    }
  }
  for (int i = 0; i < FLYING; i++) {
    free(f->send[i]);
    free(f->receive[i]);
  }
  return NULL;
}

/* ------------------------------------------------------------------ a model */

enum { TENSORS = 6, LARGEST = 20000 };

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
  int step;
} model;

/* With bucket=64K: four buckets. */
static const uint64_t tensor_sizes[TENSORS] = {LARGEST, 3000, 5000, 16000, 100, 9000};

static inline bool make_model(model *m, const char *policy, const char *transport,
                              lcomm_progress_mode mode) {
  char name[32];
  memset(m, 0, sizeof *m);
  m->comm = make_mode(policy, transport, mode, 20);
  for (int i = 0; m->comm && i < TENSORS; i++) {
    m->data[i] = calloc(tensor_sizes[i], sizeof(float));
    snprintf(name, sizeof(name), "tensor %d", i);
    require_fine(m->comm, lcomm_tensor_add(m->comm, name, m->data[i], tensor_sizes[i],
                                           LCOMM_FLOAT32, LCOMM_SUM, &m->tensors[i]));
  }
  return m->comm != NULL;
}

static inline void free_model(model *m) {
  require_fine(NULL, lcomm_destroy(m->comm));
  for (int i = 0; i < TENSORS; i++) {
    free(m->data[i]);
  }
}

static inline void fill_model(model *m, int step) {
  m->step = step;
  for (int i = 0; i < TENSORS; i++) {
    for (uint64_t e = 0; e < tensor_sizes[i]; e++) {
      m->data[i][e] = given(mpi_rank, i + step, e);
    }
  }
}

/* The tensors hold the exact sums of this step. */
static inline void check_model(const model *m) {
  for (int i = 0; i < TENSORS; i++) {
    for (uint64_t e = 0; e < tensor_sizes[i]; e++) {
      require(m->data[i][e] == summed(i + m->step, e), "step %d, tensor %d, element %d: %g, not %g",
              m->step, i, (int)e, m->data[i][e], summed(i + m->step, e));
    }
  }
}

#endif
