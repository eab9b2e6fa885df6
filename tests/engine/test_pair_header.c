/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What a message between two ranks begins with: the bytes of codecs/WIRE.md, 1.5. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/engine/pair_header.h"
#include "tests/support/unit_tests.h"

static const uint8_t expected[LCOMM_PAIR_HEADER_SIZE] = {
    0x6c, 0x63, 0x70, 0x72, 0x78, 0x56, 0x34, 0x12, 0x15, 0x81, 0x03, 0,
    0,    0,    0,    0,    2,    3,    9,    0,    0,    0,    0,    0};

static lcomm_pair_header header_of(uint64_t count) {
  return (lcomm_pair_header){.count = count, .dtype = LCOMM_BFLOAT16, .number = 0x12345678};
}

static void a_header_has_the_bytes_of_the_format(void **state) {
  (void)state;
  uint8_t bytes[LCOMM_PAIR_HEADER_SIZE];
  lcomm_pair_header header = header_of(0x38115), read;
  lcomm_format format = lcomm_format_of(&lcomm_codec_fp8e4m3);
  format.block = 32;
  lcomm_pair_header_set_format(&header, &format, true);
  lcomm_pair_header_write(&header, bytes);
  assert_memory_equal(bytes, expected, sizeof(expected));
  assert_true(lcomm_pair_header_read(bytes, sizeof(bytes), &read));
  assert_true(read.count == 0x38115 && read.dtype == LCOMM_BFLOAT16 && read.number == 0x12345678);
  lcomm_format again = lcomm_pair_header_get_format(&read);
  assert_true(lcomm_format_equal(&again, &format));
}

static void any_other_byte_where_it_matters_is_refused(void **state) {
  (void)state;
  static const struct {
    int at;
    uint8_t byte;
  } bad[] = {{0, 'L'}, {3, 0},     {16, 8},    {16, 255},  {17, 6}, {17, 10},
             {18, 12}, {18, 0x19}, {18, 0x40}, {18, 0x80}, {19, 1}, {23, 255}};
  lcomm_pair_header read;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    uint8_t bytes[LCOMM_PAIR_HEADER_SIZE];
    memcpy(bytes, expected, sizeof(bytes));
    bytes[bad[i].at] = bad[i].byte;
    assert_false(lcomm_pair_header_read(bytes, sizeof(bytes), &read));
  }
  for (size_t size = 0; size < LCOMM_PAIR_HEADER_SIZE; size++) {
    assert_false(lcomm_pair_header_read(expected, size, &read));
  }
}

static void data_is_short_where_it_fits_behind_a_header_and_is_not_framed(void **state) {
  (void)state;
  lcomm_format none = lcomm_format_of(&lcomm_codec_none);
  lcomm_pair_header fits = header_of(2036), large = header_of(2037), empty = header_of(0);
  assert_true(lcomm_pair_is_short(&fits));
  assert_false(lcomm_pair_is_short(&large));
  lcomm_pair_header_set_format(&fits, &none, true);
  lcomm_pair_header_set_format(&empty, &none, true);
  assert_false(lcomm_pair_is_short(&fits));
  assert_true(lcomm_pair_is_short(&empty));
  large.count = UINT64_MAX;
  assert_false(lcomm_pair_is_short(&large));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_header_has_the_bytes_of_the_format),
    cmocka_unit_test(any_other_byte_where_it_matters_is_refused),
    cmocka_unit_test(data_is_short_where_it_fits_behind_a_header_and_is_not_framed),
};
RUN_TESTS(tests)
