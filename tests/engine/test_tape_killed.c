/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A rank is killed while sums of all are in flight in a stream, or buckets of tensors: streams of
 * the others go on, and their next call says who is gone. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/support/emulated/emulated_device.h"
#include "tests/support/forked.h"
#include "tests/support/forked_comm.h"

enum { RANKS = 3, KILLED = 1, COUNT = 20000, IN_FLIGHT = 3, BEFORE = 9 };

static const lcomm_device_table *device;

/* 80,000 bytes are a bucket. */
static const char *const policies[] = {
    "net=int8 min=1 bucket=64K",
    "net=topk:0.02+ef min=1 bucket=64K momentum=0.9",
    "net=topk:0.1+zstd min=1 bucket=64K",
};

static const char *policy; /* of the ranks that are forked, */
static int nodes;          /* which pose as so many */

typedef struct in_stream {
  lcomm_comm *comm;
  void *stream;
  float *buffers[IN_FLIGHT];
  uint32_t *number;
} in_stream;

static void need(forked *self, int error) {
  forked_require(self, error == 0, "the device: %s", device->explain(error));
}

static void begin(forked *self, in_stream *it) {
  static const emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 7, .pause_us_max = 50};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.nodes = nodes;
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  need(self, device->use(0));
  it->comm = forked_create(self, &config);
  need(self, device->stream.work_create(&it->stream)); /* may wait for numbers */
  need(self, device->memory.pinned_get(sizeof *it->number, (void **)&it->number));
  *it->number = 0;
  for (int i = 0; i < IN_FLIGHT; i++) {
    need(self, device->memory.get(COUNT * sizeof(float), (void **)&it->buffers[i]));
    need(self, device->set(it->buffers[i], 0, COUNT * sizeof(float), it->stream));
  }
  need(self, device->stream.finish(it->stream));
}

/* Three shapes, so that each has a run of its own. */
static void sum(forked *self, in_stream *it) {
  for (int i = 0; i < IN_FLIGHT; i++) {
    uint64_t count = COUNT - 1000 * (uint64_t)i;
    forked_fine(self, it->comm,
                lcomm_allreduce_on_stream(it->comm, it->buffers[i], it->buffers[i], count,
                                          LCOMM_FLOAT32, LCOMM_SUM, it->stream),
                "a sum");
  }
}

/* The same, over when it returns: the next ones have the same runs, and get no memory. */
static void sum_and_wait(forked *self, in_stream *it) {
  for (int i = 0; i < IN_FLIGHT; i++) {
    uint64_t count = COUNT - 1000 * (uint64_t)i;
    forked_fine(
        self, it->comm,
        lcomm_allreduce(it->comm, it->buffers[i], it->buffers[i], count, LCOMM_FLOAT32, LCOMM_SUM),
        "a sum");
  }
}

static void the_others_go_on(forked *self) {
  in_stream it;
  begin(self, &it);
  for (int i = 0; i < BEFORE; i++) { /* makes the runs, and peers open what they may read */
    sum_and_wait(self, &it);
    forked_fine(self, it.comm, lcomm_barrier(it.comm), "a barrier");
  }
  lcomm_device_number hold = {LCOMM_DEVICE_AWAIT, it.number, 1};
  if (self->rank == KILLED) { /* its part of the sums cannot begin */
    need(self, device->stream.numbers(it.stream, &hold, 1));
  }
  sum(self, &it);
  forked_barrier(self);
  if (self->rank == KILLED) {
    forked_die();
  }
  need(self, device->stream.finish(it.stream));
  lcomm_status status = lcomm_barrier(it.comm);
  const char *sentence = lcomm_last_error(it.comm);
  forked_require(self, status != LCOMM_OK && strstr(sentence, "rank 1"), "%s: %s",
                 lcomm_status_name(status), sentence);
  (void)lcomm_destroy(it.comm);
  (void)emulated_end(); /* runs that were given up keep what they have */
}

/* Each tensor has a bucket of its own. */
static void add_tensors(forked *self, in_stream *it, lcomm_tensor **tensors) {
  for (int i = 0; i < IN_FLIGHT; i++) {
    char name[] = {'t', (char)('0' + i), '\0'};
    forked_fine(self, it->comm,
                lcomm_tensor_add(it->comm, name, it->buffers[i], COUNT, LCOMM_FLOAT32, LCOMM_SUM,
                                 &tensors[i]),
                "a tensor");
  }
}

static void report(forked *self, in_stream *it, lcomm_tensor **tensors) {
  for (int i = 0; i < IN_FLIGHT; i++) {
    forked_fine(self, it->comm, lcomm_tensor_ready_on_stream(it->comm, tensors[i], it->stream),
                "a report");
  }
}

static void steps_of_the_others_end(forked *self) {
  in_stream it;
  lcomm_tensor *tensors[IN_FLIGHT];
  begin(self, &it);
  add_tensors(self, &it, tensors);
  for (int i = 0; i < BEFORE; i++) {
    report(self, &it, tensors);
    forked_fine(self, it.comm, lcomm_tensors_wait(it.comm), "a step");
    forked_fine(self, it.comm, lcomm_barrier(it.comm), "a barrier");
  }
  lcomm_device_number hold = {LCOMM_DEVICE_AWAIT, it.number, 1};
  if (self->rank == KILLED) {
    need(self, device->stream.numbers(it.stream, &hold, 1));
  }
  report(self, &it, tensors);
  forked_barrier(self);
  if (self->rank == KILLED) {
    forked_die();
  }
  lcomm_status status = lcomm_tensors_wait(it.comm);
  const char *sentence = lcomm_last_error(it.comm);
  forked_require(self, status != LCOMM_OK && strstr(sentence, "rank 1"), "%s: %s",
                 lcomm_status_name(status), sentence);
  need(self, device->stream.finish(it.stream));
  (void)lcomm_destroy(it.comm);
  (void)emulated_end(); /* runs that were given up keep what they have */
}

static void with_each_policy(void (*of_a_rank)(forked *self)) {
  nodes = RANKS;
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
    policy = policies[i];
    forked_run_dying(RANKS, KILLED, of_a_rank);
  }
  nodes = 1; /* where payloads stay on devices */
  policy = "algo=direct bucket=64K";
  forked_run_dying(RANKS, KILLED, of_a_rank);
}

static void streams_go_on_when_a_rank_is_killed(void **state) {
  (void)state;
  with_each_policy(the_others_go_on);
}

static void steps_end_when_a_rank_is_killed(void **state) {
  (void)state;
  with_each_policy(steps_of_the_others_end);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(streams_go_on_when_a_rank_is_killed),
                                     cmocka_unit_test(steps_end_when_a_rank_is_killed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
