/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* Messages between two ranks through the codec of pipe=: what arrives is what the codec makes of
 * it, between nodes only, and the bytes are those of the formula. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/engine.h"
#include "libcomm/plan/pipe.h"
#include "tests/support/mpi_property.h"
#include "tests/support/require_fine.h"

enum { MOST = 700001, TYPES = 3, COUNTS = 4 };

static const lcomm_dtype types[TYPES] = {LCOMM_FLOAT32, LCOMM_FLOAT16, LCOMM_BFLOAT16};
static const uint64_t counts[COUNTS] = {2500, 262144, 262145, MOST}; /* a piece is 1 MiB of data */

static _Alignas(64) uint8_t given[4 * MOST], got[4 * MOST], wanted[4 * MOST], other[4 * MOST];
static float values[MOST], decoded[MOST];

static const char *const codecs[] = {"bf16",      "fp16",           "fp16:scale=block",
                                     "fp8e4m3",   "fp16:scale=2^8", "fp8e5m2:block=32",
                                     "int8",      "int8:block=32",  "int4",
                                     "int8+zstd", "none+zstd",      "bf16+zstd"};

static lcomm_comm *make_piped(const char *codec) {
  char policy[64];
  snprintf(policy, sizeof policy, "pipe=%s min=0", codec);
  return make_comm(policy, 2);
}

/* On the other node. */
static int across(void) {
  return (mpi_rank + mpi_size / 2) % mpi_size;
}

static lcomm_policy policy_of(const char *codec) {
  char text[64];
  lcomm_why why;
  lcomm_policy policy = {0};
  snprintf(text, sizeof text, "pipe=%s min=0", codec);
  require(lcomm_policy_parse(text, &policy, &why) == LCOMM_OK, "%s", why.text);
  return policy;
}

/* A gradient of a rank in a type. */
static void fill(uint8_t *data, lcomm_dtype type, uint64_t count, int rank) {
  lcomm_format exact = lcomm_format_exact(type);
  fill_gradient(values, count, (uint64_t)rank + 1);
  lcomm_encode(&exact, lcomm_kernels_best(), values, lcomm_range_whole(count), 0, data);
}

/* Encoded and decoded as a whole. */
static void pass_through(const lcomm_format *format, lcomm_dtype type, uint64_t count,
                         uint8_t *data) {
  const lcomm_kernels *kernels = lcomm_kernels_best();
  lcomm_format exact = lcomm_format_exact(type);
  lcomm_range range = lcomm_range_whole(count);
  uint8_t *payload = malloc(lcomm_payload_size(format, count) + 64);
  lcomm_decode(&exact, kernels, data, range, 1, values);
  lcomm_encode(format, kernels, values, range, 0, payload);
  lcomm_decode(format, kernels, payload, range, 1, decoded);
  lcomm_encode(&exact, kernels, decoded, range, 0, data);
  free(payload);
}

static void exchange(lcomm_comm *comm, uint64_t count, lcomm_dtype type, int peer) {
  lcomm_request sent = {0};
  require_fine(comm, lcomm_isend(comm, given, count, type, peer, &sent));
  require_fine(comm, lcomm_recv(comm, got, count, type, peer));
  require_fine(comm, lcomm_wait(comm, &sent));
}

static void require_equal(const char *codec, lcomm_dtype type, uint64_t count) {
  size_t size = (size_t)(count * lcomm_dtype_size(type));
  require(memcmp(got, wanted, size) == 0, "%s: %llu %s", codec, (unsigned long long)count,
          lcomm_dtype_name(type));
}

