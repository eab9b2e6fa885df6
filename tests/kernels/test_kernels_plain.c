/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plain sums, minima and maxima against a reference that takes one element at
 * a time and follows the rules word by word. */

#include "tests/kernels/kernel_samples.h"

#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/plain.h"
#include "tests/support/unit_tests.h"

enum { MOST_SOURCES = 16, NOWHERE = -1 };

/* How one type behaves; elements are passed as bytes. */
typedef struct type {
  const char *name;
  lcomm_dtype dtype;
  size_t size;
  void (*draw)(uint64_t *random, void *value);
  bool (*is_nan)(const void *value);
  bool (*is_less)(const void *a, const void *b); /* neither is NaN */
  void (*add)(const void *a, const void *b, void *sum);
} type;

/* ------------------------------------------------------------- the types */

#define INTEGER(name, signed_type, unsigned_type)                                                  \
  static void draw_##name(uint64_t *random, void *value) {                                         \
    static const unsigned_type ends[] = {0, 1, (unsigned_type)-1, (unsigned_type)-1 / 2,           \
                                         (unsigned_type)-1 / 2 + 1};                               \
    unsigned_type drawn = (unsigned_type)sample_u64(random);                                       \
    drawn = sample_u64(random) % 4 == 0 ? ends[sample_u64(random) % 5] : drawn;                    \
    memcpy(value, &drawn, sizeof drawn);                                                           \
  }                                                                                                \
  static bool less_##name(const void *a, const void *b) {                                          \
    return *(const signed_type *)a < *(const signed_type *)b;                                      \
  }                                                                                                \
  static void add_##name(const void *a, const void *b, void *sum) {                                \
    unsigned_type total = *(const unsigned_type *)a + *(const unsigned_type *)b;                   \
    memcpy(sum, &total, sizeof total);                                                             \
  }

/* Zeros, infinities and NaNs are frequent; some NaNs are signalling. */
#define FLOATING(name, float_type, unsigned_type, infinity, quiet)                                 \
  static void draw_##name(uint64_t *random, void *value) {                                         \
    static const unsigned_type special[] = {                                                       \
        0, 1, infinity, (infinity) | 5, (infinity) | (quiet), (infinity) | (quiet) | 9};           \
    unsigned_type sign = ~((unsigned_type)-1 / 2), drawn = (unsigned_type)sample_u64(random);      \
    unsigned_type odd = special[sample_u64(random) % 6] | (drawn & sign);                          \
    float_type usual = (float_type)sample_normal(random);                                          \
    uint64_t which = sample_u64(random) % 8;                                                       \
    if (which < 2)                                                                                 \
      memcpy(value, &usual, sizeof usual);                                                         \
    else                                                                                           \
      memcpy(value, which < 5 ? &drawn : which < 6 ? &odd : &special[0], sizeof drawn);            \
    if (which == 7)                                                                                \
      memcpy(value, &sign, sizeof sign);                                                           \
  }                                                                                                \
  static bool nan_##name(const void *value) {                                                      \
    unsigned_type bits;                                                                            \
    memcpy(&bits, value, sizeof bits);                                                             \
    return (bits & ((unsigned_type)-1 / 2)) > (infinity);                                          \
  }                                                                                                \
  static bool less_##name(const void *a, const void *b) {                                          \
    float_type left = *(const float_type *)a, right = *(const float_type *)b;                      \
    return left < right || (left == right && signbit(left) && !signbit(right));                    \
  }                                                                                                \
  static void add_##name(const void *a, const void *b, void *sum) {                                \
    float_type total = *(const float_type *)a + *(const float_type *)b;                            \
    memcpy(sum, &total, sizeof total);                                                             \
  }

static bool never_nan(const void *value) {
  (void)value;
  return false;
}

INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(i8, int8_t, uint8_t)
INTEGER(u8, uint8_t, uint8_t)
FLOATING(f32, float, uint32_t, UINT32_C(0x7f800000), UINT32_C(0x00400000))
FLOATING(f64, double, uint64_t, UINT64_C(0x7ff0000000000000), UINT64_C(0x0008000000000000))

