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

#include "tests/support/unit_tests.h"
#include "trainer/train_options.h"

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

static void a_device_is_read_and_may_have_shards(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char cuda[] = "--device=cuda", any[] = "--device=auto", none[] = "--device=tpu",
       sharded[] = "--shard=optimizer";
  assert_int_equal(parse(&made, &why, NULL, NULL, NULL), 0);
  assert_int_equal(made.device, DEVICE_CPU);
  assert_int_equal(parse(&made, &why, cuda, NULL, NULL), 0);
  assert_int_equal(made.device, DEVICE_CUDA);
  assert_int_equal(parse(&made, &why, any, sharded, NULL), 0);
  assert_int_equal(made.device, DEVICE_AUTO);
  assert_int_equal(parse(&made, &why, none, NULL, NULL), -1);
  assert_non_null(strstr(why.text, "expected cpu, cuda or auto"));
  assert_int_equal(parse(&made, &why, cuda, sharded, NULL), 0);
  assert_int_equal(made.device, DEVICE_CUDA);
  assert_int_equal(made.shard, SHARD_OPTIMIZER);
}

static void elastic_ranks_are_read_and_go_with_what_they_can(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char range[] = "--elastic=2:8", backwards[] = "--elastic=8:2", one[] = "--elastic=4",
       more[] = "--elastic=2:8x", none[] = "--elastic=0:2", sharded[] = "--shard=gradients",
       plot[] = "--plot=x.svg";
  char *bad[] = {backwards, one, more, none}, *apart[] = {sharded, plot};
  assert_int_equal(parse(&made, &why, NULL, NULL, NULL), 0);
  assert_false(is_elastic(&made));
  assert_int_equal(parse(&made, &why, range, NULL, NULL), 0);
  assert_true(is_elastic(&made) && made.elastic_min == 2 && made.elastic_max == 8);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(parse(&made, &why, bad[i], NULL, NULL), -1);
    assert_non_null(strstr(why.text, "such as 2:8"));
  }
  for (int i = 0; i < 2; i++) {
    assert_int_equal(parse(&made, &why, range, apart[i], NULL), -1);
    assert_non_null(strstr(why.text, "--elastic"));
  }
}

static void a_pipeline_is_read_and_goes_with_what_it_can(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char two[] = "--pipeline=2", five[] = "--pipeline=5", gpt[] = "--model=gpt-nano",
       images[] = "--model=mlp";
  char apart[][24] = {"--shard=optimizer", "--elastic=2:4", "--device=auto", "--precision=bf16",
                      "--clip=1",          "--save=kept",   "--resume=kept", "--optimizer=lars"};
  assert_int_equal(parse(&made, &why, NULL, NULL, NULL), 0);
  assert_int_equal(made.pipeline, 1);
  assert_int_equal(parse(&made, &why, two, gpt, NULL), 0);
  assert_int_equal(made.pipeline, 2);
  for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
    assert_int_equal(parse(&made, &why, two, gpt, apart[i]), -1);
    apart[i][strcspn(apart[i], "=")] = '\0';
    assert_non_null(strstr(why.text, "--pipeline does not go with"));
    assert_non_null(strstr(why.text, apart[i]));
  }
  assert_int_equal(parse(&made, &why, two, images, NULL), -1);
  assert_non_null(strstr(why.text, "--model mlp has none"));
  assert_int_equal(parse(&made, &why, five, gpt, NULL), -1);
  assert_non_null(strstr(why.text, "give 4 at most"));
}

static void servers_step_weights_by_sgd_of_float32_only(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char weights[] = "--serve=weights", gradients[] = "--serve=gradients", other[] = "--serve=tea";
  char apart[][20] = {"--optimizer=adam", "--precision=bf16", "--clip=1"};
  assert_int_equal(parse(&made, &why, weights, NULL, NULL), 0);
  assert_true(made.serve_weights);
  for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
    assert_int_equal(parse(&made, &why, weights, apart[i], NULL), -1);
    assert_non_null(strstr(why.text, "--serve weights goes with --optimizer sgd"));
    assert_int_equal(parse(&made, &why, gradients, apart[i], NULL), 0);
    assert_false(made.serve_weights);
  }
  assert_int_equal(parse(&made, &why, other, NULL, NULL), -1);
  assert_non_null(strstr(why.text, "expected gradients or weights"));
}

