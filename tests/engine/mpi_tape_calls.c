/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls of CUDA: a call in a stream, and one that is captured, makes as many as were counted for it
 * without a device; of top-k not more, and not less than half of them. */

#include "tests/engine/counted_calls.h"

enum { LARGEST = 1 << 22 }; /* elements: two chunks and more */

/* Of those that were counted, what is read on devices of peers. */
static uint64_t payloads_left;

static const sum_case cases[] = {
    {"net=int8 min=1", 10000, LCOMM_FLOAT32, false},
    {"net=none", 10000, LCOMM_FLOAT32, false},
    {"net=none", 3, LCOMM_FLOAT32, false},
    {"net=bf16 min=1", LARGEST, LCOMM_FLOAT32, false},
    {"net=none algo=ring", 70001, LCOMM_FLOAT32, false},
    {"net=none", 5000, LCOMM_FLOAT64, false},
    {"net=none", 9000, LCOMM_INT8, false},
    {"net=fp8e4m3 min=1", 66000, LCOMM_FLOAT32, false},
    {"net=int4 algo=gather min=1", 8000, LCOMM_FLOAT32, false},
    {"net=int8+zstd min=1", 66000, LCOMM_FLOAT32, false},
    {"net=topk:0.01 min=1", 66000, LCOMM_FLOAT32, false},
    {"net=topk:0.05,values=int8 min=1 algo=gather", 66000, LCOMM_FLOAT32, false},
    {"net=topk:0.1+zstd min=1 algo=direct", 66000, LCOMM_FLOAT32, false},
};

static void sum(lcomm_comm *comm, const sum_case *it, float *buffer, void *stream) {
  require_fine(comm, lcomm_allreduce_on_stream(comm, buffer, buffer, it->count, it->dtype,
                                               LCOMM_SUM, stream));
}

/* A sum, and what it works with. */
typedef struct own_sum {
  lcomm_comm *comm;
  const sum_case *it;
  float *buffer;
  void *stream;
} own_sum;

static void sum_and_finish(void *owner) {
  own_sum *own = owner;
  sum(own->comm, own->it, own->buffer, own->stream);
  check(device->stream.finish(own->stream));
}

static void require_counted(const sum_case *it, int nodes) {
  void *stream = NULL;
  float *buffer = on_device(LARGEST * sizeof(float));
  check(device->stream.create(&stream));
  check(device->set(buffer, 0, LARGEST * sizeof(float), stream));
  lcomm_comm *comm = make_driven(it->policy, nodes, LCOMM_PROGRESS_CALLS);
  own_sum own = {comm, it, buffer, stream};
  open_all(comm, it, sum_and_finish, &own);
  emulated_calls_reset();
  sum(comm, it, buffer, stream);
  lcomm_tape_calls wanted = counted(lcomm_tape_count, comm, it);
  require_as_counted(it, nodes, &wanted);
  payloads_left += wanted.stay;
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
}

/* A replay goes through all of it. */
static void require_counted_captured(const sum_case *it, int nodes) {
  void *stream = NULL, *graph = NULL, *executable = NULL;
  float *buffer = on_device(LARGEST * sizeof(float));
  check(device->stream.create(&stream));
  check(device->set(buffer, 0, LARGEST * sizeof(float), stream));
  check(device->stream.finish(stream));
  lcomm_comm *comm = make_driven(it->policy, nodes, LCOMM_PROGRESS_CALLS);
  lcomm_tape_calls wanted = counted(lcomm_tape_count_captured, comm, it);
  check(emulated_capture_begin(stream));
  emulated_calls_reset();
  sum(comm, it, buffer, stream);
  require_as_counted(it, nodes, &wanted);
  payloads_left += wanted.gates;
  check(emulated_capture_end(stream, &graph));
  check(emulated_graph_instantiate(graph, &executable));
  check(emulated_graph_launch(executable, stream));
  check(device->stream.finish(stream));
  check(emulated_executable_destroy(executable));
  check(emulated_graph_destroy(graph));
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
}

/* Each rank a node, where there are enough two on each, and all on one. */
static void require_all(void (*require_one)(const sum_case *it, int nodes), const char *ipc) {
  setenv("LCOMM_CUDA_IPC", ipc, 1);
  payloads_left = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    require_one(&cases[i], mpi_size);
    require_one(&cases[i], 1);
    if (mpi_size > 2) {
      require_one(&cases[i], mpi_size / 2);
    }
  }
  require((payloads_left > 0) == (strcmp(ipc, "off") != 0), "%llu payloads were read on devices",
          (unsigned long long)payloads_left);
}

static void calls_are_those_that_were_counted(void) {
  require_all(require_counted, "off");
}

static void they_are_where_payloads_stay_on_devices(void) {
  require_all(require_counted, "auto");
}

static void those_that_are_captured_are_as_many_as_were_counted(void) {
  require_all(require_counted_captured, "off");
}

static void they_are_where_lanes_wait_for_gates(void) {
  require_all(require_counted_captured, "auto");
}

static const mpi_property properties[] = {
    PROPERTY(calls_are_those_that_were_counted),
    PROPERTY(they_are_where_payloads_stay_on_devices),
    PROPERTY(those_that_are_captured_are_as_many_as_were_counted),
    PROPERTY(they_are_where_lanes_wait_for_gates),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(one_device_main, properties)
