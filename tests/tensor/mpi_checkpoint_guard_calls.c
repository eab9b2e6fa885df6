/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Saved states hold the codecs that calls with a residual have fallen to. */

#include <stdio.h>

#include "tests/tensor/guard_calls.h"
#include "tests/tensor/saved_blocks.h"

enum { COUNT = 20000, CALLS = 9, RUN_ON = 5 };

static void make_some(calls *c, int first, int end) {
  for (int number = first; number < end; number++) {
    call_once(c, number);
  }
}

/* Do samples of the last call wait for the next one? */
static bool has_samples(const calls *c) {
  return c->l.residual->guard && c->l.residual->guard->phase == LCOMM_GUARD_PENDING;
}

static void compare(const char *policy, int nodes, bool scatters, int saved_at) {
  calls straight, restored;
  size_t size = 0;
  make_calls(&straight, policy, nodes, COUNT, scatters);
  make_some(&straight, 0, saved_at);
  uint8_t *bytes = write_blocks(straight.l.comm, &size);
  bool whole = !has_samples(&straight);
  make_calls(&restored, policy, nodes, COUNT, scatters);
  read_blocks(restored.l.comm, bytes, size);
  for (int number = saved_at; whole && number < saved_at + RUN_ON; number++) {
    call_once(&straight, number);
    call_once(&restored, number);
    require(memcmp(straight.l.result, restored.l.result, COUNT * sizeof(float)) == 0,
            "'%s', saved after %d calls: call %d differs", policy, saved_at, number);
    lcomm_guard_figures one = figures_of(&straight), other = figures_of(&restored);
    require(other.checks == 0 || (one.error == other.error && strcmp(one.codec, other.codec) == 0 &&
                                  strcmp(one.next, other.next) == 0),
            "'%s', saved after %d calls, call %d: by %s and %s, next %s and %s", policy, saved_at,
            number, one.codec, other.codec, one.next, other.next);
  }
  free(bytes);
  free_calls(&straight);
  free_calls(&restored);
}

static const char *const policies[] = {
    "net=topk:0.02+ef guard=1,residual=0.000001 min=1",         /* falls with each check */
    "net=topk:0.02+ef guard=2,residual=0.5 min=1 momentum=0.9", /* once */
    "net=fp8e4m3:stochastic guard=2,limit=0.001 min=1",         /* without a residual */
};

static void restored_calls_go_on_with_the_codecs_of_the_saved_ones(void) {
  int nodes = mpi_size < 2 ? 1 : mpi_size;
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
    for (int saved_at = 2; saved_at <= CALLS; saved_at++) {
      compare(policies[i], nodes, saved_at % 2 == 0, saved_at);
    }
  }
  compare(policies[0], nodes, false, 8); /* to a codec that leaves nothing */
}

static const char *travels_by(calls *c, int first) {
  static char codec[LCOMM_GUARD_CODEC_MAX];
  uint64_t before = figures_of(c).checks;
  for (int number = first; figures_of(c).checks == before; number++) {
    require(number < first + 10, "nothing is checked");
    call_once(c, number);
  }
  memcpy(codec, figures_of(c).codec, sizeof(codec));
  return codec;
}

/* Also one that has fallen meanwhile, and under another policy. */
static void other_calls_begin_with_the_codec_of_the_policy(void) {
  calls fallen, other;
  size_t early_size = 0, size = 0;
  make_calls(&fallen, policies[0], 2, COUNT, false);
  uint8_t *early = write_blocks(fallen.l.comm, &early_size);
  make_some(&fallen, 0, 3);
  require(figures_of(&fallen).fallbacks == 1, "it did not fall");
  uint8_t *bytes = write_blocks(fallen.l.comm, &size);
  read_blocks(fallen.l.comm, early, early_size);
  require(strcmp(travels_by(&fallen, 0), "topk:0.02+ef") == 0, "it goes on with what it had");
  make_calls(&other, "net=topk:0.02+ef guard=1 min=1", 2, COUNT, false);
  read_blocks(other.l.comm, bytes, size);
  require(strcmp(travels_by(&other, 3), "topk:0.02+ef") == 0, "another policy has that codec");
  free(early);
  free(bytes);
  free_calls(&fallen);
  free_calls(&other);
}

/* Saved at any moment, loaded on other nodes: nothing is lost, and the codec is the same. */
static void check_moved(bool scatters, int saved_at) {
  calls before, after;
  size_t size = 0;
  char what[64];
  snprintf(what, sizeof(what), "saved after %d calls%s", saved_at, scatters ? ", parts" : "");
  make_calls(&before, policies[0], mpi_size, COUNT, scatters);
  make_some(&before, 0, saved_at);
  uint8_t *bytes = write_blocks(before.l.comm, &size);
  make_calls(&after, policies[0], mpi_size / 2, COUNT, scatters);
  read_blocks(after.l.comm, bytes, size);
  require(after.l.residual->guarded.rungs == before.l.residual->guarded.rungs,
          "%s: it has another codec", what);
  require_fine(after.l.comm, lcomm_residual_get(after.l.residual, after.l.held));
  sum_over_ranks(after.l.held, COUNT, after.l.carried);
  for (int number = saved_at; after.l.residual->guarded.rungs < 3; number++) {
    call_once(&after, number);
    check_layer(&after.l, what, number);
  }
  free(bytes);
  free_calls(&before);
  free_calls(&after);
}

static void nothing_is_lost_where_fallen_calls_move(void) {
  for (int saved_at = 1; saved_at <= 6; saved_at++) {
    check_moved(saved_at % 2 == 0, saved_at);
  }
}

static const mpi_property properties[] = {
    PROPERTY(restored_calls_go_on_with_the_codecs_of_the_saved_ones),
    PROPERTY_OF(2, other_calls_begin_with_the_codec_of_the_policy),
    PROPERTY_OF(4, nothing_is_lost_where_fallen_calls_move),
};
RUN_PROPERTIES(mpi_property_main, properties)
