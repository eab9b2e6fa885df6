/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_GUARD_CALLS_H
#define LCOMM_TESTS_TENSOR_GUARD_CALLS_H

/* Calls with a residual under a guard. Included by one program each. */

#include "libcomm/tensor/residual_guard.h"
#include "tests/tensor/residuals.h"

enum { RANKS_MAX = 8 };

/* One layer's calls: all-reduces, or reduce-scatters of parts that grow with the rank. */
typedef struct calls {
  layer l;
  bool scatters;
  uint64_t parts[RANKS_MAX], first;
} calls;

static inline void make_calls(calls *c, const char *policy, int nodes, uint64_t count,
                              bool scatters) {
  uint64_t left = count;
  *c = (calls){.scatters = scatters};
  make_layer(&c->l, make_comm(policy, nodes), count, scatters ? LCOMM_AVG : LCOMM_SUM);
  require_fine(c->l.comm, lcomm_residual_destroy(c->l.residual));
  for (int i = 0; i < mpi_size; i++) {
    c->parts[i] = i == mpi_size - 1 ? left : count * (uint64_t)(i + 1) / 12;
    c->first += i < mpi_rank ? c->parts[i] : 0;
    left -= c->parts[i];
  }
  require_fine(c->l.comm, scatters ? lcomm_residual_create_scatter(c->l.comm, "grad", c->parts,
                                                                   LCOMM_AVG, &c->l.residual)
                                   : lcomm_residual_create_named(c->l.comm, "grad", count,
                                                                 LCOMM_SUM, &c->l.residual));
}

static inline void free_calls(calls *c) {
  lcomm_comm *comm = c->l.comm;
  free_layer(&c->l);
  require_fine(NULL, lcomm_destroy(comm));
}

/* The result of all ranks, on all. */
static inline void collect(calls *c) {
  int counts[RANKS_MAX], places[RANKS_MAX] = {0};
  for (int i = 0; i < mpi_size; i++) {
    counts[i] = (int)c->parts[i];
    places[i] = i > 0 ? places[i - 1] + counts[i - 1] : 0;
  }
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c->l.result, counts, places, MPI_FLOAT,
                 MPI_COMM_WORLD);
}

/* Every second call does not block. */
static inline void call_once(calls *c, int number) {
  layer *l = &c->l;
  lcomm_request request;
  float *receive = l->result + (c->scatters ? c->first : 0);
  fill_layer(l, number);
  if (number % 2 == 0) {
    require_fine(l->comm, c->scatters ? lcomm_reduce_scatter_ef(l->residual, l->gradient, receive)
                                      : lcomm_allreduce_ef(l->residual, l->gradient, receive));
  } else {
    int over = 0;
    require_fine(l->comm,
                 c->scatters ? lcomm_ireduce_scatter_ef(l->residual, l->gradient, receive, &request)
                             : lcomm_iallreduce_ef(l->residual, l->gradient, receive, &request));
    while (!over) {
      require_fine(l->comm, lcomm_test(l->comm, &request, &over));
    }
  }
  if (c->scatters) {
    collect(c);
  }
}

static inline lcomm_guard_figures figures_of(const calls *c) {
  lcomm_guard_figures figures = {0};
  require_fine(c->l.comm, lcomm_residual_guard(c->l.residual, &figures));
  return figures;
}

#endif
