/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The inputs of the perf programs, whose results are known for every type,
 * operation and collective, and the memory they lie in. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_tests.h"
#include "tools/common/tool_element.h"
#include "tools/perf/perf_buffers.h"
#include "tools/perf/perf_pattern.h"

enum { RANKS_MAX = 5, COUNT = 300, DTYPES = 6, OPS = 4 };

/* What all ranks send, and what rank `rank` of them gets. */
static unsigned char sent[RANKS_MAX][RANKS_MAX * COUNT * 8];
static unsigned char result[RANKS_MAX * COUNT * 8];

static lcomm_perf_call call_of(lcomm_perf_kind kind, lcomm_dtype dtype, lcomm_op op) {
  return (lcomm_perf_call){lcomm_perf_collective_of(kind), COUNT, dtype, op, 1, 1, 0};
}

static void send_all(const lcomm_perf_pattern *pattern, const lcomm_perf_call *call) {
  for (int r = 0; r < pattern->ranks; r++) {
    lcomm_perf_pattern_fill(pattern, r, sent[r],
                            lcomm_perf_send_count(call->collective, COUNT, pattern->ranks));
  }
}

static double reduce(lcomm_dtype dtype, lcomm_op op, int ranks, uint64_t i) {
  double x = tool_element(dtype, sent[0], i);
  for (int r = 1; r < ranks; r++) {
    double y = tool_element(dtype, sent[r], i);
    x = op == LCOMM_MIN ? fmin(x, y) : op == LCOMM_MAX ? fmax(x, y) : x + y;
  }
  return x;
}

/* An average as the type rounds it. */
static void set_average(lcomm_dtype dtype, uint64_t i, double sum, int ranks) {
  switch (dtype) {
  case LCOMM_FLOAT32:
    ((float *)(void *)result)[i] = (float)sum / (float)ranks;
    break;
  case LCOMM_FLOAT64:
    ((double *)(void *)result)[i] = sum / ranks;
    break;
  default: /* whole numbers, towards zero */
    tool_element_set(dtype, result, i, trunc(sum / ranks));
    break;
  }
}

/* Do it in the plainest way. */
static void do_call(const lcomm_perf_call *call, int ranks, int rank) {
  uint64_t count = lcomm_perf_receive_count(call->collective, COUNT, ranks);
  size_t part = COUNT * lcomm_dtype_size(call->dtype);
  switch (call->collective->kind) {
  case LCOMM_PERF_BROADCAST:
    memcpy(result, sent[call->root], part);
    return;
  case LCOMM_PERF_ALLGATHER:
    for (int r = 0; r < ranks; r++) {
      memcpy(result + r * part, sent[r], part);
    }
    return;
  case LCOMM_PERF_ALLTOALL:
    for (int r = 0; r < ranks; r++) {
      memcpy(result + r * part, sent[r] + rank * part, part);
    }
    return;
  default:
    break;
  }
  uint64_t first = call->collective->kind == LCOMM_PERF_REDUCE_SCATTER ? (uint64_t)rank * COUNT : 0;
  for (uint64_t i = 0; i < count; i++) {
    double x = reduce(call->dtype, call->op, ranks, first + i);
    if (call->op == LCOMM_AVG) {
      set_average(call->dtype, i, x, ranks);
    } else {
      tool_element_set(call->dtype, result, i, x);
    }
  }
}

static void check_call(const lcomm_perf_call *call, int ranks) {
  lcomm_perf_pattern pattern = lcomm_perf_pattern_make(call->dtype, ranks);
  uint64_t count = lcomm_perf_receive_count(call->collective, COUNT, ranks);
  send_all(&pattern, call);
  for (int rank = 0; rank < ranks; rank++) {
    do_call(call, ranks, rank);
    lcomm_perf_difference d = lcomm_perf_pattern_compare(&pattern, call, rank, result, 0, count);
    if (d.wrong != 0 || d.error_square > 1e-6 * d.result_square) {
      fail_msg("%s of %s, operation %d, rank %d of %d: %llu wrong", call->collective->name,
               lcomm_dtype_name(call->dtype), (int)call->op, rank, ranks,
               (unsigned long long)d.wrong);
    }
    /* one more, one less, another sign: nothing passes */
    result[7 * lcomm_dtype_size(call->dtype) + lcomm_dtype_size(call->dtype) - 1] ^= 0x40;
    d = lcomm_perf_pattern_compare(&pattern, call, rank, result, 0, count);
    assert_int_equal(d.wrong, 1);
  }
}

