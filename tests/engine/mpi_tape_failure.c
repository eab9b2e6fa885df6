/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* What fails while calls are in flight that put their work on a device themselves. */

#include "tests/engine/tape_calls.h"

/* A rank gives up while calls of all are in flight: streams go on. */
static void give_up(const char *policy) {
  held it;
  make_wanted(policy);
  lcomm_comm *comm = make_driven(policy, mpi_size, LCOMM_PROGRESS_CALLS);
  begin_held(&it);
  sum_before(comm, &it, 2);
  hold(&it);
  for (int i = 0; i < CALLS; i += 2) {
    sum_in_stream(comm, &it, i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank == 0) {
    (void)lcomm_abort(comm, "no more electricity");
  }
  let_go(&it);
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(comm);
  require(status == LCOMM_ERR_ABORTED, "%s: %s", lcomm_status_name(status), lcomm_last_error(comm));
  (void)lcomm_destroy(comm);
  free_held(&it);
}

static void streams_go_on_when_a_rank_gives_up(void) {
  give_up("net=bf16 min=1");
  give_up("net=topk:0.05 min=1");
}

/* A call that comes only after the patience for an earlier one is refused. */
static void sum_or_too_late(lcomm_comm *comm, const held *it, int call) {
  size_t size = count_of(call) * sizeof(float);
  check(device->copy(it->buffers[call], it->results[call], size, it->stream));
  lcomm_status status =
      lcomm_allreduce_on_stream(comm, it->buffers[call], it->buffers[call], count_of(call),
                                LCOMM_FLOAT32, LCOMM_SUM, it->stream);
  require(status == LCOMM_OK || status == LCOMM_ERR_TIMEOUT, "call %d: %s: %s", call,
          lcomm_status_name(status), lcomm_last_error(comm));
  check(device->copy(it->results[call], it->buffers[call], size, it->stream));
}

/* A rank that makes no more calls is a silent peer, for streams as for programs. */
static void streams_go_on_when_a_rank_is_silent(void) {
  held it;
  make_wanted("net=none");
  lcomm_comm *comm = make_impatient(mpi_size, 4);
  begin_held(&it);
  sum_before(comm, &it, 2);
  hold(&it);
  for (int i = 0; i < CALLS && mpi_rank > 0; i += 2) {
    sum_or_too_late(comm, &it, i);
  }
  let_go(&it);
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(comm);
  require(status != LCOMM_OK, "a sum was made without rank 0");
  (void)lcomm_destroy(comm);
  free_held(&it);
}

/* Nobody has to wait for the sums of a stream before the end. */
static void destroying_waits_for_sums_of_streams(void) {
  held it;
  make_wanted("net=int8 min=1");
  lcomm_comm *comm = make_driven("net=int8 min=1", mpi_size, LCOMM_PROGRESS_CALLS);
  begin_held(&it);
  sum_before(comm, &it, 2);
  restore(&it);
  hold(&it);
  for (int i = 0; i < CALLS; i += 2) {
    sum_in_stream(comm, &it, i);
  }
  __atomic_store_n(it.number, 1, __ATOMIC_RELEASE);
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.finish(it.stream));
  for (int i = 0; i < CALLS; i += 2) {
    require(memcmp(it.results[i], wanted[i], count_of(i) * sizeof(float)) == 0, "call %d", i);
  }
  free_held(&it);
}

/* A piece of pinned memory of each run that was given up, of which three communicators had one for
 * each shape. */
static void nothing_is_left_but_what_messages_may_read(void) {
  int left = emulated_end(), most = 3 * (CALLS / 2);
  require(left <= most, "%d pieces of memory, streams and events are left", left);
}

static const mpi_property properties[] = {
    PROPERTY(destroying_waits_for_sums_of_streams),
    PROPERTY(streams_go_on_when_a_rank_gives_up),
    PROPERTY(streams_go_on_when_a_rank_is_silent),
    PROPERTY(nothing_is_left_but_what_messages_may_read),
};
RUN_PROPERTIES(pausing_device_main, properties)
