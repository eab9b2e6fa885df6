/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void the_default_is_exact(void **state) {
  (void)state;
  const char *const texts[] = {NULL, "", " \t\r\n\v\f ", "net=none"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    lcomm_policy policy = parse(texts[i]);
    assert_ptr_equal(policy.net.format.codec, &lcomm_codec_none);
    assert_ptr_equal(policy.node.format.codec, &lcomm_codec_none);
    assert_false(policy.net.format.zstd || policy.node.format.zstd);
    assert_false(policy.net.error_feedback);
    assert_int_equal(policy.ramp.count, 0);
    assert_true(policy.momentum == 0);
    assert_true(policy.clip.norm == 0);
    assert_int_equal(policy.min_bytes, 65536);
    assert_int_equal(policy.bucket_bytes, 25 * 1048576);
    assert_int_equal(policy.warmup_steps, 0);
    assert_int_equal(policy.scope, LCOMM_SCOPE_TENSOR);
    assert_int_equal(policy.algorithm, LCOMM_ALGO_AUTO);
    assert_int_equal(policy.exempt_count, 0);
    assert_int_equal(policy.rule_count, 0);
    assert_int_equal(policy.step_calls, 0);
    assert_false(policy.checksum);
    expect_canonical(texts[i], "net=none");
  }
}

static void every_key_sets_its_field(void **state) {
  (void)state;
  lcomm_policy policy =
      parse("check=xxhash algo=gather bucket=4K\tscope=bucket warmup=12\nexempt=*.bias,?n*,x "
            "min=3M node=bf16+zstd ramp=0.75@3,.5@4 momentum=0.9 clip=1e3 net=topk:0.25+ef");
  assert_ptr_equal(policy.net.format.codec, &lcomm_codec_topk);
  assert_true(policy.net.format.density == 0.25);
  assert_true(policy.net.error_feedback);
  assert_ptr_equal(policy.node.format.codec, &lcomm_codec_bf16);
  assert_true(policy.node.format.density == 0);
  assert_true(policy.node.format.zstd);
  assert_int_equal(policy.min_bytes, 3 << 20);
  assert_int_equal(policy.warmup_steps, 12);
  assert_int_equal(policy.ramp.count, 2);
  assert_true(policy.ramp.stages[0].density == 0.75 && policy.ramp.stages[1].density == 0.5);
  assert_int_equal(policy.ramp.stages[0].steps, 3);
  assert_int_equal(policy.ramp.stages[1].steps, 4);
  assert_true(policy.momentum == 0.9);
  assert_true(policy.clip.norm == 1000);
  assert_int_equal(policy.bucket_bytes, 4096);
  assert_int_equal(policy.scope, LCOMM_SCOPE_BUCKET);
  assert_int_equal(policy.algorithm, LCOMM_ALGO_GATHER);
  assert_true(policy.checksum);
  assert_int_equal(policy.exempt_count, 3);
  assert_string_equal(policy.exempt[0], "*.bias");
  assert_string_equal(policy.exempt[1], "?n*");
  assert_string_equal(policy.exempt[2], "x");
  policy = parse("step=12 match=size>=1M,op=max");
  assert_int_equal(policy.step_calls, 12);
  assert_int_equal(policy.rule_count, 2);
}

static void guards_are_read(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=int8");
  assert_true(policy.guard.steps == 0);
  policy = parse("guard=7");
  assert_int_equal(policy.guard.steps, 7);
  assert_true(policy.guard.limit == 0.5 && policy.guard.residual == 100 && !policy.guard.report);
  policy = parse("guard=report");
  assert_true(policy.guard.steps == 100 && policy.guard.report);
  static const char *const refused[] = {
      "guard=0", "guard=-1", "guard=", "guard=1.5", "guard=limit=1", "guard=18446744073709551616"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    expect_refusal(refused[i], 7, "is no number of steps between two checks");
  }
  static const char *const limits[] = {
      "guard=1,limit=0",    "guard=1,limit=",       "guard=1,limit=-1",
      "guard=1,residual=x", "guard=1,residual=2e9", "guard=1,limit=1x"};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    expect_refusal(limits[i], 9, "names no limit");
  }
  expect_refusal("guard=1,", 9, "expected limit=ERROR, residual=NORMS or report");
  expect_refusal("guard=1,limits=1", 9, "unknown option 'limits=1'");
}

