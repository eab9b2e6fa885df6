/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums, minima, maxima and quotients of a device against kernels/plain.h. */

#include "tests/kernels/cuda/odd_values.h"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/plain.h"
#include "tests/support/unit_tests.h"

enum { NOWHERE = -1 };

typedef struct type {
  const char *name;
  lcomm_cuda_plain type;
  lcomm_dtype dtype;
  size_t size;
} type;

static const type types[] = {
    {"float64", LCOMM_CUDA_F64, LCOMM_FLOAT64, 8}, {"int32", LCOMM_CUDA_I32, LCOMM_INT32, 4},
    {"int64", LCOMM_CUDA_I64, LCOMM_INT64, 8},     {"int8", LCOMM_CUDA_I8, LCOMM_INT8, 1},
    {"uint8", LCOMM_CUDA_U8, LCOMM_UINT8, 1},
};

enum { TYPES = sizeof types / sizeof types[0] };

static const lcomm_plain_op plain_ops[] = {LCOMM_PLAIN_SUM, LCOMM_PLAIN_MIN, LCOMM_PLAIN_MAX};

/* The ends of the range are frequent. */
static uint64_t draw(uint64_t *random, const type *t) {
  static const uint64_t ends[] = {
      0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, INT32_MAX, UINT64_C(1) << 31};
  if (t->type == LCOMM_CUDA_F64) {
    return lcomm_f64_bits(odd_f64(random));
  }
  uint64_t drawn = sample_u64(random);
  return sample_u64(random) % 4 ? drawn : ends[drawn % 7];
}

typedef struct job {
  const type *t;
  lcomm_cuda_op op;
  uint32_t count;
  size_t n;
  int destination;     /* a source, or NOWHERE */
  uint32_t shift;      /* in elements, of all arrays */
  uint32_t last_shift; /* of the last array */
  double factor;
} job;

/* Of a sum it is open which NaN it is, where two meet or one is new. */
static bool is_open(const job *j, unsigned char *const *sources, size_t i) {
  double sum, value;
  bool open = false;
  memcpy(&sum, sources[0] + 8 * i, sizeof sum);
  for (uint32_t s = 1; s < j->count; s++) {
    memcpy(&value, sources[s] + 8 * i, sizeof value);
    bool met = odd_is_nan_f64(sum) == odd_is_nan_f64(value);
    sum += value;
    open = open || (met && odd_is_nan_f64(sum));
  }
  return open;
}

static void check_element(const job *j, unsigned char *const *sources, const unsigned char *got,
                          const unsigned char *wanted, size_t i) {
  size_t size = j->t->size;
  double got_f64, wanted_f64;
  if (memcmp(got + i * size, wanted + i * size, size) == 0) {
    return;
  }
  if (j->t->type == LCOMM_CUDA_F64 && j->op == LCOMM_CUDA_SUM) {
    memcpy(&got_f64, got + 8 * i, sizeof got_f64);
    memcpy(&wanted_f64, wanted + 8 * i, sizeof wanted_f64);
    if (odd_is_nan_f64(got_f64) && odd_is_nan_f64(wanted_f64) && is_open(j, sources, i)) {
      return;
    }
  }
  fail_msg("%s, op %d, %u sources into %d, shifted by %u and %u, element %zu of %zu", j->t->name,
           (int)j->op, j->count, j->destination, j->shift, j->last_shift, i, j->n);
}

static void run(const job *j, uint64_t *random) {
  unsigned char *memory[LCOMM_CUDA_SOURCES_MAX + 1], *was[LCOMM_CUDA_SOURCES_MAX];
  const void *sources[LCOMM_CUDA_SOURCES_MAX];
  size_t size = j->t->size, bytes = j->n * size;
  for (uint32_t s = 0; s <= j->count; s++) {
    size_t shift = (s == j->count ? j->last_shift : j->shift) * size;
    memory[s] = (unsigned char *)sample_memory(bytes + shift) + shift;
  }
  for (uint32_t s = 0; s < j->count; s++) {
    sources[s] = memory[s];
    for (size_t i = 0; i < j->n; i++) {
      uint64_t bits = draw(random, j->t);
      memcpy(memory[s] + i * size, &bits, size);
    }
    was[s] = sample_memory(bytes);
    memcpy(was[s], memory[s], bytes);
  }
  void *result = memory[j->destination == NOWHERE ? (int)j->count : j->destination];
  unsigned char *wanted = sample_memory(bytes);
  lcomm_plain_kernel_of(j->t->dtype, plain_ops[j->op])((const void *const *)was, j->count, wanted,
                                                       j->n);
  if (j->factor != 1) {
    lcomm_plain_scale_f64((double *)(void *)wanted, j->factor, j->n);
  }
  lcomm_cuda_combine a = {sources, j->count, j->t->type, j->op, j->factor, result, j->n};
  assert_int_equal(lcomm_cuda_run_combine(&a, NULL), 0);
  for (size_t i = 0; i < j->n; i++) {
    check_element(j, was, result, wanted, i);
  }
  for (uint32_t s = 0; s <= j->count; s++) {
    free(memory[s] - (s == j->count ? j->last_shift : j->shift) * size);
    free(s < j->count ? was[s] : wanted);
  }
}

