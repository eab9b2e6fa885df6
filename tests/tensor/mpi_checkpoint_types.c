/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Saved states of tensors whose type is another one when they are loaded. */

#include <math.h>

#include "tests/tensor/checkpoint_model.h"

enum { COUNT = 3000 };

static float given[COUNT], residual[COUNT];
static double total[COUNT], left[COUNT], wide[COUNT];
static int64_t whole[COUNT];

static lcomm_tensor *add(lcomm_comm *comm, const char *name, void *data, lcomm_dtype dtype,
                         lcomm_op op) {
  lcomm_tensor *tensor = NULL;
  require(lcomm_tensor_add(comm, name, data, COUNT, dtype, op, &tensor) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  return tensor;
}

static void run_step(lcomm_comm *comm, lcomm_tensor *first, lcomm_tensor *second) {
  lcomm_tensor_ready(comm, first);
  lcomm_tensor_ready(comm, second);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
}

/* One step of top-k with a factor, saved; `left` is what it did not send. A
 * sum of integers is by its side. */
static void save_a_residual(const folder *f) {
  lcomm_comm *comm = make_comm("net=topk:0.01+ef min=1", 2);
  lcomm_tensor *weight = add(comm, "weight", given, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_tensor *other = add(comm, "other", whole, LCOMM_INT64, LCOMM_SUM);
  fill_gradient(given, COUNT, (uint64_t)mpi_rank + 1);
  require(lcomm_tensor_scale(comm, weight, 0.5, 1) == LCOMM_OK, "%s", lcomm_last_error(comm));
  run_step(comm, weight, other);
  require(lcomm_tensor_residual(comm, weight, residual) == LCOMM_OK, "%s", lcomm_last_error(comm));
  for (int i = 0; i < COUNT; i++) {
    total[i] = residual[i];
  }
  MPI_Allreduce(total, left, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  require(lcomm_state_save(comm, f->path) == LCOMM_OK, "%s", lcomm_last_error(comm));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_destroy(comm);
}

/* A communicator with tensors of other types, and the status of loading that state. */
typedef struct loaded {
  folder f;
  lcomm_comm *comm;
  lcomm_tensor *weight, *other;
  lcomm_status status;
} loaded;

static void begin_loaded(loaded *l, void *weight, lcomm_dtype type, void *other,
                         lcomm_dtype other_type) {
  make_folder(&l->f);
  save_a_residual(&l->f);
  l->comm = make_comm("net=none", 2);
  l->weight = add(l->comm, "weight", weight, type, LCOMM_SUM);
  l->other = add(l->comm, "other", other, other_type, LCOMM_SUM);
  l->status = lcomm_state_load(l->comm, l->f.path);
}

static void end_loaded(loaded *l) {
  lcomm_destroy(l->comm);
  remove_folder(&l->f);
}

static void what_was_left_is_added_to_a_float64_result(void) {
  loaded l;
  begin_loaded(&l, wide, LCOMM_FLOAT64, whole, LCOMM_INT64);
  require(l.status == LCOMM_OK, "%s", lcomm_last_error(l.comm));
  require(lcomm_tensor_scale(l.comm, l.weight, 1, 4) == LCOMM_OK, "%s", lcomm_last_error(l.comm));
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < COUNT; i++) {
      wide[i] = 1;
    }
    run_step(l.comm, l.weight, l.other);
    for (int i = 0; i < COUNT; i++) {
      double wanted = 4 * (mpi_size + (step == 0 ? left[i] : 0));
      require(fabs(wide[i] - wanted) <= 1e-6, "step %d, element %d: %g, not %g", step, i, wide[i],
              wanted);
    }
    require(same_everywhere(wide, sizeof(wide)), "the ranks differ");
  }
  end_loaded(&l);
}

static void integers_cannot_take_what_was_left(void) {
  loaded l;
  begin_loaded(&l, whole, LCOMM_INT64, wide, LCOMM_FLOAT64);
  require(l.status == LCOMM_ERR_ARGUMENT, "it was loaded");
  require(strstr(lcomm_last_error(l.comm), "int64") != NULL, "%s", lcomm_last_error(l.comm));
  for (int i = 0; i < COUNT; i++) {
    whole[i] = 3;
  }
  run_step(l.comm, l.weight, l.other);
  require(whole[0] == 3 * mpi_size && whole[COUNT - 1] == 3 * mpi_size, "something was loaded");
  end_loaded(&l);
}

static const mpi_property properties[] = {
    PROPERTY(what_was_left_is_added_to_a_float64_result),
    PROPERTY(integers_cannot_take_what_was_left),
};
RUN_PROPERTIES(mpi_property_main, properties)
