/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Worlds that are simulated: bytes and times by formula, one node for all, the same every time. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "tests/support/unit_tests.h"
#include "tests/tools/posed_world.h"
#include "tools/simulation/simulate_engine.h"
#include "tools/simulation/simulate_links.h"

/* What is simulated, and how. */
typedef struct given {
  int nodes, ranks;
  const char *policy;
  uint64_t parameters, tensor;
  double compute_s;
  simulate_symmetry symmetry;
  bool free_codecs; /* computations take no time */
  simulate_settings settings;
} given;

static given begin(int nodes, int ranks, const char *policy) {
  given it = {.nodes = nodes,
              .ranks = ranks,
              .policy = policy,
              .parameters = 2000000,
              .tensor = 700000,
              .free_codecs = true,
              .settings = {.cards = 1, .steps = 1}};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    it.settings.links[i] = (simulate_link){.latency = 1000, .bytes_per_s = 1e12};
  }
  it.settings.links[LCOMM_LINK_NET] = (simulate_link){.latency = 10000000, .bytes_per_s = 1e9};
  return it;
}

typedef struct found {
  bool symmetric;
  simulate_result result;
  double payload_bytes, messages; /* between nodes, of node 0, as the library's plans count them */
} found;

static void count_plans(const simulate_world_request *request, const simulate_world *world,
                        found *it) {
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    const simulate_bucket *bucket = &world->buckets[i];
    for (int rank = 0; rank < request->topo->node_size[0]; rank++) {
      lcomm_plan_request plan_request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                         .count = bucket->count,
                                         .dtype = request->dtype,
                                         .error_feedback = true,
                                         .exact = bucket->exact,
                                         .net = bucket->net,
                                         .segment_ends = bucket->segment_ends,
                                         .segments = bucket->segments};
      lcomm_plan *plan = NULL;
      lcomm_plan_traffic traffic;
      lcomm_why why;
      assert_int_equal(
          lcomm_plan_create(&plan_request, request->policy, request->topo, rank, &plan, &why),
          LCOMM_OK);
      lcomm_plan_count(plan, request->topo, &traffic);
      it->payload_bytes += (double)traffic.bytes[LCOMM_LINK_NET];
      it->messages += (double)traffic.messages[LCOMM_LINK_NET];
      lcomm_plan_destroy(plan);
    }
  }
}

static found simulate(const given *it) {
  found made = {0};
  lcomm_why error;
  posed of = {.why = ""};
  if (!it->free_codecs) {
    of.speeds = simulate_speeds_built_in(SIMULATE_IN_MEMORY);
  }
  assert_int_equal(lcomm_policy_parse(it->policy, &of.policy, &error), LCOMM_OK);
  assert_int_equal(simulate_world_pose(it->nodes, it->ranks, &of.topo, of.why), LCOMM_OK);
  assert_true(simulate_workload_formula(it->parameters, it->tensor, it->compute_s, &of.workload));
  bool good =
      make_world(&of, it->symmetry) &&
      simulate_engine_run(&of.world, &of.workload, &it->settings, NULL, &made.result, of.why);
  if (!good) {
    print_error("%d x %d, %s: %s\n", it->nodes, it->ranks, it->policy, of.why);
  }
  assert_true(good);
  made.symmetric = of.world.symmetric;
  simulate_world_request request = request_of(&of, it->symmetry);
  count_plans(&request, &of.world, &made);
  free_posed(&of);
  return made;
}

static bool are_near(double a, double b, double share) {
  return fabs(a - b) <= share * fmax(fabs(a), fabs(b)) + 1e-12;
}

/* ------------------------------------------------------------------ bytes */

static void bytes_are_those_of_the_plans(void **state) {
  (void)state;
  static const char *const policies[] = {"", "net=int8", "net=bf16 bucket=4M",
                                         "net=none algo=ring"};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    for (int nodes = 2; nodes <= 4; nodes++) {
      given it = begin(nodes, 2, policies[i]);
      found made = simulate(&it);
      double expected = made.payload_bytes + made.messages * LCOMM_WIRE_HEADER_SIZE;
      assert_true(are_near(made.result.node_bytes, expected, 1e-3));
      assert_true(are_near(made.result.card_messages, made.messages, 1e-9));
    }
  }
}

static void bytes_follow_the_wire_limit(void **state) {
  (void)state;
  for (int nodes = 2; nodes <= 16; nodes *= 2) {
    given it = begin(nodes, 4, "net=int8");
    it.parameters = 8000000;
    it.tensor = 8000000;
    double limit = 2.0 * (nodes - 1) / nodes * 8e6 * 8.25 / 8;
    limit = nodes == 2 ? 8e6 * 8.25 / 8 : limit;
    double bytes = simulate(&it).result.node_bytes;
    assert_true(are_near(bytes, limit, 0.01));
  }
}