static void every_result_is_known(void **state) {
  static const int worlds[] = {1, 2, 3, RANKS_MAX};
  (void)state;
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    for (int d = 0; d < DTYPES; d++) {
      for (int op = 0; op < OPS; op++) {
        lcomm_perf_call call = call_of((lcomm_perf_kind)kind, (lcomm_dtype)d, (lcomm_op)op);
        int is_half = call.dtype == LCOMM_FLOAT16 || call.dtype == LCOMM_BFLOAT16;
        if (is_half && call.op == LCOMM_AVG) {
          continue; /* a library has to round them, see below */
        }
        for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++) {
          call.root = worlds[w] > 1;
          check_call(&call, worlds[w]);
        }
      }
    }
  }
}

static void sums_need_no_rounding_in_their_type(void **state) {
  (void)state;
  for (int d = 0; d < DTYPES; d++) {
    lcomm_perf_call call = call_of(LCOMM_PERF_ALLREDUCE, (lcomm_dtype)d, LCOMM_SUM);
    for (int ranks = 1; ranks <= 64; ranks += 21) {
      lcomm_perf_pattern pattern = lcomm_perf_pattern_make(call.dtype, ranks);
      for (uint64_t i = 0; i < 2000; i++) {
        unsigned char element[8];
        double sum = lcomm_perf_pattern_exact(&pattern, &call, 0, i);
        assert_true(fabs(sum) < (call.dtype == LCOMM_INT32 ? 0x1p31 : 0x1p53));
        tool_element_set(call.dtype, element, 0, sum);
        assert_true(tool_element(call.dtype, element, 0) == sum);
      }
    }
  }
}

static void averages_of_halves_may_be_rounded_once(void **state) {
  lcomm_perf_call call = call_of(LCOMM_PERF_ALLREDUCE, LCOMM_BFLOAT16, LCOMM_AVG);
  lcomm_perf_pattern pattern = lcomm_perf_pattern_make(LCOMM_BFLOAT16, 3);
  uint16_t *halves = (uint16_t *)(void *)result;
  (void)state;
  send_all(&pattern, &call);
  for (uint64_t i = 0; i < COUNT; i++) {
    float x = (float)(reduce(LCOMM_BFLOAT16, LCOMM_SUM, 3, i) / 3.0);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    halves[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  assert_int_equal(lcomm_perf_pattern_compare(&pattern, &call, 0, result, 0, COUNT).wrong, 0);
  halves[3] = (uint16_t)(halves[3] + 2);
  assert_int_equal(lcomm_perf_pattern_compare(&pattern, &call, 0, result, 0, COUNT).wrong, 1);
}

static void nan_is_wrong(void **state) {
  lcomm_perf_call call = call_of(LCOMM_PERF_BROADCAST, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_perf_pattern pattern = lcomm_perf_pattern_make(LCOMM_FLOAT32, 2);
  (void)state;
  lcomm_perf_pattern_fill(&pattern, 1, result, COUNT);
  ((float *)(void *)result)[5] = NAN;
  assert_int_equal(lcomm_perf_pattern_compare(&pattern, &call, 0, result, 0, COUNT).wrong, 1);
}

static void values_are_spread_and_differ_between_ranks(void **state) {
  lcomm_perf_pattern pattern = lcomm_perf_pattern_make(LCOMM_FLOAT32, 4);
  float a[COUNT], b[COUNT];
  int negative = 0, small = 0, equal = 0;
  (void)state;
  lcomm_perf_pattern_fill(&pattern, 0, a, COUNT);
  lcomm_perf_pattern_fill(&pattern, 1, b, COUNT);
  for (int i = 0; i < COUNT; i++) {
    negative += a[i] < 0.0f;
    small += fabsf(a[i]) < 0x1p16f;
    equal += a[i] == b[i];
  }
  assert_in_range(negative, COUNT / 3, COUNT * 2 / 3);
  assert_in_range(small, COUNT / 10, COUNT * 9 / 10);
  assert_in_range(equal, 0, COUNT / 20);
}

/* ---------------------------------------------------------------- buffers */

static const lcomm_perf_recording none = {NULL, 0};

static lcomm_perf_input input_of(lcomm_dtype dtype, int ranks, int rank) {
  return (lcomm_perf_input){lcomm_perf_pattern_make(dtype, ranks), &none, rank};
}

static void in_place_the_smaller_part_lies_in_the_larger_one(void **state) {
  (void)state;
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    lcomm_perf_call call = call_of((lcomm_perf_kind)kind, LCOMM_INT64, LCOMM_SUM);
    lcomm_perf_input input = input_of(LCOMM_INT64, 4, 2);
    lcomm_perf_buffers buffers;
    assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 1));
    lcomm_perf_place place = lcomm_perf_buffers_place(&buffers, 0);
    ptrdiff_t distance = (char *)place.receive - (char *)place.send;
    ptrdiff_t own = 2 * COUNT * 8;
    assert_int_equal(distance, kind == LCOMM_PERF_REDUCE_SCATTER ? own
                               : kind == LCOMM_PERF_ALLGATHER    ? -own
                                                                 : 0);
    lcomm_perf_buffers_free(&buffers);
  }
}

