/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Messages between two ranks, exact: bits, order, groups, what is refused. */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/engine.h"
#include "libcomm/engine/pair.h"
#include "tests/support/mpi_property.h"
#include "tests/support/require_fine.h"

enum { LONGEST = 5 << 20, SIZES = 8 };

/* Up to 4072 bytes travel with their header, up to 1 MiB in one piece. */
static const uint64_t sizes[SIZES] = {0, 1, 4072, 4073, 1 << 20, (1 << 20) + 1, 70001, LONGEST};

static _Alignas(64) uint8_t given[LONGEST], got[LONGEST];

static int right(void) {
  return (mpi_rank + 1) % mpi_size;
}

static int left(void) {
  return (mpi_rank + mpi_size - 1) % mpi_size;
}

static uint8_t byte_of(int rank, uint64_t place, int message) {
  return (uint8_t)(rank * 31 + message * 7 + (int)(place % 251));
}

static void fill(uint8_t *bytes, uint64_t size, int rank, int message) {
  for (uint64_t i = 0; i < size; i++) {
    bytes[i] = byte_of(rank, i, message);
  }
}

static void require_bytes(const uint8_t *bytes, uint64_t size, int rank, int message) {
  for (uint64_t i = 0; i < size; i++) {
    if (bytes[i] != byte_of(rank, i, message)) {
      require(false, "byte %llu of %llu from rank %d", (unsigned long long)i,
              (unsigned long long)size, rank);
      return;
    }
  }
}

static void go_round_a_ring(lcomm_comm *comm) {
  for (int i = 0; i < SIZES; i++) {
    lcomm_request sent = {0};
    fill(given, sizes[i], mpi_rank, i);
    memset(got, 0, sizeof(got));
    require_fine(comm, lcomm_isend(comm, given, sizes[i], LCOMM_UINT8, right(), &sent));
    if (mpi_size == 1) {
      lcomm_request received = {0};
      require_fine(comm, lcomm_irecv(comm, got, sizes[i], LCOMM_UINT8, left(), &received));
      require_fine(comm, lcomm_wait(comm, &received));
    } else {
      require_fine(comm, lcomm_recv(comm, got, sizes[i], LCOMM_UINT8, left()));
    }
    require_fine(comm, lcomm_wait(comm, &sent));
    require_fine(comm, lcomm_wait(comm, &sent)); /* again */
    require_bytes(got, sizes[i], left(), i);
  }
}

static void go_round_over(const char *transport, const char *policy, int nodes) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = transport;
  config.policy = policy;
  config.nodes = nodes;
  lcomm_comm *comm = make_comm_if_possible(&config);
  if (comm) {
    go_round_a_ring(comm);
    require_fine(NULL, lcomm_destroy(comm));
  }
}

static void messages_of_any_size_go_round_a_ring(void) {
  go_round_over("auto", "", 1);
  go_round_over("auto", "", two_nodes());
}

static void messages_of_any_size_go_round_a_ring_over_mpi(void) {
  go_round_over("mpi", "", two_nodes());
}

static void messages_of_any_size_go_round_a_ring_over_ucx(void) {
  go_round_over("ucx", "", two_nodes());
}

static void messages_of_any_size_go_round_a_ring_with_checksums(void) {
  go_round_over("auto", "check=xxhash pipe=int8", two_nodes());
}

/* ------------------------------------------------------------------- order */

enum { MESSAGES = 24, EACH = 30011 };

static uint64_t size_of(int message) {
  return message % 3 == 0 ? 17 : message % 3 == 1 ? 4000 : EACH;
}

