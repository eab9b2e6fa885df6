/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* When codec_bench says that a codec pays. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tools/codec/codec_predict.h"

enum { VALUES = 100 << 20 };

static lcomm_prediction_case case_of(double bits, double speed, double bandwidth, uint64_t nodes) {
  return (lcomm_prediction_case){.count = VALUES,
                                 .sent_bytes = (double)VALUES * bits / 8.0,
                                 .encode = speed,
                                 .decode = speed,
                                 .bandwidth = bandwidth,
                                 .nodes = nodes};
}

static void assert_near(double value, double expected) {
  if (!(fabs(value / expected - 1.0) < 1e-9)) {
    fail_msg("%.12g is not %.12g", value, expected);
  }
}

static void times_are_those_of_the_two_phase_model(void **state) {
  (void)state;
  lcomm_prediction_case given = case_of(8.25, 10e9, 1e9, 8);
  given.decode = 20e9;
  lcomm_prediction p = lcomm_predict(&given);
  double size = 4.0 * VALUES, each = 2.0 * 7.0 / 8.0;
  assert_near(p.codec_s, size * ((1.0 + 1.0 / 8.0) / 10e9 + each / 20e9));
  assert_near(p.wire_s, each * VALUES * 8.25 / 8.0 / 1e9);
  assert_near(p.sequential_s, p.codec_s + p.wire_s);
  assert_near(p.pipelined_s, p.wire_s + p.codec_s / 100.0); /* 400 MiB in chunks of 4 */
  assert_near(p.fp32_s, each * size / 1e9);
  assert_near(p.bf16_s, each * size / 2e9);
}

static void an_exact_codec_costs_no_time(void **state) {
  (void)state;
  lcomm_prediction_case given = case_of(32.0, 0.0, 1e9, 4);
  lcomm_prediction p = lcomm_predict(&given);
  assert_near(p.sequential_s, p.fp32_s);
  assert_near(p.pipelined_s, p.fp32_s);
  assert_true(p.sequential_pays_below <= 0.0 && p.pipelined_pays_below <= 0.0);
}

/* At the bandwidth it names, a codec is just as fast as bf16. */
static void it_pays_below_its_limit_and_not_above(void **state) {
  (void)state;
  static const double bits[] = {0.25, 4.0, 8.25, 11.0, 15.9};
  static const double speeds[] = {0.3e9, 2e9, 10e9};
  for (size_t b = 0; b < 5; b++) {
    for (size_t s = 0; s < 3; s++) {
      for (uint64_t nodes = 2; nodes <= 64; nodes *= 2) {
        lcomm_prediction_case given = case_of(bits[b], speeds[s], 1e9, nodes);
        lcomm_prediction p = lcomm_predict(&given);
        given.bandwidth = p.sequential_pays_below;
        lcomm_prediction at = lcomm_predict(&given);
        assert_near(at.sequential_s, at.bf16_s);
        for (double off = 0.9; off < 1.2; off += 0.2) {
          given.bandwidth = off * p.pipelined_pays_below;
          at = lcomm_predict(&given);
          assert_int_equal(at.pipelined_s < at.bf16_s, off < 1.0);
        }
      }
    }
  }
}

static void more_bytes_than_bf16_never_pay(void **state) {
  (void)state;
  lcomm_prediction_case given = case_of(17.0, 10e9, 1e6, 4);
  lcomm_prediction p = lcomm_predict(&given);
  assert_true(fabs(p.pipelined_pays_below) <= 0.0 && fabs(p.sequential_pays_below) <= 0.0);
  assert_true(p.pipelined_s > p.bf16_s);
}

/* As fast as the baseline at the bandwidth that is named, whichever it is. */
static void the_baseline_is_what_has_to_be_beaten(void **state) {
  (void)state;
  lcomm_prediction_case given = case_of(16.0, 2e9, 1e9, 4);
  lcomm_prediction p = lcomm_predict(&given);
  assert_true(p.baseline_s <= p.bf16_s && p.baseline_s >= p.bf16_s);
  assert_true(p.pipelined_pays_below <= 0.0);
  given.baseline = LCOMM_BASELINE_FP32;
  p = lcomm_predict(&given);
  assert_true(p.baseline_s <= p.fp32_s && p.baseline_s >= p.fp32_s);
  assert_true(p.pipelined_pays_below > 0.0);
  for (double off = 0.9; off < 1.2; off += 0.2) {
    given.bandwidth = off * p.pipelined_pays_below;
    lcomm_prediction at = lcomm_predict(&given);
    assert_int_equal(at.pipelined_s < at.fp32_s, off < 1.0);
  }
}

static void verdict(double bits, double speed, double bandwidth, const char *words) {
  char text[LCOMM_VERDICT_MAX];
  lcomm_prediction_case given = case_of(bits, speed, bandwidth, 8);
  lcomm_prediction p = lcomm_predict(&given);
  lcomm_predict_verdict(&given, &p, text);
  if (!strstr(text, words)) {
    fail_msg("not '%s' but '%s'", words, text);
  }
}

static void the_verdict_says_why(void **state) {
  (void)state;
  verdict(8.25, 10e9, 0.1e9, "pays: 1.94 times as fast, bound by the wire");
  verdict(0.25, 1e9, 0.2e9, "bound by the codec");
  verdict(8.25, 10e9, 3e9, "pays in a pipeline only");
  verdict(8.25, 10e9, 100e9, "does not pay");
  verdict(8.25, 10e9, 100e9, "pays below");
  verdict(17.0, 10e9, 1e9, "no fewer bytes");
  verdict(16.0, 1000e9, 1e9, "as fast as bf16");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(times_are_those_of_the_two_phase_model),
    cmocka_unit_test(an_exact_codec_costs_no_time),
    cmocka_unit_test(it_pays_below_its_limit_and_not_above),
    cmocka_unit_test(more_bytes_than_bf16_never_pay),
    cmocka_unit_test(the_baseline_is_what_has_to_be_beaten),
    cmocka_unit_test(the_verdict_says_why),
};
RUN_TESTS(tests)
