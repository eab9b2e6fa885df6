/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Files and folders as sources of codec_bench. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tools/codec/source.h"

enum { PATH_SIZE = 512, BYTES_MAX = 4096 };

/* ------------------------------------------------------------- test bytes */

/* A file in the making. */
typedef struct bytes {
  size_t size;
  uint8_t data[BYTES_MAX];
} bytes;

static void put(bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= BYTES_MAX);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void put_number(bytes *b, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; i++)
    put(b, &(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
}

static void put_text(bytes *b, const char *text) {
  put(b, text, strlen(text));
}

/* count floats: 0, 1, 2, ... */
static void put_floats(bytes *b, size_t count) {
  for (size_t i = 0; i < count; i++)
    put(b, &(float){(float)i}, sizeof(float));
}

static bytes make_npy(int major, const char *header) {
  bytes b = {0};
  put_text(&b, "\x93NUMPY");
  put_number(&b, (uint64_t)major, 2);
  put_number(&b, strlen(header), major == 1 ? 2 : 4);
  put_text(&b, header);
  return b;
}

static bytes make_safetensors(const char *header) {
  bytes b = {0};
  put_number(&b, strlen(header), 8);
  put_text(&b, header);
  return b;
}

/* A capture of one tensor, its values and checksum still missing. */
static bytes make_capture(const char *name, uint64_t count) {
  bytes b = {0};
  put_text(&b, "LCMG");
  put_number(&b, 1, 4);
  put_number(&b, 123456, 8);
  put_number(&b, 2, 4); /* rank, ranks, nodes, tensors */
  put_number(&b, 6, 4);
  put_number(&b, 3, 4);
  put_number(&b, 1, 4);
  put_number(&b, strlen(name), 4);
  put_text(&b, name);
  put_number(&b, count, 8);
  while (b.size % 64 != 0)
    put_number(&b, 0, 1);
  return b;
}

static void put_checksum(bytes *b) {
  put_number(b, XXH3_64bits(b->data, b->size), 8);
}

/* ------------------------------------------------------------------ folders */

typedef struct folder {
  char path[PATH_SIZE / 2];
} folder;

static int make_folder(void **state) {
  folder *made = test_calloc(1, sizeof *made);
  const char *parent = getenv("TMPDIR");
  snprintf(made->path, sizeof made->path, "%s/source-XXXXXX", parent && *parent ? parent : "/tmp");
  *state = made;
  return mkdtemp(made->path) ? 0 : -1;
}

static int remove_folder(void **state) {
  char command[PATH_SIZE];
  snprintf(command, sizeof command, "rm -r '%s'", ((folder *)*state)->path);
  test_free(*state);
  return system(command);
}

static const char *write_file(void **state, const char *name, const bytes *b) {
  static char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", ((folder *)*state)->path, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(b->data, 1, b->size, file), b->size);
  assert_int_equal(fclose(file), 0);
  return path;
}

static const char *write_text(void **state, const char *name, const char *text) {
  bytes b = {0};
  put_text(&b, text);
  return write_file(state, name, &b);
}

/* ------------------------------------------------------------------ checks */

static lcomm_source *open_good(const char *path, const char *layers) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  if (lcomm_source_open(path, layers, &source, error) != LCOMM_OK)
    fail_msg("%s", error);
  return source;
}

/* The sentence begins with `path` and has `phrase` in it. */
static void check_sentence(const char *error, const char *path, const char *phrase) {
  if (strncmp(error, path, strlen(path)) != 0 || strstr(error, phrase) == NULL)
    fail_msg("\"%s\" is not about %s and does not say \"%s\"", error, path, phrase);
}

static void check_refused(const char *path, const char *layers, lcomm_status expected,
                          const char *about, const char *phrase) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  assert_int_equal(lcomm_source_open(path, layers, &source, error), expected);
  assert_null(source);
  check_sentence(error, about, phrase);
}

typedef lcomm_status (*parser)(const lcomm_source_input *input, lcomm_source_contents *contents,
                               char *error);

/* Not cmocka's memory: its guards would hide from a sanitizer one byte too far. */
static lcomm_source_input exact_input(const bytes *b) {
  uint8_t *exact = malloc(b->size);
  assert_true(exact != NULL || b->size == 0);
  memcpy(exact, b->data, b->size);
  return (lcomm_source_input){"dir/a.bin", exact, b->size};
}

