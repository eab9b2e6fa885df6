/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trainer/options.h"
#include "trainer/policy_words.h"
#include "trainer/replicas.h"
#include "trainer/traffic.h"

/* ---------------------------------------------------------------- options */

static int parse(options *made, failure *why, char *first, char *second, char *third) {
  char name[] = "train";
  char *arguments[] = {name, first, second, third, NULL};
  int count = 1;
  while (arguments[count]) {
    count++;
  }
  return options_parse(count, arguments, made, why);
}

static void options_have_defaults(void **state) {
  (void)state;
  options made;
  failure why = {0};
  assert_int_equal(parse(&made, &why, NULL, NULL, NULL), 0);
  assert_string_equal(made.model, "cnn");
  assert_null(made.data);
  assert_null(made.policy);
  assert_true(made.rate > 0.0f && made.epochs > 0 && made.batch > 0);
  assert_false(made.help);
}

static void options_are_read(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char adam[] = "--optimizer=adam", seed[] = "--seed=18446744073709551615", rate[] = "--lr=0.5";
  assert_int_equal(parse(&made, &why, adam, seed, rate), 0);
  assert_int_equal(made.optimizer, OPTIMIZER_ADAM);
  assert_true(made.seed == UINT64_MAX);
  assert_true(made.rate == 0.5f);
}

static void bad_options_are_refused_with_what_was_found(void **state) {
  (void)state;
  static const char *const bad[] = {
      "--epochs=0",
      "--epochs=-1",
      "--epochs=1x",
      "--epochs=",
      "--lr=nan",
      "--lr=0",
      "--lr=-1",
      "--lr=inf",
      "--momentum=1",
      "--batch=99999",
      "--model=none",
      "--optimizer=none",
      "--images=0",
      "--seed=-1",
      "--frob",
      "word",
      "--epochs",
      "--batch= 1",
      "--epochs=99999999999999999999",
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    options made;
    failure why = {0};
    char text[64];
    strcpy(text, bad[i]);
    if (parse(&made, &why, text, NULL, NULL) != -1) {
      fail_msg("%s was accepted", bad[i]);
    }
    assert_int_equal(why.exit_code, EXIT_SETUP);
    assert_int_equal(why.speaker, SPEAKER_FIRST_RANK);
    assert_true(strlen(why.text) > 10);
  }
}

static void every_option_is_in_the_help(void **state) {
  (void)state;
  static const char *const names[] = {
      "--policy", "--model", "--data", "--images",   "--epochs", "--batch",  "--optimizer",
      "--lr",     "--seed",  "--log",  "--momentum", "--help",   "--version"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_non_null(strstr(options_help(), names[i]));
  }
}

/* --------------------------------------------------------- policy in words */

static void assert_words(const char *policy, int nodes, const char *expected) {
  model net;
  char text[2048];
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 1, &net), 0);
  policy_words(policy, nodes, &net, "  ", text, sizeof text);
  model_destroy(&net);
  if (!strstr(text, expected)) {
    fail_msg("\"%s\" does not say \"%s\"", text, expected);
  }
}

static void policies_are_told_in_words(void **state) {
  (void)state;
  assert_words("net=none", 2, "between nodes: exact");
  assert_words("net=int8", 2, "8-bit integers");
  assert_words("net=topk:0.01+ef", 2, "largest 1 % of the values");
  assert_words("net=topk:0.01+ef", 2, "made up for later");
  assert_words("net=int8", 1, "all ranks are on one node");
  assert_words("node=bf16", 1, "inside a node: rounded to bfloat16");
  assert_words("net=int8 warmup=100", 2, "first 100 steps are exact");
  assert_words("net=later", 2, "between nodes: later");
  assert_words("net=int4-ef", 2,
               "between nodes: rounded to 4-bit integers, a sixth of the bytes\n");
  assert_words("net=int4+ef+zstd", 2, "bytes, then zstd; the error is made up for later");
  assert_words("net=fp8e5m2:block=32,stochastic", 2, "(e5m2), a quarter of the bytes, up or down");
  assert_words("net=topk:0.02,values=int8+ef", 2, "2 % of the values, those as 8-bit integers;");
  assert_words("net=topk:k=500+ef", 2, "largest 500 values of each tensor;");
  assert_words("net=topk:0.01+ef ramp=0.25@100,0.05@50", 2, "in stages: 0.25@100,0.05@50");
  assert_words("net=topk:0.01+ef momentum=0.9", 2, "momentum 0.9 is kept by libcomm");
  assert_words("net=topk:0.01+ef clip=2", 2, "norm 2 / sqrt(ranks)");
  assert_true(policy_keeps_momentum("net=topk:0.01+ef momentum=0.9"));
  assert_false(policy_keeps_momentum("net=topk:0.01+ef"));
}

