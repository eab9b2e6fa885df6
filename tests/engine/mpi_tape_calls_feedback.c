/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls of CUDA with error feedback: a call with a residual in a stream, and a tensor, make as many
 * as were counted for them without a device; of top-k not more, and not less than half of them. */

#include "tests/engine/counted_calls.h"

enum { LARGEST = 400000 };

static const sum_case cases[] = {
    {"net=topk:0.01+ef min=1", 20000, LCOMM_FLOAT32, true},
    {"net=topk:0.01+ef min=1", LARGEST, LCOMM_FLOAT32, true},
    {"net=topk:0.05,values=int8+ef min=1", 20000, LCOMM_FLOAT32, true},
    {"net=topk:0.1+ef+zstd min=1", 20000, LCOMM_FLOAT32, true},
    {"net=topk:0.02+ef min=1 momentum=0.9", 20000, LCOMM_FLOAT32, true},
    {"net=topk:0.6+ef min=1 momentum=0.9", 20000, LCOMM_FLOAT32, true}, /* dense results */
    {"net=topk:0.01+ef min=1 algo=gather", 20000, LCOMM_FLOAT32, true},
    {"net=int8+ef min=1", 20000, LCOMM_FLOAT32, true},
    {"net=int4+ef min=1 algo=gather", 8000, LCOMM_FLOAT32, true},
    {"net=sign min=1", 20000, LCOMM_FLOAT32, true},
    {"net=none", 9000, LCOMM_FLOAT32, true},
};

/* What a case works with: a residual, or a tensor. */
typedef struct bench {
  lcomm_comm *comm;
  void *stream;
  float *buffer;
  lcomm_residual *residual;
  lcomm_tensor *tensor;
} bench;

static bench open_bench(const sum_case *it, int nodes) {
  bench b = {.buffer = on_device(LARGEST * sizeof(float))};
  check(device->stream.create(&b.stream));
  check(device->set(b.buffer, 0, LARGEST * sizeof(float), b.stream));
  b.comm = make_driven(it->policy, nodes, LCOMM_PROGRESS_CALLS);
  return b;
}

static void close_bench(bench *b) {
  require_fine(NULL, lcomm_destroy(b->comm));
  check(device->stream.destroy(b->stream));
  check(device->memory.free(b->buffer));
}

static void call(const bench *b) {
  require_fine(b->comm, lcomm_allreduce_ef_on_stream(b->residual, b->buffer, b->buffer, b->stream));
}

static void call_and_finish(void *owner) {
  const bench *b = owner;
  call(b);
  check(device->stream.finish(b->stream));
}

static void require_counted_call(const sum_case *it, int nodes) {
  bench b = open_bench(it, nodes);
  require_fine(b.comm,
               lcomm_residual_create_named(b.comm, "residual", it->count, LCOMM_SUM, &b.residual));
  open_all(b.comm, it, call_and_finish, &b);
  emulated_calls_reset();
  call(&b);
  lcomm_tape_calls wanted = counted(lcomm_tape_count, b.comm, it);
  require_as_counted(it, nodes, &wanted);
  close_bench(&b);
}

static void report(const bench *b) {
  require_fine(b->comm, lcomm_tensor_ready_on_stream(b->comm, b->tensor, b->stream));
}

static void report_and_wait(void *owner) {
  const bench *b = owner;
  report(b);
  require_fine(b->comm, lcomm_tensors_wait(b->comm));
}

static bool is_lossy(const lcomm_comm *comm, const sum_case *it) {
  lcomm_plan_request request = {.count = it->count, .dtype = it->dtype, .error_feedback = true};
  lcomm_plan *plan = NULL;
  lcomm_why why;
  require_fine(NULL, lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, mpi_rank,
                                       &plan, &why));
  bool lossy = plan->lossy;
  lcomm_plan_destroy(plan);
  return lossy;
}

/* No stream follows the result, and what is not finite is counted in exact sums, too. */
static lcomm_tape_calls counted_of_tensor(const lcomm_comm *comm, const sum_case *it) {
  lcomm_tape_calls calls = counted(lcomm_tape_count, comm, it);
  calls.events -= 2;
  calls.launches += is_lossy(comm, it) ? 0 : 1;
  calls.copies += is_lossy(comm, it) ? 0 : 2;
  return calls;
}

static void require_counted_tensor(const sum_case *it, int nodes) {
  bench b = open_bench(it, nodes);
  require_fine(b.comm, lcomm_tensor_add(b.comm, "tensor", b.buffer, it->count, it->dtype, LCOMM_SUM,
                                        &b.tensor));
  open_all(b.comm, it, report_and_wait, &b);
  emulated_calls_reset();
  report(&b);
  lcomm_tape_calls wanted = counted_of_tensor(b.comm, it);
  require_as_counted(it, nodes, &wanted);
  require_fine(b.comm, lcomm_tensors_wait(b.comm));
  close_bench(&b);
}

/* Each rank a node, where there are enough two on each, and all on one. */
static void require_all(void (*require_one)(const sum_case *it, int nodes)) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    require_one(&cases[i], mpi_size);
    require_one(&cases[i], 1);
    if (mpi_size > 2) {
      require_one(&cases[i], mpi_size / 2);
    }
  }
}

static void calls_with_residuals_are_those_that_were_counted(void) {
  setenv("LCOMM_CUDA_IPC", "off", 1);
  require_all(require_counted_call);
}

static void they_are_where_payloads_stay_on_devices(void) {
  setenv("LCOMM_CUDA_IPC", "auto", 1);
  require_all(require_counted_call);
}

static void those_of_tensors_are_as_many(void) {
  setenv("LCOMM_CUDA_IPC", "off", 1);
  require_all(require_counted_tensor);
}

static void those_of_tensors_are_where_payloads_stay(void) {
  setenv("LCOMM_CUDA_IPC", "auto", 1);
  require_all(require_counted_tensor);
}

static const mpi_property properties[] = {
    PROPERTY(calls_with_residuals_are_those_that_were_counted),
    PROPERTY(they_are_where_payloads_stay_on_devices),
    PROPERTY(those_of_tensors_are_as_many),
    PROPERTY(those_of_tensors_are_where_payloads_stay),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(one_device_main, properties)
