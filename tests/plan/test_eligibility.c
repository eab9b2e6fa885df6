/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What is said of a call before it is made is what its plan does then. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/policy_match.h"
#include "tests/plan/plans.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static const lcomm_collective collectives[LCOMM_CALL_KINDS] = {
    LCOMM_COLLECTIVE_ALLREDUCE, LCOMM_COLLECTIVE_REDUCE_SCATTER, LCOMM_COLLECTIVE_ALLGATHER,
    LCOMM_COLLECTIVE_BROADCAST};

static const struct {
  int ranks, nodes;
} places[] = {{1, 1}, {2, 1}, {4, 1}, {2, 2}, {4, 2}, {5, 3}, {4, 4}};

enum { PLACES = sizeof places / sizeof *places };

static lcomm_topo topo_of(int ranks, int nodes) {
  static const lcomm_identity identities[PLANS_RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &error), LCOMM_OK);
  return topo;
}

static lcomm_selection choose(const char *text, int ranks, int nodes,
                              const lcomm_plan_request *request, const char **why) {
  lcomm_policy policy = parse(text);
  lcomm_topo topo = topo_of(ranks, nodes);
  uint64_t named = lcomm_match_named(&policy, request->name ? request->name : "");
  lcomm_selection choice = lcomm_eligibility_select(request, &policy, &topo, named, why);
  lcomm_topo_free(&topo);
  return choice;
}

static bool is_lossy(const char *text, int ranks, int nodes, lcomm_plan_request request) {
  lcomm_plan *plan = make_plan(text, ranks, nodes, 0, request);
  bool lossy = plan->lossy;
  lcomm_plan_destroy(plan);
  return lossy;
}

/* Does the codec between nodes say +ef? */
static bool feeds_back(const char *text, int ranks, lcomm_plan_request request) {
  lcomm_policy policy = parse(text);
  uint64_t named = lcomm_match_named(&policy, request.name ? request.name : "");
  return lcomm_eligibility_begin(&request, &policy, ranks, named).net.error_feedback;
}

/* ------------------------------------------------------------ chosen as planned */

static const char *const policies[] = {
    "net=none min=1K",
    "net=none+zstd min=1K",
    "net=int8 min=1K",
    "net=bf16+zstd node=bf16 min=0",
    "net=fp16 min=1K",
    "net=int8+ef min=1K",
    "net=topk:0.01+ef min=1K",
    "net=topk:0.01 min=1K",
    "net=topk:0.01+ef node=int8 min=1K",
    "net=none node=fp8e4m3 min=1K",
    "net=int8 node=bf16 min=1K",
    "net=int8 min=1K match=count>=5000&op=sum,call=broadcast",
    "net=int8+ef min=1K match=ranks>=4&dtype=float32,op=max,dtype=int64",
    "net=bf16+ef node=bf16 min=1K match=comm=gr*d,op=avg&call=reduce-scatter",
    "net[count<=5000]=none net[op=avg]=bf16 net[dtype=float16]=int8+ef net=topk:0.01+ef min=1K",
    "net[call=reduce-scatter]=int8 net[comm=gr*d]=int8+ef min=1K",
};

static void check(const char *text, int place, lcomm_plan_request request) {
  const char *why = NULL;
  int ranks = places[place].ranks, nodes = places[place].nodes;
  lcomm_selection choice = choose(text, ranks, nodes, &request, &why);
  lcomm_plan_request error_feedback = request;
  error_feedback.error_feedback = true;
  bool plain = is_lossy(text, ranks, nodes, request);
  bool right = ranks == 1 ? choice == LCOMM_SELECT_NONE : plain == (choice == LCOMM_SELECT_LOSSY);
  if (choice == LCOMM_SELECT_EF || choice == LCOMM_SELECT_EXACT) {
    bool is_sum = request.collective == LCOMM_COLLECTIVE_ALLREDUCE ||
                  (request.collective == LCOMM_COLLECTIVE_REDUCE_SCATTER &&
                   feeds_back(text, ranks, error_feedback));
    bool residual = is_sum && request.dtype == LCOMM_FLOAT32;
    bool kept = residual && is_lossy(text, ranks, nodes, error_feedback);
    right &= kept == (choice == LCOMM_SELECT_EF);
  }
  right &= (why[0] != '\0') == (choice == LCOMM_SELECT_NONE || choice == LCOMM_SELECT_EXACT);
  if (!right) {
    fail_msg("'%s', %d ranks, %d nodes, %s of %llu %s, operation %d: choice %d, plan %s (%s)", text,
             ranks, nodes, lcomm_collective_name(request.collective),
             (unsigned long long)request.count, lcomm_dtype_name(request.dtype), request.op, choice,
             plain ? "lossy" : "exact", why);
  }
}