static void canonical_text_has_a_fixed_order_and_no_defaults(void **state) {
  (void)state;
  expect_canonical("check=xxhash algo=direct bucket=1G scope=bucket warmup=7 exempt=a,b min=1 "
                   "node=fp16 net=int8+ef",
                   "net=int8+ef node=fp16 min=1 exempt=a,b warmup=7 scope=bucket bucket=1G "
                   "algo=direct check=xxhash");
  expect_canonical("check=xxhash clip=2.50 momentum=.5 ramp=1e-1@007,.05@8 warmup=1 exempt=a "
                   "scope=bucket net=topk:k=9+zstd+ef",
                   "net=topk:k=9+ef+zstd exempt=a warmup=1 ramp=0.1@7,0.05@8 momentum=0.5 "
                   "clip=2.5 scope=bucket check=xxhash");
  expect_canonical("step=0012 match=op=max check=xxhash net=int8",
                   "net=int8 check=xxhash match=op=max step=12");
  expect_canonical("net=none node=none min=64K warmup=0 scope=tensor bucket=25M algo=auto "
                   "check=none",
                   "net=none");
  expect_canonical("min=65536 warmup=3", "warmup=3");
  expect_canonical("guard=050,residual=2e1,report,limit=.20 net=int8 step=3",
                   "net=int8 step=3 guard=50,limit=0.2,residual=20,report");
  expect_canonical("guard=100,limit=0.5,residual=100", "guard=100");
  expect_canonical("guard=report,limit=1", "guard=100,limit=1,report");
  expect_canonical("algo=ring", "algo=ring");
}

static void sizes_are_powers_of_1024(void **state) {
  (void)state;
  expect_canonical("min=0", "min=0");
  expect_canonical("min=00012", "min=12");
  expect_canonical("min=1023", "min=1023");
  expect_canonical("min=1024", "min=1K");
  expect_canonical("min=1025K", "min=1025K");
  expect_canonical("min=1024K", "min=1M");
  expect_canonical("min=1048576K", "min=1G");
  expect_canonical("min=18446744073709551615", "min=18446744073709551615");
  expect_canonical("min=17179869183G", "min=17179869183G");
  expect_canonical("bucket=4096", "bucket=4K");
}

static void sizes_that_do_not_fit_are_refused(void **state) {
  (void)state;
  expect_refusal("min=18446744073709551616", 5, "64 bits");
  expect_refusal("min=17179869184G", 5, "64 bits");
  expect_refusal("min=18014398509481984K", 5, "64 bits");
  expect_refusal("min=99999999999999999999999999999999", 5, "64 bits");
  expect_refusal("bucket=4095", 8, "at least 4K");
  expect_refusal("bucket=0", 8, "at least 4K");
  expect_refusal("warmup=18446744073709551616", 8, "2^64");
}

static void malformed_numbers_are_refused(void **state) {
  (void)state;
  const char *const values[] = {"", "K", "1k", "1KB", "-1", "+1", "1.5M", "0x10", "1 K", "1T"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "min=%s", values[i]);
    if (strcmp(values[i], "1 K") == 0) {
      expect_refusal(text, 7, "unknown key 'K'");
    } else {
      expect_refusal(text, 5, "is no size");
    }
  }
  expect_refusal("warmup=1K", 8, "is no number of steps");
  expect_refusal("warmup=", 8, "is no number of steps");
}