static void every_length_and_number_of_sources_is_right(void **state) {
  (void)state;
  static const uint32_t counts[] = {1, 2, 3, 4, 5, 8, LCOMM_CUDA_SOURCES_MAX};
  uint64_t random = 12345;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_CUDA_SUM; op <= LCOMM_CUDA_MAX; op++) {
      for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        for (size_t l = 0; l < ODD_LENGTHS; l++) {
          size_t n = counts[c] > 8 && odd_lengths[l] > 4100 ? 600 : odd_lengths[l];
          run(&(job){&types[k], (lcomm_cuda_op)op, counts[c], n, NOWHERE, 0, 0, 1}, &random);
        }
      }
    }
  }
}

static void the_destination_may_be_any_source(void **state) {
  (void)state;
  uint64_t random = 777;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_CUDA_SUM; op <= LCOMM_CUDA_MAX; op++) {
      for (uint32_t count = 1; count <= 5; count++) {
        for (uint32_t source = 0; source < count; source++) {
          run(&(job){&types[k], (lcomm_cuda_op)op, count, 4500, (int)source, source % 4, 0, 1},
              &random);
        }
      }
    }
  }
}

static void any_alignment_of_the_element_works(void **state) {
  (void)state;
  uint64_t random = 99;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_CUDA_SUM; op <= LCOMM_CUDA_MAX; op++) {
      for (uint32_t shift = 0; shift < 16; shift++) {
        for (size_t n = 0; n < 12; n++) {
          run(&(job){&types[k], (lcomm_cuda_op)op, 3, n < 8 ? n : 900 + n, NOWHERE, shift % 4,
                     shift / 4, 1},
              &random);
        }
      }
    }
  }
}

static void float64_results_are_multiplied(void **state) {
  (void)state;
  static const double factors[] = {1.0 / 3, 0.5, 1e-300, -2};
  uint64_t random = 4;
  for (int op = LCOMM_CUDA_SUM; op <= LCOMM_CUDA_MAX; op++) {
    for (size_t f = 0; f < 4; f++) {
      for (uint32_t shift = 0; shift < 2; shift++) {
        run(&(job){&types[0], (lcomm_cuda_op)op, 2, 2001, NOWHERE, shift, 0, factors[f]}, &random);
      }
    }
  }
}

static void what_there_is_not_is_refused(void **state) {
  (void)state;
  double value = 1;
  const void *sources[LCOMM_CUDA_SOURCES_MAX + 1] = {&value};
  const lcomm_cuda_combine good = {sources, 1, LCOMM_CUDA_F64, LCOMM_CUDA_SUM, 1, &value, 1};
  lcomm_cuda_combine bad[] = {good, good, good, good};
  bad[0].count = 0;
  bad[1].count = LCOMM_CUDA_SOURCES_MAX + 1;
  bad[2].op = (lcomm_cuda_op)3;
  bad[3].type = (lcomm_cuda_plain)(LCOMM_CUDA_U8 + 1);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(lcomm_cuda_run_combine(&bad[i], NULL), LCOMM_CUDA_INVALID_VALUE);
  }
  int32_t narrow = 5;
  int64_t wide = 5;
  for (int divisor = -1; divisor <= 0; divisor++) {
    assert_int_equal(lcomm_cuda_run_divide_i32(&narrow, divisor, 1, NULL),
                     LCOMM_CUDA_INVALID_VALUE);
    assert_int_equal(lcomm_cuda_run_divide_i64(&wide, divisor, 1, NULL), LCOMM_CUDA_INVALID_VALUE);
  }
  assert_true(value == 1 && narrow == 5 && wide == 5);
}

/* ---------------------------------------------------------------- quotients */

static void check_division(int64_t divisor, size_t n, size_t shift) {
  uint64_t random = (uint64_t)divisor + n;
  int32_t *narrow = sample_memory((n + shift) * sizeof *narrow);
  int32_t *narrow_wanted = sample_memory((n + shift) * sizeof *narrow);
  int64_t *wide = sample_memory((n + shift) * sizeof *wide);
  int64_t *wide_wanted = sample_memory((n + shift) * sizeof *wide);
  for (size_t i = 0; i < n + shift; i++) {
    narrow[i] = narrow_wanted[i] = (int32_t)draw(&random, &types[1]);
    wide[i] = wide_wanted[i] = (int64_t)draw(&random, &types[2]);
  }
  lcomm_plain_divide_i32(narrow_wanted + shift, (int32_t)divisor, n);
  lcomm_plain_divide_i64(wide_wanted + shift, divisor, n);
  assert_int_equal(lcomm_cuda_run_divide_i32(narrow + shift, (int32_t)divisor, n, NULL), 0);
  assert_int_equal(lcomm_cuda_run_divide_i64(wide + shift, divisor, n, NULL), 0);
  assert_memory_equal(narrow, narrow_wanted, (n + shift) * sizeof *narrow);
  assert_memory_equal(wide, wide_wanted, (n + shift) * sizeof *wide);
  free(narrow);
  free(narrow_wanted);
  free(wide);
  free(wide_wanted);
}

static void integers_are_divided_towards_zero(void **state) {
  (void)state;
  static const int64_t divisors[] = {1, 2, 3, 7, 1000, INT32_MAX};
  for (size_t d = 0; d < sizeof divisors / sizeof divisors[0]; d++) {
    for (size_t l = 0; l < ODD_LENGTHS; l++) {
      check_division(divisors[d], odd_lengths[l], (l + d) % 4);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_length_and_number_of_sources_is_right),
    cmocka_unit_test(the_destination_may_be_any_source),
    cmocka_unit_test(any_alignment_of_the_element_works),
    cmocka_unit_test(float64_results_are_multiplied),
    cmocka_unit_test(what_there_is_not_is_refused),
    cmocka_unit_test(integers_are_divided_towards_zero),
};
RUN_TESTS(tests)
