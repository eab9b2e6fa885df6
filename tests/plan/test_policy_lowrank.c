/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The codec lowrank: read, written, what it goes with, and what it acts on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/milder.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void lowrank_is_read_and_written(void **state) {
  (void)state;
  lcomm_policy policy = parse("net=lowrank:4");
  assert_int_equal(policy.net.rank, 4);
  assert_true(policy.net.error_feedback);
  assert_int_equal(policy.net.format.codec->id, LCOMM_CODEC_NONE);
  assert_int_equal(parse("net=lowrank:2,values=int8").net.format.codec->id, LCOMM_CODEC_INT8);
  expect_canonical("net=lowrank:04+ef", "net=lowrank:4");
  expect_canonical("net=lowrank:64,values=none", "net=lowrank:64");
  expect_canonical("net=lowrank:1,values=bf16+ef", "net=lowrank:1,values=bf16");
  expect_canonical("net[*.weight]=lowrank:8 net=int8", "net[*.weight]=lowrank:8 net=int8");
  expect_canonical("net=lowrank:4 clip=1 warmup=9 undo=on guard=100 algo=ring",
                   "net=lowrank:4 warmup=9 clip=1 undo=on algo=ring guard=100");
}

static void mistakes_of_lowrank_are_named(void **state) {
  (void)state;
  expect_refusal("net=lowrank", 12, "is no rank; expected lowrank:RANK");
  expect_refusal("net=lowrank:", 13, "'' is no rank");
  expect_refusal("net=lowrank:0", 13, "'0' is no rank");
  expect_refusal("net=lowrank:65", 13, "with 1 <= RANK <= 64");
  expect_refusal("net=lowrank:4x", 13, "'4x' is no rank");
  expect_refusal("net=lowrank:4,", 15, "'' says nothing of low rank");
  expect_refusal("net=lowrank:4,values=topk", 15, "values=none, values=bf16 or values=int8");
  expect_refusal("net=lowrank:4,values=int8,values=bf16", 27, "is one too many");
  expect_refusal("net=lowrank:4-ef", 14, "always has error feedback");
  expect_refusal("net=lowrank:4+zstd", 14, "ending '+zstd'");
  expect_refusal("node=lowrank:4", 6, "is for tensors between nodes");
  expect_refusal("net=lowrank4", 5, "unknown codec 'lowrank4'");
  lcomm_codec_spec choice;
  lcomm_why why;
  assert_int_equal(lcomm_format_parse("lowrank:4", &choice, &why), LCOMM_ERR_POLICY);
}

static void lowrank_goes_without_momentum(void **state) {
  (void)state;
  expect_refusal("net=lowrank:4 momentum=0.9", 15, "expected net=topk:DENSITY+ef");
  expect_refusal("net[a]=topk:0.1+ef net=lowrank:4 momentum=0.9", 34,
                 "is dense with +ef, or lowrank");
  expect_refusal("net=lowrank:4 adam=onebit warmup=1", 15, "and no topk or lowrank");
  expect_refusal("net=lowrank:4 ramp=0.5@9", 15, "expected net=topk:DENSITY");
  expect_refusal("net=lowrank:4,values=int8 algo=ring", 27, "cannot carry the lossy codec");
}

static void half_of_the_elements_or_fewer_are_sent(void **state) {
  (void)state;
  assert_true(lcomm_lowrank_gains(4, 4096, 1024));
  assert_true(lcomm_lowrank_gains(6, 20, 40));
  assert_false(lcomm_lowrank_gains(7, 20, 40));
  assert_false(lcomm_lowrank_gains(1, 4, 4)); /* half of them exactly */
  assert_false(lcomm_lowrank_gains(1, 1, 1 << 20));
  assert_false(lcomm_lowrank_gains(1, 1 << 20, 1));
  assert_false(lcomm_lowrank_gains(0, 4096, 1024));
  assert_false(lcomm_lowrank_gains(4, 0, 0));
}

static void data_without_a_shape_stay_exact(void **state) {
  (void)state;
  lcomm_policy policy = parse("net[b]=bf16 net=lowrank:4 min=1");
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = 1 << 20,
                           .dtype = LCOMM_FLOAT32,
                           .op = LCOMM_AVG,
                           .ranks = 4,
                           .name = "a"};
  assert_true(lcomm_eligibility_of_name(&policy, 0, &call).exact);
  call.rows = call.columns = 1 << 10;
  assert_int_equal(lcomm_eligibility_of_name(&policy, 0, &call).net.rank, 4);
  call.dtype = LCOMM_FLOAT64;
  assert_true(lcomm_eligibility_of_name(&policy, 0, &call).exact);
  policy = parse("net=lowrank:4 node=bf16 min=1");
  call = (lcomm_match_call){.kind = LCOMM_CALL_ALLREDUCE, .count = 1 << 20, .name = "a"};
  lcomm_named_data data = lcomm_eligibility_of_name(&policy, 0, &call);
  assert_false(data.exact); /* inside nodes */
  assert_int_equal(data.net.rank, 0);
  assert_int_equal(data.net.format.codec->id, LCOMM_CODEC_NONE);
}

static void the_ladder_of_lowrank_goes_by_int4(void **state) {
  (void)state;
  char text[128];
  lcomm_policy policy = parse("net=lowrank:4,values=int8");
  assert_string_equal(lcomm_milder_text(&policy.net, false, text, sizeof text),
                      "lowrank:4,values=int8 -> int4+ef -> int8+ef -> bf16 -> none");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lowrank_is_read_and_written),
    cmocka_unit_test(mistakes_of_lowrank_are_named),
    cmocka_unit_test(lowrank_goes_without_momentum),
    cmocka_unit_test(half_of_the_elements_or_fewer_are_sent),
    cmocka_unit_test(data_without_a_shape_stay_exact),
    cmocka_unit_test(the_ladder_of_lowrank_goes_by_int4),
};
RUN_TESTS(tests)