static void a_step_has_1_to_4096_calls(void **state) {
  (void)state;
  const char *const values[] = {"", "0", "4097", "-1", "1K", "1.5", "99999999999999999999"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "step=%s", values[i]);
    expect_refusal(text, 6, "is no number of calls of a step; expected digits, from 1 to 4096");
  }
  assert_int_equal(parse("step=1").step_calls, 1);
  assert_int_equal(parse("step=4096").step_calls, 4096);
  expect_canonical("step=4096", "step=4096");
}

static void feedback_and_topk_are_refused_inside_a_node(void **state) {
  (void)state;
  const char why[] = "its error feedback lives on the shard, after the exact reduction inside "
                     "the node";
  expect_refusal("node=topk:0.1", 6, why);
  expect_refusal("node=topk:0.1+ef", 6, why);
  expect_refusal("node=topk", 6, why);
  expect_refusal("node=fp16+ef", 6, why);
  expect_refusal("node=int4+ef+zstd", 6, why);
}

static void int4_has_feedback_on_net_only(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=int4 node=int4");
  assert_true(policy.net.error_feedback);
  assert_false(policy.node.error_feedback);
  expect_canonical("net=int4 node=int4", "net=int4+ef node=int4-ef");
  expect_canonical("net=int4-ef node=int4-ef", "net=int4-ef node=int4-ef");
  expect_canonical("node=int8-ef", "node=int8");
}

static void a_mistake_is_shown_the_example_of_its_key(void **state) {
  (void)state;
  assert_string_equal(
      refusal("min=1 node=zip"),
      "policy, column 12: unknown codec 'zip'; expected one of none, fp16, bf16, "
      "fp8e4m3, fp8e5m2, int8, topk:DENSITY, int4, sign, int2; for example node=bf16");
  expect_refusal("net=fp16:scale=2", 16, "for example net=fp16:scale=2^10");
  expect_refusal("node=fp8e5m2:stochastic=1", 24, "for example node=fp8e4m3:block=32,stochastic");
  expect_refusal("node=int8+lz4", 10, "for example node=int8+zstd");
  expect_refusal("node=fp16+ef", 6, "for example node=bf16");
  expect_refusal("net=topk", 9, "for example net=topk:0.01+ef");
  expect_refusal("foo=1 net=bf16", 1, "for example net=int8");
  expect_refusal("clip=x", 6, "for example clip=1 net=topk:0.01+ef");
  expect_refusal("step=x", 6, "for example step=12");
}

static void a_ring_with_a_lossy_codec_is_refused(void **state) {
  (void)state;
  expect_refusal("net=int8 algo=ring", 10, "quantise at every hop");
  expect_refusal("algo=ring net=topk:0.1+ef", 1, "quantise at every hop");
  expect_refusal("net=int8 algo=doubling", 10, "quantise at every hop");
  expect_refusal("net=bf16 algo=halving", 10, "quantise at every hop");
  expect_canonical("algo=doubling net=none", "algo=doubling");
  expect_refusal("net=int8+zstd algo=ring", 15, "quantise at every hop");
  expect_canonical("algo=ring net=none", "algo=ring");
  expect_canonical("algo=ring node=int8", "node=int8 algo=ring");
  expect_canonical("algo=direct net=int8", "net=int8 algo=direct");
}

static void a_ring_of_unknown_payload_sizes_is_refused(void **state) {
  (void)state;
  expect_refusal("net=none+zstd algo=ring", 15, "size of their payloads in advance");
  expect_refusal("net=none+zstd algo=halving", 15, "size of their payloads in advance");
  expect_canonical("net=none+zstd algo=direct", "net=none+zstd algo=direct");
}

