/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Low rank of tensors on emulated devices: the bits of the host, played and step by step. */

#include "libcomm/engine/lanes.h"
#include "libcomm/tensor/bucket.h"
#include "tests/engine/on_emulated_device.h"
#include "tests/tensor/lowrank_model.h"
#include "tests/tensor/saved_blocks.h"

enum { STEPS = 5 };

/* Tensors like those of a model, on a device. */
typedef struct twin {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
} twin;

static void open_twin(twin *it, const char *policy, int nodes, bool steps) {
  it->comm = make_driven(policy, nodes, LCOMM_PROGRESS_CALLS);
  it->comm->progress.allows_thread &= !steps;
  for (int i = 0; i < TENSORS; i++) {
    int t = (i + 2) % TENSORS;
    it->data[t] = on_device(size_of(t) * sizeof(float));
    lcomm_status status =
        t < MATRICES
            ? lcomm_tensor_add_shaped(it->comm, shapes[t].name, it->data[t], shapes[t].rows,
                                      shapes[t].columns, LCOMM_FLOAT32, LCOMM_AVG, &it->tensors[t])
            : lcomm_tensor_add(it->comm, shapes[t].name, it->data[t], size_of(t), LCOMM_FLOAT32,
                               LCOMM_AVG, &it->tensors[t]);
    require_fine(it->comm, status);
  }
}

static void close_twin(twin *it) {
  require_fine(NULL, lcomm_destroy(it->comm));
  for (int t = 0; t < TENSORS; t++) {
    check(device->memory.free(it->data[t]));
  }
}

static void send_twin(twin *it, const model *m) {
  for (int t = 0; t < TENSORS; t++) {
    to_device(it->data[t], m->gradient[t], size_of(t) * sizeof(float));
  }
  for (int i = 0; i < TENSORS; i++) {
    require_fine(it->comm, lcomm_tensor_ready(it->comm, it->tensors[(i + mpi_rank) % TENSORS]));
  }
  require_fine(it->comm, lcomm_tensors_wait(it->comm));
}

/* Q of a matrix, as it is kept. */
static const float *basis_of(const lcomm_tensor *tensor, uint64_t *count) {
  const lcomm_ef *ef = &tensor->bucket->ef;
  uint64_t at = lcomm_ef_lowrank_basis(ef, tensor->offset, count);
  return ef->state.basis.now ? ef->state.basis.now + at : NULL;
}

static void require_same_basis(const model *m, const twin *it, const char *policy, int step) {
  for (int t = 0; t < MATRICES; t++) {
    uint64_t n = 0, n_there = 0;
    const float *q = basis_of(m->tensors[t], &n), *q_there = basis_of(it->tensors[t], &n_there);
    require(n == n_there && !q == !q_there, "'%s', step %d: only one side has a Q", policy, step);
    require(!q || memcmp(q, q_there, n * sizeof *q) == 0, "'%s', step %d: another Q", policy, step);
  }
}

static void require_same(const model *m, const twin *it, const char *policy, int step) {
  static float found[LARGEST], kept[LARGEST];
  for (int t = 0; t < TENSORS; t++) {
    size_t size = size_of(t) * sizeof(float);
    from_device(found, it->data[t], size);
    require(memcmp(found, m->data[t], size) == 0, "'%s', step %d: other bits of %s", policy, step,
            shapes[t].name);
    require_fine(it->comm, lcomm_tensor_residual(it->comm, it->tensors[t], found));
    require_fine(m->comm, lcomm_tensor_residual(m->comm, m->tensors[t], kept));
    require(memcmp(found, kept, size) == 0, "'%s', step %d: another residual of %s", policy, step,
            shapes[t].name);
  }
  require(lcomm_tensors_not_finite(m->comm) == lcomm_tensors_not_finite(it->comm),
          "'%s', step %d: values that are not finite", policy, step);
  require_same_basis(m, it, policy, step);
}

/* By tapes where a thread may move messages. */
static void require_way(const twin *it, bool steps, const char *policy) {
  for (size_t i = 0; i < it->comm->tensors->bucket_count; i++) {
    const lcomm_ef_lowrank *lowrank = &it->comm->tensors->buckets[i].ef.lowrank;
    const lcomm_run *runs[] = {lowrank->left.run, lowrank->right.run};
    for (int k = 0; k < 2; k++) {
      require(!runs[k] || !runs[k]->tape == steps, "'%s': it goes another way", policy);
    }
  }
}

static void discard_if_wanted(model *m, twin *it, const char *policy, int step) {
  if (strstr(policy, "undo=on") && step % 2 == 0) {
    require_fine(m->comm, lcomm_tensors_discard(m->comm));
    require_fine(it->comm, lcomm_tensors_discard(it->comm));
  }
}

