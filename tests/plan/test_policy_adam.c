/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The word adam=: read, written, and what it goes with. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void adam_says_what_travels_after_the_warm_up(void **state) {
  (void)state;
  lcomm_policy policy = parse("warmup=9 adam=onebit,refresh=7,beta1=0.95 net=sign");
  assert_true(policy.adam.onebit && policy.adam.beta1 == 0.95);
  assert_int_equal(policy.adam.refresh, 7);
  policy = parse("net=sign warmup=9 adam=onebit");
  assert_true(policy.adam.onebit && policy.adam.beta1 == 0.9 && policy.adam.refresh == 0);
  assert_false(parse("net=sign warmup=9").adam.onebit);
  expect_canonical("warmup=9 adam=onebit,beta1=.90 net=sign", "net=sign+ef warmup=9 adam=onebit");
  expect_canonical("adam=onebit,refresh=07,beta1=.5 net[a]=bf16 net=int8+ef warmup=1",
                   "net[a]=bf16 net=int8+ef warmup=1 adam=onebit,beta1=0.5,refresh=7");
  expect_refusal("net=sign warmup=1 adam=twobit", 24, "unknown mode 'twobit'");
  expect_refusal("net=sign warmup=1 adam=", 24, "unknown mode ''");
  expect_refusal("net=sign warmup=1 adam=onebit,", 31, "unknown option ''");
  expect_refusal("net=sign warmup=1 adam=onebit,beta2=0.9", 31, "unknown option 'beta2=0.9'");
  expect_refusal("net=sign warmup=1 adam=onebit,beta1=1", 31, "expected a decimal number with 0 <");
  expect_refusal("net=sign warmup=1 adam=onebit,beta1=0", 31, "names no momentum");
  expect_refusal("net=sign warmup=1 adam=onebit,refresh=0", 31, "names no number of steps");
}

static void adam_needs_a_warm_up_and_a_dense_codec_with_feedback(void **state) {
  (void)state;
  expect_refusal("adam=onebit net=sign", 1, "expected warmup=STEPS");
  expect_refusal("adam=onebit warmup=1", 1, "expected a codec of net with +ef, and no topk");
  expect_refusal("adam=onebit warmup=1 net=int8", 1, "expected a codec of net with +ef");
  expect_refusal("net=topk:0.1+ef adam=onebit warmup=1", 17, "and no topk");
  expect_refusal("net[a]=topk:0.1 net=sign adam=onebit warmup=1", 26, "and no topk");
  expect_refusal("net=sign adam=onebit warmup=1 momentum=0.9", 31, "net=topk:DENSITY+ef");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(adam_says_what_travels_after_the_warm_up),
    cmocka_unit_test(adam_needs_a_warm_up_and_a_dense_codec_with_feedback),
};
RUN_TESTS(tests)
