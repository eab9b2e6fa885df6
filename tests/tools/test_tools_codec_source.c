/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Files as sources of codec_bench: raw, npy and safetensors. */

#include "tests/support/unit_tests.h"
#include "tests/tools/source_files.h"

/* ------------------------------------------------------------------ values */

static void float32_is_read_bit_for_bit(void **state) {
  static const uint32_t bits[] = {0x3f800000u, 0x80000000u, 0x7f800001u, 0xffc12345u, 1u};
  bytes b = {0};
  for (size_t i = 0; i < 5; i++) {
    put_number(&b, bits[i], 4);
  }
  lcomm_source *source = open_good(write_file(state, "a.F32", &b), NULL);
  uint32_t read[5];
  lcomm_source_read(source, 0, 5, (float *)read);
  assert_memory_equal(read, bits, sizeof bits);
  lcomm_source_read(source, 2, 2, (float *)read);
  assert_memory_equal(read, bits + 2, 8);
  lcomm_source_read(source, 5, 0, NULL);
  lcomm_source_close(source);
}

static void extensions_tell_the_type(void **state) {
  static const struct {
    const char *name;
    float values[3];
  } cases[] = {{"a.f16", {1.0f, 1.875f, -2.0f}}, {"a.bf16", {0x1p-7f, 1.0f, -2.0f}}};
  static const uint16_t codes[] = {0x3c00, 0x3f80, 0xc000};
  for (size_t i = 0; i < 2; i++) {
    bytes b = {0};
    for (size_t k = 0; k < 3; k++) {
      put_number(&b, codes[k], 2);
    }
    lcomm_source *source = open_good(write_file(state, cases[i].name, &b), NULL);
    float read[3];
    lcomm_source_read(source, 0, 1, read);
    lcomm_source_read(source, 1, 2, read + 1);
    assert_memory_equal(read, cases[i].values, sizeof read);
    lcomm_source_close(source);
  }
}

/* The value of a small float from the definition of its fields; Inf and NaN by sign only. */
static double small_float(uint16_t code, int exponent_bits, int mantissa_bits) {
  int exponent = (code & 0x7fff) >> mantissa_bits, top = (1 << exponent_bits) - 1;
  int mantissa = code & ((1 << mantissa_bits) - 1), bias = top / 2;
  double magnitude = exponent == 0
                         ? ldexp(mantissa, 1 - bias - mantissa_bits)
                         : ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  if (exponent == top) {
    magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
  }
  return (code & 0x8000) != 0 ? -magnitude : magnitude;
}

static void every_16_bit_value_is_read_exactly(void **state) {
  (void)state;
  for (uint32_t code = 0; code < 65536; code++) {
    uint8_t odd[3] = {0, (uint8_t)code, (uint8_t)(code >> 8)};
    float half, brain;
    lcomm_source_convert(LCOMM_SOURCE_F16, odd + 1, 1, &half);
    lcomm_source_convert(LCOMM_SOURCE_BF16, odd + 1, 1, &brain);
    double expect_half = small_float((uint16_t)code, 5, 10);
    double expect_brain = small_float((uint16_t)code, 8, 7);
    assert_true(isnan(expect_half) ? isnan(half) : (double)half == expect_half);
    assert_true(isnan(expect_brain) ? isnan(brain) : (double)brain == expect_brain);
    assert_int_equal(signbit(half) != 0, code >> 15);
    assert_int_equal(signbit(brain) != 0, code >> 15);
  }
}

static void float64_is_rounded_to_nearest_even(void **state) {
  (void)state;
  static const struct {
    double value;
    float expected;
  } cases[] = {{1.0 + 0x1p-24, 1.0f},
               {1.0 + 0x1.8p-23, 1.0f + 0x1p-22f},
               {1.0 + 0x1.1p-24, 1.0f + 0x1p-23f},
               {-1e300, -INFINITY},
               {1e-300, 0.0f},
               {0x1p-149, 0x1p-149f}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t odd[9];
    float value;
    memcpy(odd + 1, &cases[i].value, 8);
    lcomm_source_convert(LCOMM_SOURCE_F64, odd + 1, 1, &value);
    assert_true(value == cases[i].expected);
  }
}