static void a_call_is_called_lossy_exactly_when_its_plan_is(void **state) {
  (void)state;
  static const uint64_t counts[] = {0, 100, 4999, 20000};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    for (int place = 0; place < PLACES; place++) {
      for (int kind = 0; kind < LCOMM_CALL_KINDS; kind++) {
        for (int n = 0; n < 4 * 6 * 4; n++) { /* the counts, types and operations */
          lcomm_plan_request request = request_of(collectives[kind], counts[n % 4],
                                                  (lcomm_dtype)(n / 4 % 6), (lcomm_op)(n / 24));
          request.name = n % 2 ? "grid" : NULL;
          check(policies[i], place, request);
        }
      }
    }
  }
}

/* ------------------------------------------------------------- what is chosen */

typedef struct example {
  const char *policy;
  int ranks, nodes;
  lcomm_call_kind kind;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  lcomm_selection choice;
  const char *why;
} example;

static void check_examples(const example *examples, size_t count) {
  for (const example *it = examples; it < examples + count; it++) {
    const char *why = NULL;
    lcomm_plan_request request = request_of(collectives[it->kind], it->count, it->dtype, it->op);
    lcomm_selection choice = choose(it->policy, it->ranks, it->nodes, &request, &why);
    if (choice != it->choice || strcmp(why, it->why) != 0) {
      fail_msg("example %td, '%s': %d '%s'", it - examples, it->policy, choice, why);
    }
  }
}

#define REDUCE LCOMM_CALL_ALLREDUCE
#define SCATTER LCOMM_CALL_REDUCE_SCATTER
#define LEFT LCOMM_SELECT_NONE
#define EXACT LCOMM_SELECT_EXACT
#define LOSSY LCOMM_SELECT_LOSSY
#define LASTING LCOMM_SELECT_EF
#define F32 LCOMM_FLOAT32
#define SUM LCOMM_SUM

static const char one_node[] = "its ranks are on one node, where the policy asks for no codec";
static const char small[] = "smaller than the policy's min";
static const char no_rule[] = "no rule of the policy's match fits";
static const char only_sums[] = "only sums are compressed";
static const char only_floats[] = "only float32 and the 16-bit types are compressed";
static const char no_codec[] = "the policy asks for no codec";
static const char as_they_are[] = "the policy's codec carries such elements as they are";

static void what_no_policy_compresses_is_left(void **state) {
  (void)state;
  static const example examples[] = {
      {"net=int8", 1, 1, REDUCE, 1 << 20, F32, SUM, LEFT, "a rank alone sends nothing"},
      {"net=int8 node=int8", 1, 1, REDUCE, 1 << 20, F32, SUM, LEFT, "a rank alone sends nothing"},
      {"net=int8", 4, 1, REDUCE, 1 << 20, F32, SUM, LEFT, one_node},
      {"net=int8 node=none+zstd", 4, 1, REDUCE, 1 << 20, F32, SUM, LEFT, one_node},
      {"net=int8", 4, 2, REDUCE, 16383, F32, SUM, LEFT, small},
      {"net=int8", 4, 2, REDUCE, 0, F32, SUM, LEFT, small},
      {"net=int8", 4, 2, LCOMM_CALL_BROADCAST, 1 << 20, F32, SUM, LEFT, only_sums},
      {"net=int8", 4, 2, LCOMM_CALL_ALLGATHER, 1 << 20, F32, SUM, LEFT, only_sums},
      {"net=int8", 4, 2, REDUCE, 1 << 20, F32, LCOMM_MAX, LEFT,
       "minima and maxima are never compressed"},
      {"net=int8", 4, 2, REDUCE, 1 << 20, LCOMM_FLOAT64, SUM, LEFT, only_floats},
      {"net=int8", 4, 2, SCATTER, 1 << 20, LCOMM_INT32, SUM, LEFT, only_floats},
      {"net=int8 min=0", 4, 2, REDUCE, UINT64_MAX / 2, F32, SUM, LEFT,
       "more elements than fit into memory"},
      {"net=int8 min=0", 4, 2, REDUCE, UINT64_C(1) << 62, F32, SUM, LEFT,
       "more elements than fit into memory"},
  };
  check_examples(examples, sizeof examples / sizeof *examples);
}

