/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What sums with error feedback cost their caller on a device, for worlds that are only supposed.
 */

#include "tests/engine/supposed_devices.h"

enum { MOST = 100 };

/* 100 MB. */
static const lcomm_plan_request large_tensor = {
    .count = 25000000, .dtype = LCOMM_FLOAT32, .error_feedback = true};

/* Tensors, and calls with a residual. Each result of top-k says what leaves the residual. */
static const char *const fed_back[] = {
    "net=topk:0.01 min=1",
    "net=topk:0.01+ef min=1",
    "net=topk:0.001+ef min=1",
    "net=topk:0.1+ef min=1",
    "net=topk:0.6+ef min=1", /* dense results */
    "net=topk:0.6+ef min=1 momentum=0.9",
    "net=topk:0.01,values=int8+ef min=1",
    "net=topk:0.01+ef+zstd min=1",
    "net=topk:0.01+ef min=1 momentum=0.9",
    "net=topk:safe min=1",
    "net=topk:fast min=1",
    "net=int8+ef min=1",
    "net=int4:safe min=1",
    "net=int2 min=1",
    "net=sign min=1",
    "net=none",
};

enum { FED_BACK = sizeof fed_back / sizeof *fed_back };

static void require_hundred(const lcomm_topo *topo, bool stay) {
  for (size_t i = 0; i < FED_BACK; i++) {
    for (int rank = 0; rank < topo->size; rank += EACH - 1) {
      lcomm_tape_calls calls = count(&large_tensor, fed_back[i], topo, rank);
      require_most(&calls, fed_back[i], rank, MOST);
      assert_int_equal(calls.stay > 0, stay);
    }
  }
}

static void large_sums_with_error_feedback_take_a_hundred_calls(void **state) {
  lcomm_topo topo = suppose(4 * EACH, 4, true);
  (void)state;
  require_hundred(&topo, false);
  lcomm_topo_free(&topo);
}

static void they_do_where_payloads_stay(void **state) {
  lcomm_topo topo = suppose_nvlink(4, EACH);
  (void)state;
  require_hundred(&topo, true);
  lcomm_topo_free(&topo);
}

/* What leaves the residual by all results of a rank, and loses its momentum with that; momentum
 * that joins is another one. */
static void commits_of_topk_are_one_launch(void **state) {
  lcomm_topo topo = suppose(4 * EACH, 4, true);
  (void)state;
  lcomm_tape_calls call = count(&large_call, "net=topk:0.01 min=1", &topo, 3);
  lcomm_tape_calls tensor = count(&large_tensor, "net=topk:0.01+ef min=1", &topo, 3);
  lcomm_tape_calls moved = count(&large_tensor, "net=topk:0.01+ef min=1 momentum=0.9", &topo, 3);
  assert_int_equal(lcomm_tape_calls_all(&tensor), lcomm_tape_calls_all(&call) + 1);
  assert_int_equal(lcomm_tape_calls_all(&moved), lcomm_tape_calls_all(&call) + 2);
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(large_sums_with_error_feedback_take_a_hundred_calls),
    cmocka_unit_test(they_do_where_payloads_stay),
    cmocka_unit_test(commits_of_topk_are_one_launch),
};
RUN_TESTS(tests)
