/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which codec is milder than another. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/milder.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void ladders_are_told(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=topk:0.01");
  char text[128];
  assert_string_equal(lcomm_milder_text(&policy.net, false, text, sizeof(text)),
                      "topk:0.01 -> int4-ef -> int8 -> bf16 -> none");
  assert_string_equal(lcomm_milder_text(&policy.node, false, text, sizeof(text)), "none");
  assert_string_equal(lcomm_milder_text(&policy.net, false, text, 8), "topk:0.");
}

static void expect_ladder(const char *policy, bool momentum, const char *const *ladder,
                          unsigned rungs) {
  lcomm_policy it = parse(policy);
  lcomm_codec_spec choice;
  char text[64];
  for (unsigned i = 0; i < rungs; i++) {
    assert_true(lcomm_milder_codec(&it.net, i, momentum, &choice));
    assert_string_equal(lcomm_codec_spec_format(&choice, text, sizeof(text)), ladder[i]);
  }
  assert_false(lcomm_milder_codec(&it.net, rungs, momentum, &choice));
  assert_false(lcomm_milder_codec(&it.net, rungs + 1, momentum, &choice));
  assert_ptr_equal(choice.format.codec, &lcomm_codec_none);
}

static void every_codec_ends_at_none(void **state) {
  (void)state;
  static const char *const topk[] = {"topk:0.01", "int4-ef", "int8", "bf16", "none"};
  static const char *const fp8[] = {"fp8e5m2:block=32,stochastic", "int8", "bf16", "none"};
  static const char *const fp16[] = {"fp16:scale=block", "bf16", "none"};
  static const char *const sign[] = {"sign+ef", "int2+ef", "int4+ef", "int8+ef", "bf16", "none"};
  static const char *const int2[] = {"int2:block=64-ef+zstd", "int4-ef+zstd", "int8+zstd",
                                     "bf16+zstd", "none"};
  expect_ladder("net=sign", false, sign, 6);
  expect_ladder("net=int2:block=64-ef+zstd", false, int2, 5);
  expect_ladder("net=topk:0.01", false, topk, 5);
  expect_ladder("net=fp8e5m2:block=32,stochastic", false, fp8, 4);
  expect_ladder("net=fp16:scale=block", false, fp16, 3);
  expect_ladder("net=none", false, (const char *const[]){"none"}, 1);
}

/* A codec that auto has chosen may be milder than the next one of its coarsest. */
static void auto_allows_less_at_each_step(void **state) {
  (void)state;
  static const char *const classes[] = {"auto:topk", "auto:sign", "auto:int2",    "auto:int4",
                                        "auto:int8", "auto:bf16", "auto:lossless"};
  expect_ladder("net=auto:topk", false, classes, 7);
  static const char *const factors[] = {"auto:lowrank", "auto:sign", "auto:int2",    "auto:int4",
                                        "auto:int8",    "auto:bf16", "auto:lossless"};
  expect_ladder("net=auto:lowrank", false, factors, 7);
  expect_ladder("net=auto:int2", false, classes + 2, 5);
  expect_ladder("net=auto:bf16", false, classes + 5, 2);
}

static void error_feedback_goes_along_to_integers(void **state) {
  (void)state;
  static const char *const with[] = {"topk:k=9+ef+zstd", "int4+ef+zstd", "int8+ef+zstd",
                                     "bf16+zstd", "none"};
  static const char *const momentum[] = {"topk:k=9+ef", "int4-ef", "int8", "bf16", "none"};
  expect_ladder("net=topk:k=9+ef+zstd", false, with, 5);
  expect_ladder("net=topk:k=9+ef", true, momentum, 5);
}

/* With none nothing loses a bit, inside nodes neither. */
static void codecs_are_softened_where_the_links_are_farthest(void **state) {
  (void)state;
  lcomm_codec_spec choice = {.format = lcomm_format_of(&lcomm_codec_bf16)};
  lcomm_policy policy = parse("net=int8 node=fp16");
  assert_ptr_equal(lcomm_farthest_codec(&policy.net, &policy.node, 2), &policy.net);
  assert_ptr_equal(lcomm_farthest_codec(&policy.net, &policy.node, 1), &policy.node);
  lcomm_codecs_soften(&policy.net, &policy.node, 2, &choice);
  assert_ptr_equal(policy.net.format.codec, &lcomm_codec_bf16);
  assert_ptr_equal(policy.node.format.codec, &lcomm_codec_fp16);
  policy = parse("net=int8 node=fp16");
  lcomm_codecs_soften(&policy.net, &policy.node, 1, &choice);
  assert_ptr_equal(policy.net.format.codec, &lcomm_codec_int8);
  assert_ptr_equal(policy.node.format.codec, &lcomm_codec_bf16);
  choice.format = lcomm_format_of(&lcomm_codec_none);
  lcomm_codecs_soften(&policy.net, &policy.node, 2, &choice);
  assert_ptr_equal(policy.net.format.codec, &lcomm_codec_none);
  assert_ptr_equal(policy.node.format.codec, &lcomm_codec_none);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ladders_are_told),
    cmocka_unit_test(every_codec_ends_at_none),
    cmocka_unit_test(auto_allows_less_at_each_step),
    cmocka_unit_test(error_feedback_goes_along_to_integers),
    cmocka_unit_test(codecs_are_softened_where_the_links_are_farthest),
};
RUN_TESTS(tests)