static void rules_choose_and_leave(void **state) {
  (void)state;
  static const example examples[] = {
      {"net=int8 match=size>=1M", 4, 2, REDUCE, 1 << 18, F32, SUM, LOSSY, ""},
      {"net=int8 match=size>=1M", 4, 2, REDUCE, (1 << 18) - 1, F32, SUM, LEFT, no_rule},
      {"net=int8 match=size>=1M", 4, 2, LCOMM_CALL_BROADCAST, 1 << 20, F32, SUM, LEFT, no_rule},
      {"net=int8 match=size>=0", 4, 2, REDUCE, 100, F32, SUM, LEFT, small},
      {"net=int8 match=size>=0", 4, 1, REDUCE, 1 << 20, F32, SUM, LEFT, one_node},
      {"net=int8 match=call=broadcast", 4, 2, LCOMM_CALL_BROADCAST, 1 << 20, F32, SUM, EXACT,
       only_sums},
      {"net=int8 match=call=broadcast", 4, 2, REDUCE, 1 << 20, F32, SUM, LEFT, no_rule},
      {"net=int8 match=dtype=float64", 4, 2, REDUCE, 1 << 20, LCOMM_FLOAT64, SUM, EXACT,
       only_floats},
      {"net=int8 match=op=min", 4, 2, REDUCE, 1 << 20, F32, LCOMM_MIN, EXACT,
       "minima and maxima are never compressed"},
      {"net=int8 match=op=avg", 4, 2, REDUCE, 1 << 20, F32, SUM, LEFT, no_rule},
      {"net=int8 match=op=avg", 4, 2, REDUCE, 1 << 20, F32, LCOMM_AVG, LOSSY, ""},
      {"net=int8 match=ranks>=5", 4, 2, REDUCE, 1 << 20, F32, SUM, LEFT, no_rule},
      {"net=int8 match=ranks>=5", 5, 3, REDUCE, 1 << 20, F32, SUM, LOSSY, ""},
      {"net=int8 match=comm=x", 4, 2, REDUCE, 1 << 20, F32, SUM, LEFT, no_rule},
      {"net=int8 match=comm=*", 4, 2, REDUCE, 1 << 20, F32, SUM, LOSSY, ""},
  };
  check_examples(examples, sizeof examples / sizeof *examples);
}

static void what_is_chosen_may_be_exact(void **state) {
  (void)state;
  static const example examples[] = {
      {"", 4, 2, REDUCE, 1 << 20, F32, SUM, EXACT, no_codec},
      {"net=none+zstd", 4, 2, REDUCE, 1 << 20, F32, SUM, EXACT, as_they_are},
      {"net=bf16", 4, 2, REDUCE, 1 << 20, LCOMM_BFLOAT16, SUM, EXACT, as_they_are},
      {"net=bf16", 4, 2, REDUCE, 1 << 20, LCOMM_FLOAT16, SUM, LOSSY, ""},
      {"net=bf16 node=int8", 4, 2, REDUCE, 1 << 20, LCOMM_BFLOAT16, SUM, LOSSY, ""},
      {"net=none node=int8", 4, 1, REDUCE, 1 << 20, F32, SUM, LOSSY, ""},
      {"net=int8 node=bf16", 4, 1, REDUCE, 1 << 20, LCOMM_BFLOAT16, SUM, EXACT, as_they_are},
      {"net=topk:0.1", 4, 2, SCATTER, 1 << 20, F32, SUM, EXACT,
       "top-k applies to reduce-scatters with a residual only"},
      {"net=topk:0.1", 4, 2, REDUCE, UINT32_MAX, F32, SUM, EXACT, "top-k positions are 32-bit"},
      {"net=topk:0.1+ef", 4, 2, REDUCE, UINT32_MAX, F32, SUM, EXACT, "top-k positions are 32-bit"},
      {"net=int8+ef", 4, 1, REDUCE, 1 << 20, F32, SUM, LEFT, one_node},
  };
  check_examples(examples, sizeof examples / sizeof *examples);
}

