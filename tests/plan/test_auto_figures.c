/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Figures of net=auto that are corrected by measured times: what must hold whatever the links
 * really are. The measurements are those of a link that is made up here. */

#include <math.h>

#include "libcomm/plan/auto_figures.h"
#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 1 << 18, CALLS = 3000, BURST_MOST = 256 << 10 };

/* A link as it really is: up to `burst` bytes of a call pass at another rate (a token bucket that
 * fills up between calls). */
typedef struct reality {
  double latency_us, bandwidth_gb_s, burst_bytes, burst_gb_s;
} reality;

static lcomm_topo topo_of(double latency_us, double bandwidth_gb_s) {
  return topo_over(2, 2,
                   (lcomm_link_cost){.latency_us = latency_us,
                                     .bandwidth_gb_s = bandwidth_gb_s,
                                     .message_us = 2});
}

static lcomm_plan *plan_on(const lcomm_topo *topo, const char *text, uint64_t count) {
  return allreduce_plan_over(topo, text, 0, count, true);
}

static lcomm_plan_time predict(const void *subject, const lcomm_topo *topo) {
  const lcomm_plan *plan = subject;
  return lcomm_auto_predict(plan, topo, plan->automatic.candidate);
}

/* What a call by this plan takes in reality. */
static double measure_s(const lcomm_plan *plan, int candidate, const reality *it) {
  lcomm_topo topo = topo_of(it->latency_us, it->bandwidth_gb_s);
  lcomm_plan_time time = lcomm_auto_predict(plan, &topo, candidate);
  double bytes = time.link_us[LCOMM_LINK_NET] * it->bandwidth_gb_s * 1e3;
  if (bytes <= it->burst_bytes) {
    topo.cost[LCOMM_LINK_NET].bandwidth_gb_s = it->burst_gb_s;
    time = lcomm_auto_predict(plan, &topo, candidate);
  }
  lcomm_topo_free(&topo);
  return time.total_us * 1e-6;
}

static double best_fixed_s(const reality *it, uint64_t count) {
  static const char *const fixed[] = {
      "net=none min=1", "net=none+zstd min=1", "net=bf16 min=1",
      "net=int8 min=1", "net=int4 min=1",      "net=int2 min=1",
      "net=sign min=1", "net=sign min=1",      "net=topk:0.01+ef min=1"};
  lcomm_topo topo = topo_of(it->latency_us, it->bandwidth_gb_s);
  double best_s = INFINITY;
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_plan *plan = plan_on(&topo, fixed[i], count);
    best_s = fmin(best_s, measure_s(plan, i, it));
    lcomm_plan_destroy(plan);
  }
  lcomm_topo_free(&topo);
  return best_s;
}

typedef struct outcome {
  double last_s;  /* what a call takes in the end */
  double total_s; /* what all took */
  int changes;
} outcome;

/* Calls of one shape from these figures on. */
static outcome run(lcomm_topo *topo, const reality *it, uint64_t count) {
  outcome out = {0};
  lcomm_auto_trust trust = {0};
  lcomm_plan *plan = plan_on(topo, "net=auto:topk min=1", count);
  for (uint64_t call = 1; call <= CALLS; call++) {
    out.last_s = measure_s(plan, plan->automatic.candidate, it);
    out.total_s += out.last_s;
    if (lcomm_auto_is_agreed(call) && lcomm_auto_correct(topo, &trust, predict, plan, out.last_s)) {
      lcomm_plan_destroy(plan);
      plan = plan_on(topo, "net=auto:topk min=1", count);
      out.changes++;
    }
  }
  lcomm_plan_destroy(plan);
  return out;
}

/* A link that is slower than its figures. A difference below a half is not corrected: the choice
 * may be a step away. */
static void on_a_link_slower_than_measured_the_best_choice_is_found(void **state) {
  (void)state;
  for (double bandwidth = 1e-3; bandwidth < 50; bandwidth *= 5) {
    for (double wrong = 1; wrong <= 1000; wrong *= 10) {
      reality it = {.latency_us = 20, .bandwidth_gb_s = bandwidth};
      lcomm_topo topo = topo_of(20, bandwidth * wrong);
      outcome out = run(&topo, &it, COUNT);
      double best_s = best_fixed_s(&it, COUNT);
      if (out.last_s > 1.6 * best_s) {
        fail_msg("%g GB/s taken for %g: %g s, best %g s", bandwidth, bandwidth * wrong, out.last_s,
                 best_s);
      }
      lcomm_topo_free(&topo);
    }
  }
}

