/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The rules of match=: read, written, and which calls they fit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/policy_match.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

/* The rule of "match=TEXT", which is the only one. */
static lcomm_match_rule rule_of(const char *text) {
  char word[LCOMM_POLICY_MAX];
  snprintf(word, sizeof word, "match=%s", text);
  lcomm_policy policy = parse(word);
  assert_int_equal(policy.rule_count, 1);
  return policy.rules[0];
}

/* ------------------------------------------------------------------- reading */

static void every_term_sets_its_field(void **state) {
  (void)state;
  lcomm_match_rule rule =
      rule_of("size>=64K&count<=7&ranks=8&dtype=int64&op=max&call=reduce-scatter&comm=MPI_*?");
  assert_true(rule.size_bytes.least == 65536 && rule.size_bytes.most == UINT64_MAX);
  assert_true(rule.count.least == 0 && rule.count.most == 7);
  assert_true(rule.ranks.least == 8 && rule.ranks.most == 8);
  assert_int_equal(rule.dtypes, 1 << LCOMM_INT64);
  assert_int_equal(rule.ops, 1 << LCOMM_MAX);
  assert_int_equal(rule.calls, 1 << LCOMM_CALL_REDUCE_SCATTER);
  assert_string_equal(rule.comm, "MPI_*?");
}

static void a_rule_is_of_sums_of_floats_unless_it_says_more(void **state) {
  (void)state;
  lcomm_match_rule rule = rule_of("size>=0");
  assert_int_equal(rule.dtypes, 1 << LCOMM_FLOAT32 | 1 << LCOMM_FLOAT16 | 1 << LCOMM_BFLOAT16);
  assert_int_equal(rule.ops, 1 << LCOMM_SUM | 1 << LCOMM_AVG);
  assert_int_equal(rule.calls, 1 << LCOMM_CALL_ALLREDUCE | 1 << LCOMM_CALL_REDUCE_SCATTER);
  assert_true(rule.size_bytes.least == 0 && rule.size_bytes.most == UINT64_MAX);
  assert_true(rule.count.least == 0 && rule.count.most == UINT64_MAX);
  assert_true(rule.ranks.least == 0 && rule.ranks.most == UINT64_MAX);
  assert_string_equal(rule.comm, "");
}

static void all_names_of_types_operations_and_calls_are_known(void **state) {
  (void)state;
  static const char *const dtypes[] = {"float32", "float16", "bfloat16", "float64",
                                       "int32",   "int64",   "int8",     "uint8"};
  static const char *const ops[] = {"sum", "avg", "min", "max"};
  static const char *const calls[] = {"allreduce", "reduce-scatter", "allgather", "broadcast"};
  char text[64];
  for (int i = 0; i < 8; i++) {
    snprintf(text, sizeof text, "dtype=%s", dtypes[i]);
    assert_int_equal(rule_of(text).dtypes, 1 << i);
    assert_string_equal(lcomm_dtype_name((lcomm_dtype)i), dtypes[i]);
  }
  for (int i = 0; i < 4; i++) {
    snprintf(text, sizeof text, "op=%s", ops[i]);
    assert_int_equal(rule_of(text).ops, 1 << i);
    snprintf(text, sizeof text, "call=%s", calls[i]);
    assert_int_equal(rule_of(text).calls, 1 << i);
    assert_string_equal(lcomm_call_name((lcomm_call_kind)i), calls[i]);
  }
  assert_string_equal(lcomm_call_name(LCOMM_CALL_KINDS), "unknown call");
  assert_string_equal(lcomm_call_name((lcomm_call_kind)-1), "unknown call");
}