static void residuals_are_for_sums_of_float32(void **state) {
  (void)state;
  static const char feedback[] = "error feedback of plain calls is for sums of float32 only";
  static const example examples[] = {
      {"net=int8+ef", 4, 2, REDUCE, 1 << 20, F32, SUM, LASTING, ""},
      {"net=int4", 4, 2, REDUCE, 1 << 20, F32, LCOMM_AVG, LASTING, ""},
      {"net=topk:k=5+ef", 4, 2, REDUCE, 1 << 20, F32, SUM, LASTING, ""},
      {"net=int8+ef match=size>=1M", 4, 2, REDUCE, 1 << 18, F32, SUM, LASTING, ""},
      {"net=int8+ef match=size>=1M", 4, 2, REDUCE, 1 << 17, F32, SUM, LEFT, no_rule},
      {"net=int8+ef", 4, 2, REDUCE, 1 << 20, LCOMM_BFLOAT16, SUM, EXACT, feedback},
      {"net=int8+ef", 4, 2, SCATTER, 1 << 20, F32, SUM, LASTING, ""},
      {"net=topk:0.1+ef", 4, 2, SCATTER, 1 << 20, F32, SUM, LASTING, ""},
      {"net=topk:0.1+ef", 4, 2, SCATTER, 1 << 20, LCOMM_BFLOAT16, SUM, EXACT, feedback},
      {"net=int8+ef node=bf16", 4, 2, REDUCE, 1 << 20, F32, SUM, LOSSY, ""},
      {"net=int8+ef node=bf16", 4, 2, REDUCE, 1 << 20, LCOMM_BFLOAT16, SUM, EXACT, feedback},
  };
  check_examples(examples, sizeof examples / sizeof *examples);
}

/* ------------------------------------------------------------------- plans */

static lcomm_plan_request sum_of(uint64_t count) {
  return request_of(LCOMM_COLLECTIVE_ALLREDUCE, count, LCOMM_FLOAT32, LCOMM_SUM);
}

static void a_plan_says_that_no_rule_fits(void **state) {
  (void)state;
  lcomm_plan *plan = make_plan("net=int8 match=size>=1M", 4, 2, 0, sum_of(1 << 17));
  assert_false(plan->lossy);
  assert_non_null(strstr(plan->reason, no_rule));
  lcomm_plan_destroy(plan);
  plan = make_plan("net=int8 match=size>=1M", 4, 2, 0, sum_of(1 << 18));
  assert_true(plan->lossy);
  lcomm_plan_destroy(plan);
}

static void the_name_of_the_communicator_makes_the_plan(void **state) {
  (void)state;
  lcomm_plan_request request = sum_of(1 << 20);
  assert_false(is_lossy("net=int8 match=comm=grad*", 4, 2, request));
  request.name = "gradients";
  assert_true(is_lossy("net=int8 match=comm=grad*", 4, 2, request));
  request.name = "logits";
  assert_false(is_lossy("net=int8 match=comm=grad*", 4, 2, request));
}

static void tensors_are_compressed_whatever_the_rules_say(void **state) {
  (void)state;
  lcomm_plan_request request = sum_of(1 << 20);
  const char policy[] = "net=int8+ef match=size>=1G,comm=x";
  assert_false(is_lossy(policy, 4, 2, request));
  request.error_feedback = true;
  assert_true(is_lossy(policy, 4, 2, request));
}

