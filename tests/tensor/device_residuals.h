/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_DEVICE_RESIDUALS_H
#define LCOMM_TESTS_TENSOR_DEVICE_RESIDUALS_H

/* Properties of calls with a residual on a device: the bits of the host, call by call, also when
 * data moves between both, and through saved states and other policies. */

#include "tests/engine/on_device.h"

enum { WHOLE = 9000, CALLS = 8, KINDS = 3, RANKS_MAX = 16 };

/* One communicator with an all-reduce, one without a name, and a reduce-scatter. */
typedef struct calls {
  lcomm_comm *comm;
  lcomm_residual *residuals[KINDS];
  uint64_t parts[RANKS_MAX], first;
  float *there; /* on the device: gradient and result */
  float result[WHOLE];
} calls;

/* Uneven, and one of them may be empty. */
static inline void choose_parts(calls *c) {
  uint64_t left = WHOLE;
  for (int i = 0; i < mpi_size; i++) {
    c->parts[i] = i == mpi_size - 1 ? left : i == 1 ? 0 : left / 3 + (uint64_t)i;
    c->first += i < mpi_rank ? c->parts[i] : 0;
    left -= c->parts[i];
  }
}

static inline void make_calls(calls *c, const char *policy, int nodes, lcomm_op op) {
  memset(c, 0, sizeof *c);
  choose_parts(c);
  c->comm = make_comm(policy, nodes);
  c->there = on_device(WHOLE * sizeof(float));
  require_fine(c->comm, lcomm_residual_create_named(c->comm, "grad", WHOLE, op, &c->residuals[0]));
  require_fine(c->comm, lcomm_residual_create(c->comm, WHOLE, op, &c->residuals[1]));
  require_fine(c->comm,
               lcomm_residual_create_scatter(c->comm, "shard", c->parts, op, &c->residuals[2]));
}

static inline void free_calls(calls *c) {
  require_fine(NULL, lcomm_destroy(c->comm));
  check(device->memory.free(c->there));
}

static inline lcomm_status call_kind(calls *c, int kind, void *send, void *receive, bool flush) {
  if (kind == 2) {
    return flush ? lcomm_reduce_scatter_flush(c->residuals[2], send, receive)
                 : lcomm_reduce_scatter_ef(c->residuals[2], send, receive);
  }
  return flush ? lcomm_allreduce_flush(c->residuals[kind], send, receive)
               : lcomm_allreduce_ef(c->residuals[kind], send, receive);
}

/* In place, with data on the host or on the device; the result is brought to the host. */
static inline void call_at(calls *c, int kind, int step, bool on_it, bool flush) {
  static float here[WHOLE];
  uint64_t first = kind == 2 ? c->first : 0, count = kind == 2 ? c->parts[mpi_rank] : WHOLE;
  fill_gradient(here, WHOLE, (uint64_t)(step * 100 + kind * 10 + 1000 * mpi_rank));
  memset(c->result, 0, sizeof(c->result));
  float *data = on_it ? c->there : here;
  if (on_it) {
    to_device(c->there, here, sizeof(here));
  }
  require_fine(c->comm, call_kind(c, kind, data, data + first, flush));
  if (on_it) {
    from_device(c->result, data + first, count * sizeof(float));
  } else {
    memcpy(c->result, data + first, count * sizeof(float));
  }
}

/* One call of each kind by both; results and residuals have the same bits. */
static inline void step_both(calls *host, calls *other, int step, bool on_it, bool flush,
                             const char *what) {
  static float held[WHOLE], held_there[WHOLE];
  for (int kind = 0; kind < KINDS; kind++) {
    call_at(host, kind, step, false, flush);
    call_at(other, kind, step, on_it, flush);
    require(memcmp(host->result, other->result, sizeof(host->result)) == 0,
            "'%s', call %d, kind %d: the device has other bits", what, step, kind);
    require_fine(host->comm, lcomm_residual_get(host->residuals[kind], held));
    require_fine(other->comm, lcomm_residual_get(other->residuals[kind], held_there));
    require(memcmp(held, held_there, sizeof(held)) == 0,
            "'%s', call %d, kind %d: the device keeps another residual", what, step, kind);
  }
}

