/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SHARDS_QUORUM_CALLS_H
#define LCOMM_TESTS_SHARDS_QUORUM_CALLS_H

/* Layers whose gradients go by calls with a residual, with quorum=, and the accounts of what came
 * and what left. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/require_fine.h"

enum { LAYERS = 4, LARGEST = 20000, AHEAD = 6, TOGETHER = 4, LATE = 1 };

static const uint64_t counts[LAYERS] = {20000, 1, 777, 4097};

typedef struct set {
  lcomm_comm *comm;
  lcomm_op op;
  lcomm_residual *residuals[LAYERS];
  float *gradient[LAYERS], *result[LAYERS];
  float *kept; /* [LARGEST] */
  /* So far: of this rank what it brought; what all received, as sums and as weights. */
  double came[LAYERS][LARGEST], left[LAYERS][LARGEST];
  float weights[LAYERS][LARGEST];
  bool blocks, flushes;
  bool is_spoilt;      /* gradients of the late rank have NaN and Inf */
  uint64_t not_finite; /* of the calls of a step */
} set;

static inline const char *all_but_one(void) {
  static char text[64];
  snprintf(text, sizeof text, "quorum=%d late=0", mpi_size - 1);
  return text;
}

static inline void forget(set *s) {
  memset(s->came, 0, sizeof s->came);
  memset(s->left, 0, sizeof s->left);
  memset(s->weights, 0, sizeof s->weights);
}

static inline set *set_of(const char *codec, const char *quorum, int nodes, lcomm_op op) {
  static const char *const names[LAYERS] = {"embed", "scale", "bias", "head"};
  char policy[128];
  set *made = calloc(1, sizeof *made);
  snprintf(policy, sizeof policy, "%s %s", codec, quorum);
  made->comm = make_comm(policy, nodes);
  made->op = op;
  made->blocks = true;
  made->kept = calloc(LARGEST, sizeof(float));
  for (int i = 0; i < LAYERS; i++) {
    made->gradient[i] = calloc(counts[i], sizeof(float));
    made->result[i] = calloc(counts[i], sizeof(float));
    require_fine(made->comm, lcomm_residual_create_named(made->comm, names[i], counts[i], op,
                                                         &made->residuals[i]));
  }
  return made;
}

static inline void free_set(set *s) {
  require(lcomm_destroy(s->comm) == LCOMM_OK, "destroy: %s", lcomm_last_error(NULL));
  for (int i = 0; i < LAYERS; i++) {
    free(s->gradient[i]);
    free(s->result[i]);
  }
  free(s->kept);
  free(s);
}

/* A gradient, or zeros. */
static inline void bring(set *s, int i, int number, bool brings) {
  float *gradient = s->gradient[i];
  memset(gradient, 0, counts[i] * sizeof(float));
  if (brings) {
    fill_gradient(gradient, counts[i], (uint64_t)(1 + i + 10 * number + 1000 * mpi_rank));
  }
  if (brings && s->is_spoilt && mpi_rank == LATE) {
    gradient[0] = NAN;
    gradient[counts[i] - 1] = INFINITY;
  }
  for (uint64_t k = 0; k < counts[i]; k++) {
    s->came[i][k] += (double)gradient[k];
  }
}

static inline void take(set *s, int i) {
  for (uint64_t k = 0; k < counts[i]; k++) {
    s->left[i][k] += (double)s->result[i][k];
    s->weights[i][k] += s->result[i][k];
  }
}

/* Every second layer is in place. */
static inline const float *source_of(const set *s, int i) {
  if (i % 2 == 1) {
    memcpy(s->result[i], s->gradient[i], counts[i] * sizeof(float));
  }
  return i % 2 == 1 ? s->result[i] : s->gradient[i];
}

static inline lcomm_status make_call(set *s, int i) {
  const float *send = source_of(s, i);
  return s->flushes ? lcomm_allreduce_flush(s->residuals[i], send, s->result[i])
                    : lcomm_allreduce_ef(s->residuals[i], send, s->result[i]);
}

static inline lcomm_status start_call(set *s, int i, lcomm_request *request) {
  return lcomm_iallreduce_ef(s->residuals[i], source_of(s, i), s->result[i], request);
}

static inline void end_call(set *s, int i, lcomm_request *request) {
  for (int done = 0; i % 2 == 0 && !done;) {
    require_fine(s->comm, lcomm_test(s->comm, request, &done));
  }
  require_fine(s->comm, lcomm_wait(s->comm, request));
  s->not_finite += lcomm_request_not_finite(request);
}

/* A step: a call with each residual. */
static inline void call_all(set *s, int number, bool brings) {
  lcomm_request requests[LAYERS];
  lcomm_stats before, after;
  s->not_finite = 0;
  (void)lcomm_stats_get(s->comm, &before);
  for (int i = 0; i < LAYERS; i++) {
    bring(s, i, number, brings);
    require_fine(s->comm, s->blocks ? make_call(s, i) : start_call(s, i, &requests[i]));
  }
  for (int k = 0; k < LAYERS && !s->blocks; k++) {
    int i = (k + mpi_rank) % LAYERS;
    end_call(s, i, &requests[i]);
  }
  (void)lcomm_stats_get(s->comm, &after);
  s->not_finite = after.not_finite - before.not_finite;
  for (int i = 0; i < LAYERS; i++) {
    take(s, i);
  }
}

/* The first ones are sums of all ranks. */
static inline void make_first_calls(set *s) {
  call_all(s, 0, false);
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline void await_others(int *token) {
  for (int i = 0; mpi_rank == LATE && i < mpi_size - 1; i++) {
    MPI_Recv(token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static inline void tell_late(int token) {
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
}

/* All others make their calls first; the late one knows then how far it is behind. */
static inline void make_calls_apart(set *s) {
  int token = 0;
  for (int number = 0; number < AHEAD; number++) {
    uint64_t behind = 99;
    if (number == 0) {
      await_others(&token);
    }
    call_all(s, number, mpi_rank != LATE || number == 0);
    require_fine(s->comm, lcomm_behind(s->comm, &behind));
    uint64_t expected = mpi_rank == LATE ? (uint64_t)(AHEAD - number) : 0;
    require(behind == expected, "step %d: %d steps behind, not %d", number, (int)behind,
            (int)expected);
  }
  tell_late(token);
  MPI_Barrier(MPI_COMM_WORLD);
}

static inline void sum_kept(set *s, int i, double *sum) {
  require_fine(s->comm, lcomm_residual_get(s->residuals[i], s->kept));
  for (uint64_t k = 0; k < counts[i]; k++) {
    sum[k] = s->kept[k];
  }
  sum_everywhere(sum, counts[i]);
}

/* Of sums: all that came has left, or is kept. */
static inline void require_conserved(set *s, const char *what) {
  static double kept[LARGEST], all[LARGEST];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < LAYERS; i++) {
    double miss = 0, norm = 1e-300;
    sum_kept(s, i, kept);
    memcpy(all, s->came[i], counts[i] * sizeof(double));
    sum_everywhere(all, counts[i]);
    for (uint64_t k = 0; k < counts[i]; k++) {
      double error = all[k] - s->left[i][k] - kept[k];
      miss += error * error;
      norm += all[k] * all[k];
    }
    require(sqrt(miss / norm) < 1e-5, "%s: %g of layer %d is lost", what, sqrt(miss / norm), i);
  }
}

static inline void require_equal_replicas(const set *s, const char *what) {
  for (int i = 0; i < LAYERS; i++) {
    require(same_everywhere(s->weights[i], counts[i] * sizeof(float)), "%s: the replicas differ",
            what);
  }
}

#endif
