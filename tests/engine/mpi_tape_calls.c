/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls of CUDA: a call in a stream, and one that is captured, makes as many as were counted for it
 * without a device; of top-k not more, and not less than half of them. */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/tape_count.h"
#include "tests/engine/on_emulated_device.h"

enum {
  LARGEST = 1 << 22, /* elements: two chunks and more */
  SUMS_MAX = 8       /* in which memory is opened, see peer_memory.h */
};

typedef struct sum_case {
  const char *policy;
  uint64_t count;
  lcomm_dtype dtype;
} sum_case;

static const sum_case cases[] = {
    {"net=int8 min=1", 10000, LCOMM_FLOAT32},
    {"net=none", 10000, LCOMM_FLOAT32},
    {"net=none", 3, LCOMM_FLOAT32},
    {"net=bf16 min=1", LARGEST, LCOMM_FLOAT32},
    {"net=none algo=ring", 70001, LCOMM_FLOAT32},
    {"net=none", 5000, LCOMM_FLOAT64},
    {"net=none", 9000, LCOMM_INT8},
    {"net=fp8e4m3 min=1", 66000, LCOMM_FLOAT32},
    {"net=int4 algo=gather min=1", 8000, LCOMM_FLOAT32},
    {"net=int8+zstd min=1", 66000, LCOMM_FLOAT32},
    {"net=topk:0.01 min=1", 66000, LCOMM_FLOAT32},
    {"net=topk:0.05,values=int8 min=1 algo=gather", 66000, LCOMM_FLOAT32},
    {"net=topk:0.1+zstd min=1 algo=direct", 66000, LCOMM_FLOAT32},
};

/* Of those that were counted, what is read on devices of peers. */
static uint64_t payloads_left;

typedef lcomm_status (*counting)(const lcomm_tape_case *it, lcomm_tape_calls *calls);

static lcomm_tape_calls counted(counting function, const lcomm_comm *comm, const sum_case *it) {
  lcomm_tape_case of = {.request = {.count = it->count, .dtype = it->dtype},
                        .policy = &comm->settings.policy,
                        .topo = &comm->topo,
                        .rank = mpi_rank};
  lcomm_tape_calls calls = {0};
  require_fine(NULL, function(&of, &calls));
  return calls;
}

/* So far, by this rank. */
static lcomm_tape_calls made(void) {
  return (lcomm_tape_calls){
      .launches = emulated_calls(EMULATED_CALL_LAUNCH),
      .copies = emulated_calls(EMULATED_CALL_COPY) + emulated_calls(EMULATED_CALL_SET),
      .numbers =
          emulated_calls(EMULATED_CALL_STREAM_NUMBERS) + emulated_calls(EMULATED_CALL_STREAM_GATES),
      .events =
          emulated_calls(EMULATED_CALL_EVENT_RECORD) + emulated_calls(EMULATED_CALL_STREAM_WAIT)};
}

static void sum(lcomm_comm *comm, const sum_case *it, float *buffer, void *stream) {
  require_fine(comm, lcomm_allreduce_on_stream(comm, buffer, buffer, it->count, it->dtype,
                                               LCOMM_SUM, stream));
}

static bool is_as_counted(const sum_case *it, const lcomm_tape_calls *here,
                          const lcomm_tape_calls *wanted) {
  lcomm_tape_calls rest = *wanted;
  if (strstr(it->policy, "topk")) { /* fills are launches or not */
    uint64_t done = here->launches + here->copies, most = wanted->launches + wanted->copies;
    rest.launches = here->launches;
    rest.copies = here->copies;
    if (done > most || done < most / 2) {
      return false;
    }
  }
  return here->launches == rest.launches && here->copies == rest.copies &&
         here->numbers == rest.numbers && here->events == rest.events;
}

/* Once more; how many payloads this rank has read on devices of peers. */
static uint64_t sum_again(lcomm_comm *comm, const sum_case *it, float *buffer, void *stream) {
  uint64_t before = comm->runs.stayed;
  sum(comm, it, buffer, stream);
  check(device->stream.finish(stream));
  require_fine(comm, lcomm_barrier(comm));
  await_idle_runs(comm);
  return comm->runs.stayed - before;
}

/* Sums until all ranks read all that they can where it is. */
static void open_all(lcomm_comm *comm, const sum_case *it, float *buffer, void *stream) {
  uint64_t wanted = counted(lcomm_tape_count, comm, it).stay, here = 0;
  int is_open = 0;
  for (int i = 0; i < SUMS_MAX && !is_open; i++) {
    here = sum_again(comm, it, buffer, stream);
    is_open = i > 0 && here == wanted;
    MPI_Allreduce(MPI_IN_PLACE, &is_open, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
  require(is_open, "'%s', %llu elements: %llu payloads were read on devices, not %llu", it->policy,
          (unsigned long long)it->count, (unsigned long long)here, (unsigned long long)wanted);
}

static void require_as_counted(const sum_case *it, int nodes, const lcomm_tape_calls *wanted) {
  lcomm_tape_calls here = made();
  require(is_as_counted(it, &here, wanted) &&
              emulated_calls_enqueuing() == lcomm_tape_calls_all(&here),
          "'%s', %llu elements on %d nodes: %llu launches, %llu copies, %llu of numbers, %llu of "
          "events; %llu, %llu, %llu, %llu were counted",
          it->policy, (unsigned long long)it->count, nodes, (unsigned long long)here.launches,
          (unsigned long long)here.copies, (unsigned long long)here.numbers,
          (unsigned long long)here.events, (unsigned long long)wanted->launches,
          (unsigned long long)wanted->copies, (unsigned long long)wanted->numbers,
          (unsigned long long)wanted->events);
}

static void require_counted(const sum_case *it, int nodes) {
  void *stream = NULL;
  float *buffer = on_device(LARGEST * sizeof(float));
  check(device->stream.create(&stream));
  check(device->set(buffer, 0, LARGEST * sizeof(float), stream));
  lcomm_comm *comm = make_driven(it->policy, nodes, LCOMM_PROGRESS_CALLS);
  open_all(comm, it, buffer, stream);
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

static int one_device_main(int *argc, char ***argv, const mpi_property *properties, int count) {
  emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};
  return emulated_device_main(argc, argv, &setup, properties, count);
}

static const mpi_property properties[] = {
    PROPERTY(calls_are_those_that_were_counted),
    PROPERTY(they_are_where_payloads_stay_on_devices),
    PROPERTY(those_that_are_captured_are_as_many_as_were_counted),
    PROPERTY(they_are_where_lanes_wait_for_gates),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(one_device_main, properties)
