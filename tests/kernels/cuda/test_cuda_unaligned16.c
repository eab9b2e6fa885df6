/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* 16-bit arrays of programs on a device: the bytes of the scalar kernels at any
 * address. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_dense.h"
#include "kernels/kernels.h"
#include "tests/support/unit_tests.h"

enum { ALL = 65536 };

static void every_pattern_is_read_as_the_host_reads_it(void **state) {
  static uint16_t codes[ALL + 1];
  static float wanted[ALL], got[ALL + 1];
  static const float factors[] = {1.0f, -0.37f, 3e38f};
  (void)state;
  for (int i = 0; i < ALL; i++) {
    codes[i + 1] = (uint16_t)i;
  }
  for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
    got[ALL] = 7.0f;
    lcomm_kernels_scalar.half.f16_to_f32(codes + 1, factors[f], wanted, ALL);
    assert_int_equal(
        lcomm_cuda_run_unaligned16_load(LCOMM_CUDA_F16, codes + 1, factors[f], got, ALL, NULL), 0);
    assert_memory_equal(got, wanted, sizeof(wanted));
    lcomm_kernels_scalar.half.bf16_to_f32(codes + 1, factors[f], wanted, ALL);
    assert_int_equal(
        lcomm_cuda_run_unaligned16_load(LCOMM_CUDA_BF16, codes + 1, factors[f], got, ALL, NULL), 0);
    assert_memory_equal(got, wanted, sizeof(wanted));
    assert_true(got[ALL] == 7.0f);
  }
}

static void every_kind_of_value_is_written_as_the_host_writes_it(void **state) {
  static float values[ALL];
  static uint16_t wanted[ALL], got[ALL + 2];
  (void)state;
  for (uint32_t i = 0; i < ALL; i++) { /* all exponents, and the ties between codes */
    uint32_t bits = i << 16 | (i * 2654435761u >> 19 & 0x1fff) | (i % 3 == 0 ? 0x8000 : 0);
    memcpy(&values[i], &bits, sizeof(bits));
  }
  got[ALL + 1] = 0xbeef;
  lcomm_kernels_scalar.half.f32_to_f16(values, 1.0f, wanted, ALL);
  assert_int_equal(lcomm_cuda_run_unaligned16_store(LCOMM_CUDA_F16, values, got + 1, ALL, NULL), 0);
  assert_memory_equal(got + 1, wanted, sizeof(wanted));
  lcomm_kernels_scalar.half.f32_to_bf16(values, wanted, ALL);
  assert_int_equal(lcomm_cuda_run_unaligned16_store(LCOMM_CUDA_BF16, values, got + 1, ALL, NULL),
                   0);
  assert_memory_equal(got + 1, wanted, sizeof(wanted));
  assert_int_equal(got[ALL + 1], 0xbeef);
}

static void what_is_no_array_of_16_bit_codes_is_refused(void **state) {
  float value = 1.0f;
  uint16_t half[2] = {0, 0};
  (void)state;
  assert_int_equal(lcomm_cuda_run_unaligned16_load(LCOMM_CUDA_INT8, half, 1.0f, &value, 1, NULL),
                   LCOMM_CUDA_INVALID_VALUE);
  assert_int_equal(lcomm_cuda_run_unaligned16_load(LCOMM_CUDA_F16, (const uint8_t *)half + 1, 1.0f,
                                                   &value, 1, NULL),
                   LCOMM_CUDA_INVALID_VALUE);
  assert_int_equal(lcomm_cuda_run_unaligned16_store(LCOMM_CUDA_F16, NULL, half, 1, NULL),
                   LCOMM_CUDA_INVALID_VALUE);
  assert_int_equal(lcomm_cuda_run_unaligned16_store(LCOMM_CUDA_F16, NULL, NULL, 0, NULL), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_pattern_is_read_as_the_host_reads_it),
    cmocka_unit_test(every_kind_of_value_is_written_as_the_host_writes_it),
    cmocka_unit_test(what_is_no_array_of_16_bit_codes_is_refused),
};
RUN_TESTS(tests)