static void any_range_reads_the_same_values(void **state) {
  bytes b = {0};
  float all[40], part[40];
  put_floats(&b, 40);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.f32", &b));
  const char *layers = write_text(state, "list", "a 1\nb 7\nc 20 3\nd 39 1");
  lcomm_source *source = open_good(path, layers);
  lcomm_source_read(source, 0, 40, all);
  for (size_t i = 0; i < 40; i++) {
    assert_true(all[i] == (float)i);
  }
  for (size_t first = 0; first < 40; first++) {
    for (size_t n = 0; n <= 40 - first; n++) {
      memset(part, 0xff, sizeof part);
      lcomm_source_read(source, first, n, part);
      assert_memory_equal(part, all + first, n * sizeof *part);
    }
  }
  lcomm_source_close(source);
}

/* ------------------------------------------------------------------- names */

static lcomm_status add_name(const char *name, size_t size) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source_contents contents = {0};
  lcomm_source_input input = {"a", NULL, 0};
  lcomm_source_entry entry = {.name = name, .name_size = size, .count = 1};
  lcomm_status status = lcomm_source_add(&input, &entry, &contents, error);
  if (status == LCOMM_OK) {
    assert_true(strlen(contents.tensors[0].name) == size &&
                memcmp(contents.tensors[0].name, name, size) == 0);
  }
  lcomm_source_contents_free(&contents);
  return status;
}

static void names_are_utf8_without_control_characters(void **state) {
  static const char *const good[] = {" ",
                                     "~",
                                     "a.b/c-d_e 0",
                                     "\xc2\xa0",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xee\x80\x80",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf",
                                     "x\xf0\x9f\x98\x80y"};
  static const char *const bad[] = {"",
                                    "\n",
                                    "a\x1f",
                                    "\x7f",
                                    "\x80",
                                    "\xc0\xaf",
                                    "\xc2\x9b",
                                    "\xe0\x9f\xbf",
                                    "\xed\xa0\x80",
                                    "\xed\xbf\xbf",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf8\x88\x80\x80",
                                    "\xc3(",
                                    "\xc3\xff",
                                    "\xe2\x82",
                                    "\xe2\x28\xa1",
                                    "\xf0\x9f\x98"};
  char longest[LCOMM_SOURCE_NAME_MAX];
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    assert_int_equal(add_name(good[i], strlen(good[i])), LCOMM_OK);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(add_name(bad[i], strlen(bad[i])), LCOMM_ERR_WIRE);
  }
  assert_int_equal(add_name("\xc3\xa9", 1), LCOMM_ERR_WIRE); /* cut inside a character */
  assert_int_equal(add_name("a\0b", 3), LCOMM_ERR_WIRE);
  memset(longest, 'n', sizeof longest);
  assert_int_equal(add_name(longest, sizeof longest - 1), LCOMM_OK);
  assert_int_equal(add_name(longest, sizeof longest), LCOMM_ERR_WIRE);
}

/* --------------------------------------------------------------------- npy */

static void npy_of_any_shape_order_and_version_is_read(void **state) {
  static const struct {
    int major;
    const char *header;
    uint64_t count;
    size_t size;
    lcomm_source_type type;
  } cases[] = {
      {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }  \n", 3, 12, LCOMM_SOURCE_F32},
      {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 6, 24, LCOMM_SOURCE_F32},
      {2, "{'descr': '<f2', 'fortran_order': False, 'shape': (), }", 1, 2, LCOMM_SOURCE_F16},
      {3, "{\"shape\":(1L,2,2),'fortran_order':True,'descr':'<f8'}", 4, 32, LCOMM_SOURCE_F64},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_npy(cases[i].major, cases[i].header);
    uint64_t begin = b.size;
    b.size += cases[i].size;
    lcomm_source_contents contents = parse_good(lcomm_source_parse_npy, &b);
    assert_int_equal(contents.tensor_count, 1);
    check_tensor(&contents, 0, "a.bin", 0, cases[i].count);
    assert_int_equal(contents.tensors[0].type, cases[i].type);
    assert_int_equal(contents.tensors[0].offset, begin);
    lcomm_source_contents_free(&contents);
    b.size--;
    check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_WIRE, "bytes follow");
    b.size += 2;
    check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_WIRE, "bytes follow");
  }
}