static void a_rule_has_one_canonical_text(void **state) {
  (void)state;
  static const char *const forms[][2] = {
      {"comm=a*&call=broadcast&dtype=int32&ranks<=8&ranks>=2&count>=5&size<=3M",
       "size<=3M&count>=5&ranks>=2&ranks<=8&dtype=int32&call=broadcast&comm=a*"},
      {"op=min&size>=1048576", "size>=1M&op=min"},
      {"size>=1024&size<=0001K", "size=1K"},
      {"size=1025", "size=1025"},
      {"count>=1024", "count>=1024"},
      {"ranks=0", "ranks=0"},
      {"size>=0&dtype=float32", "dtype=float32"},
      {"count<=18446744073709551615&op=sum", "op=sum"},
      {"count=18446744073709551615", "count=18446744073709551615"},
      {"ranks>=0&count>=0&size>=00K", "size>=0"},
      {"comm=*", "comm=*"},
      {"comm=a>=b<c=d", "comm=a>=b<c=d"},
      {"size>=1M,dtype=float64,size>=1M", "size>=1M,dtype=float64,size>=1M"},
  };
  char text[256], canonical[256];
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    snprintf(text, sizeof text, "match=%s", forms[i][0]);
    snprintf(canonical, sizeof canonical, "match=%s", forms[i][1]);
    expect_canonical(text, canonical);
    expect_canonical(canonical, canonical);
  }
}

static void malformed_rules_are_refused(void **state) {
  (void)state;
  expect_refusal("match=", 7,
                 "unknown term '' of a rule; expected size, count, ranks, dtype, op, "
                 "call or comm; for example match=size>=1M&op=sum");
  expect_refusal("match=op=sum,", 14, "unknown term ''");
  expect_refusal("match=,op=sum", 7, "unknown term ''");
  expect_refusal("match=op=sum&", 14, "unknown term ''");
  expect_refusal("match=op=sum&&size=1", 14, "unknown term ''");
  expect_refusal("match=name=x", 7, "unknown term 'name'");
  expect_refusal("match=Size=1", 7, "unknown term 'Size'");
  expect_refusal("match=>=1", 7, "unknown term ''");
  const char compare[] = "does not compare; expected its name, then =, >= or <=, and a value";
  expect_refusal("match=size", 7, compare);
  expect_refusal("match=size>5", 7, compare);
  expect_refusal("match=size<", 7, compare);
  expect_refusal("match=size<>=5", 7, compare);
  expect_refusal("match=comm", 7, compare);
  const char order[] = "asks for an order that names do not have; expected = and a name";
  expect_refusal("match=dtype>=float32", 7, order);
  expect_refusal("match=size>=1,op<=sum", 15, order);
  expect_refusal("match=comm>=a", 7, order);
}

static void malformed_values_are_refused(void **state) {
  (void)state;
  expect_refusal("match=size>=", 13, "'' is no size");
  expect_refusal("match=size=1k", 12, "'1k' is no size");
  expect_refusal("match=size==1", 12, "'=1' is no size");
  expect_refusal("match=size<=17179869184G", 13, "does not fit into 64 bits");
  expect_refusal("match=count>=1K", 14, "'1K' is no number; expected digits, below 2^64");
  expect_refusal("match=ranks=18446744073709551616", 13, "is no number");
  expect_refusal("match=ranks=", 13, "'' is no number");
  expect_refusal("match=dtype=fp32", 13,
                 "'fp32' is not known here; expected float32, float16, bfloat16, float64, int32, "
                 "int64, int8 or uint8; for example match=dtype=float32");
  expect_refusal("match=op=mean", 10, "expected sum, avg, min or max; for example match=op=avg");
  expect_refusal("match=op=", 10, "'' is not known here");
  expect_refusal("match=call=alltoall", 12,
                 "expected allreduce, reduce-scatter, allgather or broadcast");
  expect_refusal("match=comm=", 12, "empty pattern; expected comm=GLOB");
  expect_refusal("match=comm=a\x7f", 13, "control character");
}

static void contradictions_are_refused(void **state) {
  (void)state;
  const char second[] = "says a second time what its rule has said";
  expect_refusal("match=size>=1&size>=1", 15, second);
  expect_refusal("match=size>=1&size=1", 15, second);
  expect_refusal("match=count=1&count<=1", 15, second);
  expect_refusal("match=op=sum&op=avg", 14, second);
  expect_refusal("match=comm=a&comm=b", 14, second);
  expect_refusal("match=op=max,size>=5&size<=4", 14,
                 "no number is within both bounds of rule 'size>=5&size<=4'");
  expect_refusal("match=count<=1&count>=2", 7, "no number is within both bounds");
  expect_refusal("match=ranks<=1&ranks>=2", 7, "no number is within both bounds");
  const char moved[] = "asks for an operation of calls that only move data";
  expect_refusal("match=call=allgather&op=sum", 7, moved);
  expect_refusal("match=op=max&call=broadcast", 7, moved);
  parse("match=call=reduce-scatter&op=max,op=sum,op=sum");
}