static void try_codec(const char *codec) {
  lcomm_comm *comm = make_piped(codec);
  lcomm_policy policy = policy_of(codec);
  for (int i = 0; i < TYPES * COUNTS; i++) {
    lcomm_dtype type = types[i / COUNTS];
    uint64_t count = counts[i % COUNTS];
    size_t size = (size_t)(count * lcomm_dtype_size(type));
    lcomm_format format = lcomm_pipe_format(&policy, &comm->topo, mpi_rank, across(), type, count);
    fill(given, type, count, mpi_rank);
    memcpy(other, given, size);
    fill(wanted, type, count, across());
    if (!lcomm_pipe_is_plain(&format, type)) {
      pass_through(&format, type, count, wanted);
    }
    exchange(comm, count, type, across());
    require_equal(codec, type, count);
    require(memcmp(other, given, size) == 0, "%s has changed what is sent", codec);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void what_arrives_is_what_the_codec_makes_of_it(void) {
  for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
    try_codec(codecs[i]);
  }
}

static void a_checksum_changes_no_value(void) {
  try_codec("fp8e4m3 check=xxhash");
  try_codec("int8+zstd check=xxhash");
}

/* ----------------------------------------------------------------- exactness */

static void require_exact(const char *policy, uint64_t count, lcomm_dtype type, int peer) {
  lcomm_comm *comm = make_comm(policy, 2);
  fill(given, type, count, mpi_rank);
  fill(wanted, type, count, peer);
  exchange(comm, count, type, peer);
  require_equal(policy, type, count);
  require_fine(NULL, lcomm_destroy(comm));
}

static void messages_are_exact_by_default(void) {
  require_exact("", MOST, LCOMM_FLOAT32, across());
  require_exact("net=int8", MOST, LCOMM_FLOAT32, across());
}

static void short_messages_are_exact(void) {
  require_exact("pipe=int4 min=0", 1000, LCOMM_FLOAT32, across());
  require_exact("pipe=int4", 16383, LCOMM_FLOAT32, across());
  require_exact("pipe=int4 min=1M", 262143, LCOMM_FLOAT32, across());
}

static void messages_inside_a_node_are_exact(void) {
  require_exact("pipe=int4 min=0", MOST, LCOMM_FLOAT32, mpi_rank ^ 1);
}

static void a_codec_that_makes_no_fewer_bytes_does_not_act(void) {
  require_exact("pipe=bf16 min=0", MOST, LCOMM_BFLOAT16, across());
  require_exact("pipe=fp16 min=0", MOST, LCOMM_BFLOAT16, across());
}

static void whole_numbers_are_exact(void) {
  lcomm_comm *comm = make_comm("pipe=int4 min=0", 2);
  for (uint64_t i = 0; i < sizeof given; i++) {
    given[i] = (uint8_t)(i * 7 + (uint64_t)mpi_rank);
    wanted[i] = (uint8_t)(i * 7 + (uint64_t)across());
  }
  exchange(comm, MOST, LCOMM_INT32, across());
  require_equal("int4", LCOMM_INT32, MOST);
  require_fine(NULL, lcomm_destroy(comm));
}

/* -------------------------------------------------------------------- bytes */

static void bytes_are_those_of_the_formula(void) {
  enum { COUNT = 1 << 20, PIECES = 4, HEADERS = 24 + PIECES * 40, PIECE = COUNT / PIECES };
  lcomm_comm *comm = make_comm("pipe=fp8e4m3", 2);
  lcomm_stats stats;
  float *large = calloc(COUNT, sizeof *large), *received = calloc(COUNT, sizeof *received);
  lcomm_request sent = {0};
  require_fine(comm, lcomm_stats_reset(comm));
  require_fine(comm, lcomm_isend(comm, large, COUNT, LCOMM_FLOAT32, across(), &sent));
  require_fine(comm, lcomm_recv(comm, received, COUNT, LCOMM_FLOAT32, across()));
  require_fine(comm, lcomm_wait(comm, &sent));
  require_fine(comm, lcomm_stats_get(comm, &stats));
  uint64_t formula = HEADERS + PIECES * (PIECE + PIECE / 128);
  require(stats.sent_bytes[LCOMM_LINK_NET] == formula, "%llu bytes, formula %llu",
          (unsigned long long)stats.sent_bytes[LCOMM_LINK_NET], (unsigned long long)formula);
  require(stats.received_bytes[LCOMM_LINK_NET] == formula, "%llu bytes received",
          (unsigned long long)stats.received_bytes[LCOMM_LINK_NET]);
  require(stats.exact_bytes[LCOMM_LINK_NET] == 24 + COUNT * sizeof(float), "%llu bytes exact",
          (unsigned long long)stats.exact_bytes[LCOMM_LINK_NET]);
  require(stats.sent_messages[LCOMM_LINK_NET] == 1, "not one message");
  require(stats.encode_s > 0 && stats.decode_s > 0, "no time was counted");
  const lcomm_summary_row *rows = comm->observers.summary.rows;
  require(rows[LCOMM_SUMMARY_SENDS].operations == 1 && rows[LCOMM_SUMMARY_RECEIVES].operations == 1,
          "the table has not one of each");
  require(rows[LCOMM_SUMMARY_SENDS].cost.sent_bytes[LCOMM_LINK_NET] == formula, "other bytes");
  require_fine(NULL, lcomm_destroy(comm));
  free(large);
  free(received);
}

/* ------------------------------------------------------------------ mismatch */

/* Its policy is another one than all have agreed on. */
static void another_codec_is_named_on_all_ranks(void) {
  lcomm_comm *comm = make_comm("pipe=int8", 2);
  int last = mpi_size - 1;
  lcomm_status status = LCOMM_OK;
  lcomm_policy changed = policy_of("fp8e4m3");
  if (mpi_rank == 0) {
    status = lcomm_send(comm, given, MOST, LCOMM_FLOAT32, last);
  } else if (mpi_rank == last) {
    comm->settings.policy.pipe = changed.pipe;
    status = lcomm_recv(comm, got, MOST, LCOMM_FLOAT32, 0);
  }
  status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, "encoded as int8, and rank");
  require_status_everywhere(comm, status, LCOMM_ERR_MISMATCH, "encoded as fp8e4m3.");
  lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(what_arrives_is_what_the_codec_makes_of_it),
    PROPERTY(a_checksum_changes_no_value),
    PROPERTY(messages_are_exact_by_default),
    PROPERTY(short_messages_are_exact),
    PROPERTY_OF(4, messages_inside_a_node_are_exact),
    PROPERTY(a_codec_that_makes_no_fewer_bytes_does_not_act),
    PROPERTY(whole_numbers_are_exact),
    PROPERTY(bytes_are_those_of_the_formula),
    PROPERTY(another_codec_is_named_on_all_ranks),
};
RUN_PROPERTIES(mpi_property_main, properties)
