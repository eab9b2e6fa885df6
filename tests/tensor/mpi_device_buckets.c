/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Tensors on emulated devices whose buckets are played: every rank poses as a node, so payloads
 * cross through the host, and the call that makes a bucket whole puts all its work on the device.
 */

#include <pthread.h>

#include "libcomm/engine/lanes.h"
#include "libcomm/tensor/bucket.h"
#include "tests/engine/on_emulated_device.h"

enum { TENSORS = 4, STEPS = 4, LARGEST = 6000 };

static const uint64_t counts[TENSORS] = {LARGEST, 500, 4000, 33};

typedef struct tensor_set {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
  bool there;
} tensor_set;

static tensor_set make_set(const char *policy, lcomm_progress_mode mode, bool there) {
  tensor_set it = {.comm = make_driven(policy, mpi_size, mode), .there = there};
  for (int i = 0; i < TENSORS; i++) {
    char name[16];
    size_t size = counts[i] * sizeof(float);
    snprintf(name, sizeof(name), "tensor %d", i);
    it.data[i] = there ? on_device(size) : calloc(1, size);
    require_fine(it.comm, lcomm_tensor_add(it.comm, name, it.data[i], counts[i], LCOMM_FLOAT32,
                                           LCOMM_AVG, &it.tensors[i]));
  }
  return it;
}

static void free_set(tensor_set *it) {
  require_fine(NULL, lcomm_destroy(it->comm));
  for (int i = 0; i < TENSORS; i++) {
    if (it->there) {
      check(device->memory.free(it->data[i]));
    } else {
      free(it->data[i]);
    }
  }
}

static void put_gradient(const tensor_set *it, int step, int i) {
  float values[LARGEST];
  fill_gradient(values, counts[i], (uint64_t)(100 * step + 10 * i + mpi_rank));
  if (it->there) {
    to_device(it->data[i], values, counts[i] * sizeof(float));
  } else {
    memcpy(it->data[i], values, counts[i] * sizeof(float));
  }
}

static void put_gradients(const tensor_set *it, int step) {
  for (int i = 0; i < TENSORS; i++) {
    put_gradient(it, step, i);
  }
}

static void run_step(const tensor_set *it, int step) {
  put_gradients(it, step);
  for (int i = TENSORS; i > 0; i--) {
    require_fine(it->comm, lcomm_tensor_ready(it->comm, it->tensors[i - 1]));
  }
  require_fine(it->comm, lcomm_tensors_wait(it->comm));
}

/* Results and residuals of a step. */
typedef struct outcome {
  float results[TENSORS][LARGEST], kept[TENSORS][LARGEST];
} outcome;

static void take_outcome(const tensor_set *it, outcome *to) {
  for (int i = 0; i < TENSORS; i++) {
    if (it->there) {
      from_device(to->results[i], it->data[i], counts[i] * sizeof(float));
    } else {
      memcpy(to->results[i], it->data[i], counts[i] * sizeof(float));
    }
    require_fine(it->comm, lcomm_tensor_residual(it->comm, it->tensors[i], to->kept[i]));
  }
}

static void require_outcome(const tensor_set *it, const outcome *wanted, const char *policy,
                            int step) {
  static outcome got;
  take_outcome(it, &got);
  for (int i = 0; i < TENSORS; i++) {
    require(memcmp(got.results[i], wanted->results[i], counts[i] * sizeof(float)) == 0,
            "'%s', step %d, tensor %d: other bits than on the host", policy, step, i);
    require(memcmp(got.kept[i], wanted->kept[i], counts[i] * sizeof(float)) == 0,
            "'%s', step %d, tensor %d: another residual than on the host", policy, step, i);
  }
}

/* Whatever was asked of a step. */
static void discard_if_wanted(const tensor_set *it, const char *policy, int step) {
  if (strstr(policy, "undo=on") && step % 2 == 0) {
    require_fine(it->comm, lcomm_tensors_discard(it->comm));
  }
}

static outcome wanted[STEPS];