static const type types[] = {
    {"float32", LCOMM_FLOAT32, 4, draw_f32, nan_f32, less_f32, add_f32},
    {"float64", LCOMM_FLOAT64, 8, draw_f64, nan_f64, less_f64, add_f64},
    {"int32", LCOMM_INT32, 4, draw_i32, never_nan, less_i32, add_i32},
    {"int64", LCOMM_INT64, 8, draw_i64, never_nan, less_i64, add_i64},
    {"int8", LCOMM_INT8, 1, draw_i8, never_nan, less_i8, add_i8},
    {"uint8", LCOMM_UINT8, 1, draw_u8, never_nan, less_u8, add_u8},
};

enum { TYPES = sizeof types / sizeof types[0] };

/* ---------------------------------------------------------- the reference */

static void combine_two(const type *t, lcomm_plain_op op, const void *a, const void *b,
                        void *result) {
  if (op == LCOMM_PLAIN_SUM) {
    t->add(a, b, result);
    return;
  }
  bool second = t->is_nan(b) || (op == LCOMM_PLAIN_MIN ? t->is_less(b, a) : t->is_less(a, b));
  memmove(result, second && !t->is_nan(a) ? b : a, t->size);
}

static void combine_all(const type *t, lcomm_plain_op op, unsigned char *const *sources,
                        size_t count, size_t i, void *result) {
  memcpy(result, sources[0] + i * t->size, t->size);
  for (size_t s = 1; s < count; s++) {
    combine_two(t, op, result, sources[s] + i * t->size, result);
  }
}

/* Of a sum that is NaN, it is open which one. */
static bool is_right(const type *t, lcomm_plain_op op, const void *got, const void *wanted) {
  if (op == LCOMM_PLAIN_SUM && t->is_nan(wanted)) {
    return t->is_nan(got);
  }
  return memcmp(got, wanted, t->size) == 0;
}

/* ------------------------------------------------------------- comparing */

typedef struct job {
  const type *t;
  lcomm_plain_op op;
  size_t count, n;
  int destination; /* a source, or NOWHERE */
} job;

static void run(const job *j, uint64_t *random) {
  const type *t = j->t;
  unsigned char *sources[MOST_SOURCES], *wanted = sample_memory(j->n * t->size);
  unsigned char *apart = sample_memory(j->n * t->size);
  for (size_t s = 0; s < j->count; s++) {
    sources[s] = sample_memory(j->n * t->size);
    for (size_t i = 0; i < j->n; i++) {
      t->draw(random, sources[s] + i * t->size);
    }
  }
  for (size_t i = 0; i < j->n; i++) {
    combine_all(t, j->op, sources, j->count, i, wanted + i * t->size);
  }
  unsigned char *result = j->destination == NOWHERE ? apart : sources[j->destination];
  lcomm_plain_kernel_of(t->dtype, j->op)((const void *const *)sources, j->count, result, j->n);
  for (size_t i = 0; i < j->n; i++) {
    if (!is_right(t, j->op, result + i * t->size, wanted + i * t->size)) {
      fail_msg("%s, op %d, %zu sources into %d, element %zu of %zu", t->name, (int)j->op, j->count,
               j->destination, i, j->n);
    }
  }
  for (size_t s = 0; s < j->count; s++) {
    free(sources[s]);
  }
  free(wanted);
  free(apart);
}

static void every_length_and_number_of_sources_is_right(void **state) {
  (void)state;
  static const size_t lengths[] = {0, 1, 2, 3, 5, 8, 17, 511, 512, 513, 1030};
  uint64_t random = 12345;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_PLAIN_SUM; op <= LCOMM_PLAIN_MAX; op++) {
      for (size_t count = 1; count <= MOST_SOURCES; count++) {
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
          run(&(job){&types[k], (lcomm_plain_op)op, count, lengths[l], NOWHERE}, &random);
        }
      }
    }
  }
}

static void the_destination_may_be_any_source(void **state) {
  (void)state;
  uint64_t random = 777;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_PLAIN_SUM; op <= LCOMM_PLAIN_MAX; op++) {
      for (int count = 1; count <= MOST_SOURCES; count++) {
        for (int source = 0; source < count; source++) {
          run(&(job){&types[k], (lcomm_plain_op)op, (size_t)count, 600, source}, &random);
        }
      }
    }
  }
}