static void npy_that_is_not_understood_is_refused(void **state) {
#define REST "'fortran_order': False, 'shape': (2,)}"
  static const struct {
    const char *header, *phrase;
    lcomm_status status;
  } cases[] = {
      {"{'descr': '<u2', " REST, ".bf16 files", LCOMM_ERR_UNSUPPORTED},
      {"{'descr': '|V2', " REST, ".bf16 files", LCOMM_ERR_UNSUPPORTED},
      {"{'descr': '>f4', " REST, "big-endian", LCOMM_ERR_UNSUPPORTED},
      {"{'descr': '', " REST, "type ''", LCOMM_ERR_UNSUPPORTED},
      {"{'descr': '\x1b[2J', " REST, "type '?[2J'", LCOMM_ERR_UNSUPPORTED},
      {"{'descr': [('a', '<f4')], " REST, "not records", LCOMM_ERR_WIRE},
      {"{" REST, "all of", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True}", "all of", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'shape': (2,)}", "all of", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'descr': '<f4', " REST, "once", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'other': 1, " REST, "once", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "True or False", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (-2,)}", "a length", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (2 2)}", "',' or ')'", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': 2}", "a tuple", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (18446744073709551618,)}", "below 2^64",
       LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (55340232221128654850,)}", "below 2^64",
       LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 2)}",
       "fewer than 2^64", LCOMM_ERR_WIRE},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387906,)}", "8 bytes follow",
       LCOMM_ERR_WIRE},
      {"{'descr': '<f4', " REST " x", "nothing more", LCOMM_ERR_WIRE},
      {"{'descr': '<f4' " REST, "',' or '}'", LCOMM_ERR_WIRE},
      {"{'descr': '<f4", "end of a string", LCOMM_ERR_WIRE},
      {"{'descr': '<f4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', " REST, "a short string",
       LCOMM_ERR_WIRE},
  };
#undef REST
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_npy(1, cases[i].header);
    put_floats(&b, 2);
    check_unparsed(lcomm_source_parse_npy, &b, cases[i].status, cases[i].phrase);
  }
  bytes b = make_npy(4, "");
  check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_UNSUPPORTED, "version 4.0");
  char header[] = "{'descr': '<f4', 'shape': (1L,), 'fortran_order': False}";
  for (size_t size = sizeof header - 1; size > 0; size--) {
    header[size - 1] = '\0';
    b = make_npy(1, header);
    check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_WIRE, "header");
  }
  for (b = make_npy(2, "{}"); b.size > 0; b.size--) {
    check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_WIRE, "");
  }
}

/* ------------------------------------------------------------- safetensors */

static void safetensors_are_read_in_the_order_of_their_data(void **state) {
  bytes b = make_safetensors("{\"z\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[20,24]},"
                             "\"__metadata__\":{\"a\":\"b\"},"
                             "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[8,20]},"
                             "\"e\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[8,8]}} ");
  put_number(&b, 99, 8);
  put_floats(&b, 3);
  put_number(&b, 0xbf803f80u, 4);
  lcomm_source *source = open_good(write_file(state, "a.safetensors", &b), NULL);
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  float values[5];
  assert_string_equal(lcomm_source_name(source), "a.safetensors");
  assert_int_equal(contents->count, 5);
  assert_int_equal(contents->tensor_count, 2);
  check_tensor(contents, 0, "a", 0, 3);
  check_tensor(contents, 1, "z", 3, 2);
  assert_int_equal(contents->skipped_count, 2);
  assert_string_equal(contents->skipped[0].name, "i");
  assert_string_equal(contents->skipped[0].why, "I64");
  assert_string_equal(contents->skipped[1].name, "e");
  assert_string_equal(contents->skipped[1].why, "no values");
  lcomm_source_read(source, 0, 5, values);
  assert_memory_equal(values, ((float[]){0, 1, 2, 1, -1}), sizeof values);
  lcomm_source_close(source);
}