static void stages_of_a_ramp_are_checked(void **state) {
  (void)state;
  const char share[] = "is no share of a stage; expected DENSITY@STEPS";
  const char steps[] = "is no number of steps of a stage; expected DENSITY@STEPS";
  const char *const bad_shares[] = {"", "@", "0@1", "1.1@1", "-1@1", "x@1", "0.1x@1", "k=1@1"};
  const char *const bad_steps[] = {"0.1",   "0.1@",   "0.1@0",  "0.1@-1",
                                   "0.1@x", "0.1@1K", "0.1@@1", "0.1@18446744073709551616"};
  char text[128];
  for (size_t i = 0; i < sizeof bad_shares / sizeof *bad_shares; i++) {
    snprintf(text, sizeof text, "net=topk:0.5 ramp=%s", bad_shares[i]);
    expect_refusal(text, 19, share);
    snprintf(text, sizeof text, "net=topk:0.5 ramp=0.7@9,%s", bad_shares[i]);
    expect_refusal(text, 25, share);
  }
  for (size_t i = 0; i < sizeof bad_steps / sizeof *bad_steps; i++) {
    snprintf(text, sizeof text, "net=topk:0.5 ramp=%s", bad_steps[i]);
    expect_refusal(text, i == 0 ? 22 : 23, steps);
  }
  expect_refusal("net=topk:0.5 ramp=0.7@9,", 25, share);
}

static void a_ramp_has_at_most_8_stages(void **state) {
  (void)state;
  expect_canonical("net=topk:0.1 ramp=.9@1,.8@2,.7@3,.6@4,.5@5,.4@6,.3@7,.2@8",
                   "net=topk:0.1 ramp=0.9@1,0.8@2,0.7@3,0.6@4,0.5@5,0.4@6,0.3@7,0.2@8");
  expect_refusal("net=topk:0.1 ramp=.9@1,.8@2,.7@3,.6@4,.5@5,.4@6,.3@7,.2@8,.1@9", 59,
                 "too many stages; expected at most 8");
}

static void steps_that_cannot_be_counted_are_refused(void **state) {
  (void)state;
  expect_canonical("net=topk:0.1 warmup=5 ramp=1@18446744073709551610",
                   "net=topk:0.1 warmup=5 ramp=1@18446744073709551610");
  expect_refusal("net=topk:0.1 warmup=6 ramp=1@18446744073709551610", 23,
                 "do not fit into 64 bits");
  expect_refusal("ramp=1@18446744073709551615,0.5@1 net=topk:0.1", 1, "do not fit into 64 bits");
}

static void a_ramp_needs_topk(void **state) {
  (void)state;
  const char why[] = "expected net=topk:DENSITY";
  expect_refusal("ramp=0.5@1", 1, why);
  expect_refusal("net=int4 ramp=0.5@1", 10, why);
  expect_canonical("ramp=0.5@1 net=topk:0.1", "net=topk:0.1 ramp=0.5@1");
  expect_canonical("net=topk:k=5+ef ramp=0.5@1", "net=topk:k=5+ef ramp=0.5@1");
}

static void momentum_is_between_0_and_1(void **state) {
  (void)state;
  const char *const values[] = {"",     "0", "1",   "1e1",   "-0.5",
                                "0.9x", "x", "0,9", "1e-30", "0.9999999999999999"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "net=topk:0.1+ef momentum=%s", values[i]);
    expect_refusal(text, 26, "is no momentum; expected a decimal number with 0 < M < 1");
  }
  expect_canonical("net=topk:0.1+ef momentum=9e-1", "net=topk:0.1+ef momentum=0.9");
}

static void momentum_needs_topk_with_feedback(void **state) {
  (void)state;
  const char why[] = "expected net=topk:DENSITY+ef";
  expect_refusal("momentum=0.9", 1, why);
  expect_refusal("momentum=0.9 net=topk:0.1", 1, why);
  expect_refusal("net=topk:0.1-ef momentum=0.9", 17, why);
  expect_refusal("net=int4+ef momentum=0.9", 13, why);
  expect_canonical("momentum=0.9 net=topk:k=1+ef", "net=topk:k=1+ef momentum=0.9");
}