/* To all ranks at once, this one too; the last receive is waited for first. */
static void many_messages_are_in_flight_out_of_step(void) {
  lcomm_comm *comm = make_comm("", two_nodes());
  int count = MESSAGES * mpi_size;
  lcomm_request *requests = calloc((size_t)(2 * count), sizeof *requests);
  uint8_t *from = malloc((size_t)count * EACH), *to = malloc((size_t)count * EACH);
  for (int i = 0; i < count; i++) {
    int peer = (mpi_rank + i) % mpi_size, message = i / mpi_size;
    fill(from + (size_t)i * EACH, size_of(message), mpi_rank, message);
    require_fine(comm, lcomm_isend(comm, from + (size_t)i * EACH, size_of(message), LCOMM_UINT8,
                                   peer, &requests[i]));
  }
  for (int i = 0; i < count; i++) {
    int peer = mpi_size - 1 - i % mpi_size, message = i / mpi_size;
    require_fine(comm, lcomm_irecv(comm, to + (size_t)i * EACH, size_of(message), LCOMM_UINT8, peer,
                                   &requests[count + i]));
  }
  for (int i = 2 * count - 1; i >= 0; i--) {
    require_fine(comm, lcomm_wait(comm, &requests[i]));
  }
  for (int i = 0; i < count; i++) {
    int peer = mpi_size - 1 - i % mpi_size, message = i / mpi_size;
    require_bytes(to + (size_t)i * EACH, size_of(message), peer, message);
  }
  require_fine(NULL, lcomm_destroy(comm));
  free(requests);
  free(from);
  free(to);
}

static void messages_and_collectives_need_no_order(void) {
  lcomm_comm *comm = make_comm("", two_nodes());
  float sum = 0, one = 1;
  lcomm_request received, reduced;
  fill(given, LONGEST, mpi_rank, 0);
  require_fine(comm, lcomm_irecv(comm, got, LONGEST, LCOMM_UINT8, left(), &received));
  require_fine(comm, lcomm_iallreduce(comm, &one, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM, &reduced));
  lcomm_request sent = {0};
  require_fine(comm, lcomm_isend(comm, given, LONGEST, LCOMM_UINT8, right(), &sent));
  int done = 0;
  while (!done && all_well()) {
    require_fine(comm, lcomm_test(comm, &received, &done));
  }
  require_fine(comm, lcomm_wait(comm, &sent));
  require_fine(comm, lcomm_wait(comm, &reduced));
  require(sum >= (float)mpi_size && sum <= (float)mpi_size, "the sum is %g", (double)sum);
  require_bytes(got, LONGEST, left(), 0);
  require_fine(NULL, lcomm_destroy(comm));
}

/* ------------------------------------------------------------------- groups */

static void grouped_sends_that_cross_do_not_wait_for_each_other(void) {
  enum { SIZE = 64 << 20 };
  lcomm_comm *comm = make_comm("", two_nodes());
  int peer = mpi_size - 1 - mpi_rank;
  bool takes_part = mpi_rank == 0 || peer == 0;
  uint8_t *from = takes_part ? malloc(SIZE) : NULL, *to = takes_part ? malloc(SIZE) : NULL;
  if (takes_part) {
    fill(from, SIZE, mpi_rank, 3);
    require_fine(comm, lcomm_group_begin(comm));
    require_fine(comm, lcomm_group_begin(comm)); /* nested */
    require_fine(comm, lcomm_send(comm, from, SIZE, LCOMM_UINT8, peer));
    require_fine(comm, lcomm_group_end(comm));
    require_fine(comm, lcomm_recv(comm, to, SIZE, LCOMM_UINT8, peer));
    require_fine(comm, lcomm_group_end(comm));
    require_bytes(to, SIZE, peer, 3);
  }
  require(lcomm_group_end(comm) == LCOMM_ERR_STATE, "a group ends that did not begin");
  require_fine(NULL, lcomm_destroy(comm));
  free(from);
  free(to);
}

/* ------------------------------------------------------------------ refused */

/* The last rank receives something else than rank 0 sends. */
static void require_mismatch(uint64_t sent, lcomm_dtype type, uint64_t received, const char *sends,
                             const char *receives) {
  lcomm_comm *comm = make_comm("", two_nodes());
  lcomm_status status = LCOMM_OK;
  if (mpi_rank == 0) {
    status = lcomm_send(comm, given, sent, type, mpi_size - 1);
  } else if (mpi_rank == mpi_size - 1) {
    status = lcomm_recv(comm, got, received, LCOMM_FLOAT32, 0);
  }
  status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, sends);
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, receives);
  lcomm_destroy(comm);
}

static void another_count_is_named_on_all_ranks(void) {
  require_mismatch(5, LCOMM_FLOAT32, 6, "sends 5 float32", "receives 6 float32");
  require_mismatch(5, LCOMM_FLOAT32, 60000, "sends 5 float32", "receives 60000 float32");
  require_mismatch(60000, LCOMM_FLOAT32, 60001, "sends 60000 float32", "receives 60001 float32");
}

