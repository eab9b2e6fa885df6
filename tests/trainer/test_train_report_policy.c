/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_report.h"

/* The tensors of the model "cnn" are 8; of these the last but one is the largest. */
enum { TENSORS = 8 };

/* `rest` is the codec of all tensors but dense1.weight, whose codec is `largest`. */
static void assert_codecs(const char *policy, int nodes, const char *largest, const char *rest,
                          const char *expected) {
  model net;
  char text[2048];
  policy_codec codecs[MODEL_PARAMETERS_MAX];
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 1, &net), 0);
  assert_int_equal(net.parameter_count, TENSORS);
  for (int i = 0; i < TENSORS; i++) {
    strcpy(codecs[i], strcmp(net.parameters[i].name, "dense1.weight") == 0 ? largest : rest);
  }
  policy_words(policy, nodes, &net, codecs, "  ", text, sizeof text);
  model_destroy(&net);
  if (!strstr(text, expected)) {
    fail_msg("\"%s\" does not say \"%s\"", text, expected);
  }
}

static void assert_words(const char *policy, int nodes, const char *expected) {
  assert_codecs(policy, nodes, "int8", "none", expected);
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
  assert_words("net=sign+ef", 2,
               "signs of one bit, a thirtieth of the bytes; the error is made up");
  assert_words("net=int4+ef+zstd", 2, "bytes, then zstd; the error is made up for later");
  assert_words("net=fp8e5m2:block=32,stochastic", 2, "(e5m2), a quarter of the bytes, up or down");
  assert_words("net=topk:0.02,values=int8+ef", 2, "2 % of the values, those as 8-bit integers;");
  assert_words("net=topk:k=500+ef", 2, "largest 500 values of each tensor;");
  assert_words("net=lowrank:4", 2, "as two factors of rank 4; the error is made up for later");
  assert_words("net=lowrank:16,values=bf16", 2, "rank 16, those as bf16; the error");
  assert_true(policy_keeps_residuals("net=lowrank:4"));
  assert_true(policy_keeps_residuals("net[conv*]=lowrank:2 net=int8"));
  assert_false(policy_keeps_residuals("net=int8"));
  assert_words("net=topk:0.01+ef ramp=0.25@100,0.05@50", 2, "in stages: 0.25@100,0.05@50");
  assert_words("net=topk:0.01+ef momentum=0.9", 2, "momentum 0.9 is kept by libcomm");
  assert_words("net=topk:0.01+ef clip=2", 2, "norm 2 / sqrt(ranks)");
  assert_words("net=int8 guard=50", 2, "every 50 steps a sample of the results is compared");
  assert_words("net=int8 guard=50", 2, "goes to a milder codec");
  assert_words("net=int8 guard=7,limit=1,report", 2,
               "every 7 steps a sample of the results is "
               "compared with exact sums\n");
  assert_words("net=sign+ef warmup=9 adam=onebit", 2, "the momentum of Adam, whose variance");
  assert_true(policy_sends_momentum("net=sign+ef warmup=9 adam=onebit"));
  assert_false(policy_sends_momentum("net=topk:0.01+ef momentum=0.9"));
  assert_true(policy_has_other_beta("net=sign+ef warmup=9 adam=onebit,beta1=0.8,refresh=3"));
  assert_false(policy_has_other_beta("net=sign+ef warmup=9 adam=onebit,refresh=3"));
  assert_true(policy_keeps_momentum("net=topk:0.01+ef momentum=0.9"));
  assert_false(policy_keeps_momentum("net=topk:0.01+ef"));
}

static void tensors_that_stay_exact_are_counted(void **state) {
  (void)state;
  assert_words("net=int8", 2, "compressed: dense1.weight (97 % of the values); 7 of 8");
  assert_codecs("net=int8 min=0", 2, "int8", "int8", "(100 % of the values); 0 of 8");
  assert_codecs("net=int8 exempt=dense1*", 2, "none", "int8", "dense2.bias, dense1.bias, conv2");
  assert_codecs("net=int8 min=1G", 2, "none", "none", "compressed: nothing");
}