/* ------------------------------------------------------------------ times */

static void a_long_sum_takes_the_time_of_the_wire(void **state) {
  (void)state;
  static const char *const policies[] = {"", "net=int8"};
  for (size_t i = 0; i < 2; i++) {
    given it = begin(4, 1, policies[i]);
    it.parameters = it.tensor = 25000000;
    simulate_result result = simulate(&it).result;
    assert_true(result.step_s >= result.wire_s);
    assert_true(result.step_s <= 1.05 * result.wire_s);
  }
}

static void two_nodes_take_a_latency_and_the_time_of_the_wire(void **state) {
  (void)state;
  given it = begin(2, 1, "net=int8");
  it.parameters = it.tensor = 100000; /* one chunk, one exchange of everything */
  simulate_result result = simulate(&it).result;
  assert_true(are_near(result.step_s, 10e-6 + result.wire_s, 1e-6));
}

static void a_slower_link_or_codec_is_never_faster(void **state) {
  (void)state;
  double before = 0;
  for (double rate = 1e11; rate >= 1e7; rate /= 10) {
    given it = begin(4, 2, "net=int8");
    it.free_codecs = false;
    it.settings.links[LCOMM_LINK_NET].bytes_per_s = rate;
    double step_s = simulate(&it).result.step_s;
    assert_true(step_s >= before * 0.999);
    before = step_s;
  }
  given it = begin(4, 2, "net=int8");
  double without_s = simulate(&it).result.step_s;
  it.free_codecs = false;
  assert_true(simulate(&it).result.step_s > without_s);
}

static void communication_hides_behind_a_long_backward_pass(void **state) {
  (void)state;
  given it = begin(4, 2, "net=int8");
  it.parameters = 20000000;
  it.tensor = 1000000;
  it.free_codecs = false;
  double alone_s = simulate(&it).result.step_s;
  it.compute_s = 20 * alone_s;
  it.settings.links[LCOMM_LINK_NET].latency = 0;
  simulate_result result = simulate(&it).result;
  assert_true(are_near(result.compute_s, it.compute_s, 1e-6));
  assert_true(result.step_s >= result.compute_s);
  assert_true(result.step_s < result.compute_s + alone_s);
  assert_true(result.hidden > 0.5 && result.hidden <= 1);
  it.compute_s = 0;
  assert_true(simulate(&it).result.hidden == 0);
}

/* Two tensors at once. The message of the first one comes while its receiver encodes the second, or
 * asks, is answered after that, and comes then: two latencies and 31 us on the wire later. */
static void a_long_message_waits_for_a_receiver_that_computes(void **state) {
  (void)state;
  given it = begin(2, 1, "net=topk:0.01+ef bucket=4M");
  simulate_link *link = &it.settings.links[LCOMM_LINK_NET];
  it.parameters = 2000000;
  it.tensor = 1000000;
  it.free_codecs = false;
  double at_once_s = simulate(&it).result.step_s, latency_s = simulate_seconds(link->latency);
  link->rendezvous_size = 64 << 10; /* longer than all */
  assert_true(are_near(simulate(&it).result.step_s, at_once_s, 1e-9));
  link->rendezvous_size = 1 << 10;
  double late_s = simulate(&it).result.step_s - at_once_s;
  assert_true(late_s > 2 * latency_s + 0.9 * 31e-6 && late_s < 2 * latency_s + 1.1 * 31e-6);
  it.free_codecs = true; /* nobody computes: there and back is all */
  double free_s = simulate(&it).result.step_s;
  link->rendezvous_size = 0;
  assert_true(are_near(free_s, simulate(&it).result.step_s + 2 * latency_s, 1e-6));
}

static void processors_that_are_shared_are_slower(void **state) {
  (void)state;
  given it = begin(4, 2, "net=int8");
  it.free_codecs = false;
  it.compute_s = 0.01;
  double own_s = simulate(&it).result.step_s;
  it.settings.processors = 2;
  double two_s = simulate(&it).result.step_s;
  it.settings.one_machine = true;
  it.symmetry = SIMULATE_SYMMETRY_OFF;
  double shared_s = simulate(&it).result.step_s;
  assert_true(two_s >= own_s * 0.999);
  assert_true(shared_s > two_s);
  assert_true(shared_s >= 8 * 0.01 / 2); /* eight backward passes on two processors */
}