static void there_are_at_most_16_rules(void **state) {
  (void)state;
  char text[LCOMM_POLICY_MAX] = "match=size=1";
  for (int i = 1; i < LCOMM_POLICY_RULES_MAX; i++) {
    strcat(text, ",size=1");
  }
  assert_int_equal(parse(text).rule_count, 16);
  strcat(text, ",size=1");
  expect_refusal(text, 7 + 16 * 7, "too many rules; expected at most 16");
}

static void names_of_communicators_have_at_most_127_bytes(void **state) {
  (void)state;
  char text[256] = "match=comm=";
  memset(text + 11, 'x', 127);
  assert_int_equal(strlen(parse(text).rules[0].comm), 127);
  text[11 + 127] = 'x';
  expect_refusal(text, 12, "has 128 bytes; expected at most 127");
}

/* -------------------------------------------------------------------- fitting */

static bool fits_named(const char *rules, const char *name, lcomm_match_call call) {
  char text[LCOMM_POLICY_MAX];
  snprintf(text, sizeof text, "match=%s", rules);
  lcomm_policy policy = parse(text);
  return lcomm_match_fits(&policy, lcomm_match_named(&policy, name), &call);
}

static bool fits(const char *rules, lcomm_match_call call) {
  return fits_named(rules, "", call);
}

static lcomm_match_call usual(void) {
  return (lcomm_match_call){.kind = LCOMM_CALL_ALLREDUCE,
                            .count = 1000,
                            .dtype = LCOMM_FLOAT32,
                            .op = LCOMM_SUM,
                            .ranks = 8};
}

static void bounds_belong_to_the_range(void **state) {
  (void)state;
  static const struct {
    const char *least, *most, *equal;
  } terms[] = {{"size>=%u", "size<=%u", "size=%u"},
               {"count>=%u", "count<=%u", "count=%u"},
               {"ranks>=%u", "ranks<=%u", "ranks=%u"}};
  const unsigned values[] = {4000, 1000, 8};
  char text[64];
  for (int i = 0; i < 3; i++) {
    for (int k = -1; k <= 1; k++) {
      unsigned bound = values[i] + (unsigned)k;
      snprintf(text, sizeof text, terms[i].least, bound);
      assert_int_equal(fits(text, usual()), k <= 0);
      snprintf(text, sizeof text, terms[i].most, bound);
      assert_int_equal(fits(text, usual()), k >= 0);
      snprintf(text, sizeof text, terms[i].equal, bound);
      assert_int_equal(fits(text, usual()), k == 0);
    }
  }
}

static void sizes_are_of_all_elements_in_their_type(void **state) {
  (void)state;
  lcomm_match_call call = usual();
  call.dtype = LCOMM_FLOAT16;
  assert_true(fits("size=2000", call));
  call.dtype = LCOMM_FLOAT64;
  assert_true(fits("size=8000&dtype=float64", call));
}

static void types_operations_and_calls_must_be_those_of_the_rule(void **state) {
  (void)state;
  static const char *const rules[] = {"count=1000", "count=1000&dtype=float64", "count=1000&op=avg",
                                      "count=1000&op=max", "count=1000&call=broadcast"};
  for (int kind = 0; kind < LCOMM_CALL_KINDS; kind++) {
    for (int type = LCOMM_FLOAT32; type <= LCOMM_INT64; type++) {
      for (int op = LCOMM_SUM; op <= LCOMM_MAX; op++) {
        lcomm_match_call call = {.kind = (lcomm_call_kind)kind,
                                 .count = 1000,
                                 .dtype = (lcomm_dtype)type,
                                 .op = (lcomm_op)op,
                                 .ranks = 8};
        bool sum = kind <= LCOMM_CALL_REDUCE_SCATTER, small = type <= LCOMM_BFLOAT16;
        assert_int_equal(fits(rules[0], call), sum && small && op <= LCOMM_AVG);
        assert_int_equal(fits(rules[1], call), sum && type == LCOMM_FLOAT64 && op <= LCOMM_AVG);
        assert_int_equal(fits(rules[2], call), sum && small && op == LCOMM_AVG);
        assert_int_equal(fits(rules[3], call), sum && small && op == LCOMM_MAX);
        assert_int_equal(fits(rules[4], call),
                         kind == LCOMM_CALL_BROADCAST && small && op <= LCOMM_AVG);
      }
    }
  }
}