static void check_unparsed(parser parse, const bytes *b, lcomm_status expected,
                           const char *phrase) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source_input input = exact_input(b);
  lcomm_source_contents contents = {0};
  lcomm_status status = parse(&input, &contents, error);
  if (status == LCOMM_OK)
    fail_msg("read, expected to be refused: %s", phrase);
  check_sentence(error, "dir/a.bin: ", phrase);
  assert_int_equal(status, expected);
  lcomm_source_contents_free(&contents);
  free((void *)input.bytes);
}

static lcomm_source_contents parse_good(parser parse, const bytes *b) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source_input input = exact_input(b);
  lcomm_source_contents contents = {0};
  if (parse(&input, &contents, error) != LCOMM_OK)
    fail_msg("%s", error);
  free((void *)input.bytes);
  return contents;
}

static void check_tensor(const lcomm_source_contents *contents, size_t index, const char *name,
                         uint64_t first, uint64_t count) {
  assert_in_range(index, 0, contents->tensor_count - 1);
  assert_string_equal(contents->tensors[index].name, name);
  assert_int_equal(contents->tensors[index].first, first);
  assert_int_equal(contents->tensors[index].count, count);
}

/* ------------------------------------------------------------------ values */

static void float32_is_read_bit_for_bit(void **state) {
  static const uint32_t bits[] = {0x3f800000u, 0x80000000u, 0x7f800001u, 0xffc12345u, 1u};
  bytes b = {0};
  for (size_t i = 0; i < 5; i++)
    put_number(&b, bits[i], 4);
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
    for (size_t k = 0; k < 3; k++)
      put_number(&b, codes[k], 2);
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
  if (exponent == top)
    magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
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
  for (size_t i = 0; i < 40; i++)
    assert_true(all[i] == (float)i);
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
  if (status == LCOMM_OK)
    assert_true(strlen(contents.tensors[0].name) == size &&
                memcmp(contents.tensors[0].name, name, size) == 0);
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
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_int_equal(add_name(good[i], strlen(good[i])), LCOMM_OK);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal(add_name(bad[i], strlen(bad[i])), LCOMM_ERR_WIRE);
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
  for (b = make_npy(2, "{}"); b.size > 0; b.size--)
    check_unparsed(lcomm_source_parse_npy, &b, LCOMM_ERR_WIRE, "");
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

/* ------------------------------------------------------------- layer lists */

static void a_layer_list_names_values_and_gaps(void **state) {
  static const char *const lists[] = {
      "# a list\n  b\t10 3 # of a#b\r\n\na#b 4\r\nc 0\nd 19 1",
      "{\"model\": {\"layers\": 3}, \"steps\": [], \"layers\": ["
      "{\"name\": \"b\", \"shape\": [3], \"offset\": 10, \"numel\": 3},"
      "{\"name\": \"d\", \"offset\": 19, \"count\": 1},"
      "{\"name\": \"c\", \"offset\": 0, \"numel\": 0},"
      "{\"name\": \"a#b\", \"offset\": 13, \"numel\": 4}]}"};
  bytes b = {0};
  put_floats(&b, 20);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.f32", &b));
  for (int i = 0; i < 2; i++) {
    const char *layers = write_text(state, i == 0 ? "list" : "list.json", lists[i]);
    lcomm_source *source = open_good(path, layers);
    const lcomm_source_contents *contents = lcomm_source_contents_of(source);
    assert_int_equal(contents->count, 20);
    assert_int_equal(contents->tensor_count, 5);
    check_tensor(contents, 0, "unlisted-0", 0, 10);
    check_tensor(contents, 1, "b", 10, 3);
    check_tensor(contents, 2, "a#b", 13, 4);
    check_tensor(contents, 3, "unlisted-17", 17, 2);
    check_tensor(contents, 4, "d", 19, 1);
    assert_int_equal(contents->skipped_count, 1);
    assert_string_equal(contents->skipped[0].name, "c");
    lcomm_source_close(source);
  }
}

static void a_list_splits_npy_files_of_any_type(void **state) {
  bytes b = make_npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,2)}");
  for (int i = 0; i < 4; i++)
    put(&b, &(double){(double)i}, 8);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.npy", &b));
  write_text(state, "meta.json", "no list for .npy files unless asked for");
  lcomm_source_close(open_good(path, NULL));
  lcomm_source *source = open_good(path, write_text(state, "list", "a 1 2\n"));
  check_tensor(lcomm_source_contents_of(source), 0, "unlisted-0", 0, 1);
  check_tensor(lcomm_source_contents_of(source), 1, "a", 1, 2);
  check_tensor(lcomm_source_contents_of(source), 2, "unlisted-3", 3, 1);
  for (int i = 0; i < 4; i++) {
    float value = -1.0f;
    lcomm_source_read(source, (uint64_t)i, 1, &value);
    assert_true(value == (float)i);
  }
  lcomm_source_close(source);
}