static void tensors_that_stay_exact_are_counted(void **state) {
  (void)state;
  assert_words("net=int8", 2, "compressed: dense1.weight (97 % of the values); 7 of 8");
  assert_words("net=int8 min=0", 2, "(100 % of the values); 0 of 8");
  assert_words("net=int8 min=0 exempt=*.bias,conv?.weight", 2,
               "compressed: dense2.weight, dense1.weight (");
  assert_words("net=int8 min=1G", 2, "compressed: nothing");
}

static void words_that_do_not_fit_are_cut(void **state) {
  (void)state;
  model net;
  char text[64];
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 1, &net), 0);
  for (size_t size = 1; size < 50; size++) {
    memset(text, 'x', sizeof text);
    policy_words("net=int8 min=0", 2, &net, "", text, size);
    assert_true(strlen(text) < size);
    assert_int_equal(text[size], 'x');
  }
  model_destroy(&net);
}

/* ------------------------------------------------------ replicas, traffic */

static void a_rank_with_other_weights_is_named(void **state) {
  (void)state;
  const uint64_t same[] = {7, 7, 7}, other[] = {7, 8, 7, 9};
  char text[256];
  assert_int_equal(replicas_describe(same, 3, text, sizeof text), 0);
  assert_string_equal(text, "");
  assert_int_equal(replicas_describe(other, 4, text, sizeof text), 2);
  assert_non_null(strstr(text, "rank 1"));
  assert_null(strstr(text, "rank 2"));
  assert_non_null(strstr(text, "rank 3"));
  assert_int_equal(replicas_describe(other, 4, text, 10), 2);
  assert_true(strlen(text) < 10);
}

static void traffic_is_subtracted_and_added(void **state) {
  (void)state;
  traffic before = {.encode_us = 3}, after = {.encode_us = 5, .wait_us = 9};
  before.sent_bytes[LCOMM_LINK_NET] = 100;
  after.sent_bytes[LCOMM_LINK_NET] = 350;
  after.exact_bytes[LCOMM_LINK_NET] = 1000;
  traffic between = traffic_since(&after, &before);
  assert_int_equal(between.sent_bytes[LCOMM_LINK_NET], 250);
  assert_int_equal(between.encode_us, 2);
  assert_int_equal(between.wait_us, 9);
  assert_true(traffic_ratio(&between, LCOMM_LINK_NET) == 4.0);
  assert_true(traffic_ratio(&between, LCOMM_LINK_SHM) == 0.0);
  traffic_add(&before, &between);
  assert_int_equal(before.sent_bytes[LCOMM_LINK_NET], 350);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_have_defaults),
      cmocka_unit_test(options_are_read),
      cmocka_unit_test(bad_options_are_refused_with_what_was_found),
      cmocka_unit_test(every_option_is_in_the_help),
      cmocka_unit_test(policies_are_told_in_words),
      cmocka_unit_test(tensors_that_stay_exact_are_counted),
      cmocka_unit_test(words_that_do_not_fit_are_cut),
      cmocka_unit_test(a_rank_with_other_weights_is_named),
      cmocka_unit_test(traffic_is_subtracted_and_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
