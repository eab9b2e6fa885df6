/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Patterns, net[PATTERN,...]=CODEC: read, written, and which codec tensors and calls get. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/eligibility.h"
#include "tests/plan/plans.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

/* ------------------------------------------------------------------- reading */

static void patterns_have_one_canonical_text(void **state) {
  (void)state;
  static const char *const forms[][2] = {
      {"net=topk:0.01+ef net[*.bias,*norm*]=bf16 net[embed*]=int8",
       "net[*.bias,*norm*]=bf16 net[embed*]=int8 net=topk:0.01+ef"},
      {"net[a]=bf16 net[b]=bf16 net[c]=int8 net[d]=bf16", "net[a,b]=bf16 net[c]=int8 net[d]=bf16"},
      {"net[size<=65536]=bf16", "net[size<=64K]=bf16"},
      {"net[size>=1M&embed*&ranks>=4]=int4", "net[embed*&size>=1M&ranks>=4]=int4+ef"},
      {"net[name=w*]=none", "net[w*]=none"},
      {"net[name=a<=b]=none", "net[name=a<=b]=none"},
      {"net[size>=0]=fp16", "net[size>=0]=fp16"},
      {"net[*]=fp16", "net[*]=fp16"},
      {"net[size]=fp16", "net[size]=fp16"},
      {"net[['embed']['w']]=int8:block=32", "net[['embed']['w']]=int8:block=32"},
      {"net[comm=dp*&call=reduce-scatter]=bf16+zstd",
       "net[call=reduce-scatter&comm=dp*]=bf16+zstd"},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    expect_canonical(forms[i][0], forms[i][1]);
    expect_canonical(forms[i][1], forms[i][1]);
  }
}

static void malformed_patterns_are_refused(void **state) {
  (void)state;
  expect_refusal("net[]=bf16", 5, "empty pattern");
  expect_refusal("net[a,]=bf16", 7, "empty pattern");
  expect_refusal("net[a&]=bf16", 7, "empty pattern");
  expect_refusal("net[a]", 1, "have no end; expected net[PATTERN,...]=CODEC");
  expect_refusal("net[a=bf16", 1, "have no end");
  expect_refusal("net[", 1, "have no end");
  expect_refusal("net[a b]=bf16", 1, "have no end");
  expect_refusal("net[a]=", 8, "unknown codec ''");
  expect_refusal("net[a]=later", 8, "unknown codec 'later'");
  expect_refusal("net[size<64K]=bf16", 5, "does not compare; expected its name, then =, >= or <=");
  expect_refusal("net[bytes<=64K]=bf16", 5, "unknown term 'bytes' of a pattern; expected a name");
  expect_refusal("net[a&b]=bf16", 7, "says a second time");
  expect_refusal("net[a&name=b]=bf16", 7, "says a second time");
  expect_refusal("net[size>=2&size<=1]=bf16", 5, "no number is within both bounds");
  expect_refusal("node[a]=bf16", 1, "unknown key 'node[a]'");
  expect_refusal("net=int8 match=name=x", 16, "unknown term 'name' of a rule");
  assert_non_null(strstr(refusal("net[a]=later"), "for example net[*.bias,size<=64K]=bf16"));
}

static void there_are_at_most_32_patterns(void **state) {
  (void)state;
  char text[LCOMM_POLICY_MAX] = "net[a";
  for (int i = 1; i < LCOMM_POLICY_PATTERNS_MAX; i++) {
    strcat(text, ",a");
  }
  size_t end = strlen(text);
  strcat(text, "]=bf16");
  assert_int_equal(parse(text).pattern_count, LCOMM_POLICY_PATTERNS_MAX);
  strcpy(text + end, ",a]=bf16");
  expect_refusal(text, (int)end + 2, "too many patterns; expected at most 32");
}