static double bytes_of(const lcomm_plan *plan, const lcomm_topo *topo) {
  return predict(plan, topo).link_us[LCOMM_LINK_NET] * topo->cost[LCOMM_LINK_NET].bandwidth_gb_s *
         1e3;
}

/* On a faster one a coarse codec may go on, whose time says little of the link; but predictions are
 * near what is measured. They are too long only where no more bytes move than a burst has. */
static void whatever_the_figures_were_predictions_come_near_the_measured_times(void **state) {
  (void)state;
  for (double bandwidth = 1e-3; bandwidth < 50; bandwidth *= 5) {
    for (double wrong = 1e-3; wrong <= 1000; wrong *= 10) {
      reality it = {.latency_us = 20, .bandwidth_gb_s = bandwidth};
      lcomm_topo topo = topo_of(20, bandwidth * wrong);
      outcome out = run(&topo, &it, COUNT);
      lcomm_plan *plan = plan_on(&topo, "net=auto:topk min=1", COUNT);
      double predicted_s = predict(plan, &topo).total_us * 1e-6;
      assert_true(out.last_s <= 1.51 * predicted_s);
      assert_true(predicted_s <= 1.51 * out.last_s || bytes_of(plan, &topo) < BURST_MOST);
      lcomm_plan_destroy(plan);
      lcomm_topo_free(&topo);
    }
  }
}

static void right_figures_stay(void **state) {
  (void)state;
  for (double bandwidth = 1e-3; bandwidth < 50; bandwidth *= 5) {
    reality it = {.latency_us = 20, .bandwidth_gb_s = bandwidth};
    lcomm_topo topo = topo_of(20, bandwidth);
    outcome out = run(&topo, &it, COUNT);
    assert_int_equal(out.changes, 0);
    assert_true(out.last_s <= best_fixed_s(&it, COUNT) / 0.9);
    lcomm_topo_free(&topo);
  }
}

/* What carries a burst seems fast to what is short; a correction by that is wrong for what is long,
 * and is taken back. It must not be made over and over again. */
static void bursts_do_not_lead_back_and_forth(void **state) {
  (void)state;
  for (double burst = 1 << 10; burst < 4 * COUNT; burst *= 4) {
    reality it = {
        .latency_us = 20, .bandwidth_gb_s = 1.25e-3, .burst_bytes = burst, .burst_gb_s = 2};
    lcomm_topo topo = topo_of(20, 1.25e-3);
    outcome out = run(&topo, &it, COUNT);
    lcomm_plan *exact = plan_on(&topo, "net=none", COUNT);
    double best_s = best_fixed_s(&it, COUNT), exact_s = measure_s(exact, 0, &it);
    lcomm_plan_destroy(exact);
    assert_true(out.changes <= 8);
    assert_true(out.total_s <= CALLS * best_s + 300 * exact_s);
    lcomm_topo_free(&topo);
  }
}

/* What is short passes in the burst, and says nothing about the link. */
static void a_choice_that_fits_into_a_burst_stays(void **state) {
  (void)state;
  for (uint64_t count = 1 << 12; count <= 1 << 18; count *= 4) {
    reality it = {
        .latency_us = 20, .bandwidth_gb_s = 1.25e-3, .burst_bytes = 1 << 17, .burst_gb_s = 2};
    lcomm_topo topo = topo_of(20, 1.25e-3);
    outcome out = run(&topo, &it, count);
    assert_int_equal(out.changes, 0);
    assert_true(topo.cost[LCOMM_LINK_NET].bandwidth_gb_s == 1.25e-3);
    lcomm_topo_free(&topo);
  }
}

static void what_the_prediction_spends_most_on_is_corrected(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(1000, 10);
  lcomm_auto_trust trust = {0};
  lcomm_plan *plan = plan_on(&topo, "net=auto:int8 min=1", 64);
  assert_true(lcomm_auto_correct(&topo, &trust, predict, plan, 100e-6));
  assert_true(topo.cost[LCOMM_LINK_NET].latency_us < 150);
  assert_true(topo.cost[LCOMM_LINK_NET].bandwidth_gb_s == 10);
  assert_true(fabs(predict(plan, &topo).total_us - 100) < 1);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);

  topo = topo_of(1, 1000);
  topo.codec_cost[0] = (lcomm_codec_cost){.decode_gb_s = 10, .encode_gb_s = 10};
  plan = plan_on(&topo, "net=auto:int8 min=1", COUNT);
  double us = predict(plan, &topo).total_us;
  assert_true(lcomm_auto_correct(&topo, &trust, predict, plan, 3e-6 * us));
  assert_true(topo.codec_cost[0].decode_gb_s < 5);
  assert_true(topo.cost[LCOMM_LINK_NET].bandwidth_gb_s == 1000);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