static void safetensors_that_do_not_add_up_are_refused(void **state) {
#define ONE(dtype, shape, from, to)                                                                \
  "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
  static const struct {
    const char *header, *phrase;
  } cases[] = {
      {"{\"a\":" ONE("\"F32\"", "[2]", "0", "8") ",\"b\":" ONE("\"F32\"", "[1]", "4", "8") "}",
       "\"b\" does not begin"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "4", "8") "}", "\"a\" does not begin"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "0", "4") "}", "8 bytes of data, expected the 4"},
      {"{}", "8 bytes of data, expected the 0"},
      {"{\"a\":" ONE("\"F32\"", "[3]", "0", "12") "}", "cut short"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "8", "0") "}", "outside"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "-1", "8") "}", "two whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "0", "8,9") "}", "two whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "0", "9007199254740993") "}", "outside"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "0", "1e17") "}", "two whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "[1]", "0", "8") "}", "does not fit"},
      {"{\"a\":" ONE("\"F32\"", "[4294967296,4294967296,2]", "0", "8") "}", "whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "[2305843009213693952,2]", "0", "8") "}", "whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "[1.5]", "0", "8") "}", "whole numbers"},
      {"{\"a\":" ONE("\"F32\"", "2", "0", "8") "}", "whole numbers"},
      {"{\"a\":" ONE("\"f 32\"", "[2]", "0", "8") "}", "\"dtype\""},
      {"{\"a\":" ONE("3", "[2]", "0", "8") "}", "\"dtype\""},
      {"{\"\":" ONE("\"F32\"", "[2]", "0", "8") "}", "(0 bytes)"},
      {"{\"a\\n\":" ONE("\"F32\"", "[2]", "0", "8") "}", "\"a?\""},
      {"{\"a\\n\":" ONE("\"I32\"", "[2]", "0", "8") "}", "\"a?\""},
      {"{\"a\":" ONE("\"F32\"", "[2]", "0", "8") ",\"a\":" ONE("\"F32\"", "[0]", "8", "8") "}",
       "twice"},
      {"{\"a\":1}", "data_offsets"},
      {"[]", "no JSON object"},
      {"{\"1\":1,", "no JSON"},
      {"{} x", "no JSON"},
  };
#undef ONE
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_safetensors(cases[i].header);
    put_floats(&b, 2);
    check_unparsed(lcomm_source_parse_safetensors, &b, LCOMM_ERR_WIRE, cases[i].phrase);
  }
  bytes b = make_safetensors("{}");
  b.data[0] = 3;
  check_unparsed(lcomm_source_parse_safetensors, &b, LCOMM_ERR_WIRE, "header of 3 bytes");
  b.data[7] = 0xff;
  check_unparsed(lcomm_source_parse_safetensors, &b, LCOMM_ERR_WIRE, "cut short");
  b.size = 7;
  check_unparsed(lcomm_source_parse_safetensors, &b, LCOMM_ERR_WIRE, "7 bytes");
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(float32_is_read_bit_for_bit),
    IN_FOLDER(extensions_tell_the_type),
    cmocka_unit_test(every_16_bit_value_is_read_exactly),
    cmocka_unit_test(float64_is_rounded_to_nearest_even),
    IN_FOLDER(any_range_reads_the_same_values),
    cmocka_unit_test(names_are_utf8_without_control_characters),
    cmocka_unit_test(npy_of_any_shape_order_and_version_is_read),
    cmocka_unit_test(npy_that_is_not_understood_is_refused),
    IN_FOLDER(safetensors_are_read_in_the_order_of_their_data),
    cmocka_unit_test(safetensors_that_do_not_add_up_are_refused),
};
RUN_TESTS(tests)
