/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Presets, net=CODEC:NAME: what they stand for, and what stays the user's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/plan/policy_internal.h"
#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

#define SAFE "topk:safe"

/* A preset is its words: no more, no less, and no word is lost on the way. */
static void a_preset_is_its_words(void **state) {
  (void)state;
  static const char *const names[] = {"topk:safe", "topk:fast", "int4:safe"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const lcomm_policy_preset *preset =
        lcomm_policy_find_preset((lcomm_span){names[i], strlen(names[i])});
    char words[LCOMM_POLICY_MAX] = "", canonical[LCOMM_POLICY_MAX], text[64];
    assert_non_null(preset);
    for (int k = 0; k < LCOMM_PRESET_WORDS_MAX && preset->words[k]; k++) {
      strcat(strcat(words, preset->words[k]), " ");
    }
    lcomm_policy policy = parse(words);
    lcomm_policy_format(&policy, canonical);
    snprintf(text, sizeof text, "net=%s", names[i]);
    expect_canonical(text, canonical);
    expect_canonical(canonical, canonical);
  }
}

/* Wherever it stands. */
static void words_of_the_user_come_before_those_of_a_preset(void **state) {
  (void)state;
  static const char *const policies[] = {"ramp=0.5@7 min=1M net=topk:fast",
                                         "net=topk:fast ramp=0.5@7 min=1M"};
  for (size_t i = 0; i < 2; i++) {
    lcomm_policy policy = parse(policies[i]);
    assert_int_equal(policy.ramp.count, 1);
    assert_int_equal(policy.ramp.stages[0].steps, 7);
    assert_int_equal(policy.min_bytes, 1 << 20);
    assert_int_equal(policy.net.format.density * 100, 8);
  }
}

static void patterns_of_the_user_come_before_those_of_a_preset(void **state) {
  (void)state;
  static const char *const policies[] = {"net[embed*]=int8 net=" SAFE,
                                         "net=" SAFE " net[embed*]=int8"};
  for (size_t i = 0; i < 2; i++) {
    lcomm_policy policy = parse(policies[i]);
    assert_int_equal(policy.pattern_count, 2);
    assert_string_equal(policy.patterns[0].rule.name, "embed*");
    assert_string_equal(policy.patterns[0].codec.format.codec->name, "int8");
    assert_string_equal(policy.patterns[1].codec.format.codec->name, "int8");
  }
}

static void a_preset_is_the_whole_value_of_net(void **state) {
  (void)state;
  expect_refusal("net=topk:saef", 10, "net= alone has presets");
  expect_refusal("net=topk:safe+zstd", 10, "'safe+zstd' is no density");
  expect_refusal("net=topk:safer", 10, "'safer' is no density");
  expect_refusal("net[a]=topk:safe", 13, "'safe' is no density");
  expect_refusal("node=int4:safe", 11, "no option 'safe'");
  expect_refusal("net=" SAFE " net=int8", 15, "given a second time");
}

/* The word at fault is the one that names the preset. */
static void a_preset_can_conflict_with_words_of_the_user(void **state) {
  (void)state;
  char text[LCOMM_POLICY_MAX] = "min=1K net=" SAFE " net[a";
  for (int i = 1; i < LCOMM_POLICY_PATTERNS_MAX; i++) {
    strcat(text, ",a");
  }
  strcat(text, "]=bf16");
  expect_refusal(text, 8, "too many");
  expect_refusal("algo=ring net=" SAFE, 1, "algo=ring");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_preset_is_its_words),
    cmocka_unit_test(words_of_the_user_come_before_those_of_a_preset),
    cmocka_unit_test(patterns_of_the_user_come_before_those_of_a_preset),
    cmocka_unit_test(a_preset_is_the_whole_value_of_net),
    cmocka_unit_test(a_preset_can_conflict_with_words_of_the_user),
};
RUN_TESTS(tests)