static void another_type_is_named_on_all_ranks(void) {
  require_mismatch(5, LCOMM_INT32, 5, "sends 5 int32", "receives 5 float32");
}

static void require_refused(const lcomm_comm *comm, lcomm_status status, const char *word) {
  require(status == LCOMM_ERR_ARGUMENT, "%s", lcomm_status_name(status));
  require(strstr(lcomm_last_error(comm), word) != NULL, "no '%s' in: %s", word,
          lcomm_last_error(comm));
}

static void what_cannot_be_sent_is_refused_and_harms_nothing(void) {
  lcomm_comm *comm = make_comm("", two_nodes());
  require_refused(comm, lcomm_send(comm, given, 1, LCOMM_UINT8, mpi_size), "is not a rank");
  require_refused(comm, lcomm_recv(comm, got, 1, LCOMM_UINT8, -1), "is not a rank");
  require_refused(comm, lcomm_send(comm, given + 1, 1, LCOMM_FLOAT64, 0), "no multiple");
  require_refused(comm, lcomm_recv(comm, got, UINT64_MAX, LCOMM_FLOAT64, 0), "memory");
  require_refused(comm, lcomm_send(comm, given, 1, (lcomm_dtype)77, 0), "data type");
  go_round_a_ring(comm);
  require_fine(NULL, lcomm_destroy(comm));
}

static void the_policy_stays_while_a_message_is_in_flight(void) {
  lcomm_comm *comm = make_comm("", two_nodes());
  lcomm_request sent = {0};
  require_fine(comm, lcomm_isend(comm, given, LONGEST, LCOMM_UINT8, right(), &sent));
  require(lcomm_policy_set(comm, "pipe=int8") == LCOMM_ERR_STATE, "%s", lcomm_last_error(comm));
  lcomm_request received = {0};
  require_fine(comm, lcomm_irecv(comm, got, LONGEST, LCOMM_UINT8, left(), &received));
  require_fine(comm, lcomm_wait(comm, &sent));
  require_fine(comm, lcomm_wait(comm, &received));
  require_fine(comm, lcomm_policy_set(comm, "pipe=int8"));
  go_round_a_ring(comm);
  require_fine(NULL, lcomm_destroy(comm));
}

/* ------------------------------------------------------------------- memory */

static void nothing_is_allocated_after_the_first_message_of_a_shape(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  config.policy = "pipe=int8+zstd";
  config.nodes = two_nodes();
  config.progress = LCOMM_PROGRESS_CALLS;
  lcomm_comm *comm = make_comm_if_possible(&config);
  if (!comm) {
    return;
  }
  size_t before = 0;
  for (int i = 0; i < 6; i++) {
    lcomm_request sent = {0}, received = {0};
    require_fine(comm, lcomm_isend(comm, given, LONGEST / 4, LCOMM_FLOAT32, right(), &sent));
    require_fine(comm, lcomm_irecv(comm, got, LONGEST / 4, LCOMM_FLOAT32, left(), &received));
    require_fine(comm, lcomm_wait(comm, &received));
    require_fine(comm, lcomm_wait(comm, &sent));
    size_t now = mallinfo2().uordblks + mallinfo2().hblkhd;
    require(i < 2 || now == before, "%zu bytes after message %d, %zu before it", now, i, before);
    before = now;
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(messages_of_any_size_go_round_a_ring),
    PROPERTY(messages_of_any_size_go_round_a_ring_over_mpi),
    PROPERTY(messages_of_any_size_go_round_a_ring_over_ucx),
    PROPERTY(messages_of_any_size_go_round_a_ring_with_checksums),
    PROPERTY(many_messages_are_in_flight_out_of_step),
    PROPERTY(messages_and_collectives_need_no_order),
    PROPERTY(grouped_sends_that_cross_do_not_wait_for_each_other),
    PROPERTY_OF(2, another_count_is_named_on_all_ranks),
    PROPERTY_OF(2, another_type_is_named_on_all_ranks),
    PROPERTY(what_cannot_be_sent_is_refused_and_harms_nothing),
    PROPERTY(the_policy_stays_while_a_message_is_in_flight),
    PROPERTY(nothing_is_allocated_after_the_first_message_of_a_shape),
};
RUN_PROPERTIES(mpi_property_main, properties)