/* A plan is kept for the next call; it must not be taken for an operation of which a
 * rule says something else. */
static void rules_may_part_sums_from_averages(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    bool shared;
  } cases[] = {{"net=int8", true},
               {"net=int8 match=op=sum", false},
               {"net=int8 match=op=avg", false},
               {"net=int8 match=op=avg,op=sum", true},
               {"net=int8 match=op=avg&size>=1G", true},
               {"net=int8 match=dtype=float32", true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lcomm_plan_request sum = sum_of(1 << 20), average = sum, most = sum;
    average.op = LCOMM_AVG;
    most.op = LCOMM_MAX;
    lcomm_plan *plans[] = {make_plan(cases[i].policy, 4, 2, 0, sum),
                           make_plan(cases[i].policy, 4, 2, 0, average)};
    assert_true(lcomm_plan_fits(plans[0], &sum) && lcomm_plan_fits(plans[1], &average));
    assert_int_equal(lcomm_plan_fits(plans[0], &average), cases[i].shared);
    assert_int_equal(lcomm_plan_fits(plans[1], &sum), cases[i].shared);
    assert_false(lcomm_plan_fits(plans[0], &most) || lcomm_plan_fits(plans[1], &most));
    assert_int_equal(plans[0]->hash == plans[1]->hash, cases[i].shared);
    lcomm_plan_destroy(plans[0]);
    lcomm_plan_destroy(plans[1]);
  }
}

static void a_tensors_plan_is_for_sums_and_averages(void **state) {
  (void)state;
  lcomm_plan_request sum = sum_of(1 << 20), average;
  sum.error_feedback = true;
  average = sum;
  average.op = LCOMM_AVG;
  lcomm_plan *plan = make_plan("net=int8+ef match=op=avg", 4, 2, 0, sum);
  assert_true(lcomm_plan_fits(plan, &sum) && lcomm_plan_fits(plan, &average));
  lcomm_plan_destroy(plan);
}

static void data_that_is_moved_is_never_lossy(void **state) {
  (void)state;
  for (int kind = LCOMM_CALL_ALLGATHER; kind < LCOMM_CALL_KINDS; kind++) {
    for (int type = LCOMM_FLOAT32; type <= LCOMM_INT64; type++) {
      lcomm_plan_request request =
          request_of(collectives[kind], 1 << 16, (lcomm_dtype)type, LCOMM_SUM);
      assert_false(is_lossy("net=int8 node=int8 min=0", 4, 2, request));
    }
  }
}

static void bytes_between_nodes_are_those_of_their_links(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(5, 3);
  for (int rank = 0; rank < 5; rank++) {
    lcomm_plan *plan = make_plan("net=int8", 5, 3, rank, sum_of(1 << 20));
    lcomm_plan_traffic traffic;
    lcomm_plan_count(plan, &topo, &traffic);
    assert_int_equal(lcomm_plan_bytes_between_nodes(plan, &topo), traffic.bytes[LCOMM_LINK_NET]);
    assert_true(rank == 4 || traffic.bytes[LCOMM_LINK_SHM] > 0);
    lcomm_plan_destroy(plan);
  }
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_is_called_lossy_exactly_when_its_plan_is),
    cmocka_unit_test(what_no_policy_compresses_is_left),
    cmocka_unit_test(rules_choose_and_leave),
    cmocka_unit_test(what_is_chosen_may_be_exact),
    cmocka_unit_test(residuals_are_for_sums_of_float32),
    cmocka_unit_test(a_plan_says_that_no_rule_fits),
    cmocka_unit_test(the_name_of_the_communicator_makes_the_plan),
    cmocka_unit_test(tensors_are_compressed_whatever_the_rules_say),
    cmocka_unit_test(rules_may_part_sums_from_averages),
    cmocka_unit_test(a_tensors_plan_is_for_sums_and_averages),
    cmocka_unit_test(data_that_is_moved_is_never_lossy),
    cmocka_unit_test(bytes_between_nodes_are_those_of_their_links),
};
RUN_TESTS(tests)