/* Whatever was measured, the prediction comes to it, or as near as the other terms allow. */
static void a_link_that_is_much_faster_is_corrected_by_its_bandwidth(void **state) {
  (void)state;
  for (double measured_s = 1e-5; measured_s < 1; measured_s *= 10) {
    lcomm_topo topo = topo_of(1, 1e-5);
    lcomm_auto_trust trust = {0};
    lcomm_plan *plan = plan_on(&topo, "net=auto:int8 min=1", BURST_MOST);
    assert_true(lcomm_auto_correct(&topo, &trust, predict, plan, measured_s));
    assert_true(topo.cost[LCOMM_LINK_NET].bandwidth_gb_s > 2e-5);
    assert_true(topo.cost[LCOMM_LINK_NET].latency_us == 1);
    lcomm_plan_destroy(plan);
    lcomm_topo_free(&topo);
  }
}

static void times_that_differ_by_less_than_half_change_nothing(void **state) {
  (void)state;
  lcomm_topo topo = topo_of(20, 0.1);
  lcomm_auto_trust trust = {0};
  lcomm_plan *plan = plan_on(&topo, "net=auto:int8 min=1", COUNT);
  double s = predict(plan, &topo).total_us * 1e-6;
  for (double times = 0.7; times < 1.49; times += 0.05) {
    assert_false(lcomm_auto_correct(&topo, &trust, predict, plan, times * s));
  }
  assert_false(lcomm_auto_correct(&topo, &trust, predict, plan, 0)); /* nothing was measured */
  assert_true(topo.cost[LCOMM_LINK_NET].bandwidth_gb_s == 0.1);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
}

static void agreed_are_the_4th_16th_64th_and_each_256th(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 5000; i++) {
    bool wanted = i == 4 || i == 16 || i == 64 || (i > 0 && i % 256 == 0);
    assert_int_equal(lcomm_auto_is_agreed(i), wanted);
  }
}

static void expect_impossible(lcomm_auto_figures *it, double *member, double value) {
  double usual = *member;
  *member = value;
  assert_false(lcomm_auto_figures_are_possible(it));
  *member = usual;
}

/* They come from a peer. */
static void figures_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const double never[] = {NAN, -1, INFINITY, -INFINITY, 1e13};
  lcomm_topo topo = topo_of(20, 0.1);
  lcomm_auto_figures it = lcomm_auto_figures_of(&topo);
  assert_true(lcomm_auto_figures_are_possible(&it));
  for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
    expect_impossible(&it, &it.latency_us, never[i]);
    expect_impossible(&it, &it.bandwidth_gb_s, never[i]);
    expect_impossible(&it, &it.message_us, never[i]);
    for (int codec = 0; codec < LCOMM_AUTO_CODECS; codec++) {
      expect_impossible(&it, &it.codec[codec].encode_gb_s, never[i]);
      expect_impossible(&it, &it.codec[codec].decode_gb_s, never[i]);
      expect_impossible(&it, &it.codec[codec].encode_us, never[i]);
      expect_impossible(&it, &it.codec[codec].decode_us, never[i]);
    }
  }
  expect_impossible(&it, &it.bandwidth_gb_s, 0);
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(on_a_link_slower_than_measured_the_best_choice_is_found),
    cmocka_unit_test(whatever_the_figures_were_predictions_come_near_the_measured_times),
    cmocka_unit_test(right_figures_stay),
    cmocka_unit_test(bursts_do_not_lead_back_and_forth),
    cmocka_unit_test(a_choice_that_fits_into_a_burst_stays),
    cmocka_unit_test(what_the_prediction_spends_most_on_is_corrected),
    cmocka_unit_test(a_link_that_is_much_faster_is_corrected_by_its_bandwidth),
    cmocka_unit_test(times_that_differ_by_less_than_half_change_nothing),
    cmocka_unit_test(agreed_are_the_4th_16th_64th_and_each_256th),
    cmocka_unit_test(figures_that_cannot_be_are_refused),
};
RUN_TESTS(tests)