static const char *const policies[] = {
    "net=topk:0.02+ef min=1",
    "net=topk:0.05+ef min=1 momentum=0.9 clip=0.05",
    "net=topk:0.05+ef min=1 momentum=0.9 warmup=2 ramp=0.25@2",
    "net=topk:0.05,values=int8+ef+zstd min=1",
    "net=int8+ef min=1",
    "net=topk:0.6+ef min=1 momentum=0.5 algo=direct", /* dense results */
    "net=fp8e4m3+ef min=1 clip=0.5",
    "net=int4 min=1",
    "net=sign min=1",
    "net=int2 min=1 clip=0.5",
    "net=topk:0.05+ef min=1 momentum=0.9 exempt=*",
    "net=topk:0.05+ef min=1 momentum=0.9 algo=direct",
    "net=none",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static inline int nodes_of(int number) {
  return 1 + number % (mpi_size < 4 ? mpi_size : 4);
}

/* moves: the data is at the other place every third call. */
static inline void compare(const char *policy, int nodes, lcomm_op op, bool moves) {
  static calls host, other;
  make_calls(&host, policy, nodes, op);
  make_calls(&other, policy, nodes, op);
  for (int step = 0; step < CALLS; step++) {
    step_both(&host, &other, step, !moves || step % 3 != 2, step % 4 == 3, policy);
  }
  free_calls(&host);
  free_calls(&other);
}

static inline void calls_with_a_residual_have_the_bits_of_the_host(void) {
  for (int i = 0; i < POLICIES; i++) {
    compare(policies[i], nodes_of(i + 1), i % 2 ? LCOMM_SUM : LCOMM_AVG, false);
  }
}

static inline void a_residual_follows_its_data(void) {
  for (int i = 0; i < 5; i++) {
    compare(policies[i], nodes_of(i + 1), i % 2 ? LCOMM_AVG : LCOMM_SUM, true);
  }
}

/* The stream brings the data before the call, and takes the result behind it. */
static inline void compare_on_a_stream(const char *policy, int nodes) {
  static calls host, other;
  static float here[WHOLE];
  void *stream = NULL;
  make_calls(&host, policy, nodes, LCOMM_AVG);
  make_calls(&other, policy, nodes, LCOMM_AVG);
  check(device->stream.create(&stream));
  for (int step = 0; step < CALLS; step++) {
    bool flush = step % 4 == 3;
    call_at(&host, 0, step, false, flush);
    fill_gradient(here, WHOLE, (uint64_t)(step * 100 + 1000 * mpi_rank));
    check(device->copy(other.there, here, sizeof(here), stream));
    require_fine(other.comm,
                 (flush ? lcomm_allreduce_flush_on_stream : lcomm_allreduce_ef_on_stream)(
                     other.residuals[0], other.there, other.there, stream));
    check(device->copy(other.result, other.there, sizeof(other.result), stream));
    check(device->stream.finish(stream));
    require(memcmp(host.result, other.result, sizeof(host.result)) == 0,
            "'%s', call %d: the stream has other bits", policy, step);
  }
  check(device->stream.destroy(stream));
  free_calls(&host);
  free_calls(&other);
}

static inline void calls_on_a_stream_have_the_bits_of_the_host(void) {
  for (int i = 0; i < POLICIES; i++) {
    compare_on_a_stream(policies[i], nodes_of(i + 1));
  }
}

/* Figures, and codecs that follow from them. */
static inline void the_guard_of_calls_sees_what_it_sees_on_the_host(void) {
  static const char *const guarded[] = {
      "net=topk:0.05+ef min=1 guard=2",
      "net=topk:0.05+ef min=1 guard=1,residual=0.000001 momentum=0.9",
      "net=int8+ef min=1 guard=1,residual=0.000001 undo=on",
  };
  for (int p = 0; p < 3; p++) {
    static calls host, other;
    make_calls(&host, guarded[p], nodes_of(1), LCOMM_AVG);
    make_calls(&other, guarded[p], nodes_of(1), LCOMM_AVG);
    for (int step = 0; step < CALLS; step++) {
      step_both(&host, &other, step, step % 5 != 3, false, guarded[p]);
      for (int kind = 0; kind < KINDS; kind++) {
        lcomm_guard_figures here, there;
        require_fine(host.comm, lcomm_residual_guard(host.residuals[kind], &here));
        require_fine(other.comm, lcomm_residual_guard(other.residuals[kind], &there));
        require(here.checks == there.checks && here.error == there.error &&
                    here.cosine == there.cosine && here.residual == there.residual &&
                    here.waited == there.waited && strcmp(here.next, there.next) == 0,
                "'%s', call %d, kind %d: error %g and %g, residual %g and %g, next %s and %s",
                guarded[p], step, kind, here.error, there.error, here.residual, there.residual,
                here.next, there.next);
      }
    }
    free_calls(&host);
    free_calls(&other);
  }
}

/* What cannot stay is flushed by the next call, on the device, too. */
static inline void another_policy_has_the_bits_of_the_host(void) {
  static calls host, other;
  static const char *const next[] = {"net=int8+ef min=1", "net=topk:0.1+ef min=1 momentum=0.5",
                                     "net=none"};
  make_calls(&host, policies[1], nodes_of(1), LCOMM_AVG);
  make_calls(&other, policies[1], nodes_of(1), LCOMM_AVG);
  for (int i = 0; i < 3; i++) {
    for (int step = 0; step < 3; step++) {
      step_both(&host, &other, 10 * i + step, true, false, policies[1]);
    }
    require_fine(host.comm, lcomm_policy_set(host.comm, next[i]));
    require_fine(other.comm, lcomm_policy_set(other.comm, next[i]));
  }
  step_both(&host, &other, 40, true, false, next[2]);
  free_calls(&host);
  free_calls(&other);
}

/* All ranks' blocks, one after the other; *size of all. */
static uint8_t *write_state(lcomm_comm *comm, size_t *size, int *mine) {
  int sizes[RANKS_MAX], places[RANKS_MAX] = {0};
  size_t own = 0;
  require_fine(comm, lcomm_state_size(comm, &own));
  uint8_t *block = malloc(own);
  require_fine(comm, lcomm_state_write(comm, block, own));
  *mine = (int)own;
  MPI_Allgather(mine, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
  *size = 0;
  for (int i = 0; i < mpi_size; i++) {
    places[i] = (int)*size;
    *size += (size_t)sizes[i];
  }
  uint8_t *all = malloc(*size);
  MPI_Allgatherv(block, *mine, MPI_BYTE, all, sizes, places, MPI_BYTE, MPI_COMM_WORLD);
  free(block);
  return all;
}

/* Saved bytes are those of the host, and both go on from them, also on other nodes. */
static inline void saved_states_have_the_bytes_of_the_host(void) {
  for (int i = 0; i < POLICIES; i++) {
    static calls host, other;
    size_t size = 0, size_there = 0;
    int mine = 0, mine_there = 0;
    make_calls(&host, policies[i], nodes_of(i + 1), LCOMM_AVG);
    make_calls(&other, policies[i], nodes_of(i + 1), LCOMM_AVG);
    for (int step = 0; step < 3; step++) {
      step_both(&host, &other, step, true, false, policies[i]);
    }
    uint8_t *bytes = write_state(host.comm, &size, &mine);
    uint8_t *bytes_there = write_state(other.comm, &size_there, &mine_there);
    require(size == size_there && memcmp(bytes, bytes_there, size) == 0,
            "'%s': the device saves other bytes", policies[i]);
    free_calls(&host);
    free_calls(&other);
    for (int nodes = 0; nodes < 2; nodes++) {
      make_calls(&host, policies[i], nodes_of(i + 1 + nodes), LCOMM_AVG);
      make_calls(&other, policies[i], nodes_of(i + 1 + nodes), LCOMM_AVG);
      call_at(&host, 1, 77, false, true);
      call_at(&other, 1, 77, true, true);
      require_fine(host.comm, lcomm_state_read(host.comm, bytes, size));
      require_fine(other.comm, lcomm_state_read(other.comm, bytes_there, size));
      for (int step = 3; step < 6; step++) {
        step_both(&host, &other, step, true, step == 5, policies[i]);
      }
      free_calls(&host);
      free_calls(&other);
    }
    free(bytes);
    free(bytes_there);
  }
}

/* Requests that were not waited for yet, of residuals that are made and destroyed, while a stream
 * is held by another call. */
static inline void they_are_in_flight_beside_calls_on_streams(void) {
  lcomm_comm *comm = make_driven(policies[1], nodes_of(1), LCOMM_PROGRESS_THREAD);
  static float here[WHOLE], back[WHOLE];
  void *stream = NULL;
  float *plain = on_device(sizeof(here)), *data = on_device(sizeof(here));
  check(device->stream.create(&stream));
  for (int step = 0; comm && step < CALLS; step++) {
    lcomm_residual *residual = NULL;
    lcomm_request request = {0};
    for (int i = 0; i < WHOLE; i++) {
      here[i] = (float)(i % 7 + mpi_rank);
    }
    to_device(plain, here, sizeof(here));
    to_device(data, here, sizeof(here));
    require_fine(comm, lcomm_residual_create_named(comm, "one", WHOLE, LCOMM_SUM, &residual));
    require_fine(
        comm, lcomm_allreduce_on_stream(comm, plain, plain, 50, LCOMM_FLOAT32, LCOMM_SUM, stream));
    require_fine(comm, lcomm_iallreduce_ef(residual, data, data, &request));
    require(lcomm_residual_destroy(residual) == LCOMM_ERR_STATE, "it could be destroyed");
    require_fine(comm, lcomm_wait(comm, &request));
    to_device(data, here, sizeof(here));
    require_fine(
        comm, lcomm_allreduce_on_stream(comm, plain, plain, 50, LCOMM_FLOAT32, LCOMM_SUM, stream));
    require_fine(comm, lcomm_iallreduce_flush(residual, data, data, &request));
    require_fine(comm, lcomm_wait(comm, &request));
    from_device(back, data, sizeof(back));
    require(same_everywhere(back, sizeof(back)), "call %d: the ranks differ", step);
    require_fine(comm, lcomm_residual_destroy(residual));
    check(device->stream.finish(stream));
  }
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(plain));
  check(device->memory.free(data));
}

#define RESIDUAL_PROPERTIES                                                                        \
  PROPERTY(calls_with_a_residual_have_the_bits_of_the_host),                                       \
      PROPERTY(a_residual_follows_its_data),                                                       \
      PROPERTY(calls_on_a_stream_have_the_bits_of_the_host),                                       \
      PROPERTY(another_policy_has_the_bits_of_the_host),                                           \
      PROPERTY(the_guard_of_calls_sees_what_it_sees_on_the_host),                                  \
      PROPERTY(saved_states_have_the_bytes_of_the_host),                                           \
      PROPERTY(they_are_in_flight_beside_calls_on_streams)

#endif
