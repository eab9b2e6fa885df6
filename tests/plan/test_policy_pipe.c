/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* pipe=: which codecs messages between two ranks have. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void messages_between_two_ranks_have_codecs_that_leave_nothing_out(void **state) {
  (void)state;
  static const char *const good[] = {
      "none+zstd",          "fp16:scale=block", "bf16",    "fp8e4m3:stochastic", "fp8e5m2:block=32",
      "int8:block=32+zstd", "int4-ef",          "int8+ef", "int4+ef+zstd"};
  static const char *const bad[] = {"topk:0.01", "sign", "int2", "lowrank:4", "auto:int8", "zip"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    char text[64];
    snprintf(text, sizeof text, "pipe=%s", good[i]);
    expect_canonical(text, text);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[64];
    snprintf(text, sizeof text, "pipe=%s", bad[i]);
    expect_refusal(text, 6, "for example pipe=fp8e4m3");
    expect_refusal(text, 6, "fp16, bf16, fp8e4m3, fp8e5m2, int8");
  }
  expect_refusal("pipe=zip", 6, "fp8e5m2, int8, int4;");
  expect_canonical("pipe=int4", "pipe=int4-ef");
  expect_canonical("pipe=none net=int8", "net=int8");
  expect_canonical("min=1 pipe=int8 node=bf16", "node=bf16 pipe=int8 min=1");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_between_two_ranks_have_codecs_that_leave_nothing_out),
};
RUN_TESTS(tests)