static void norms_are_positive_and_at_most_1e9(void **state) {
  (void)state;
  const char *const values[] = {"", "0", "-1", "1000000000.00001", "1e10", "inf", "nan", "1x"};
  static const char *const forms[][2] = {{"1", "1"},       {"0.5", "0.5"},        {"100", "100"},
                                         {"1e3", "1000"},  {"12.50", "12.5"},     {"1E+2", "100"},
                                         {"1e-5", "1e-5"}, {"1e9", "1000000000"}, {"0001.", "1"}};
  char text[64], canonical[64];
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    snprintf(text, sizeof text, "net=int8+ef clip=%s", values[i]);
    expect_refusal(text, 18, "is no norm; expected a decimal number with 0 < NORM <= 1e9");
  }
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    snprintf(text, sizeof text, "net=int8+ef clip=%s", forms[i][0]);
    snprintf(canonical, sizeof canonical, "net=int8+ef clip=%s", forms[i][1]);
    expect_canonical(text, canonical);
  }
}

static void a_norm_is_of_each_tensor_or_of_all(void **state) {
  (void)state;
  expect_canonical("net=int8+ef clip=2:global", "net=int8+ef clip=2:global");
  expect_canonical("net=int8+ef clip=2:tensor", "net=int8+ef clip=2");
  assert_int_equal(parse("net=int8+ef clip=2:global").clip.scope, LCOMM_CLIP_GLOBAL);
  assert_int_equal(parse("net=int8+ef clip=2").clip.scope, LCOMM_CLIP_TENSOR);
  expect_refusal("net=int8+ef clip=2:all", 20, "unknown scope of a norm 'all'");
  expect_refusal("net=int8+ef clip=2:", 20, "unknown scope of a norm ''");
  expect_refusal("net=int8+ef clip=:global", 18, "is no norm");
}

static void discarding_implies_undo(void **state) {
  (void)state;
  assert_true(parse("undo=on").undo && !parse("undo=on").discard_not_finite);
  assert_true(parse("nonfinite=discard").undo && parse("nonfinite=discard").discard_not_finite);
  assert_false(parse("undo=off nonfinite=report").undo);
  expect_canonical("undo=on nonfinite=discard net=int4", "net=int4+ef nonfinite=discard");
  expect_canonical("net=int4 undo=on", "net=int4+ef undo=on");
  expect_canonical("net=int4 undo=off nonfinite=report", "net=int4+ef");
  expect_refusal("undo=off nonfinite=discard", 1, "nonfinite=discard undoes steps");
  expect_refusal("undo=yes", 6, "is no answer");
  expect_refusal("nonfinite=keep", 11, "nothing to do with NaN and Inf");
}

static void clipping_needs_feedback(void **state) {
  (void)state;
  const char why[] = "expected a codec of net with +ef";
  expect_refusal("clip=1", 1, why);
  expect_refusal("clip=1 net=int8", 1, why);
  expect_refusal("net=int4-ef clip=1", 13, why);
  expect_canonical("clip=1 net=int4", "net=int4+ef clip=1");
}