static void defaults_suit_the_model_and_the_optimizer(void **state) {
  (void)state;
  options images, text, lars;
  failure why = {0};
  char gpt[] = "--model=gpt-nano", name[] = "--optimizer=lars", both[] = "--batch-global=64",
       twice[] = "--accumulate=2";
  assert_int_equal(parse(&images, &why, NULL, NULL, NULL), 0);
  assert_int_equal(parse(&text, &why, gpt, NULL, NULL), 0);
  assert_int_equal(parse(&lars, &why, name, gpt, NULL), 0);
  assert_int_equal(images.optimizer, OPTIMIZER_SGD);
  assert_true(images.batch == 32 && images.rate == 0.05f && images.decay == 0.0f);
  assert_int_equal(text.optimizer, OPTIMIZER_ADAMW);
  assert_true(text.batch == 16 && text.decay > 0.0f);
  assert_int_equal(lars.optimizer, OPTIMIZER_LARS);
  assert_true(lars.rate > text.rate);
  assert_int_equal(parse(&lars, &why, both, twice, NULL), -1);
}

static void who_sends_momentum_has_the_optimizer_that_takes_it(void **state) {
  (void)state;
  options made;
  failure why = {0};
  char policy[] = "--policy=net=sign adam=onebit warmup=9", gpt[] = "--model=gpt-nano",
       other[] = "--optimizer=adam", none[] = "--policy=net=int8";
  assert_int_equal(parse(&made, &why, policy, gpt, NULL), 0);
  assert_int_equal(made.optimizer, OPTIMIZER_ONEBIT_ADAM);
  assert_true(made.rate == 0.002f);
  assert_int_equal(parse(&made, &why, policy, gpt, other), 0);
  assert_int_equal(made.optimizer, OPTIMIZER_ADAM);
  setenv("LCOMM_POLICY", "adam=onebit warmup=9", 1);
  assert_int_equal(parse(&made, &why, NULL, NULL, NULL), 0);
  assert_int_equal(made.optimizer, OPTIMIZER_ONEBIT_ADAM);
  assert_int_equal(parse(&made, &why, none, NULL, NULL), 0);
  assert_int_equal(made.optimizer, OPTIMIZER_SGD);
  unsetenv("LCOMM_POLICY");
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
      "--schedule=none",
      "--warmup=2",
      "--clip=0",
      "--accumulate=0",
      "--batch-global=0",
      "--weight-decay=0.1", /* of SGD */
      "--save-every=5",     /* where? */
      "--save=",
      "--log-every=0",
      "--late=x3",
      "--resume=",
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
      "--policy",       "--model",     "--data",     "--images",     "--epochs",
      "--batch ",       "--optimizer", "--lr",       "--seed",       "--log ",
      "--momentum",     "--help",      "--version",  "--accumulate", "--batch-global",
      "--weight-decay", "--clip",      "--schedule", "--warmup",     "--save ",
      "--save-every",   "--resume",    "--plot",     "--log-every"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_non_null(strstr(options_help(), names[i]));
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_have_defaults),
    cmocka_unit_test(options_are_read),
    cmocka_unit_test(a_device_is_read_and_may_have_shards),
    cmocka_unit_test(elastic_ranks_are_read_and_go_with_what_they_can),
    cmocka_unit_test(a_pipeline_is_read_and_goes_with_what_it_can),
    cmocka_unit_test(servers_step_weights_by_sgd_of_float32_only),
    cmocka_unit_test(defaults_suit_the_model_and_the_optimizer),
    cmocka_unit_test(who_sends_momentum_has_the_optimizer_that_takes_it),
    cmocka_unit_test(bad_options_are_refused_with_what_was_found),
    cmocka_unit_test(every_option_is_in_the_help),
};
RUN_TESTS(tests)
