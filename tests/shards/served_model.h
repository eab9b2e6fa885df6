/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SHARDS_SERVED_MODEL_H
#define LCOMM_TESTS_SHARDS_SERVED_MODEL_H

/* A model whose tensors servers sum, or make weights of, and its accounts. Included by one program
 * each. */

#include <stdio.h>

#include "tests/tensor/tensor_model.h"

/* Together more than servers sum at once. */
enum { ELEMENTS = 90000 };
static const uint64_t sizes[TENSORS] = {30000, 1, 29999, 30000};
static const char *const names[TENSORS] = {"embed", "scale", "bias", "head"};

static const char *const codecs[] = {"net=none", "net=int8+ef min=1", "net=topk:0.05+ef min=1",
                                     "net=int4 min=1 bucket=16K", "net=topk:k=100+ef min=1"};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* What workers brought and received so far. */
static double came[TENSORS][LARGEST], got[TENSORS][LARGEST];
static float received[TENSORS][LARGEST];

static inline void forget(void) {
  memset(came, 0, sizeof came);
  memset(got, 0, sizeof got);
  memset(received, 0, sizeof received);
}

/* One server in the middle, or two at the ends. */
static inline model model_of(const char *codec, int servers, const char *more, int nodes,
                             lcomm_op op) {
  model m;
  char policy[160], list[32];
  snprintf(list, sizeof list, servers == 1 ? "1" : "0,%d", mpi_size - 1);
  snprintf(policy, sizeof policy, "%s algo=servers servers=%s %s", codec, list, more);
  make_model(&m, policy, nodes, op);
  forget();
  return m;
}

/* As the first worker has them. */
static inline void from_a_worker(const model *m, void *bytes, size_t size) {
  int mine = lcomm_is_server(m->comm) ? mpi_size : mpi_rank, first = 0;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Bcast(bytes, (int)size, MPI_BYTE, first, MPI_COMM_WORLD);
}

static inline void require_equal_replicas(const model *m, const char *what) {
  static float other[LARGEST];
  for (int t = 0; t < TENSORS; t++) {
    memcpy(other, received[t], sizes[t] * sizeof(float));
    from_a_worker(m, other, sizes[t] * sizeof(float));
    bool same = memcmp(other, received[t], sizes[t] * sizeof(float)) == 0;
    require(lcomm_is_server(m->comm) || same, "%s: the replicas differ in %s", what, names[t]);
  }
}

/* All that workers brought = `times` what each received + what all ranks keep. */
static inline void require_conserved(const model *m, double times, const char *what) {
  static double residual[LARGEST], all[LARGEST];
  for (int t = 0; t < TENSORS; t++) {
    double miss = 0, norm = 1e-300;
    sum_residuals(m, t, residual);
    from_a_worker(m, got[t], sizes[t] * sizeof(double));
    MPI_Allreduce(came[t], all, (int)sizes[t], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < sizes[t]; i++) {
      double error = all[i] - times * got[t][i] - residual[i];
      miss += error * error;
      norm += all[i] * all[i];
    }
    require(sqrt(miss / norm) < 1e-5, "%s: %g of tensor %s is lost", what, sqrt(miss / norm),
            names[t]);
  }
}

/* ------------------------------------------------------------------- updates */

static const float RATE = 0.1f;
static float weights[TENSORS][LARGEST];
static uint64_t updated;

static inline int number_of(const char *name) {
  int t = 0;
  while (strcmp(names[t], name) != 0) {
    t++;
  }
  return t;
}

/* SGD: w -= rate * g, which workers receive. */
static inline int make_weights(void *context, const lcomm_server_piece *piece) {
  float *w = weights[number_of(piece->name)] + piece->first;
  require(context == weights && piece->used > 0, "an update has its context, and workers");
  for (uint64_t i = 0; i < piece->count; i++) {
    w[i] -= RATE * piece->values[i];
    piece->values[i] = w[i];
  }
  updated += piece->count;
  return 0;
}

static inline void fill_weights(void) {
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      weights[t][i] = (float)(t + 1) / (float)(i + 1);
    }
  }
  updated = 0;
}

#endif