/* Sources that begin anywhere a vector does not. */
static void any_alignment_of_the_element_works(void **state) {
  (void)state;
  enum { N = 700, SHIFTS = 4 };
  uint64_t random = 99;
  for (size_t k = 0; k < TYPES; k++) {
    const type *t = &types[k];
    unsigned char *a = sample_memory((N + SHIFTS) * t->size);
    unsigned char *b = sample_memory((N + SHIFTS) * t->size);
    unsigned char *result = sample_memory((N + SHIFTS) * t->size), wanted[8];
    for (size_t i = 0; i < N + SHIFTS; i++) {
      t->draw(&random, a + i * t->size);
      t->draw(&random, b + i * t->size);
    }
    for (size_t shift = 0; shift < SHIFTS * SHIFTS; shift++) {
      unsigned char *sources[] = {a + shift % SHIFTS * t->size, b + shift / SHIFTS * t->size};
      unsigned char *place = result + shift * 3 % SHIFTS * t->size;
      lcomm_plain_kernel_of(t->dtype, LCOMM_PLAIN_MIN)((const void *const *)sources, 2, place, N);
      for (size_t i = 0; i < N; i++) {
        combine_all(t, LCOMM_PLAIN_MIN, sources, 2, i, wanted);
        assert_memory_equal(place + i * t->size, wanted, t->size);
      }
    }
    free(a);
    free(b);
    free(result);
  }
}

/* ------------------------------------------------------------ properties */

/* Minima of minima are the minimum of all, and which NaN is the exception. */
static void minima_and_maxima_do_not_depend_on_grouping(void **state) {
  (void)state;
  enum { N = 2000, SOURCES = 6 };
  uint64_t random = 31337;
  for (size_t k = 0; k < TYPES; k++) {
    for (int op = LCOMM_PLAIN_MIN; op <= LCOMM_PLAIN_MAX; op++) {
      const type *t = &types[k];
      lcomm_plain_kernel kernel = lcomm_plain_kernel_of(t->dtype, (lcomm_plain_op)op);
      unsigned char *sources[SOURCES], *all = sample_memory(N * t->size);
      for (size_t s = 0; s < SOURCES; s++) {
        sources[s] = sample_memory(N * t->size);
        for (size_t i = 0; i < N; i++) {
          t->draw(&random, sources[s] + i * t->size);
        }
      }
      kernel((const void *const *)sources, SOURCES, all, N);
      const void *backwards[] = {sources[5], sources[3], sources[1]},
                 *rest[] = {sources[4], sources[2], sources[0]};
      const void *both[] = {sources[5], sources[4]};
      kernel(backwards, 3, sources[5], N);
      kernel(rest, 3, sources[4], N);
      kernel(both, 2, sources[5], N);
      for (size_t i = 0; i < N * t->size; i += t->size) {
        if (!t->is_nan(all + i) || !t->is_nan(sources[5] + i)) {
          assert_memory_equal(all + i, sources[5] + i, t->size);
        }
      }
      for (size_t s = 0; s < SOURCES; s++) {
        free(sources[s]);
      }
      free(all);
    }
  }
}

static void float32_sums_are_those_of_the_kernel_table(void **state) {
  (void)state;
  enum { N = 1500, SOURCES = 7 };
  uint64_t random = 4711;
  float *sources[SOURCES], *ours = sample_memory(N * sizeof *ours),
                           *table = sample_memory(N * sizeof *table);
  for (size_t s = 0; s < SOURCES; s++) {
    sources[s] = sample_memory(N * sizeof(float));
    for (size_t i = 0; i < N; i++) {
      sources[s][i] = sample_normal(&random) * (s % 2 ? 1e20f : 1e-20f);
    }
  }
  for (size_t count = 1; count <= SOURCES; count++) {
    lcomm_plain_kernel_of(LCOMM_FLOAT32, LCOMM_PLAIN_SUM)((const void *const *)sources, count, ours,
                                                          N);
    lcomm_kernels_best()->f32_sum((const float *const *)sources, count, table, N);
    assert_memory_equal(ours, table, N * sizeof *ours);
  }
  for (size_t s = 0; s < SOURCES; s++) {
    free(sources[s]);
  }
  free(ours);
  free(table);
}