static void all_terms_of_one_rule_must_hold(void **state) {
  (void)state;
  assert_true(fits("size>=1K&count<=1000&ranks=8", usual()));
  assert_false(fits("size>=1M&count<=1000&ranks=8", usual()));
  assert_false(fits("size>=1K&count<=999&ranks=8", usual()));
  assert_false(fits("size>=1K&count<=1000&ranks=9", usual()));
  assert_false(fits("size>=1M,count<=999,ranks=9", usual()));
  assert_true(fits("size>=1M,count<=999,ranks=8", usual()));
  assert_true(fits("ranks=8,size>=1M", usual()));
}

static void names_are_matched_rule_by_rule(void **state) {
  (void)state;
  const char rules[] = "comm=dp*&size>=4000,comm=*tp&count=5,dtype=int32";
  lcomm_policy policy = parse("match=comm=dp*&size>=4000,comm=*tp&count=5,dtype=int32");
  lcomm_match_call ints = usual(), few = usual();
  ints.dtype = LCOMM_INT32;
  few.count = 5;
  assert_int_equal(lcomm_match_named(&policy, ""), 4);
  assert_int_equal(lcomm_match_named(&policy, "dp"), 5);
  assert_int_equal(lcomm_match_named(&policy, "x.tp"), 6);
  assert_int_equal(lcomm_match_named(&policy, "dp+tp"), 7);
  assert_true(fits_named(rules, "dp 1", usual()) && !fits_named(rules, "dp 1", few));
  assert_true(fits_named(rules, "tp", few) && !fits_named(rules, "tp", usual()));
  assert_true(fits_named(rules, "", ints) && !fits_named(rules, "", usual()));
  assert_true(lcomm_match_uses_names(&policy));
  policy = parse("match=size>=1,dtype=int32");
  assert_false(lcomm_match_uses_names(&policy));
  policy = parse(NULL);
  assert_false(lcomm_match_uses_names(&policy));
  assert_int_equal(lcomm_match_named(&policy, "dp"), 0);
}

static void the_last_of_16_rules_counts_like_the_first(void **state) {
  (void)state;
  char text[LCOMM_POLICY_MAX] = "comm=a";
  for (int i = 1; i < LCOMM_POLICY_RULES_MAX - 1; i++) {
    strcat(text, ",comm=a");
  }
  strcat(text, ",comm=b&count=1000");
  assert_true(fits_named(text, "b", usual()));
  assert_true(fits_named(text, "a", usual()));
  assert_false(fits_named(text, "c", usual()));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_term_sets_its_field),
    cmocka_unit_test(a_rule_is_of_sums_of_floats_unless_it_says_more),
    cmocka_unit_test(all_names_of_types_operations_and_calls_are_known),
    cmocka_unit_test(a_rule_has_one_canonical_text),
    cmocka_unit_test(malformed_rules_are_refused),
    cmocka_unit_test(malformed_values_are_refused),
    cmocka_unit_test(contradictions_are_refused),
    cmocka_unit_test(there_are_at_most_16_rules),
    cmocka_unit_test(names_of_communicators_have_at_most_127_bytes),
    cmocka_unit_test(bounds_belong_to_the_range),
    cmocka_unit_test(sizes_are_of_all_elements_in_their_type),
    cmocka_unit_test(types_operations_and_calls_must_be_those_of_the_rule),
    cmocka_unit_test(all_terms_of_one_rule_must_hold),
    cmocka_unit_test(names_are_matched_rule_by_rule),
    cmocka_unit_test(the_last_of_16_rules_counts_like_the_first),
};
RUN_TESTS(tests)
