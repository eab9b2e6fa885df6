/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Channels: messages between two ranks with error feedback. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "libcomm/engine/engine.h"
#include "tests/support/mpi_property.h"
#include "tests/support/require_fine.h"

enum { COUNT = 300001, MESSAGES = 6 };

static float given[COUNT], got[COUNT], waiting[COUNT], expected[COUNT], residual[COUNT];
static double sent[COUNT], received[COUNT];

/* On the other node. */
static int across(void) {
  return (mpi_rank + mpi_size / 2) % mpi_size;
}

static void fill(float *values, int rank, int message) {
  fill_gradient(values, COUNT, (uint64_t)(rank * 100 + message));
}

/* Both send, the channel first. */
static void exchange(lcomm_comm *comm, lcomm_channel *channel, int peer) {
  lcomm_request request = {0};
  require_fine(comm, lcomm_channel_isend(channel, given, &request));
  require_fine(comm, lcomm_recv(comm, got, COUNT, LCOMM_FLOAT32, peer));
  require_fine(comm, lcomm_wait(comm, &request));
}

/* What a peer's channel makes of a message, as a whole, in the plainest way. */
static void expect(const lcomm_format *format, int message) {
  const lcomm_kernels *kernels = lcomm_kernels_best();
  lcomm_range range = lcomm_range_whole(COUNT);
  uint8_t *payload = malloc(lcomm_payload_size(format, COUNT) + 64);
  float *values = malloc(COUNT * sizeof *values);
  fill(values, across(), message);
  lcomm_residual_encode(format, kernels, values, residual, residual, range, 0, payload);
  lcomm_decode(format, kernels, payload, range, 1, expected);
  free(payload);
  free(values);
}

static void try_codec(const char *policy) {
  lcomm_comm *comm = make_comm(policy, 2);
  lcomm_channel *channel = NULL;
  memset(residual, 0, sizeof(residual));
  require_fine(comm, lcomm_channel_create(comm, across(), COUNT, &channel));
  for (int i = 0; i < MESSAGES; i++) {
    fill(given, mpi_rank, i);
    expect(&comm->settings.policy.pipe.format, i);
    exchange(comm, channel, across());
    require(memcmp(got, expected, sizeof(got)) == 0, "%s: message %d", policy, i);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void messages_of_a_channel_bring_what_those_before_left_out(void) {
  try_codec("pipe=int8+ef");
  try_codec("pipe=int4+ef");
  try_codec("pipe=fp8e4m3+ef+zstd");
}

/* Ranks of a pair tell each other by MPI what they have sent. */
static void what_was_sent_is_what_arrived_and_what_waits(void) {
  lcomm_comm *comm = make_comm("pipe=int4+ef", 2);
  lcomm_channel *channel = NULL;
  memset(sent, 0, sizeof(sent));
  memset(received, 0, sizeof(received));
  require_fine(comm, lcomm_channel_create(comm, across(), COUNT, &channel));
  for (int i = 0; i < MESSAGES; i++) {
    fill(given, mpi_rank, i);
    exchange(comm, channel, across());
    for (int k = 0; k < COUNT; k++) {
      sent[k] += (double)given[k];
      received[k] += (double)got[k];
    }
  }
  MPI_Sendrecv_replace(sent, COUNT, MPI_DOUBLE, across(), 1, across(), 1, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  require_fine(comm, lcomm_channel_get(channel, waiting));
  MPI_Sendrecv_replace(waiting, COUNT, MPI_FLOAT, across(), 2, across(), 2, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  double worst = 0, held = 0;
  for (int k = 0; k < COUNT; k++) {
    worst = fmax(worst, fabs(sent[k] - received[k] - (double)waiting[k]));
    held = fmax(held, fabs((double)waiting[k]));
  }
  require(worst < 1e-4 * held, "%g is lost, %g waits", worst, held);
  require_fine(comm, lcomm_channel_destroy(channel));
  require_fine(NULL, lcomm_destroy(comm));
}

static void require_nothing_waits(const char *policy, int peer) {
  lcomm_comm *comm = make_comm(policy, 2);
  lcomm_channel *channel = NULL;
  require_fine(comm, lcomm_channel_create(comm, peer, COUNT, &channel));
  fill(given, mpi_rank, 0);
  exchange(comm, channel, peer);
  require_fine(comm, lcomm_channel_get(channel, waiting));
  for (int k = 0; k < COUNT; k++) {
    if (waiting[k] > 0 || waiting[k] < 0) {
      require(false, "%s: %g waits", policy, (double)waiting[k]);
      break;
    }
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void without_feedback_in_the_policy_nothing_waits(void) {
  require_nothing_waits("", across());
  require_nothing_waits("pipe=int8", across());
}

static void inside_a_node_nothing_waits(void) {
  require_nothing_waits("pipe=int8+ef", mpi_rank ^ 1);
}

/* Messages beside a channel have its codec, and leave nothing in it. */
static void messages_without_a_channel_have_no_feedback(void) {
  lcomm_comm *comm = make_comm("pipe=int4+ef", 2);
  fill(given, mpi_rank, 0);
  for (int i = 0; i < 3; i++) {
    lcomm_request request = {0};
    memset(residual, 0, sizeof(residual));
    expect(&comm->settings.policy.pipe.format, 0);
    require_fine(comm, lcomm_isend(comm, given, COUNT, LCOMM_FLOAT32, across(), &request));
    require_fine(comm, lcomm_recv(comm, got, COUNT, LCOMM_FLOAT32, across()));
    require_fine(comm, lcomm_wait(comm, &request));
    require(memcmp(got, expected, sizeof(got)) == 0, "message %d", i);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void a_channel_with_messages_in_flight_stays(void) {
  lcomm_comm *comm = make_comm("pipe=int8+ef", 2);
  lcomm_channel *channel = NULL, *other = NULL;
  lcomm_request request = {0};
  require_fine(comm, lcomm_channel_create(comm, across(), COUNT, &channel));
  require_fine(comm, lcomm_channel_create(comm, across(), 1, &other));
  require_fine(comm, lcomm_channel_isend(channel, given, &request));
  require(lcomm_channel_destroy(channel) == LCOMM_ERR_STATE, "destroyed");
  require(lcomm_channel_get(channel, waiting) == LCOMM_ERR_STATE, "looked into");
  require_fine(comm, lcomm_recv(comm, got, COUNT, LCOMM_FLOAT32, across()));
  require_fine(comm, lcomm_wait(comm, &request));
  require_fine(comm, lcomm_channel_destroy(channel));
  require_fine(comm, lcomm_channel_destroy(other));
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(messages_of_a_channel_bring_what_those_before_left_out),
    PROPERTY(what_was_sent_is_what_arrived_and_what_waits),
    PROPERTY(without_feedback_in_the_policy_nothing_waits),
    PROPERTY_OF(4, inside_a_node_nothing_waits),
    PROPERTY(messages_without_a_channel_have_no_feedback),
    PROPERTY(a_channel_with_messages_in_flight_stays),
};
RUN_PROPERTIES(mpi_property_main, properties)
