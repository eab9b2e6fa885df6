/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Calls of CUDA: a call in a stream makes as many as were counted for its plan without a device; of
 * top-k not more, and not less than half of them. */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/tape_count.h"
#include "tests/engine/on_emulated_device.h"

enum { LARGEST = 1 << 22 }; /* elements: two chunks and more */

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

static lcomm_tape_calls counted(const lcomm_comm *comm, const sum_case *it) {
  lcomm_plan_request request = {.count = it->count, .dtype = it->dtype};
  lcomm_tape_calls calls = {0};
  lcomm_plan *plan = NULL;
  lcomm_why why = {""};
  lcomm_status status =
      lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, mpi_rank, &plan, &why);
  require(status == LCOMM_OK, "%s", why.text);
  require_fine(NULL, lcomm_tape_count(plan, &calls));
  lcomm_plan_destroy(plan);
  return calls;
}

/* So far, by this rank. */
static lcomm_tape_calls made(void) {
  return (lcomm_tape_calls){
      .launches = emulated_calls(EMULATED_CALL_LAUNCH),
      .copies = emulated_calls(EMULATED_CALL_COPY) + emulated_calls(EMULATED_CALL_SET),
      .numbers = emulated_calls(EMULATED_CALL_STREAM_NUMBERS),
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
  return memcmp(here, &rest, sizeof(rest)) == 0;
}

static void require_counted(const sum_case *it, int nodes) {
  void *stream = NULL;
  float *buffer = on_device(LARGEST * sizeof(float));
  check(device->stream.create(&stream));
  check(device->set(buffer, 0, LARGEST * sizeof(float), stream));
  lcomm_comm *comm = make_driven(it->policy, nodes, LCOMM_PROGRESS_CALLS);
  sum(comm, it, buffer, stream); /* makes the run */
  check(device->stream.finish(stream));
  require_fine(comm, lcomm_barrier(comm));
  emulated_calls_reset();
  sum(comm, it, buffer, stream);
  lcomm_tape_calls here = made(), wanted = counted(comm, it);
  require(is_as_counted(it, &here, &wanted) &&
              emulated_calls_enqueuing() == lcomm_tape_calls_all(&here),
          "'%s', %llu elements on %d nodes: %llu launches, %llu copies, %llu of numbers, %llu of "
          "events; %llu, %llu, %llu, %llu were counted",
          it->policy, (unsigned long long)it->count, nodes, (unsigned long long)here.launches,
          (unsigned long long)here.copies, (unsigned long long)here.numbers,
          (unsigned long long)here.events, (unsigned long long)wanted.launches,
          (unsigned long long)wanted.copies, (unsigned long long)wanted.numbers,
          (unsigned long long)wanted.events);
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
}

/* Each rank a node, and where there are enough two on each, whose devices share no memory here. */
static void calls_are_those_that_were_counted(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    require_counted(&cases[i], mpi_size);
    if (mpi_size > 2) {
      require_counted(&cases[i], mpi_size / 2);
    }
  }
}

static int unshared_device_main(int *argc, char ***argv, const mpi_property *properties,
                                int count) {
  emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};
  setenv("LCOMM_CUDA_IPC", "off", 1);
  return emulated_device_main(argc, argv, &setup, properties, count);
}

static const mpi_property properties[] = {
    PROPERTY(calls_are_those_that_were_counted),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(unshared_device_main, properties)