static void lists_that_do_not_fit_are_refused(void **state) {
  static const struct {
    const char *list, *phrase;
    lcomm_status status;
  } cases[] = {
      {"a 21", "\"a\" has 21 values from number 0 on", LCOMM_ERR_WIRE},
      {"a 20\nb 1", "\"b\" has 1 values from number 20 on", LCOMM_ERR_WIRE},
      {"a 18446744073709551615 1", "line 1", LCOMM_ERR_WIRE},
      {"a 18446744073709551614 1", "inside the 20", LCOMM_ERR_WIRE},
      {"\na 18446744073709551616", "line 2", LCOMM_ERR_WIRE},
      {"a 5\nb 4 2", "\"b\" begins at value 4, expected it behind \"a\"", LCOMM_ERR_WIRE},
      {"a 5\n\n#\nb", "line 4", LCOMM_ERR_WIRE},
      {"a -5", "line 1", LCOMM_ERR_WIRE},
      {"a 36893488147419103242", "line 1", LCOMM_ERR_WIRE},
      {"a 5 x", "line 1", LCOMM_ERR_WIRE},
      {"a x 5", "line 1", LCOMM_ERR_WIRE},
      {"a 1 2 3", "line 1", LCOMM_ERR_WIRE},
      {"\x01 5", "\"?\" (1 bytes)", LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"name\": \"a\", \"offset\": 1, \"numel\": 20}]}", "\"a\" has 20",
       LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"name\": \"a\", \"numel\": 20}]}", "(a) has no", LCOMM_ERR_WIRE},
      {"{\"layers\": [{\"offset\": 1, \"numel\": 20}]}", "(nameless)", LCOMM_ERR_WIRE},
      {"{\"layers\": [3]}", "(nameless)", LCOMM_ERR_WIRE},
      {"{\"layers\": {\"name\": 3}}", "no list", LCOMM_ERR_WIRE},
      {"{\"layer\": []}", "has no \"layers\"", LCOMM_ERR_UNSUPPORTED},
      {"{\"layers\": [}", "no JSON", LCOMM_ERR_WIRE},
  };
  bytes b = {0};
  put_floats(&b, 20);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "a.f32", &b));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *name = cases[i].list[0] == '{' ? "list.json" : "list";
    const char *layers = write_text(state, name, cases[i].list);
    check_refused(path, layers, cases[i].status, layers, cases[i].phrase);
  }
}

static void a_meta_json_beside_a_raw_file_names_its_tensors(void **state) {
  bytes b = {0};
  put_floats(&b, 4);
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s", write_file(state, "\xff\n.f32", &b));
  lcomm_source *source = open_good(path, NULL);
  check_tensor(lcomm_source_contents_of(source), 0, "??.f32", 0, 4);
  lcomm_source_close(source);

  const char *meta = write_text(state, "meta.json",
                                "{\"layers\": [{\"name\": \"\xc3\xa4\", \"offset\": 0, "
                                "\"numel\": 4}], \"steps\": 0}");
  source = open_good(path, NULL);
  check_tensor(lcomm_source_contents_of(source), 0, "\xc3\xa4", 0, 4);
  lcomm_source_close(source);

  write_text(state, "meta.json", "{\"layers\": [{\"name\": \"a\", \"offset\": 1, \"numel\": 4}]}");
  check_refused(path, NULL, LCOMM_ERR_WIRE, meta, "--layers");
  write_text(state, "meta.json", "{\"author\": \"somebody else's\"}");
  lcomm_source_close(open_good(path, NULL));
}

/* ----------------------------------------------------------------- captures */

static void a_capture_tells_where_it_comes_from(void **state) {
  bytes b = make_capture("w", 3);
  put_floats(&b, 3);
  put_checksum(&b);
  lcomm_source *source = open_good(write_file(state, "step123456.lcg", &b), NULL);
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  float values[3];
  assert_int_equal(contents->tensor_count, 1);
  check_tensor(contents, 0, "w", 0, 3);
  assert_int_equal(contents->capture.step, 123456);
  assert_int_equal(contents->capture.rank, 2);
  assert_int_equal(contents->capture.ranks, 6);
  assert_int_equal(contents->capture.nodes, 3);
  lcomm_source_read(source, 0, 3, values);
  assert_memory_equal(values, ((float[]){0, 1, 2}), sizeof values);
  lcomm_source_close(source);
}