static void make_wanted(const char *policy) {
  tensor_set host = make_set(policy, LCOMM_PROGRESS_CALLS, false);
  for (int step = 0; step < STEPS; step++) {
    run_step(&host, step);
    take_outcome(&host, &wanted[step]);
    discard_if_wanted(&host, policy, step);
  }
  free_set(&host);
}

static bool is_played(const lcomm_run *run) {
  return !run || run->tape;
}

/* However little the policy keeps in this step. */
static void require_played(const tensor_set *it, const char *policy, int step) {
  for (size_t i = 0; i < it->comm->tensors->bucket_count; i++) {
    const lcomm_ef *ef = &it->comm->tensors->buckets[i].ef;
    require(is_played(ef->run) && is_played(ef->exact_run),
            "'%s', step %d, bucket %zu: it goes step by step", policy, step, i);
  }
}

static const lcomm_lanes *lanes_of_buckets(const lcomm_comm *comm) {
  const lcomm_lanes *it = comm->runs.lanes;
  while (it && it->space != LCOMM_SEQUENCE_SPACE_BUCKETS) {
    it = it->next;
  }
  return it;
}

static const char *const policies[] = {
    "net=none bucket=20K",
    "net=int8+ef min=1 bucket=20K",
    "net=int4+ef min=1 bucket=20K undo=on",
    "net=bf16+ef+zstd min=1 check=xxhash bucket=20K clip=0.01:global",
    "net=fp8e4m3:stochastic+ef min=1 clip=0.5 exempt=*2",
    "net=int8+ef min=128 guard=2,residual=0.000001 bucket=20K",
    "net=topk:0.02+ef min=1 bucket=20K warmup=1 ramp=0.25@1 momentum=0.9 algo=direct",
    "net=topk:0.6+ef min=1 momentum=0.9 algo=direct", /* dense results */
    "net=topk:0.05,values=int8+ef+zstd min=1 undo=on momentum=0.5",
    "net=topk:0.03+ef min=1 bucket=20K clip=0.01:global algo=gather",
    "net=topk:0.05+ef min=128 guard=2,residual=0.001 bucket=20K",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static const lcomm_progress_mode modes[] = {LCOMM_PROGRESS_CALLS, LCOMM_PROGRESS_THREAD,
                                            LCOMM_PROGRESS_AUTO};

static void sums_have_the_bits_of_the_host(void) {
  for (int p = 0; p < POLICIES; p++) {
    make_wanted(policies[p]);
    tensor_set it = make_set(policies[p], modes[p % 3], true);
    for (int step = 0; step < STEPS; step++) {
      run_step(&it, step);
      require_outcome(&it, &wanted[step], policies[p], step);
      require_played(&it, policies[p], step);
      discard_if_wanted(&it, policies[p], step);
    }
    require(lanes_of_buckets(it.comm), "'%s': nothing was played", policies[p]);
    free_set(&it);
  }
}

static void ranks_may_have_their_tensors_in_different_places(void) {
  for (int p = 0; p < POLICIES; p++) {
    make_wanted(policies[p]);
    tensor_set it = make_set(policies[p], modes[p % 3], mpi_rank % 2 == 0);
    for (int step = 0; step < STEPS; step++) {
      run_step(&it, step);
      require_outcome(&it, &wanted[step], policies[p], step);
      discard_if_wanted(&it, policies[p], step);
    }
    free_set(&it);
  }
}

/* ------------------------------------------------------------- who does what */

/* A stream that makes gradients and is held meanwhile, unless a thread that waits for all streams
 * would keep the program from letting it go. */
static void buckets_need_no_call_after_the_last_report(void) {
  const char *policy = "net=int8+ef min=1 bucket=20K";
  void *stream = NULL, *number = NULL;
  make_wanted(policy);
  tensor_set it = make_set(policy, LCOMM_PROGRESS_CALLS, true);
  check(device->stream.work_create(&stream));
  check(device->memory.pinned_get(sizeof(uint32_t), &number));
  __atomic_store_n((uint32_t *)number, 0, __ATOMIC_RELEASE);
  run_step(&it, 0);
  put_gradients(&it, 1);
  lcomm_device_number held = {LCOMM_DEVICE_AWAIT, number, 1};
  check(getenv("EMULATED_CHURN") ? 0 : device->stream.numbers(stream, &held, 1));
  for (int i = 0; i < TENSORS; i++) {
    require_fine(it.comm, lcomm_tensor_ready_on_stream(it.comm, it.tensors[i], stream));
  }
  if (mpi_size > 1) { /* alone there is no thread, and the wait starts them */
    require(it.comm->tensors->buckets_started == it.comm->tensors->bucket_count,
            "%zu of %zu buckets", it.comm->tensors->buckets_started,
            it.comm->tensors->bucket_count);
  }
  __atomic_store_n((uint32_t *)number, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < LCOMM_LANE_COUNT; i++) {
    check(device->stream.finish(lanes_of_buckets(it.comm)->stream[i]));
  }
  if (mpi_size > 1) {
    float result[LARGEST];
    from_device(result, it.data[0], sizeof(result));
    require(memcmp(result, wanted[1].results[0], sizeof(result)) == 0, "it is not summed");
  }
  require_fine(it.comm, lcomm_tensors_wait(it.comm));
  require_outcome(&it, &wanted[1], policy, 1);
  free_set(&it);
  check(device->stream.destroy(stream));
  check(device->memory.pinned_free(number));
}

typedef struct reporter {
  const tensor_set *set;
  int tensor;
  lcomm_status status;
} reporter;

static void *report(void *argument) {
  reporter *it = argument;
  check(device->use(0));
  it->status = lcomm_tensor_ready(it->set->comm, it->set->tensors[it->tensor]);
  return NULL;
}

/* Of a program that has memory and frees it meanwhile. */
static void any_thread_may_report_a_tensor(void) {
  const char *policy = "net=bf16 min=1 bucket=20K";
  make_wanted(policy);
  tensor_set it = make_set(policy, LCOMM_PROGRESS_THREAD, true);
  for (int step = 0; step < STEPS; step++) {
    pthread_t threads[TENSORS];
    reporter reporters[TENSORS];
    put_gradients(&it, step);
    for (int i = 0; i < TENSORS; i++) {
      reporters[i] = (reporter){&it, (i + mpi_rank) % TENSORS, LCOMM_OK};
      require(pthread_create(&threads[i], NULL, report, &reporters[i]) == 0, "no thread");
    }
    for (int i = 0; i < 5; i++) {
      check(device->memory.free(on_device(100)));
    }
    for (int i = 0; i < TENSORS; i++) {
      pthread_join(threads[i], NULL);
      require_fine(it.comm, reporters[i].status);
    }
    require_fine(it.comm, lcomm_tensors_wait(it.comm));
    require_outcome(&it, &wanted[step], policy, step);
  }
  free_set(&it);
}

/* Do all streams share one queue, or does a thread that waits for all keep the program from its
 * next call? */
static bool streams_hinder_each_other(void) {
  const char *queues = getenv("EMULATED_QUEUES");
  return getenv("EMULATED_CHURN") || (queues && strcmp(queues, "1") == 0);
}

/* Once their runs are there. Lanes of their own let the one go on while the other waits. */
static void buckets_and_calls_need_no_common_order(void) {
  enum { COUNT = 3000 };
  const char *policy = "net=none bucket=20K";
  void *stream = NULL;
  float *buffer = on_device(COUNT * sizeof(float));
  make_wanted(policy);
  tensor_set it = make_set(policy, LCOMM_PROGRESS_CALLS, true);
  check(device->stream.create(&stream));
  check(device->set(buffer, 0, COUNT * sizeof(float), stream));
  for (int step = 0; step < STEPS; step++) {
    bool call_first = (step + (streams_hinder_each_other() ? 0 : mpi_rank)) % 2 == 0 && step > 0;
    for (int k = 0; k < 2; k++) {
      if (call_first == (k == 0)) {
        require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, buffer, buffer, COUNT,
                                                        LCOMM_FLOAT32, LCOMM_SUM, stream));
      } else {
        run_step(&it, step);
        require_outcome(&it, &wanted[step], policy, step);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check(device->stream.finish(stream));
  }
  free_set(&it);
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
}

/* ----------------------------------------------------------------- float64 */

/* The states of all ranks, one after the other, as `size` bytes. */
static void *gather_states(lcomm_comm *comm, size_t *size) {
  enum { RANKS_MAX = 16 };
  int sizes[RANKS_MAX], places[RANKS_MAX];
  size_t own = 0;
  require_fine(comm, lcomm_state_size(comm, &own));
  void *mine = malloc(own);
  require_fine(comm, lcomm_state_write(comm, mine, own));
  sizes[mpi_rank] = (int)own;
  MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
  *size = 0;
  for (int i = 0; i < mpi_size; i++) {
    places[i] = (int)*size;
    *size += (size_t)sizes[i];
  }
  void *all = malloc(*size);
  MPI_Allgatherv(mine, (int)own, MPI_BYTE, all, sizes, places, MPI_BYTE, MPI_COMM_WORLD);
  free(mine);
  return all;
}

/* What top-k left is saved, and added to the next sum of a tensor that is float64 then: the same on
 * the host and on the device. */
static void what_was_left_is_added_to_a_float64_result(void) {
  enum { COUNT = 2000 };
  static double results[2][COUNT];
  static float given[COUNT];
  static double wide[COUNT];
  size_t size = 0;
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_driven("net=topk:0.01+ef min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  require_fine(comm, lcomm_tensor_add(comm, "g", given, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  fill_gradient(given, COUNT, (uint64_t)mpi_rank + 1);
  require_fine(comm, lcomm_tensor_ready(comm, tensor));
  require_fine(comm, lcomm_tensors_wait(comm));
  void *state = gather_states(comm, &size);
  require_fine(NULL, lcomm_destroy(comm));
  for (int there = 0; there < 2; there++) {
    double *buffer = there ? on_device(sizeof(wide)) : wide;
    comm = make_driven("net=none", mpi_size, LCOMM_PROGRESS_CALLS);
    require_fine(comm,
                 lcomm_tensor_add(comm, "g", buffer, COUNT, LCOMM_FLOAT64, LCOMM_SUM, &tensor));
    require_fine(comm, lcomm_state_read(comm, state, size));
    for (int i = 0; i < COUNT; i++) {
      wide[i] = 1.0 / (i + 3);
    }
    if (there) {
      to_device(buffer, wide, sizeof(wide));
    }
    require_fine(comm, lcomm_tensor_ready(comm, tensor));
    require_fine(comm, lcomm_tensors_wait(comm));
    from_device(results[there], buffer, sizeof(wide));
    require_fine(NULL, lcomm_destroy(comm));
    if (there) {
      check(device->memory.free(buffer));
    }
  }
  bool plain = true;
  for (int i = 0; i < COUNT; i++) {
    plain &= results[0][i] - mpi_size / (i + 3.0) < 1e-9;
  }
  require(mpi_size == 1 || !plain, "nothing was left");
  require(memcmp(results[0], results[1], sizeof(results[0])) == 0, "other bits than on the host");
  free(state);
}

/* Playing needs no numbers that streams of the program wait for. */
int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      PROPERTY(sums_have_the_bits_of_the_host),
      PROPERTY(ranks_may_have_their_tensors_in_different_places),
      PROPERTY(buckets_need_no_call_after_the_last_report),
      PROPERTY(any_thread_may_report_a_tensor),
      PROPERTY(buckets_and_calls_need_no_common_order),
      PROPERTY(what_was_left_is_added_to_a_float64_result),
      PROPERTY(nothing_is_left_on_the_device),
  };
  return pausing_device_main(&argc, &argv, WITH_COUNT(properties));
}
