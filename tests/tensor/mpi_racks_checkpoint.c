/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 8 */

/* What was saved by racks is loaded without, in other racks, or with another codec inside them:
 * nothing is lost. */

#include "tests/tensor/checkpoint_model.h"

/* The rack of each rank, a letter each; "": not known. */
typedef struct setting {
  const char *policy, *racks;
  int nodes;
} setting;

static void make_racked(model *m, const setting *where) {
  char name[2] = {where->racks[0] ? where->racks[mpi_rank] : '\0', '\0'};
  setenv("LCOMM_RACK", name, 1);
  make_model(m, MPI_COMM_WORLD, where->policy, where->nodes);
  unsetenv("LCOMM_RACK");
}

/* What ranks give, with what they kept, is what is applied and kept. */
static void check_step(model *m, const double *before) {
  static double after[TOTAL], wanted[TOTAL], found[TOTAL];
  int at = 0;
  fill_model(m);
  for (int t = 0; t < TENSORS; t++) {
    double weight = ops[t] == LCOMM_AVG ? 1.0 / mpi_size : 1.0;
    for (uint64_t i = 0; i < sizes[t]; i++) {
      wanted[at++] = weight * (double)value_of(m, t, i);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, wanted, TOTAL, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  step_model(m);
  sum_residuals(m, after);
  at = 0;
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++, at++) {
      wanted[at] += before[at];
      found[at] = (double)value_of(m, t, i) + after[at];
    }
  }
  /* the bfloat16 tensor's results are rounded */
  require(distance(found, wanted, TOTAL) <= 2e-3, "the step behind loading lost %g",
          distance(found, wanted, TOTAL));
}

static void move_state(const setting *from, const setting *to) {
  static double saved[TOTAL], loaded[TOTAL];
  model m;
  folder f;
  make_folder(&f);
  make_racked(&m, from);
  run_model(&m, 4);
  sum_residuals(&m, saved);
  save_model(&m, &f);
  free_model(&m);
  make_racked(&m, to);
  load_model(&m, &f);
  m.step = 4;
  sum_residuals(&m, loaded);
  require(distance(loaded, saved, TOTAL) <= 1e-6, "from '%s' by %s to '%s' by %s lost %g",
          from->racks, from->policy, to->racks, to->policy, distance(loaded, saved, TOTAL));
  check_step(&m, loaded);
  free_model(&m);
  remove_folder(&f);
}

static void states_go_from_racks_to_others_and_to_none(void) {
  static const setting settings[] = {{"net=int4 rack=int8 min=1", "aaaabbbb", 4},
                                     {"net=int4 min=1", "", 4},
                                     {"net=int4 min=1", "aabbaabb", 4},
                                     {"net=int4 rack=bf16 min=1 algo=direct", "abababab", 8}};
  for (int from = 0; from < 4; from++) {
    for (int to = 0; to < 4; to++) {
      move_state(&settings[from], &settings[to]);
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(states_go_from_racks_to_others_and_to_none),
};
RUN_PROPERTIES(mpi_property_main, properties)