static void tensors_of_each_codec_have_a_line(void **state) {
  (void)state;
  const char *policy = "net[size<=64K]=bf16 net=topk:0.01+ef";
  assert_codecs(policy, 2, "topk:0.01+ef", "bf16",
                "by topk:0.01+ef: dense1.weight (97 % of the values)");
  assert_codecs(policy, 2, "topk:0.01+ef", "bf16", "  by bf16: dense2.weight, dense2.bias, ");
  assert_codecs(policy, 2, "topk:0.01+ef", "bf16", "; 0 of 8 tensors stay exact\n");
  assert_codecs("net[w*]=bf16", 2, "bf16", "none", "compressed: dense1.weight (97 %");
}

static void a_quorum_is_told(void **state) {
  (void)state;
  assert_true(policy_has_quorum("net=int8+ef quorum=90%"));
  assert_false(policy_has_quorum("net=int8+ef"));
  assert_words("net=int8+ef quorum=90% late=20", 2,
               "a step waits for 90% of the ranks, and 20 ms for the others");
  assert_words("net=int8+ef quorum=7", 2, "a step waits for 7 of the ranks, and 10 ms");
}

static void staleness_is_told(void **state) {
  (void)state;
  assert_true(policy_is_stale("net=int8+ef stale=2"));
  assert_false(policy_is_stale("net=int8+ef quorum=2"));
  assert_words("net=int8+ef stale=2", 2,
               "a step waits 10 ms for its averages, and goes on for up to 2 steps without the "
               "newest");
  assert_words("net=int8+ef stale=1:drop late=0", 2,
               "up to 1 step without the newest; who is farther");
}

static void words_that_do_not_fit_are_cut(void **state) {
  (void)state;
  model net;
  char text[64];
  policy_codec codecs[MODEL_PARAMETERS_MAX] = {"int8", "int8", "int8", "int8",
                                               "int8", "int8", "int8", "int8"};
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 1, &net), 0);
  for (size_t size = 1; size < 50; size++) {
    memset(text, 'x', sizeof text);
    policy_words("net=int8 min=0", 2, &net, codecs, "", text, size);
    assert_true(strlen(text) < size);
    assert_int_equal(text[size], 'x');
  }
  model_destroy(&net);
}

static void what_auto_chose_is_told_with_the_reason(void **state) {
  (void)state;
  static const char plan[] = "all-reduce of 16384 float32\n"
                             "  algorithm   hier(gather): 4 nodes, 2 shards, 1 chunk\n"
                             "  inside node none\n"
                             "  between     int8\n"
                             "  result      int8\n"
                             "  because     predicted none 114 us, int8 79.6 us\n";
  char text[512];
  report_auto_words(plan, "  ", text, sizeof text);
  assert_string_equal(text, "auto: int8, hier(gather): 4 nodes, 2 shards, 1 chunk\n"
                            "  predicted none 114 us, int8 79.6 us\n");
  report_auto_words("no plan", "  ", text, sizeof text);
  assert_string_equal(text, "auto: , \n  \n");
  assert_true(report_auto_acts("net=auto:int8 min=64K", 2));
  assert_false(report_auto_acts("net=auto:int8 min=64K", 1));
  assert_false(report_auto_acts("net=int8 min=64K", 2));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(policies_are_told_in_words),
    cmocka_unit_test(tensors_that_stay_exact_are_counted),
    cmocka_unit_test(tensors_of_each_codec_have_a_line),
    cmocka_unit_test(a_quorum_is_told),
    cmocka_unit_test(staleness_is_told),
    cmocka_unit_test(words_that_do_not_fit_are_cut),
    cmocka_unit_test(what_auto_chose_is_told_with_the_reason),
};
RUN_TESTS(tests)