static void values_of_a_capture_begin_at_a_multiple_of_64_bytes(void **state) {
  (void)state;
  char name[LCOMM_SOURCE_NAME_MAX] = "";
  for (size_t length = 1; length < sizeof name; length++) {
    name[length - 1] = 'n';
    bytes b = make_capture(name, 2);
    uint64_t begin = b.size;
    put_floats(&b, 2);
    put_checksum(&b);
    lcomm_source_contents contents = parse_good(lcomm_source_parse_capture, &b);
    check_tensor(&contents, 0, name, 0, 2);
    assert_int_equal(contents.tensors[0].offset, begin);
    assert_int_equal(begin, (32 + 12 + length + 63) / 64 * 64);
    lcomm_source_contents_free(&contents);
  }
}

/* 39 bytes have no room for a header and a checksum; here the checksum's first
 * byte is the last one of the header's number of tensors. */
static void a_capture_shorter_than_its_header_is_refused(void **state) {
  (void)state;
  for (uint8_t tries = 0; tries < 255; tries++) {
    bytes b = make_capture("w", 0);
    b.data[8] = tries;
    b.size = 31;
    put_checksum(&b);
    check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "LCMG");
  }
}

static void a_damaged_capture_is_refused(void **state) {
  (void)state;
  bytes good = make_capture("w", 3);
  put_floats(&good, 3);
  put_checksum(&good);
  for (bytes b = good; b.size > 0; b.size--) {
    bytes cut = b;
    cut.size--;
    check_unparsed(lcomm_source_parse_capture, &cut, LCOMM_ERR_WIRE, "");
  }
  for (size_t bit = 0; bit < 8 * good.size; bit++) {
    bytes b = good;
    b.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    bool version = bit / 32 == 1;
    check_unparsed(lcomm_source_parse_capture, &b, version ? LCOMM_ERR_UNSUPPORTED : LCOMM_ERR_WIRE,
                   version    ? "version"
                   : bit < 32 ? "LCMG"
                              : "checksum");
  }
  put_number(&good, 0, 1);
  check_unparsed(lcomm_source_parse_capture, &good, LCOMM_ERR_WIRE, "checksum");
}

static void a_capture_whose_numbers_lie_is_refused(void **state) {
  static const struct {
    size_t at, size;
    uint64_t value;
    const char *phrase;
  } cases[] = {
      {4, 4, 2, "version 2"},
      {16, 4, 6, "rank"},
      {20, 4, 0, "rank"},
      {20, 4, 2, "rank"},
      {24, 4, 0, "nodes"},
      {24, 4, 7, "nodes"},
      {28, 4, 0, "number of tensors"},
      {28, 4, 65537, "number of tensors"},
      {28, 4, 2, "(0 bytes)"},   /* the padding is no record */
      {32, 4, 0, "more values"}, /* the name is read as a count */
      {32, 4, 128, "tensor's name"},
      {32, 4, UINT32_MAX, "tensor's name"},
      {36, 1, '\n', "\"?\" (1 bytes)"},
      {37, 8, 2, "12 bytes of values, expected 8"},
      {37, 8, 4, "12 bytes of values, expected 16"},
      {37, 8, UINT64_MAX, "more values"},
      {37, 8, (uint64_t)1 << 62 | 3, "more values"}, /* 4 times this is 12 modulo 2^64 */
      {45, 1, 1, "no zeros"},
      {63, 1, 1, "no zeros"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bytes b = make_capture("w", 3), lie = {0};
    put_floats(&b, 3);
    put_number(&lie, cases[i].value, cases[i].size);
    memcpy(b.data + cases[i].at, lie.data, lie.size);
    put_checksum(&b);
    check_unparsed(lcomm_source_parse_capture, &b, i == 0 ? LCOMM_ERR_UNSUPPORTED : LCOMM_ERR_WIRE,
                   cases[i].phrase);
  }
  bytes b = make_capture("w", 0);
  b.size = 60; /* inside the padding */
  put_checksum(&b);
  check_unparsed(lcomm_source_parse_capture, &b, LCOMM_ERR_WIRE, "before its values");
}

/* -------------------------------------------------------- files and folders */

static void check_found(const lcomm_source_paths *found, size_t index, const char *name) {
  assert_in_range(index, 0, found->count - 1);
  const char *slash = strrchr(found->paths[index], '/');
  assert_non_null(slash);
  assert_string_equal(slash + 1, name);
  assert_int_equal(access(found->paths[index], R_OK), 0);
}

static void a_folder_stands_for_its_files_in_name_order(void **state) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  const char *folder_path = ((folder *)*state)->path;
  lcomm_source_paths found;
  write_text(state, "README.md", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_ERR_ARGUMENT);
  check_sentence(error, folder_path, "no files");
  write_text(state, "worker10.f32", "");
  write_text(state, "worker9.f32", "");
  write_text(state, ".hidden.f32", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 2);
  check_found(&found, 0, "worker9.f32");
  check_found(&found, 1, "worker10.f32");
  lcomm_source_paths_free(&found);

  write_text(state, "step1000000-bucket000-rank0000.lcg", "");
  write_text(state, "step000009-bucket001-rank0000.lcg", "");
  write_text(state, "step000009-bucket000-rank0010.lcg", "");
  write_text(state, "step000010-bucket000-rank0002.lcg", "");
  assert_int_equal(lcomm_source_find(folder_path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 4);
  check_found(&found, 0, "step000009-bucket000-rank0010.lcg");
  check_found(&found, 1, "step000009-bucket001-rank0000.lcg");
  check_found(&found, 2, "step000010-bucket000-rank0002.lcg");
  check_found(&found, 3, "step1000000-bucket000-rank0000.lcg");
  lcomm_source_paths_free(&found);
}

static void a_file_stands_for_itself(void **state) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  const char *path = write_text(state, "any name", "");
  lcomm_source_paths found;
  assert_int_equal(lcomm_source_find(path, &found, error), LCOMM_OK);
  assert_int_equal(found.count, 1);
  assert_string_equal(found.paths[0], path);
  lcomm_source_paths_free(&found);
  unlink(path);
  assert_int_equal(lcomm_source_find(path, &found, error), LCOMM_ERR_SYSTEM);
  check_sentence(error, path, "No such file");
}