static void types_without_plain_arithmetic_have_no_kernel(void **state) {
  (void)state;
  assert_null(lcomm_plain_kernel_of(LCOMM_FLOAT16, LCOMM_PLAIN_SUM));
  assert_null(lcomm_plain_kernel_of(LCOMM_BFLOAT16, LCOMM_PLAIN_MAX));
  assert_null(lcomm_plain_kernel_of((lcomm_dtype)77, LCOMM_PLAIN_SUM));
  assert_null(lcomm_plain_kernel_of(LCOMM_INT32, (lcomm_plain_op)3));
}

/* ------------------------------------------------------- scaling, dividing */

enum { VALUES = 1001 };

static void integers_are_divided_towards_zero(void **state) {
  (void)state;
  static const int32_t divisors[] = {1, 2, 3, 5, 7, 8, 1000, 32767, 65536, INT32_MAX};
  uint64_t random = 2024;
  int32_t *narrow = sample_memory(VALUES * sizeof *narrow), narrow_was[VALUES];
  int64_t *wide = sample_memory(VALUES * sizeof *wide), wide_was[VALUES];
  for (size_t d = 0; d < sizeof divisors / sizeof divisors[0]; d++) {
    for (size_t i = 0; i < VALUES; i++) {
      draw_i32(&random, &narrow_was[i]);
      draw_i64(&random, &wide_was[i]);
      int32_t near = narrow_was[i] / divisors[d] * divisors[d]; /* where a quotient steps */
      narrow_was[i] = i % 2 ? near : narrow_was[i];
      narrow_was[i] -= i % 4 == 1 && near > INT32_MIN;
    }
    memcpy(narrow, narrow_was, sizeof narrow_was);
    memcpy(wide, wide_was, sizeof wide_was);
    lcomm_plain_divide_i32(narrow, divisors[d], VALUES);
    lcomm_plain_divide_i64(wide, divisors[d], VALUES);
    for (size_t i = 0; i < VALUES; i++) {
      assert_true(narrow[i] == narrow_was[i] / divisors[d]);
      assert_true(wide[i] == wide_was[i] / divisors[d]);
    }
  }
  free(narrow);
  free(wide);
}

static void doubles_are_multiplied(void **state) {
  (void)state;
  uint64_t random = 5;
  double *values = sample_memory(VALUES * sizeof *values), was[VALUES];
  for (size_t i = 0; i < VALUES; i++) {
    draw_f64(&random, &was[i]);
  }
  memcpy(values, was, sizeof was);
  lcomm_plain_scale_f64(values, 1.0 / 3.0, VALUES);
  for (size_t i = 0; i < VALUES; i++) {
    double wanted = was[i] * (1.0 / 3.0);
    assert_true(nan_f64(&wanted) ? nan_f64(&values[i])
                                 : memcmp(&values[i], &wanted, sizeof wanted) == 0);
  }
  free(values);
}

static float mean_of(float keep, float before, float take, float value) {
  volatile float kept = keep * before, taken = take * value; /* each rounded */
  volatile float sum = kept + taken;
  return isfinite(sum) ? sum : 0;
}

static void a_mean_is_finite_and_may_be_where_the_one_before_was(void **state) {
  (void)state;
  static const float odd[] = {1.5f, -2.0f, INFINITY, NAN, 3e38f, 1e-45f, -0.0f};
  enum { ODD = sizeof odd / sizeof *odd };
  for (size_t i = 0; i < ODD * ODD; i++) {
    float before = odd[i % ODD], value = odd[i / ODD], mean = before;
    lcomm_plain_mean_f32(0.9f, &mean, (float)(1 - 0.9), &value, &mean, 1);
    assert_true(mean == mean_of(0.9f, before, (float)(1 - 0.9), value));
    lcomm_plain_mean_f32(3.0f, &before, 3.0f, &value, &mean, 1);
    assert_true(mean == mean_of(3.0f, before, 3.0f, value));
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_length_and_number_of_sources_is_right),
    cmocka_unit_test(the_destination_may_be_any_source),
    cmocka_unit_test(any_alignment_of_the_element_works),
    cmocka_unit_test(minima_and_maxima_do_not_depend_on_grouping),
    cmocka_unit_test(float32_sums_are_those_of_the_kernel_table),
    cmocka_unit_test(types_without_plain_arithmetic_have_no_kernel),
    cmocka_unit_test(integers_are_divided_towards_zero),
    cmocka_unit_test(doubles_are_multiplied),
    cmocka_unit_test(a_mean_is_finite_and_may_be_where_the_one_before_was),
};
RUN_TESTS(tests)