static void words_must_be_known_and_given_once(void **state) {
  (void)state;
  expect_refusal(
      "foo=1", 1,
      "unknown key 'foo'; expected KEY=VALUE with one of the keys net, net[PATTERN,...], node, "
      "rack, pipe, min, "
      "exempt, warmup, ramp, momentum, adam, clip, undo, nonfinite, scope, bucket, algo, check, "
      "match, step, guard, quorum, stale, late, servers;");
  expect_refusal("NET=int8", 1, "unknown key 'NET'");
  expect_refusal("=int8", 1, "unknown key ''");
  expect_refusal("  int8", 3, "unknown key 'int8'");
  expect_refusal("net", 1, "has no value");
  expect_refusal("net=fp16 net=fp16", 10, "first in column 1");
  expect_refusal("scope=all", 7, "unknown scope 'all'");
  expect_refusal("algo=tree", 6, "unknown algorithm 'tree'");
  expect_refusal("check=md5", 7, "unknown checksum 'md5'");
  const char *const words[] = {"net=fp16",  "node=fp16",        "pipe=fp16",    "min=1",
                               "exempt=a",  "warmup=1",         "scope=tensor", "bucket=4K",
                               "algo=auto", "check=xxhash",     "match=op=sum", "step=1",
                               "undo=on",   "nonfinite=discard"};
  const char *const needy[] = {"ramp=1@1", "momentum=0.9", "clip=1"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char text[64];
    parse(words[i]);
    snprintf(text, sizeof text, "%s %s", words[i], words[i]);
    expect_refusal(text, (int)strlen(words[i]) + 2, "a second time");
  }
  for (size_t i = 0; i < sizeof needy / sizeof *needy; i++) {
    char text[64];
    snprintf(text, sizeof text, "net=topk:1+ef %s %s", needy[i], needy[i]);
    expect_refusal(text, (int)strlen(needy[i]) + 16, "a second time");
  }
}

static void exempt_lists_are_checked(void **state) {
  (void)state;
  expect_refusal("exempt=", 8, "empty pattern");
  expect_refusal("exempt=a,", 10, "empty pattern");
  expect_refusal("exempt=,a", 8, "empty pattern");
  expect_refusal("exempt=a,,b", 10, "empty pattern");
  expect_refusal("exempt=a\x01", 9, "control character");
  expect_refusal("exempt=a\x7f", 9, "control character");
  expect_canonical("exempt=\xc3\xa9=*", "exempt=\xc3\xa9=*");

  char text[LCOMM_POLICY_MAX] = "exempt=a";
  for (int i = 1; i < LCOMM_POLICY_EXEMPT_MAX; i++) {
    strcat(text, ",b");
  }
  assert_int_equal(parse(text).exempt_count, LCOMM_POLICY_EXEMPT_MAX);
  strcat(text, ",c");
  expect_refusal(text, 8 + 2 * LCOMM_POLICY_EXEMPT_MAX, "at most 32");

  memset(text, 0, sizeof text);
  strcpy(text, "exempt=");
  memset(text + 7, 'x', 127);
  assert_int_equal(strlen(parse(text).exempt[0]), 127);
  text[7 + 127] = 'x';
  expect_refusal(text, 8, "has 128 bytes");
}

/* A policy of exempt patterns only, `length` bytes long. */
static void fill_with_patterns(char *text, size_t length) {
  strcpy(text, "exempt=");
  for (size_t i = 7; i < length; i++) {
    text[i] = i % 100 == 99 ? ',' : 'x';
  }
  text[length] = '\0';
}

static void policies_of_any_length_are_safe(void **state) {
  (void)state;
  char text[2 * LCOMM_POLICY_MAX];
  for (size_t length = LCOMM_POLICY_MAX - 30; length < LCOMM_POLICY_MAX + 10; length++) {
    if (length % 100 == 0) {
      continue; /* would end with a comma */
    }
    fill_with_patterns(text, length);
    if (length < LCOMM_POLICY_MAX - 1) {
      expect_canonical(text, text);
    } else {
      assert_non_null(strstr(refusal(text), "too long"));
    }
  }
  /* the canonical form is longer than the text, and would be cut */
  fill_with_patterns(text, LCOMM_POLICY_MAX - 17);
  strcat(text, " net=topk:.5");
  assert_int_equal(strlen(text), LCOMM_POLICY_MAX - 5);
  assert_int_equal(parse(text).exempt_count, 11);
  fill_with_patterns(text, LCOMM_POLICY_MAX - 14);
  strcat(text, " net=topk:.5");
  assert_int_equal(strlen(text), LCOMM_POLICY_MAX - 2);
  assert_non_null(strstr(refusal(text), "canonical form is too long"));
}