static void slots_and_two_buffers_do_not_overlap(void **state) {
  (void)state;
  for (int kind = LCOMM_PERF_ALLREDUCE; kind <= LCOMM_PERF_ALLTOALL; kind++) {
    lcomm_perf_call call = call_of((lcomm_perf_kind)kind, LCOMM_FLOAT16, LCOMM_SUM);
    lcomm_perf_input input = input_of(LCOMM_FLOAT16, 3, 1);
    lcomm_perf_buffers buffers;
    call.in_place = 0;
    assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 3));
    assert_int_equal(buffers.slots, 3);
    size_t send_bytes = 2 * lcomm_perf_send_count(call.collective, COUNT, 3);
    size_t receive_bytes = 2 * lcomm_perf_receive_count(call.collective, COUNT, 3);
    unsigned char *kept = malloc(send_bytes);
    assert_non_null(kept);
    memcpy(kept, lcomm_perf_buffers_place(&buffers, 0).send, send_bytes);
    for (int slot = 0; slot < 3; slot++) {
      memset(lcomm_perf_buffers_place(&buffers, slot).receive, slot, receive_bytes);
    }
    for (int slot = 0; slot < 3; slot++) {
      assert_memory_equal(lcomm_perf_buffers_place(&buffers, slot).send, kept, send_bytes);
      assert_int_equal(*(char *)lcomm_perf_buffers_place(&buffers, slot).receive, slot);
    }
    free(kept);
    lcomm_perf_buffers_free(&buffers);
  }
}

static void an_input_comes_back_and_old_results_go(void **state) {
  lcomm_perf_call call = call_of(LCOMM_PERF_ALLGATHER, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_perf_input input = input_of(LCOMM_FLOAT32, 3, 1);
  lcomm_perf_buffers buffers;
  (void)state;
  assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 2));
  lcomm_perf_place place = lcomm_perf_buffers_place(&buffers, 1);
  lcomm_perf_pattern_fill(&input.pattern, 1, result, COUNT);
  memset(place.receive, 0, 3 * COUNT * 4);
  lcomm_perf_buffers_refill(&buffers, 1);
  assert_memory_equal(place.send, result, COUNT * 4);
  assert_true(((float *)place.receive)[0] == 0.0f);
  lcomm_perf_buffers_renew(&buffers, 1);
  assert_memory_equal(place.send, result, COUNT * 4);
  assert_true(((float *)place.receive)[0] != 0.0f);
  lcomm_perf_buffers_free(&buffers);
}

static void large_slots_are_few(void **state) {
  lcomm_perf_call call = call_of(LCOMM_PERF_ALLREDUCE, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_perf_input input = input_of(LCOMM_FLOAT32, 2, 0);
  lcomm_perf_buffers buffers;
  (void)state;
  call.count = UINT64_C(1) << 20;
  assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 1000));
  assert_int_equal(buffers.slots, 4);
  lcomm_perf_buffers_free(&buffers);
  call.count = UINT64_C(5) << 20;
  assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 1000));
  assert_int_equal(buffers.slots, 1);
  lcomm_perf_buffers_free(&buffers);
}

static void recorded_values_are_repeated(void **state) {
  float values[] = {1.5f, -2.5f, 3.5f};
  lcomm_perf_recording recording = {values, 3};
  lcomm_perf_call call = call_of(LCOMM_PERF_ALLREDUCE, LCOMM_FLOAT32, LCOMM_SUM);
  lcomm_perf_input input = {lcomm_perf_pattern_make(LCOMM_FLOAT32, 2), &recording, 0};
  lcomm_perf_buffers buffers;
  (void)state;
  assert_true(lcomm_perf_buffers_make(&buffers, &call, &input, 1));
  const float *send = lcomm_perf_buffers_place(&buffers, 0).send;
  for (int i = 0; i < COUNT; i++) {
    assert_true(send[i] == values[i % 3]);
  }
  lcomm_perf_buffers_free(&buffers);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_result_is_known),
    cmocka_unit_test(sums_need_no_rounding_in_their_type),
    cmocka_unit_test(averages_of_halves_may_be_rounded_once),
    cmocka_unit_test(nan_is_wrong),
    cmocka_unit_test(values_are_spread_and_differ_between_ranks),
    cmocka_unit_test(in_place_the_smaller_part_lies_in_the_larger_one),
    cmocka_unit_test(slots_and_two_buffers_do_not_overlap),
    cmocka_unit_test(an_input_comes_back_and_old_results_go),
    cmocka_unit_test(large_slots_are_few),
    cmocka_unit_test(recorded_values_are_repeated),
};
RUN_TESTS(tests)