static void compare(const char *policy, int nodes, bool steps, bool spoils) {
  static model m;
  twin it;
  open_model(&m, policy, nodes, LCOMM_AVG);
  open_twin(&it, policy, nodes, steps);
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    if (spoils && step % 2 == 1 && mpi_rank == mpi_size - 1) {
      m.gradient[step / 2][77] = step == 1 ? NAN : 0x1p100f;
    }
    send_model(&m);
    send_twin(&it, &m);
    require_same(&m, &it, policy, step);
    discard_if_wanted(&m, &it, policy, step);
  }
  require_way(&it, steps, policy);
  close_twin(&it);
  close_model(&m);
}

static const char *const policies[] = {
    "net=lowrank:4 min=1",
    "net=lowrank:1 min=1 bucket=8K undo=on",
    "net=lowrank:4,values=int8 min=1 bucket=8K check=xxhash warmup=1",
    "net=lowrank:2,values=bf16 min=1 clip=1:global",
    "net=lowrank:3 min=1 algo=ring node=bf16 guard=2,report undo=on",
};

enum { POLICIES = sizeof policies / sizeof policies[0] };

static void steps_that_are_played_have_the_bits_of_the_host(void) {
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    for (int p = 0; p < POLICIES; p++) {
      compare(policies[p], nodes, false, false);
    }
  }
}

static void steps_that_go_in_calls_have_the_bits_of_the_host(void) {
  for (int p = 0; p < POLICIES; p++) {
    compare(policies[p], two_nodes(), true, false);
  }
}

static void what_is_not_finite_stays_in_its_step(void) {
  compare("net=lowrank:4 min=1", two_nodes(), false, true);
  compare("net=lowrank:4 min=1 undo=on", two_nodes(), false, true);
  compare("net=lowrank:4 min=1", two_nodes(), true, true);
}

enum { MANY = 75, SIDE = 16 }; /* matrices of a bucket, for three launches */

/* The results of three steps. */
static void step_many(bool there, float *results) {
  enum { COUNT = SIDE * SIDE };
  float *data = there ? on_device(MANY * COUNT * sizeof *data) : results, gradient[COUNT];
  lcomm_comm *comm = make_driven("net=lowrank:2 min=1", two_nodes(), LCOMM_PROGRESS_CALLS);
  lcomm_tensor *tensors[MANY];
  for (int i = 0; i < MANY; i++) {
    char name[16];
    snprintf(name, sizeof name, "matrix %d", i);
    require_fine(comm, lcomm_tensor_add_shaped(comm, name, data + i * COUNT, SIDE, SIDE,
                                               LCOMM_FLOAT32, LCOMM_SUM, &tensors[i]));
  }
  for (int step = 0; step < 3; step++) {
    for (int i = 0; i < MANY; i++) {
      fill_gradient(gradient, COUNT, (uint64_t)(1000 * mpi_rank + 100 * step + i + 1));
      if (there) {
        to_device(data + i * COUNT, gradient, sizeof gradient);
      } else {
        memcpy(data + i * COUNT, gradient, sizeof gradient);
      }
      require_fine(comm, lcomm_tensor_ready(comm, tensors[i]));
    }
    require_fine(comm, lcomm_tensors_wait(comm));
  }
  require(mpi_size == 1 || comm->tensors->buckets[0].ef.lowrank.count == MANY, "no such bucket");
  require_fine(NULL, lcomm_destroy(comm));
  if (there) {
    from_device(results, data, MANY * COUNT * sizeof *data);
    check(device->memory.free(data));
  }
}

static void more_matrices_than_a_launch_takes_have_the_bits_of_the_host(void) {
  static float wanted[MANY * SIDE * SIDE], found[MANY * SIDE * SIDE];
  step_many(false, wanted);
  step_many(true, found);
  require(memcmp(found, wanted, sizeof found) == 0, "other bits than on the host");
}

/* -------------------------------------------------------------- without calls */

/* Both sums are put there by the report that makes the bucket whole: when the lanes are through,
 * the result is there, and no call was made meanwhile. */
static void both_sums_need_no_call_after_the_last_report(void) {
  static model m;
  static float found[LARGEST];
  const char *policy = "net=lowrank:2 min=1 bucket=8K";
  twin it;
  open_model(&m, policy, mpi_size, LCOMM_AVG);
  open_twin(&it, policy, mpi_size, false);
  for (int step = 0; step < 2; step++) {
    step_model(&m, step);
    if (step == 0) {
      send_twin(&it, &m);
      continue;
    }
    for (int t = 0; t < TENSORS; t++) {
      to_device(it.data[t], m.gradient[t], size_of(t) * sizeof(float));
      require_fine(it.comm, lcomm_tensor_ready(it.comm, it.tensors[t]));
    }
  }
  const lcomm_lanes *lanes = it.comm->runs.lanes;
  for (; lanes && mpi_size > 1; lanes = lanes->next) {
    for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
      check(device->stream.finish(lanes->stream[i]));
    }
  }
  for (int t = 0; t < TENSORS && mpi_size > 1; t++) {
    from_device(found, it.data[t], size_of(t) * sizeof(float));
    require(memcmp(found, m.data[t], size_of(t) * sizeof(float)) == 0, "%s is not summed",
            shapes[t].name);
  }
  require_fine(it.comm, lcomm_tensors_wait(it.comm));
  require_same(&m, &it, policy, 1);
  close_twin(&it);
  close_model(&m);
}

