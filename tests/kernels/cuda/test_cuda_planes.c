/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Planes of bytes split and joined by a device have the bytes of the scalar
 * table, wherever the arrays begin. */

#include "tests/kernels/cuda/odd_values.h"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/kernels.h"
#include "tests/support/unit_tests.h"

enum { PLANES_MAX = 4 };

typedef struct planes {
  uint8_t *memory[PLANES_MAX], *plane[PLANES_MAX];
} planes;

/* Each plane begins at another place, `shift` apart. */
static planes make_planes(unsigned width, size_t shift, size_t n) {
  planes made = {{NULL}, {NULL}};
  for (unsigned p = 0; p < width; p++) {
    size_t before = shift * (p + 1);
    made.memory[p] = sample_memory(before + n);
    made.plane[p] = made.memory[p] + before;
  }
  return made;
}

static void free_planes(planes p) {
  for (unsigned i = 0; i < PLANES_MAX; i++) {
    free(p.memory[i]);
  }
}

static void split_by_table(unsigned width, const uint8_t *source, planes into, size_t n) {
  if (width == 2) {
    lcomm_kernels_scalar.planes.split2(source, into.plane, n);
  } else {
    lcomm_kernels_scalar.planes.split4(source, into.plane, n);
  }
}

static void check(unsigned width, size_t n, size_t shift, size_t plane_shift) {
  uint64_t random = 5 + n;
  uint8_t *memory = sample_memory(shift + width * n), *source = memory + shift;
  uint8_t *back_memory = sample_memory(shift + width * n), *back = back_memory + shift;
  planes got = make_planes(width, plane_shift, n), wanted = make_planes(width, 0, n);
  for (size_t i = 0; i < width * n; i++) {
    source[i] = (uint8_t)(sample_u64(&random) >> 30);
  }
  split_by_table(width, source, wanted, n);
  assert_int_equal(lcomm_cuda_run_split(width, source, got.plane, n, NULL), 0);
  for (unsigned p = 0; p < width; p++) {
    if (n && memcmp(got.plane[p], wanted.plane[p], n)) {
      fail_msg("split, %zu numbers of %u bytes at %zu, planes at %zu: plane %u", n, width, shift,
               plane_shift, p);
    }
  }
  assert_int_equal(lcomm_cuda_run_join(width, (const uint8_t *const *)got.plane, back, n, NULL), 0);
  if (n && memcmp(back, source, width * n)) {
    fail_msg("join, %zu numbers of %u bytes at %zu, planes at %zu", n, width, shift, plane_shift);
  }
  for (size_t i = 0; i < shift; i++) {
    assert_int_equal(back_memory[i], 0);
  }
  free(memory);
  free(back_memory);
  free_planes(got);
  free_planes(wanted);
}

static void every_length_is_split_and_joined(void **state) {
  (void)state;
  for (size_t l = 0; l < ODD_LENGTHS; l++) {
    for (unsigned width = 2; width <= 4; width += 2) {
      check(width, odd_lengths[l], 0, 0);
      check(width, odd_lengths[l], 0, 8);
      check(width, odd_lengths[l], 16, 4);
    }
  }
}

static void numbers_and_planes_may_begin_anywhere(void **state) {
  (void)state;
  for (size_t shift = 0; shift < 17; shift++) {
    for (size_t plane_shift = 0; plane_shift < 9; plane_shift++) {
      for (unsigned width = 2; width <= 4; width += 2) {
        check(width, 37, shift, plane_shift);
        check(width, 1100, shift, plane_shift);
      }
    }
  }
}

static void other_widths_are_refused(void **state) {
  (void)state;
  uint8_t number[8] = {0}, *plane[PLANES_MAX] = {number, number, number, number};
  static const unsigned widths[] = {0, 1, 3, 5, 8};
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(lcomm_cuda_run_split(widths[i], number, plane, 1, NULL),
                     LCOMM_CUDA_INVALID_VALUE);
    assert_int_equal(lcomm_cuda_run_join(widths[i], (const uint8_t *const *)plane, number, 1, NULL),
                     LCOMM_CUDA_INVALID_VALUE);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_length_is_split_and_joined),
    cmocka_unit_test(numbers_and_planes_may_begin_anywhere),
    cmocka_unit_test(other_widths_are_refused),
};
RUN_TESTS(tests)
