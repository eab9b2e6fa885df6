/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls in a stream need nothing of it, nor of lanes, to return: here streams do nothing meanwhile.
 * So what a call takes is its host time alone, on emulated devices; it is printed. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/backend.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/forked.h"
#include "tests/support/forked_comm.h"

enum { TIMES = 31, FIRST = 8, NODES = 4, EACH = 8, LEAVES = 1, SHORT = 1 << 18, LONG = 25000000 };

static const lcomm_device_table *device;

typedef struct in_stream {
  lcomm_comm *comm;
  void *stream;
  float *buffer;
  double us[TIMES];
} in_stream;

static void need(forked *self, int error) {
  forked_require(self, error == 0, "the device: %s", device->explain(error));
}

/* ipc: LCOMM_CUDA_IPC */
static in_stream begin(forked *self, int nodes, const char *ipc) {
  static const emulated_setup setup = {.devices = 1, .kernels = &lcomm_cuda_kernels_table};
  lcomm_config config = LCOMM_CONFIG_INIT;
  in_stream it = {0};
  config.policy = "net=int8 min=1";
  config.nodes = nodes;
  setenv("LCOMM_CUDA_IPC", ipc, 1);
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  need(self, device->use(0));
  it.comm = forked_create(self, &config);
  need(self, device->stream.create(&it.stream));
  return it;
}

static void sum(forked *self, in_stream *it, uint64_t count) {
  forked_fine(self, it->comm,
              lcomm_allreduce_on_stream(it->comm, it->buffer, it->buffer, count, LCOMM_FLOAT32,
                                        LCOMM_SUM, it->stream),
              "a sum");
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(const in_stream *it, const char *what) {
  double sorted[TIMES];
  for (int i = 0; i < TIMES; i++) {
    sorted[i] = it->us[i];
  }
  qsort(sorted, TIMES, sizeof *sorted, by_value);
  printf("host time, %s: %.1f us (%.1f to %.1f in %d times), %llu calls of CUDA\n", what,
         sorted[TIMES / 2], sorted[0], sorted[TIMES - 1], TIMES,
         (unsigned long long)emulated_calls_enqueuing());
  fflush(stdout);
}

/* A call as programs make it. */
static void measure_short(forked *self, int nodes, const char *what) {
  in_stream it = begin(self, nodes, "auto");
  need(self, device->memory.get(SHORT * sizeof(float), (void **)&it.buffer));
  need(self, device->set(it.buffer, 0, SHORT * sizeof(float), it.stream));
  for (int i = -FIRST; i < TIMES; i++) { /* these make the run, start the thread, open memory */
    forked_barrier(self);
    emulated_streams_stop(i >= 0);
    emulated_calls_reset();
    double begin_s = lcomm_clock_s();
    sum(self, &it, SHORT);
    double end_s = lcomm_clock_s();
    if (i >= 0) {
      it.us[i] = 1e6 * (end_s - begin_s);
    }
    if (i == TIMES - 1 && self->rank == 0) {
      print(&it, what);
      printf("  %llu payloads were read where they were made\n",
             (unsigned long long)it.comm->runs.stayed);
    }
    emulated_streams_stop(false);
    need(self, device->stream.finish(it.stream));
  }
  forked_destroy(self, it.comm);
  need(self, device->memory.free(it.buffer));
  need(self, device->stream.destroy(it.stream));
  forked_require(self, emulated_end() == 0, "something is left on the device");
}

static void calls_return_while_no_stream_moves(forked *self) {
  measure_short(self, self->size, "a sum of 1 MiB on 2 nodes");
}

static void calls_return_where_payloads_stay(forked *self) {
  measure_short(self, 1, "a sum of 1 MiB on 2 devices of a node");
}

/* All that a further call puts there. */
static lcomm_status put_again(in_stream *it, lcomm_run *run) {
  LCOMM_TRY(lcomm_enter(it->comm));
  lcomm_tape_rewind(run);
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = run->backend->queue->follow(run, it->stream);
  status = status == LCOMM_OK ? lcomm_tape_play(run) : status;
  status = status == LCOMM_OK ? lcomm_tape_join(run, it->stream) : status;
  lcomm_run_leave(run, entry);
  lcomm_exit(it->comm);
  return status;
}

static lcomm_run *run_in_flight(lcomm_comm *comm) {
  return lcomm_enter(comm) == LCOMM_OK && comm->operations.first ? comm->operations.first->run
                                                                 : NULL;
}

/* As when peers have opened all its memory. */
static void take_all(in_stream *it, lcomm_run *run) {
  bool entered = lcomm_enter(it->comm) == LCOMM_OK;
  for (uint32_t i = 0; i < run->plan->schedule.step_count && entered; i++) {
    lcomm_share_set_answer(run, i, true);
  }
  lcomm_share_fix(run);
  lcomm_exit(it->comm);
}

/* One rank alone has memory for so much here; what it sums is put there and never done. */
static void measure_long(forked *self, in_stream *it, const char *what) {
  need(self, device->memory.get(LONG * sizeof(float), (void **)&it->buffer));
  emulated_streams_stop(true);
  sum(self, it, LONG);
  lcomm_run *run = run_in_flight(it->comm);
  lcomm_exit(it->comm);
  forked_require(self, run && run->tape, "nothing was played");
  take_all(it, run);
  for (int i = 0; i < TIMES; i++) {
    emulated_calls_reset();
    double begin_s = lcomm_clock_s();
    lcomm_status status = put_again(it, run);
    it->us[i] = 1e6 * (lcomm_clock_s() - begin_s);
    forked_fine(self, it->comm, status, "once more");
  }
  forked_require(self, emulated_calls_enqueuing() <= 100, "%llu calls of CUDA",
                 (unsigned long long)emulated_calls_enqueuing());
  print(it, what);
}

static void leave_long(forked *self, const char *ipc, const char *what) {
  in_stream it = begin(self, NODES, ipc);
  if (self->rank == LEAVES) {
    measure_long(self, &it, what);
  }
  forked_barrier(self);
  if (self->rank == LEAVES) {
    forked_die();
  }
  (void)lcomm_abort(it.comm, "the measurement is over");
  (void)lcomm_destroy(it.comm);
  (void)emulated_end();
}

static void long_sums_return_while_no_stream_moves(forked *self) {
  leave_long(self, "off", "a sum of 100 MB on 4 nodes of 8");
}

static void long_sums_return_where_payloads_stay(forked *self) {
  leave_long(self, "auto", "the same, where payloads stay on devices inside nodes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FORKED_TEST(calls_return_while_no_stream_moves, 2),
      FORKED_TEST(calls_return_where_payloads_stay, 2),
      FORKED_TEST_DYING(long_sums_return_while_no_stream_moves, NODES * EACH, LEAVES),
      FORKED_TEST_DYING(long_sums_return_where_payloads_stay, NODES * EACH, LEAVES),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
