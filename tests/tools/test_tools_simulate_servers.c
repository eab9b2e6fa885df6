/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Worlds with servers that are simulated: bytes and times by formula. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "libcomm/engine/pair_header.h"
#include "libcomm/shards/shard_header.h"
#include "tests/tools/posed_world.h"
#include "tools/simulation/simulate_engine.h"

enum { RANKS = 8, COUNT = 4 * 65536, TENSORS = 5 };

static const double RATE = 1e8;

typedef struct given {
  int nodes, ranks; /* of each */
  uint64_t parameters, tensor;
  const char *policy;
  double compute_s;
  simulate_settings settings;
} given;

static given begin(const char *policy) {
  given it = {.nodes = RANKS,
              .ranks = 1,
              .parameters = TENSORS * COUNT,
              .tensor = COUNT,
              .policy = policy,
              .settings = {.cards = 1, .steps = 1}};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    it.settings.links[i] = (simulate_link){.latency = 1000, .bytes_per_s = 1e12};
  }
  it.settings.links[LCOMM_LINK_NET] = (simulate_link){.latency = 1000000, .bytes_per_s = RATE};
  return it;
}

/* Computations take no time; without more, TENSORS buckets of COUNT elements. */
static bool make_posed(const given *it, simulate_symmetry symmetry, posed *of) {
  lcomm_why error;
  *of = (posed){.why = ""};
  assert_int_equal(lcomm_policy_parse(it->policy, &of->policy, &error), LCOMM_OK);
  of->policy.bucket_bytes = COUNT * sizeof(float);
  assert_int_equal(simulate_world_pose(it->nodes, it->ranks, &of->topo, of->why), LCOMM_OK);
  assert_true(simulate_workload_formula(it->parameters, it->tensor, it->compute_s, &of->workload));
  return make_world(of, symmetry);
}

static simulate_result simulate(const given *it) {
  simulate_result result = {0};
  posed of;
  bool good = make_posed(it, SIMULATE_SYMMETRY_AUTO, &of) &&
              simulate_engine_run(&of.world, &of.workload, &it->settings, NULL, &result, of.why);
  if (!good) {
    fail_msg("%s: %s", it->policy, of.why);
  }
  free_posed(&of);
  return result;
}

static bool are_near(double a, double b, double share) {
  return fabs(a - b) <= share * fmax(fabs(a), fabs(b));
}

/* Payloads of a step, as they come to each of `servers` of equal shares, or leave it, with all
 * `workers`. */
static double bytes_of(double bytes_each, int workers, int servers) {
  return bytes_each * TENSORS * COUNT * workers / servers;
}

static const double INT8 = 1 + 4.0 / 128;

static void bytes_are_those_of_all_workers_by_servers(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    double bytes_each;
    int servers;
  } cases[] = {{"algo=servers servers=7", 4, 1},
               {"algo=servers servers=6,7", 4, 2},
               {"net=int8 algo=servers servers=6,7", INT8, 2},
               {"net=int8 algo=servers servers=0,3,7", INT8, 3},
               {"net=int8 algo=servers servers=nodes:0,1", INT8, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    given it = begin(cases[i].policy);
    int workers = RANKS - cases[i].servers;
    double expected = bytes_of(cases[i].bytes_each, workers, cases[i].servers);
    simulate_result result = simulate(&it);
    double headers = result.card_messages *
                     (LCOMM_PAIR_HEADER_SIZE + (double)lcomm_shard_header_size(RANKS) / 2);
    assert_true(are_near(result.card_bytes - headers, expected, 0.005));
    assert_true(are_near(result.card_messages, 2.0 * TENSORS * 4 * workers, 1e-9));
    assert_true(result.step_s > result.wire_s && result.step_s < 1.2 * result.wire_s);
  }
}

static void a_server_with_a_larger_share_has_more_bytes(void **state) {
  (void)state;
  given it = begin("algo=servers servers=6@3,7");
  assert_true(are_near(simulate(&it).card_bytes, 1.5 * bytes_of(4, 6, 2), 0.01));
}

static void servers_are_slower_by_their_links_and_faster_with_better_ones(void **state) {
  (void)state;
  given it = begin("algo=servers servers=6,7");
  double alike_s = simulate(&it).step_s;
  it.settings.served = it.settings.links[LCOMM_LINK_NET];
  assert_true(are_near(simulate(&it).step_s, alike_s, 1e-12));
  it.settings.served.bytes_per_s = 3 * RATE;
  double better_s = simulate(&it).step_s;
  assert_true(better_s < alike_s / 2.5 && better_s > alike_s / 3.2);
  it.settings.served.bytes_per_s = 1000 * RATE; /* then a worker's own link is the limit */
  simulate_result result = simulate(&it);
  assert_true(are_near(result.wire_s, TENSORS * COUNT * 4 / RATE, 0.01));
  assert_true(result.step_s > result.wire_s && result.step_s < 1.1 * result.wire_s);
}

