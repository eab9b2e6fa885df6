/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plans where racks are known: which sums go by racks, with which codecs, and what they send. */

#include <stdlib.h>

#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

#define TABLES "libcomm/sched/ALGORITHMS.md"

enum { COUNT = 1 << 18 };

/* Racks of so many nodes, 0 behind the last one, each node of `each` ranks. */
static lcomm_topo machine(const int *rack_sizes, int each) {
  lcomm_why why;
  lcomm_topo topo;
  int nodes = 0, rank = 0;
  for (int rack = 0; rack_sizes[rack] > 0; rack++) {
    nodes += rack_sizes[rack];
  }
  lcomm_identity *identities = calloc((size_t)(nodes * each), sizeof *identities);
  assert_non_null(identities);
  for (int rack = 0; rack_sizes[rack] > 0; rack++) {
    for (int i = 0; i < rack_sizes[rack] * each; i++) {
      snprintf(identities[rank++].rack, LCOMM_RACK_MAX, "r%d", rack);
    }
  }
  assert_int_equal(lcomm_topo_create(identities, rank, nodes, &topo, &why), LCOMM_OK);
  free(identities);
  return topo;
}

static lcomm_topo two_racks(void) {
  return machine((const int[]){2, 2, 0}, 2);
}

static void expect_codecs(const char *policy, bool by_racks, lcomm_codec_id rack,
                          lcomm_codec_id net) {
  lcomm_topo topo = two_racks();
  lcomm_plan *plan = allreduce_plan_over(&topo, policy, 3, COUNT, true);
  assert_true(plan->shape.by_racks == by_racks);
  assert_int_equal(plan->stages[LCOMM_STAGE_RACK].format.codec->id, rack);
  assert_int_equal(plan->stages[LCOMM_STAGE_NET].format.codec->id, net);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static void sums_go_by_racks_with_a_codec_for_each_class(void **state) {
  (void)state;
  expect_codecs("", true, LCOMM_CODEC_NONE, LCOMM_CODEC_NONE);
  expect_codecs("net=int8", true, LCOMM_CODEC_NONE, LCOMM_CODEC_INT8);
  expect_codecs("net=int8 rack=bf16", true, LCOMM_CODEC_BF16, LCOMM_CODEC_INT8);
  expect_codecs("net=int4+ef rack=int8", true, LCOMM_CODEC_INT8, LCOMM_CODEC_INT4);
}

static void what_is_exact_between_racks_is_exact_inside(void **state) {
  (void)state;
  expect_codecs("rack=bf16", true, LCOMM_CODEC_NONE, LCOMM_CODEC_NONE);
  expect_codecs("net=int8 rack=bf16 min=2M", true, LCOMM_CODEC_NONE, LCOMM_CODEC_NONE);
}

static void expect_two_levels(const lcomm_topo *topo, const char *policy, const char *reason) {
  lcomm_plan *plan = allreduce_plan_over(topo, policy, 0, COUNT, true);
  assert_false(plan->shape.by_racks);
  if (!strstr(plan->reason, reason)) {
    fail_msg("%s: %s", policy, plan->reason);
  }
  lcomm_plan_destroy(plan);
}

static void where_racks_do_not_count_the_plan_says_so(void **state) {
  (void)state;
  lcomm_topo racks = two_racks(), single = machine((const int[]){3, 1, 0}, 2);
  lcomm_topo uneven = machine((const int[]){2, 5, 0}, 2), fits = machine((const int[]){2, 4, 0}, 2);
  expect_two_levels(&racks, "net=topk:0.01+ef", "racks do not count for top-k");
  expect_two_levels(&racks, "net=auto:int8", "racks do not count for net=auto");
  expect_two_levels(&single, "net=int8", "as one of them has a single node");
  expect_two_levels(&uneven, "net=int8", "more than twice the nodes of another");
  lcomm_plan *plan = allreduce_plan_over(&fits, "net=int8", 11, COUNT, false);
  assert_true(plan->shape.by_racks);
  lcomm_plan_destroy(plan);
  lcomm_topo *all[] = {&racks, &single, &uneven, &fits};
  for (int i = 0; i < 4; i++) {
    lcomm_topo_free(all[i]);
  }
}

/* Short sums, and collectives other than all-reduce, go as without racks. */
static void other_calls_go_as_without_racks(void **state) {
  (void)state;
  lcomm_topo with = two_racks(), without = machine((const int[]){4, 0}, 2);
  lcomm_policy policy;
  lcomm_why why;
  assert_int_equal(lcomm_policy_parse("net=int8 rack=bf16", &policy, &why), LCOMM_OK);
  for (int kind = 0; kind < LCOMM_COLLECTIVE_COUNT; kind++) {
    lcomm_plan_request request = request_of((lcomm_collective)kind, 500, LCOMM_FLOAT32, LCOMM_SUM);
    const uint64_t parts[] = {100, 0, 50, 50, 100, 100, 50, 50};
    request.part_counts = lcomm_collective_has_parts(request.collective) ? parts : NULL;
    lcomm_plan *one = NULL, *other = NULL;
    assert_int_equal(lcomm_plan_create(&request, &policy, &with, 5, &one, &why), LCOMM_OK);
    assert_int_equal(lcomm_plan_create(&request, &policy, &without, 5, &other, &why), LCOMM_OK);
    assert_false(one->shape.by_racks);
    assert_int_equal(one->schedule.step_count, other->schedule.step_count);
    assert_int_equal(one->shape.exchange, other->shape.exchange);
    assert_string_equal(one->reason, other->reason);
    lcomm_plan_destroy(one);
    lcomm_plan_destroy(other);
  }
  lcomm_topo_free(&with);
  lcomm_topo_free(&without);
}

static void ranks_that_know_other_racks_have_other_plans(void **state) {
  (void)state;
  lcomm_topo a = machine((const int[]){2, 4, 0}, 2), b = machine((const int[]){4, 2, 0}, 2);
  lcomm_plan *one = allreduce_plan_over(&a, "net=int8", 0, COUNT, false);
  lcomm_plan *other = allreduce_plan_over(&b, "net=int8", 0, COUNT, false);
  assert_true(one->hash != other->hash);
  lcomm_plan_destroy(one);
  lcomm_plan_destroy(other);
  lcomm_topo_free(&a);
  lcomm_topo_free(&b);
}

/* K racks of M nodes of 2 ranks: a rank owns a piece of COUNT / 2 / M elements. */
static void expect_traffic(int K, int M, const char *policy, lcomm_codec_spec rack,
                           lcomm_codec_spec net) {
  int sizes[9] = {0};
  for (int i = 0; i < K; i++) {
    sizes[i] = M;
  }
  lcomm_topo topo = machine(sizes, 2);
  uint64_t piece = COUNT / 2 / (uint64_t)M, part = K == 2 ? piece : piece / (uint64_t)K;
  uint64_t peers = (uint64_t)(K - 1), mates = (uint64_t)(M - 1);
  uint64_t across = lcomm_payload_size(&net.format, part);
  uint64_t in_rack = mates * (lcomm_payload_size(&rack.format, piece) + (uint64_t)K * across);
  lcomm_plan *plan = allreduce_plan_over(&topo, policy, 1, COUNT, false);
  lcomm_plan_traffic traffic;
  lcomm_plan_count(plan, &topo, &traffic);
  assert_true(plan->shape.by_racks);
  assert_int_equal(plan->shape.chunks, 1);
  assert_int_equal(traffic.rack_bytes, in_rack);
  assert_int_equal(traffic.bytes[LCOMM_LINK_NET] - in_rack, (K == 2 ? 1 : 2) * peers * across);
  assert_int_equal(traffic.rack_messages, mates * (1 + (uint64_t)K));
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static void bytes_of_each_class_equal_the_formula(void **state) {
  (void)state;
  static const char *const codecs[] = {"none", "bf16", "int8", "fp8e4m3"};
  for (int rack = 0; rack < 4; rack++) {
    for (int net = 1; net < 4; net++) {
      char policy[64];
      lcomm_codec_spec in, out;
      lcomm_why why;
      snprintf(policy, sizeof policy, "net=%s rack=%s", codecs[net], codecs[rack]);
      assert_int_equal(lcomm_format_parse(codecs[rack], &in, &why), LCOMM_OK);
      assert_int_equal(lcomm_format_parse(codecs[net], &out, &why), LCOMM_OK);
      expect_traffic(2, 2, policy, in, out);
      expect_traffic(2, 4, policy, in, out);
      expect_traffic(4, 2, policy, in, out);
    }
  }
}

static void a_plan_says_what_it_does_in_racks(void **state) {
  (void)state;
  char text[2048];
  lcomm_topo topo = two_racks();
  lcomm_plan *plan = allreduce_plan_over(&topo, "net=int8 rack=bf16", 0, COUNT, false);
  lcomm_plan_describe(plan, &topo, text, sizeof text);
  const char *const parts[] = {
      "  algorithm   racks(gather): 2 racks, 4 nodes, 2 pieces of 2 shards, 1 chunk\n",
      "  inside rack bf16\n", "  in the rack 3 messages, at most ",
      "; inside each rack first, then between racks"};
  for (int i = 0; i < 4; i++) {
    if (!strstr(text, parts[i])) {
      fail_msg("%s lacks %s", text, parts[i]);
    }
  }
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static void the_table_of_traffic_has_what_stays_in_racks(void **state) {
  (void)state;
  char text[4096], row[64];
  lcomm_why why;
  lcomm_policy policy;
  lcomm_topo topo = two_racks();
  lcomm_plan_request request =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  assert_int_equal(lcomm_policy_parse("net=bf16 rack=bf16", &policy, &why), LCOMM_OK);
  assert_int_equal(lcomm_plan_traffic_print(&request, &policy, &topo, text, sizeof text, &why),
                   LCOMM_OK);
  assert_non_null(strstr(text, " of it in racks\n"));
  /* a piece to the other rack; one inside the rack, and two that tell it the result */
  snprintf(row, sizeof row, " %16d %16d\n", 8 * 4 * (COUNT / 4 * 2), 8 * 3 * (COUNT / 4 * 2));
  assert_non_null(strstr(text, row));
  lcomm_topo_free(&topo);
}

/* What a rank does in one sum, as the row of the table has it. */
typedef struct load {
  unsigned long long chunks, messages, in_rack, between, bytes, steps, slot_bytes;
} load;

static load load_of(int racks, int nodes, int rank, const char *policy) {
  int sizes[128] = {0};
  for (int i = 0; i < racks; i++) {
    sizes[i] = nodes;
  }
  lcomm_topo topo = machine(sizes, 8);
  lcomm_plan *plan = allreduce_plan_over(&topo, policy, rank, 25000000, false);
  lcomm_plan_traffic traffic;
  lcomm_plan_count(plan, &topo, &traffic);
  load it = {.chunks = plan->shape.chunks,
             .messages = traffic.messages[LCOMM_LINK_SHM] + traffic.messages[LCOMM_LINK_NET],
             .in_rack = traffic.rack_messages,
             .between = traffic.messages[LCOMM_LINK_NET] - traffic.rack_messages,
             .bytes = traffic.bytes[LCOMM_LINK_NET] - traffic.rack_bytes,
             .steps = plan->schedule.step_count};
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    it.slot_bytes += plan->slot_sizes[i].memory;
  }
  it.bytes = (it.bytes + it.between / 2) / it.between;
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  return it;
}

/* "| `int8`, 8 x 16 x 8 | 1 | ...": false for other lines. */
static bool read_row(const char *line, char policy[32], int *racks, int *nodes, load *it) {
  char codec[16];
  double megabytes = 0;
  if (sscanf(line, "| `%15[a-z0-9]`, %d x %d x 8 | %llu | %llu | %llu | %llu | %llu | %llu | %lf |",
             codec, racks, nodes, &it->chunks, &it->messages, &it->in_rack, &it->between,
             &it->bytes, &it->steps, &megabytes) != 10) {
    return false;
  }
  it->slot_bytes = (unsigned long long)(megabytes * 1e6);
  snprintf(policy, 32, "net=%s", codec);
  return true;
}

static void the_table_of_large_machines_with_racks_is_true(void **state) {
  (void)state;
  char line[1024], policy[32];
  int rows = 0, racks = 0, nodes = 0;
  FILE *file = fopen(TABLES, "r");
  assert_non_null(file);
  while (fgets(line, sizeof(line), file)) {
    load told = {0};
    if (!read_row(line, policy, &racks, &nodes, &told)) {
      continue;
    }
    rows++;
    load it = load_of(racks, nodes, 0, policy);
    if (it.chunks != told.chunks || it.messages != told.messages || it.in_rack != told.in_rack ||
        it.between != told.between || it.bytes != told.bytes || it.steps != told.steps ||
        it.slot_bytes > told.slot_bytes + 60000 || it.slot_bytes + 60000 < told.slot_bytes) {
      fail_msg("%s, %d x %d x 8: %llu | %llu | %llu | %llu | %llu | %llu | %.1f", policy, racks,
               nodes, it.chunks, it.messages, it.in_rack, it.between, it.bytes, it.steps,
               (double)it.slot_bytes / 1e6);
    }
  }
  fclose(file);
  assert_int_equal(rows, 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_go_by_racks_with_a_codec_for_each_class),
    cmocka_unit_test(what_is_exact_between_racks_is_exact_inside),
    cmocka_unit_test(where_racks_do_not_count_the_plan_says_so),
    cmocka_unit_test(other_calls_go_as_without_racks),
    cmocka_unit_test(ranks_that_know_other_racks_have_other_plans),
    cmocka_unit_test(bytes_of_each_class_equal_the_formula),
    cmocka_unit_test(the_table_of_traffic_has_what_stays_in_racks),
    cmocka_unit_test(a_plan_says_what_it_does_in_racks),
    cmocka_unit_test(the_table_of_large_machines_with_racks_is_true),
};
RUN_TESTS(tests)
