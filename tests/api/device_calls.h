/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_DEVICE_CALLS_H
#define LCOMM_TESTS_API_DEVICE_CALLS_H

/* Properties of calls and tensors whose buffers are on a device: results are those
 * of the host, bit for bit. For an emulated device and for a real one. */

#include <math.h>

#include "libcomm/engine/engine.h"
#include "tests/engine/on_device.h"

enum { COUNT_MAX = 30011, PARTS = 8 };

static const char *const policies[] = {
    "",
    "net=fp16 min=1",
    "net=fp16:scale=2^4 min=1",
    "net=fp16:scale=block min=1",
    "net=bf16 node=bf16 min=1",
    "net=fp8e4m3 min=1",
    "net=fp8e5m2:block=32,stochastic min=1",
    "net=int8 min=1 check=xxhash",
    "net=int8 algo=gather min=1",
    "net=int4-ef node=int8:block=32 min=1",
    "net=sign-ef node=int2:block=64-ef min=1",
    "net=topk:0.05 min=1",
    "net=topk:0.05,values=int8+zstd algo=direct min=1",
    "net=bf16+zstd min=1",
    "net=none algo=ring min=1",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static const uint64_t counts[] = {0, 1, 130, 9001, COUNT_MAX};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static double given[PARTS * COUNT_MAX], wanted[PARTS * COUNT_MAX], got[PARTS * COUNT_MAX];

/* Whole numbers and small ones: bits that any type can hold. */
static inline void fill(uint64_t count, lcomm_dtype dtype, uint64_t seed) {
  static float values[PARTS * COUNT_MAX];
  fill_gradient(values, count, seed + (uint64_t)mpi_rank);
  for (uint64_t i = 0; i < count; i++) {
    switch (dtype) {
    case LCOMM_FLOAT32:
      ((float *)(void *)given)[i] = values[i];
      break;
    case LCOMM_FLOAT64:
      given[i] = (double)values[i] * 1.0000001;
      break;
    case LCOMM_INT32:
      ((int32_t *)(void *)given)[i] = (int32_t)(values[i] * 1e6f);
      break;
    case LCOMM_INT64:
      ((int64_t *)(void *)given)[i] = (int64_t)(values[i] * 1e12f);
      break;
    default: /* any 16 bits but NaN and Inf */
      ((uint16_t *)(void *)given)[i] = (uint16_t)((int)(values[i] * 1e5f) & 0x3bff);
      break;
    }
  }
}

/* One collective in a form that fits all. */
typedef enum form { ALLREDUCE, IN_PLACE, SCALED, SCATTER, GATHER, EACH, SPREAD, FORMS } form;

static inline lcomm_status call(lcomm_comm *comm, form f, void *send, void *receive, uint64_t count,
                                lcomm_dtype dtype, lcomm_op op) {
  switch (f) {
  case ALLREDUCE:
    return lcomm_allreduce(comm, send, receive, count, dtype, op);
  case IN_PLACE:
    return lcomm_allreduce(comm, send, send, count, dtype, op);
  case SCALED:
    return lcomm_allreduce_scaled(comm, send, receive, count, dtype, op, 0.5, 3.0);
  case SCATTER:
    return lcomm_reduce_scatter(comm, send, receive, count, dtype, op);
  case GATHER:
    return lcomm_allgather(comm, send, receive, count, dtype);
  case EACH:
    return lcomm_alltoall(comm, send, receive, count, dtype);
  default:
    return lcomm_broadcast(comm, send, count, dtype, mpi_size - 1);
  }
}

static inline bool in_send(form f) {
  return f == IN_PLACE || f == SPREAD;
}

/* Room for the result, and how much of it is one. */
static inline uint64_t result_count(form f, uint64_t count) {
  return f == GATHER || f == EACH ? count * (uint64_t)mpi_size : count;
}

static inline void compare(lcomm_comm *here, lcomm_comm *there, form f, uint64_t count,
                           lcomm_dtype dtype, lcomm_op op, const char *policy) {
  static double copy[PARTS * COUNT_MAX];
  size_t element = lcomm_dtype_size(dtype), all = (size_t)mpi_size * count * element;
  size_t size = (size_t)result_count(f, count) * element;
  void *send = on_device(all), *receive = on_device(all);
  fill((uint64_t)mpi_size * count, dtype, count + f);
  memcpy(copy, given, all);
  to_device(send, given, all);
  require_fine(here, call(here, f, copy, wanted, count, dtype, op));
  require_fine(there, call(there, f, send, receive, count, dtype, op));
  from_device(got, in_send(f) ? send : receive, size);
  require(memcmp(got, in_send(f) ? copy : wanted, size) == 0,
          "'%s', form %d, %d elements of %s: the device has other bits", policy, (int)f, (int)count,
          lcomm_dtype_name(dtype));
  check(device->memory.free(send));
  check(device->memory.free(receive));
}

static inline int most_nodes(void) {
  return mpi_size < 3 ? mpi_size : 3;
}

static inline void sums_on_a_device_have_the_bits_of_the_host(void) {
  for (int p = 0; p < POLICIES; p++) {
    int nodes = 1 + p % most_nodes();
    lcomm_comm *here = make_comm(policies[p], nodes), *there = make_comm(policies[p], nodes);
    for (int c = 0; c < COUNTS; c++) {
      form f = (form)((p + c) % (SCATTER + 1));
      compare(here, there, f, counts[c], LCOMM_FLOAT32, LCOMM_SUM, policies[p]);
      compare(here, there, ALLREDUCE, counts[c], c % 2 ? LCOMM_FLOAT16 : LCOMM_BFLOAT16, LCOMM_AVG,
              policies[p]);
    }
    lcomm_stats host, other;
    lcomm_stats_get(here, &host);
    lcomm_stats_get(there, &other);
    require(host.sent_bytes[LCOMM_LINK_NET] == other.sent_bytes[LCOMM_LINK_NET] &&
                host.not_finite == other.not_finite,
            "'%s': other bytes travel", policies[p]);
    lcomm_destroy(here);
    lcomm_destroy(there);
  }
}

static inline void every_type_and_operation_has_the_bits_of_the_host(void) {
  lcomm_comm *here = make_comm("net=int8 min=1", most_nodes());
  lcomm_comm *there = make_comm("net=int8 min=1", most_nodes());
  for (int type = LCOMM_FLOAT32; type <= LCOMM_UINT8; type++) {
    for (int op = LCOMM_SUM; op <= LCOMM_MAX; op++) {
      compare(here, there, op % 2 ? ALLREDUCE : SCATTER, 3001, (lcomm_dtype)type, (lcomm_op)op,
              "net=int8");
      compare(here, there, IN_PLACE, 130, (lcomm_dtype)type, (lcomm_op)op, "net=int8");
    }
  }
  lcomm_destroy(here);
  lcomm_destroy(there);
}

static inline void moves_on_a_device_have_the_bits_of_the_host(void) {
  lcomm_comm *here = make_comm("", most_nodes()), *there = make_comm("", most_nodes());
  for (int f = GATHER; f < FORMS; f++) {
    for (int c = 0; c < COUNTS; c++) {
      compare(here, there, (form)f, counts[c], LCOMM_FLOAT32, LCOMM_SUM, "");
      compare(here, there, (form)f, counts[c], LCOMM_BFLOAT16, LCOMM_SUM, "");
    }
  }
  lcomm_destroy(here);
  lcomm_destroy(there);
}

/* Even ranks have their data on a device, odd ones on the host. */
static inline void meet(const char *policy, int nodes) {
  lcomm_comm *comm = make_comm(policy, nodes);
  uint64_t count = COUNT_MAX;
  size_t size = count * sizeof(float);
  float *mine = (float *)(void *)given;
  void *there = on_device(size);
  fill(count, LCOMM_FLOAT32, 7);
  to_device(there, mine, size);
  void *buffer = mpi_rank % 2 == 0 ? there : mine;
  require_fine(comm, lcomm_allreduce(comm, buffer, buffer, count, LCOMM_FLOAT32, LCOMM_SUM));
  from_device(got, buffer, size);
  require(same_everywhere(got, size), "'%s', %d nodes: the ranks differ", policy, nodes);
  check(device->memory.free(there));
  lcomm_destroy(comm);
}

static inline void data_on_devices_meets_data_on_hosts(void) {
  for (int p = 0; p < POLICIES; p++) {
    meet(policies[p], most_nodes());
    meet(policies[p], 1); /* where hosts read memory of devices */
  }
  meet("algo=direct", 1);
  meet("algo=ring", 1);
}

/* Exact sums of a node, with and without reading each other's memory: which is offered with the
 * first operation of a shape, and read from the third one on. */
static inline void peers_read_each_others_devices(void) {
  enum { TIMES = 4 };
  for (int off = 0; off < 2; off++) {
    setenv("LCOMM_CUDA_IPC", off ? "off" : "auto", 1);
    for (int p = 0; p < 3; p++) {
      static const char *const near[] = {"", "algo=direct", "node=int8 min=1"};
      lcomm_comm *here = make_comm(near[p], 1), *there = make_comm(near[p], 1);
      for (int f = 0; f < TIMES * FORMS; f++) {
        compare(here, there, (form)(f / TIMES), COUNT_MAX, LCOMM_FLOAT32, LCOMM_SUM, near[p]);
      }
      for (int i = 0; i < TIMES; i++) {
        compare(here, there, ALLREDUCE, COUNT_MAX, LCOMM_FLOAT64, LCOMM_MAX, near[p]);
        compare(here, there, IN_PLACE, COUNT_MAX, LCOMM_BFLOAT16, LCOMM_AVG, near[p]);
      }
      require(mpi_size == 1 || off == (there->runs.stayed == 0),
              "'%s', %s: %d payloads were read on devices of peers", near[p], off ? "off" : "auto",
              (int)there->runs.stayed);
      lcomm_destroy(here);
      lcomm_destroy(there);
    }
    unsetenv("LCOMM_CUDA_IPC");
  }
}

static inline void sixteen_bit_arrays_may_begin_anywhere(void) {
  enum { COUNT = 5001 };
  lcomm_comm *here = make_comm("net=int8 min=1", most_nodes());
  lcomm_comm *there = make_comm("net=int8 min=1", most_nodes());
  uint16_t *buffer = on_device((COUNT + 1) * sizeof *buffer);
  for (int type = LCOMM_FLOAT16; type <= LCOMM_BFLOAT16; type++) {
    fill(COUNT, (lcomm_dtype)type, 3);
    to_device(buffer + 1, given, COUNT * sizeof *buffer);
    require_fine(here, lcomm_allreduce(here, given, given, COUNT, (lcomm_dtype)type, LCOMM_SUM));
    require_fine(
        there, lcomm_allreduce(there, buffer + 1, buffer + 1, COUNT, (lcomm_dtype)type, LCOMM_SUM));
    from_device(got, buffer + 1, COUNT * sizeof *buffer);
    require(memcmp(got, given, COUNT * sizeof *buffer) == 0, "%s: the device has other bits",
            lcomm_dtype_name((lcomm_dtype)type));
  }
  check(device->memory.free(buffer));
  lcomm_destroy(here);
  lcomm_destroy(there);
}

/* A call works where its buffers are and leaves the program's device as it is. */
static inline void every_device_of_a_process_can_be_used(void) {
  enum { COUNT = 9001 };
  int devices = 0, current = 0;
  check(device->count(&devices));
  lcomm_comm *comm = make_comm("net=bf16 min=1", most_nodes());
  for (int d = 0; d < devices; d++) {
    check(device->use(d));
    float *buffer = on_device(COUNT * sizeof(float));
    check(device->use(0));
    fill(COUNT, LCOMM_FLOAT32, 5);
    to_device(buffer, given, COUNT * sizeof(float));
    require_fine(comm, lcomm_allreduce(comm, buffer, buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
    from_device(got, buffer, COUNT * sizeof(float));
    require(same_everywhere(got, COUNT * sizeof(float)), "device %d: the ranks differ", d);
    check(device->current(&current));
    require(current == 0, "device %d is in use now", current);
    check(device->memory.free(buffer));
  }
  lcomm_destroy(comm);
}

/* How many values of a sum on the device are not finite, with or without two of rank 0. */
static inline uint64_t count_not_finite(lcomm_comm *comm, bool with) {
  enum { COUNT = 9001 };
  lcomm_request request = {0};
  float *buffer = on_device(COUNT * sizeof(float)), *values = (float *)(void *)given;
  fill(COUNT, LCOMM_FLOAT32, 5);
  if (with && mpi_rank == 0) {
    values[3] = NAN;
    values[COUNT - 1] = INFINITY;
  }
  to_device(buffer, values, COUNT * sizeof(float));
  require_fine(comm,
               lcomm_iallreduce(comm, buffer, buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request));
  require_fine(comm, lcomm_wait(comm, &request));
  check(device->memory.free(buffer));
  return lcomm_request_not_finite(&request);
}

static inline void values_that_are_not_finite_are_counted_on_a_device(void) {
  lcomm_stats stats = {0};
  lcomm_comm *comm = make_comm("net=bf16 min=1", 2);
  uint64_t with = count_not_finite(comm, true), without = count_not_finite(comm, false);
  lcomm_stats_get(comm, &stats);
  require(with == 2 && without == 0 && stats.not_finite == 2, "%d, then %d, in all %d", (int)with,
          (int)without, (int)stats.not_finite);
  lcomm_destroy(comm);
}

static inline void buffers_in_two_places_are_refused(void) {
  lcomm_comm *comm = make_comm("", 1);
  float here[16] = {0};
  float *there = on_device(sizeof(here));
  lcomm_tensor *tensor = NULL;
  require(lcomm_allreduce(comm, here, there, 16, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "on device 0"),
          "%s", lcomm_last_error(comm));
  require(lcomm_allreduce_on_stream(comm, here, here, 16, LCOMM_FLOAT32, LCOMM_SUM, NULL) ==
                  LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "host memory"),
          "%s", lcomm_last_error(comm));
  require_fine(comm, lcomm_tensor_add(comm, "a", here, 16, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  require(lcomm_tensor_ready_on_stream(comm, tensor, NULL) == LCOMM_ERR_ARGUMENT, "%s",
          lcomm_last_error(comm));
  require(lcomm_tensor_add(comm, "b", there, 16, LCOMM_FLOAT32, LCOMM_SUM, &tensor) ==
                  LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "tensor a is in host memory"),
          "%s", lcomm_last_error(comm));
  check(device->memory.free(there));
  require_fine(NULL, lcomm_destroy(comm));
}

#define CALL_PROPERTIES                                                                            \
  PROPERTY(sums_on_a_device_have_the_bits_of_the_host),                                            \
      PROPERTY(every_type_and_operation_has_the_bits_of_the_host),                                 \
      PROPERTY(moves_on_a_device_have_the_bits_of_the_host),                                       \
      PROPERTY(data_on_devices_meets_data_on_hosts), PROPERTY(peers_read_each_others_devices),     \
      PROPERTY(sixteen_bit_arrays_may_begin_anywhere),                                             \
      PROPERTY(every_device_of_a_process_can_be_used),                                             \
      PROPERTY_OF(2, values_that_are_not_finite_are_counted_on_a_device),                          \
      PROPERTY(buffers_in_two_places_are_refused)

#endif