/* ------------------------------------------------------------------- states */

/* What was saved on a device is loaded on the host, and the other way round. */
static void a_state_goes_on_wherever_tensors_are(void) {
  static model m, later;
  static const char policy[] = "net=lowrank:4 min=1";
  twin it, later_there;
  size_t size = 0, size_there = 0;
  open_model(&m, policy, two_nodes(), LCOMM_AVG);
  open_twin(&it, policy, two_nodes(), false);
  for (int step = 0; step < 3; step++) {
    step_model(&m, step);
    send_twin(&it, &m);
  }
  uint8_t *blocks = write_blocks(m.comm, &size), *from_there = write_blocks(it.comm, &size_there);
  open_model(&later, policy, two_nodes(), LCOMM_AVG);
  open_twin(&later_there, policy, two_nodes(), false);
  read_blocks(later.comm, from_there, size_there);
  read_blocks(later_there.comm, blocks, size);
  for (int step = 3; step < STEPS; step++) {
    step_model(&m, step);
    step_model(&later, step);
    send_twin(&later_there, &m);
    require(memcmp(m.data, later.data, sizeof m.data) == 0, "step %d is another one", step);
    require_same(&m, &later_there, policy, step);
  }
  free(blocks);
  free(from_there);
  close_twin(&it);
  close_twin(&later_there);
  close_model(&m);
  close_model(&later);
}

/* A step without one of the matrices. */
static void step_without(model *m, twin *it, int frozen, int step) {
  fill_model(m, step);
  require_fine(m->comm, lcomm_tensor_freeze(m->comm, m->tensors[frozen]));
  require_fine(it->comm, lcomm_tensor_freeze(it->comm, it->tensors[frozen]));
  for (int t = 0; t < TENSORS; t++) {
    size_t size = size_of(t) * sizeof(float);
    memcpy(m->data[t], m->gradient[t], size);
    to_device(it->data[t], m->gradient[t], size);
    if (t != frozen) {
      require_fine(m->comm, lcomm_tensor_ready(m->comm, m->tensors[t]));
      require_fine(it->comm, lcomm_tensor_ready(it->comm, it->tensors[t]));
    }
  }
  require_fine(m->comm, lcomm_tensors_wait(m->comm));
  require_fine(it->comm, lcomm_tensors_wait(it->comm));
  require_fine(m->comm, lcomm_tensor_unfreeze(m->comm, m->tensors[frozen]));
  require_fine(it->comm, lcomm_tensor_unfreeze(it->comm, it->tensors[frozen]));
}

/* A frozen tensor takes its state along; another rank, and another codec, as on the host. */
static void buckets_change_as_on_the_host(void) {
  static model m;
  static const char *const next[] = {"net=lowrank:4 min=1", NULL, "net=lowrank:2 min=1",
                                     "net=int8+ef min=1", "net=lowrank:4 min=1"};
  twin it;
  open_model(&m, next[0], two_nodes(), LCOMM_AVG);
  open_twin(&it, next[0], two_nodes(), false);
  for (int step = 0; step < 10; step++) {
    if (step % 2 == 0 && next[step / 2]) {
      require_fine(m.comm, lcomm_policy_set(m.comm, next[step / 2]));
      require_fine(it.comm, lcomm_policy_set(it.comm, next[step / 2]));
    }
    if (step == 2) {
      step_without(&m, &it, 1, step);
      continue;
    }
    fill_model(&m, step);
    send_model(&m);
    send_twin(&it, &m);
    require_same(&m, &it, "changes", step);
  }
  close_twin(&it);
  close_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(steps_that_are_played_have_the_bits_of_the_host),
    PROPERTY(steps_that_go_in_calls_have_the_bits_of_the_host),
    PROPERTY(what_is_not_finite_stays_in_its_step),
    PROPERTY(more_matrices_than_a_launch_takes_have_the_bits_of_the_host),
    PROPERTY(both_sums_need_no_call_after_the_last_report),
    PROPERTY(a_state_goes_on_wherever_tensors_are),
    PROPERTY(buckets_change_as_on_the_host),
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return pausing_device_main(&argc, &argv, WITH_COUNT(properties));
}