static void words_look_at_the_codecs_of_patterns(void **state) {
  (void)state;
  parse("net[w*]=topk:0.01+ef momentum=0.9 clip=1 ramp=0.1@5");
  parse("net[w*]=bf16 net=topk:0.01+ef momentum=0.9");
  expect_refusal("net[w*]=bf16 momentum=0.9", 14, "expected net=topk:DENSITY+ef");
  expect_refusal("net[w*]=int8+ef net=topk:0.01+ef momentum=0.9", 34, "is dense with +ef");
  expect_refusal("net[w*]=bf16 clip=1", 14, "expected a codec of net with +ef");
  expect_refusal("net[w*]=bf16 ramp=0.1@5", 14, "expected net=topk:DENSITY");
  expect_refusal("net[w*]=bf16 algo=ring", 14, "cannot carry the lossy codec");
  expect_refusal("net[w*]=none+zstd algo=halving", 19, "cannot carry net=none+zstd");
}

/* ------------------------------------------------------------------- tensors */

/* The codec of a float32 tensor of `bytes`; "exact" where none acts. */
static const char *codec_of(const char *text, const char *name, uint64_t bytes) {
  static char codec[64];
  lcomm_policy policy = parse(text);
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = bytes / 4,
                           .dtype = LCOMM_FLOAT32,
                           .op = LCOMM_AVG,
                           .ranks = 4,
                           .name = name};
  lcomm_named_data data = lcomm_eligibility_of_name(&policy, lcomm_match_named(&policy, ""), &call);
  return data.exact ? "exact" : lcomm_codec_spec_format(&data.net, codec, sizeof codec);
}

static void the_first_pattern_that_fits_counts(void **state) {
  (void)state;
  const char two[] = "net[*.bias,*norm*]=bf16 net[embed*]=int8 net=topk:0.01+ef";
  assert_string_equal(codec_of(two, "embed.bias", 1 << 20), "bf16");
  assert_string_equal(codec_of(two, "embed.weight", 1 << 20), "int8");
  assert_string_equal(codec_of(two, "dense.weight", 1 << 20), "topk:0.01+ef");
  const char turned[] = "net=topk:0.01+ef net[embed*]=int8 net[*.bias,*norm*]=bf16";
  assert_string_equal(codec_of(turned, "embed.bias", 1 << 20), "int8");
  assert_string_equal(codec_of(turned, "dense.bias", 1 << 20), "bf16");
  assert_string_equal(codec_of("net[*]=fp16 net=int8", "any", 1 << 20), "fp16");
}

static void names_and_sizes_must_both_hold(void **state) {
  (void)state;
  const char both[] = "net[embed*&size>=1M]=int8 net[size<=64K]=bf16 net=int4-ef";
  assert_string_equal(codec_of(both, "embed", 1 << 20), "int8");
  assert_string_equal(codec_of(both, "embed", (1 << 20) - 4), "int4-ef");
  assert_string_equal(codec_of(both, "dense", 1 << 20), "int4-ef");
  assert_string_equal(codec_of(both, "dense", 64 << 10), "bf16");
  assert_string_equal(codec_of(both, "dense", (64 << 10) + 4), "int4-ef");
}

static void patterns_come_before_min_and_exempt_before_patterns(void **state) {
  (void)state;
  const char policy[] = "net[*.bias]=bf16 net=int8 exempt=head.*";
  assert_string_equal(codec_of(policy, "conv.bias", 4), "bf16");
  assert_string_equal(codec_of(policy, "conv.weight", 4), "exact");
  assert_string_equal(codec_of(policy, "head.bias", 1 << 20), "exact");
  assert_string_equal(codec_of("net[w]=none net=int8", "w", 1 << 20), "exact");
  assert_string_equal(codec_of("net[w]=none net=int8 node=bf16", "w", 1 << 20), "none");
}

/* --------------------------------------------------------------------- calls */

static const char *codec_of_call(const char *text, const char *comm, lcomm_plan_request request) {
  static char codec[64];
  request.name = comm;
  lcomm_plan *plan = make_plan(text, 4, 4, 0, request);
  lcomm_codec_spec_format(&plan->stages[LCOMM_STAGE_NET], codec, sizeof codec);
  bool by_pattern = strstr(plan->reason, "a pattern of the policy's net[...]") != NULL;
  lcomm_plan_destroy(plan);
  return by_pattern ? codec : strcmp(codec, "none") == 0 ? "exact" : "net";
}