static void steps_that_follow_each_other_take_alike(void **state) {
  (void)state;
  given it = begin(4, 2, "net=int8");
  double one_s = simulate(&it).result.step_s;
  it.settings.steps = 5;
  simulate_result many = simulate(&it).result;
  assert_true(are_near(many.step_s, one_s, 0.02));
  assert_true(are_near(many.node_bytes, simulate(&it).result.node_bytes, 1e-12));
}

/* --------------------------------------------------------------- symmetry */

static void one_node_stands_for_all(void **state) {
  (void)state;
  static const char *const policies[] = {"",
                                         "net=int8",
                                         "net=topk:0.01+ef",
                                         "net=int8 algo=gather",
                                         "algo=halving",
                                         "net=bf16 node=bf16"};
  static const int worlds[][2] = {{2, 1}, {4, 1}, {4, 2}, {8, 2}, {5, 3}, {16, 1}};
  size_t symmetric = 0;
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++) {
      given it = begin(worlds[w][0], worlds[w][1], policies[i]);
      it.free_codecs = false;
      it.compute_s = 0.001;
      it.parameters = 4000000;
      bool asks = w % 2 == 0; /* long messages wait for computations, whose order may differ */
      it.settings.links[LCOMM_LINK_NET].rendezvous_size = asks ? 64 << 10 : 0;
      it.symmetry = SIMULATE_SYMMETRY_AUTO;
      found one = simulate(&it);
      it.symmetry = SIMULATE_SYMMETRY_OFF;
      found all = simulate(&it);
      assert_false(all.symmetric);
      assert_int_equal(all.result.simulated_ranks, worlds[w][0] * worlds[w][1]);
      if (one.symmetric) {
        symmetric++;
        bool near = are_near(one.result.step_s, all.result.step_s, asks ? 0.04 : 0.02) &&
                    are_near(one.result.node_bytes, all.result.node_bytes, 0.01) &&
                    are_near(one.result.card_messages, all.result.card_messages, 0.01);
        if (!near) {
          print_error("%d x %d, %s: %g s by one node, %g s by all\n", worlds[w][0], worlds[w][1],
                      policies[i], one.result.step_s, all.result.step_s);
        }
        assert_true(near);
      }
    }
  }
  assert_true(symmetric >= 30); /* of 36: halving of five nodes is not */
}

static void a_simulation_gives_the_same_every_time(void **state) {
  (void)state;
  given it = begin(8, 4, "net=topk:0.01+ef");
  it.free_codecs = false;
  it.compute_s = 0.002;
  it.settings.processors = 3;
  found first = simulate(&it), second = simulate(&it);
  assert_true(first.result.step_s == second.result.step_s);
  assert_true(first.result.hidden == second.result.hidden);
  assert_int_equal(first.result.events, second.result.events);
}

static void what_cannot_be_simulated_is_refused_with_a_sentence(void **state) {
  (void)state;
  lcomm_why error;
  posed it = {.speeds = simulate_speeds_built_in(SIMULATE_IN_MEMORY)};
  assert_int_equal(
      lcomm_topo_load("node 0 host a ranks 0 1\nnode 1 host b ranks 2\n", &it.topo, &error),
      LCOMM_OK);
  assert_int_equal(lcomm_policy_parse("", &it.policy, &error), LCOMM_OK);
  assert_true(simulate_workload_formula(1000, 1000, 0, &it.workload));
  assert_false(make_world(&it, SIMULATE_SYMMETRY_ON));
  assert_true(it.why[0] != '\0');
  assert_true(make_world(&it, SIMULATE_SYMMETRY_AUTO));
  assert_false(it.world.symmetric);
  free_posed(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_are_those_of_the_plans),
    cmocka_unit_test(bytes_follow_the_wire_limit),
    cmocka_unit_test(a_long_sum_takes_the_time_of_the_wire),
    cmocka_unit_test(two_nodes_take_a_latency_and_the_time_of_the_wire),
    cmocka_unit_test(a_slower_link_or_codec_is_never_faster),
    cmocka_unit_test(communication_hides_behind_a_long_backward_pass),
    cmocka_unit_test(a_long_message_waits_for_a_receiver_that_computes),
    cmocka_unit_test(processors_that_are_shared_are_slower),
    cmocka_unit_test(steps_that_follow_each_other_take_alike),
    cmocka_unit_test(one_node_stands_for_all),
    cmocka_unit_test(a_simulation_gives_the_same_every_time),
    cmocka_unit_test(what_cannot_be_simulated_is_refused_with_a_sentence),
};
RUN_TESTS(tests)