static void what_is_no_readable_file_is_refused(void **state) {
  const char *folder_path = ((folder *)*state)->path;
  char path[PATH_SIZE], list[PATH_SIZE];
  check_refused(folder_path, NULL, LCOMM_ERR_ARGUMENT, folder_path, "is a folder");
  snprintf(path, sizeof path, "%s", write_text(state, "a.txt", "x"));
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "\".txt\"");
  snprintf(path, sizeof path, "%s", write_text(state, "f32", "x"));
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "extension \"\"");
  snprintf(path, sizeof path, "%s", write_text(state, "a.f32", "12345"));
  check_refused(path, NULL, LCOMM_ERR_WIRE, path, "5 bytes, expected a multiple of 4");
  snprintf(list, sizeof list, "%s/no list", folder_path);
  write_text(state, "a.f32", "1234");
  check_refused(path, list, LCOMM_ERR_SYSTEM, list, "No such file");
  write_text(state, "a.f32", "");
  check_refused(path, NULL, LCOMM_ERR_UNSUPPORTED, path, "no floating-point values");
  unlink(path);
  check_refused(path, NULL, LCOMM_ERR_SYSTEM, path, "No such file");
  assert_int_equal(mkfifo(path, 0600), 0);
  check_refused(path, NULL, LCOMM_ERR_ARGUMENT, path, "no regular file");
}

static void files_that_name_their_tensors_take_no_list(void **state) {
  bytes b = make_capture("w", 3);
  put_floats(&b, 3);
  put_checksum(&b);
  const char *path = write_file(state, "a.lcg", &b);
  check_refused(path, "list", LCOMM_ERR_ARGUMENT, path, "its own tensors");
}

static void a_long_path_leaves_room_for_the_reason(void **state) {
  char path[3000], error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  (void)state;
  memset(path, 'a', sizeof path - 1);
  path[sizeof path - 1] = '\0';
  assert_int_equal(lcomm_source_open(path, NULL, &source, error), LCOMM_ERR_SYSTEM);
  check_sentence(error, "...aaa", "cannot be opened");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
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
      IN_FOLDER(a_layer_list_names_values_and_gaps),
      IN_FOLDER(a_list_splits_npy_files_of_any_type),
      IN_FOLDER(lists_that_do_not_fit_are_refused),
      IN_FOLDER(a_meta_json_beside_a_raw_file_names_its_tensors),
      IN_FOLDER(a_capture_tells_where_it_comes_from),
      cmocka_unit_test(values_of_a_capture_begin_at_a_multiple_of_64_bytes),
      cmocka_unit_test(a_capture_shorter_than_its_header_is_refused),
      cmocka_unit_test(a_damaged_capture_is_refused),
      cmocka_unit_test(a_capture_whose_numbers_lie_is_refused),
      IN_FOLDER(a_folder_stands_for_its_files_in_name_order),
      IN_FOLDER(a_file_stands_for_itself),
      IN_FOLDER(what_is_no_readable_file_is_refused),
      IN_FOLDER(files_that_name_their_tensors_take_no_list),
      cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