static void calls_have_the_codec_of_the_pattern_that_fits(void **state) {
  (void)state;
  lcomm_plan_request large =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, 1 << 20, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_plan_request medium = large, small = large, average = large, half = large;
  medium.count = 50000;
  small.count = 1000;
  average.op = LCOMM_AVG;
  half.dtype = LCOMM_FLOAT16;
  const char sizes[] = "net[size<=1M]=bf16 net=int8";
  assert_string_equal(codec_of_call(sizes, "", medium), "bf16");
  assert_string_equal(codec_of_call(sizes, "", large), "net");
  assert_string_equal(codec_of_call(sizes, "", small), "exact"); /* below min= */
  assert_string_equal(codec_of_call("net[op=avg]=bf16", "", average), "bf16");
  assert_string_equal(codec_of_call("net[op=avg]=bf16", "", large), "exact");
  assert_string_equal(codec_of_call("net[dtype=float16]=int8", "", half), "int8");
  assert_string_equal(codec_of_call("net[comm=dp*]=bf16", "dp.0", large), "bf16");
  assert_string_equal(codec_of_call("net[comm=dp*]=bf16", "tp.0", large), "exact");
  assert_string_equal(codec_of_call("net[*]=bf16", "", large), "bf16");
  assert_string_equal(codec_of_call("net[*.weight]=bf16", "", large), "exact");
  assert_string_equal(codec_of_call("net[size>=1]=bf16 match=op=avg", "", large), "exact");
  assert_string_equal(codec_of_call("net[size>=1]=bf16 match=op=avg", "", average), "bf16");
}

static lcomm_plan *plan_of(const char *policy, lcomm_op op) {
  return make_plan(policy, 4, 4, 0,
                   request_of(LCOMM_COLLECTIVE_ALLREDUCE, 1 << 20, LCOMM_FLOAT32, op));
}

/* One plan serves sums and averages where the policy says the same of both. */
static void plans_tell_sums_and_averages_apart_where_patterns_do(void **state) {
  (void)state;
  lcomm_plan_request request =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, 1 << 20, LCOMM_FLOAT32, LCOMM_AVG);
  lcomm_plan *apart = plan_of("net[op=avg]=bf16 net=int8", LCOMM_SUM);
  lcomm_plan *alike = plan_of("net[size>=1]=bf16 net=int8", LCOMM_SUM);
  assert_false(lcomm_plan_fits(apart, &request));
  assert_true(lcomm_plan_fits(alike, &request));
  lcomm_plan_destroy(apart);
  lcomm_plan_destroy(alike);
}

/* Of equal bytes: ranks that differ in a pattern alone must find out. */
static void the_hash_of_a_plan_knows_the_patterns(void **state) {
  (void)state;
  lcomm_plan *one = plan_of("net[a]=bf16 net=int8", LCOMM_SUM);
  lcomm_plan *other = plan_of("net[b]=bf16 net=int8", LCOMM_SUM);
  assert_true(one->hash != other->hash);
  lcomm_plan_destroy(one);
  lcomm_plan_destroy(other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(patterns_have_one_canonical_text),
    cmocka_unit_test(malformed_patterns_are_refused),
    cmocka_unit_test(there_are_at_most_32_patterns),
    cmocka_unit_test(words_look_at_the_codecs_of_patterns),
    cmocka_unit_test(the_first_pattern_that_fits_counts),
    cmocka_unit_test(names_and_sizes_must_both_hold),
    cmocka_unit_test(patterns_come_before_min_and_exempt_before_patterns),
    cmocka_unit_test(calls_have_the_codec_of_the_pattern_that_fits),
    cmocka_unit_test(plans_tell_sums_and_averages_apart_where_patterns_do),
    cmocka_unit_test(the_hash_of_a_plan_knows_the_patterns),
};
RUN_TESTS(tests)