static void sentences_never_echo_control_characters(void **state) {
  (void)state;
  const char *const forms[] = {"%s",
                               "%s=1",
                               "net=%s",
                               "net=int8+%s",
                               "net=int8:%s",
                               "net=int8:block=%s",
                               "net=fp16:scale=%s",
                               "net=topk:k=%s",
                               "net=topk:1,values=%s",
                               "net=bf16:%s",
                               "ramp=%s",
                               "ramp=1@%s",
                               "momentum=%s",
                               "net=sign warmup=1 adam=%s",
                               "net=sign warmup=1 adam=onebit,%s",
                               "clip=%s",
                               "net=topk:%s",
                               "min=1%s",
                               "exempt=a%s",
                               "warmup=%s",
                               "scope=%s",
                               "algo=%s",
                               "check=%s",
                               "match=%s",
                               "match=size>=%s",
                               "match=dtype=%s",
                               "match=size>=1&comm=%s",
                               "step=%s",
                               "guard=%s",
                               "guard=1,limit=%s",
                               "guard=1,%s"};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    char text[512];
    snprintf(text, sizeof text, forms[i],
             "\x1b[2J\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x7f\xff\xfe"
             "\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b");
    for (const char *c = refusal(text); *c != '\0'; c++) {
      assert_true(*c >= 0x20 && *c < 0x7f);
    }
    assert_non_null(strstr(refusal(text), "\\x1b[2J\\x01"));
    assert_non_null(strstr(refusal(text), "...'"));
  }
}

static void algorithms_have_names(void **state) {
  (void)state;
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_AUTO), "auto");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_RING), "ring");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_DIRECT), "direct");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_GATHER), "gather");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_DOUBLING), "doubling");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_HALVING), "halving");
  assert_string_equal(lcomm_algorithm_name(LCOMM_ALGO_SERVERS), "servers");
  assert_string_equal(lcomm_algorithm_name((lcomm_algorithm)7), "unknown algorithm");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_default_is_exact),
    cmocka_unit_test(every_key_sets_its_field),
    cmocka_unit_test(guards_are_read),
    cmocka_unit_test(canonical_text_has_a_fixed_order_and_no_defaults),
    cmocka_unit_test(sizes_are_powers_of_1024),
    cmocka_unit_test(sizes_that_do_not_fit_are_refused),
    cmocka_unit_test(malformed_numbers_are_refused),
    cmocka_unit_test(a_step_has_1_to_4096_calls),
    cmocka_unit_test(feedback_and_topk_are_refused_inside_a_node),
    cmocka_unit_test(int4_has_feedback_on_net_only),
    cmocka_unit_test(a_mistake_is_shown_the_example_of_its_key),
    cmocka_unit_test(a_ring_with_a_lossy_codec_is_refused),
    cmocka_unit_test(a_ring_of_unknown_payload_sizes_is_refused),
    cmocka_unit_test(stages_of_a_ramp_are_checked),
    cmocka_unit_test(a_ramp_has_at_most_8_stages),
    cmocka_unit_test(steps_that_cannot_be_counted_are_refused),
    cmocka_unit_test(a_ramp_needs_topk),
    cmocka_unit_test(momentum_is_between_0_and_1),
    cmocka_unit_test(momentum_needs_topk_with_feedback),
    cmocka_unit_test(norms_are_positive_and_at_most_1e9),
    cmocka_unit_test(a_norm_is_of_each_tensor_or_of_all),
    cmocka_unit_test(discarding_implies_undo),
    cmocka_unit_test(clipping_needs_feedback),
    cmocka_unit_test(words_must_be_known_and_given_once),
    cmocka_unit_test(exempt_lists_are_checked),
    cmocka_unit_test(policies_of_any_length_are_safe),
    cmocka_unit_test(sentences_never_echo_control_characters),
    cmocka_unit_test(algorithms_have_names),
};
RUN_TESTS(tests)
