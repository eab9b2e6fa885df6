/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* rack=: which codecs sums have inside a rack. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void racks_have_dense_codecs_of_eight_bits_and_more(void **state) {
  (void)state;
  static const char *const good[] = {"none+zstd", "fp16:scale=block", "bf16", "fp8e5m2:block=32",
                                     "int8:block=32+zstd"};
  static const char *const bad[] = {"topk:0.01", "sign",      "int2", "int4-ef",
                                    "lowrank:4", "auto:int8", "zip"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    char text[64];
    snprintf(text, sizeof text, "net=int4+ef rack=%s", good[i]);
    expect_canonical(text, text);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[64];
    snprintf(text, sizeof text, "rack=%s", bad[i]);
    expect_refusal(text, 6, "for example rack=bf16");
    expect_refusal(text, 6, "fp16, bf16, fp8e4m3, fp8e5m2");
  }
  expect_canonical("rack=none net=int8", "net=int8");
  expect_canonical("pipe=int8 rack=bf16 node=bf16 net=int8",
                   "net=int8 node=bf16 rack=bf16 pipe=int8");
}

static void racks_have_the_error_feedback_of_net(void **state) {
  (void)state;
  expect_refusal("net=int4+ef rack=int8+ef", 18, "is kept where the codec of net has +ef");
  expect_refusal("rack=bf16 rack=bf16", 11, "given a second time");
}

static void a_quorum_knows_no_racks(void **state) {
  (void)state;
  expect_refusal("net=int8 rack=bf16 quorum=3", 20, "expected rack=none");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(racks_have_dense_codecs_of_eight_bits_and_more),
    cmocka_unit_test(racks_have_the_error_feedback_of_net),
    cmocka_unit_test(a_quorum_knows_no_racks),
};
RUN_TESTS(tests)