/* Sums of earlier buckets pass while later gradients are computed. */
static void sums_hide_behind_a_long_backward_pass(void **state) {
  (void)state;
  given it = begin("algo=servers servers=0,7");
  double alone_s = simulate(&it).step_s;
  it.compute_s = 20 * alone_s;
  simulate_result result = simulate(&it);
  assert_true(result.step_s > it.compute_s && result.step_s < it.compute_s + 0.5 * alone_s);
  assert_true(result.hidden > 0.5 && result.hidden < 1);
}

/* Of one chunk alone nothing comes back while the rest is sent. */
static void a_chunk_comes_back_when_all_have_sent_it(void **state) {
  (void)state;
  given it = begin("algo=servers servers=7");
  it.parameters = it.tensor = LCOMM_SHARD_CHUNK;
  double one_way_s = LCOMM_SHARD_CHUNK * 4 * (RANKS - 1) / RATE;
  assert_true(are_near(simulate(&it).step_s, 2 * one_way_s, 0.01));
}

/* Where all ranks share one processor. */
static void servers_compute_no_gradients(void **state) {
  (void)state;
  given it = begin("algo=servers servers=6,7");
  it.compute_s = 10;
  it.settings.processors = 1;
  it.settings.one_machine = true;
  assert_true(are_near(simulate(&it).step_s, (RANKS - 2) * it.compute_s, 0.02));
}

/* Of two nodes of four: one with both servers, whose own two workers send inside it. */
static void inside_a_node_nothing_crosses_the_card(void **state) {
  (void)state;
  given it = begin("net=int8 algo=servers servers=0,1");
  it.nodes = 2;
  it.ranks = 4;
  simulate_result result = simulate(&it);
  assert_true(are_near(result.card_bytes, TENSORS * COUNT * INT8 * 4, 0.02));
}

static void several_steps_go_on_after_each_other(void **state) {
  (void)state;
  given it = begin("net=int8 algo=servers servers=6,7");
  double one_s = simulate(&it).step_s;
  it.settings.steps = 5;
  assert_true(are_near(simulate(&it).step_s, one_s, 0.1));
}

static void what_cannot_be_simulated_says_why(void **state) {
  (void)state;
  posed of;
  given it = begin("algo=servers servers=8");
  assert_false(make_posed(&it, SIMULATE_SYMMETRY_AUTO, &of));
  assert_non_null(strstr(of.why, "servers=8 names a rank that is not there"));
  free_posed(&of);
  it = begin("algo=servers servers=0");
  assert_false(make_posed(&it, SIMULATE_SYMMETRY_ON, &of));
  assert_non_null(strstr(of.why, "cannot stand for each other"));
  free_posed(&of);
}

/* Which go by plans, as in the library. */
static void plain_calls_have_no_servers(void **state) {
  (void)state;
  posed of;
  given it = begin("algo=servers servers=0");
  assert_true(make_posed(&it, SIMULATE_SYMMETRY_AUTO, &of));
  assert_true(of.world.roles.servers == 1 && !of.world.symmetric);
  simulate_world_free(&of.world);
  simulate_world_request request = request_of(&of, SIMULATE_SYMMETRY_AUTO);
  request.calls = true;
  assert_true(simulate_world_make(&request, &of.world, of.why));
  assert_true(of.world.roles.servers == 0 && of.world.symmetric);
  free_posed(&of);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_are_those_of_all_workers_by_servers),
    cmocka_unit_test(a_server_with_a_larger_share_has_more_bytes),
    cmocka_unit_test(servers_are_slower_by_their_links_and_faster_with_better_ones),
    cmocka_unit_test(sums_hide_behind_a_long_backward_pass),
    cmocka_unit_test(a_chunk_comes_back_when_all_have_sent_it),
    cmocka_unit_test(servers_compute_no_gradients),
    cmocka_unit_test(inside_a_node_nothing_crosses_the_card),
    cmocka_unit_test(several_steps_go_on_after_each_other),
    cmocka_unit_test(what_cannot_be_simulated_says_why),
    cmocka_unit_test(plain_calls_have_no_servers),
};
RUN_TESTS(tests)
