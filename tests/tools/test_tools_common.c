/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the tools share: command lines, lines of JSON, elements of all types. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/element.h"
#include "tests/support/unit_tests.h"
#include "tests/support/written_text.h"
#include "tools/common/tool_element.h"
#include "tools/common/tool_json.h"
#include "tools/common/tool_options.h"

typedef struct words {
  bool loud;
  const char *name;
  uint64_t whole;
  int small;
  const char *pair[2];
} words;

static words options;
static char error[TOOL_ERROR_MAX];
static tool_command_line line;

/* Two words, the second one behind the option. */
static bool read_pair(tool_command_line *l, const char *value) {
  words *w = l->options;
  w->pair[0] = value;
  w->pair[1] = tool_next_word(l);
  tool_take_word(l);
  return w->pair[1] != NULL;
}

static const tool_option known[] = {TOOL_FLAG('l', "loud", offsetof(words, loud), true),
                                    TOOL_NAME(0, "name", offsetof(words, name)),
                                    TOOL_WHOLE('w', "whole", offsetof(words, whole), 1, UINT64_MAX),
                                    TOOL_INT(0, "small", offsetof(words, small), 0, 9),
                                    TOOL_READ('p', "pair", read_pair),
                                    {0}};

static tool_parse parse(const char *text) {
  static char copy[256];
  static char *argv[16];
  int argc = 1;
  options = (words){.whole = 7};
  snprintf(copy, sizeof copy, "%s", text);
  argv[0] = (char[]){"program"};
  for (char *word = strtok(copy, " "); word && argc < 15; word = strtok(NULL, " ")) {
    argv[argc++] = word;
  }
  argv[argc] = NULL;
  line = (tool_command_line){.argc = argc, .argv = argv, .options = &options, .error = error};
  return tool_options_parse(&line, known);
}

static void options_set_their_members(void **state) {
  (void)state;
  assert_int_equal(parse("one -lw18446744073709551615 --name=x two --small 9"), TOOL_RUN);
  assert_true(options.loud && options.whole == UINT64_MAX && options.small == 9);
  assert_string_equal(options.name, "x");
  assert_int_equal(line.operand_count, 2);
  assert_string_equal(line.operands[1], "two");
  assert_false(tool_refuse_operands(&line));
  assert_int_equal(parse("--pair a b --version"), TOOL_VERSION);
  assert_string_equal(options.pair[1], "b");
  assert_int_equal(parse("-h --frobnicate"), TOOL_HELP);
}

static void mistakes_are_named(void **state) {
  (void)state;
  static const char *const mistakes[][2] = {
      {"--frob", "there is no option '--frob'"},
      {"-lx", "there is no option '-x'"},
      {"-w", "a value is missing after '-w'"},
      {"--loud=3", "the option takes no value: '--loud=3'"},
      {"-w 0", "'0' is no whole number from 1 to 18446744073709551615, as -w (--whole) needs one"},
      {"--small -1", "'-1' is no whole number from 0 to 9, as --small needs one"},
      {"--name=", "'' is no usable value for --name"},
      {"-p a", "'a' is no usable value for -p (--pair)"}};
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    assert_int_equal(parse(mistakes[i][0]), TOOL_USAGE);
    assert_string_equal(error, mistakes[i][1]);
  }
}

static void a_line_of_json_has_all_kinds_of_values(void **state) {
  (void)state;
  char *text = NULL;
  FILE *file = open_text(&text);
  tool_json json = tool_json_begin();
  cJSON *array = tool_json_array(&json, json.root, "a");
  tool_json_number(&json, array, NULL, 1073741824.0);
  tool_json_number(&json, array, NULL, 0.1234567891);
  tool_json_number(&json, array, NULL, (double)INFINITY);
  tool_json_text(&json, json.root, "t", "say \"x\"\\");
  tool_json_flag(&json, tool_json_object(&json, json.root, "o"), "f", false);
  assert_false(json.broken);
  tool_json_put_line(json.root, file);
  tool_json_drop(&json);
  fclose(file);
  assert_string_equal(text,
                      "{\"a\": [1073741824, 0.123456789, null], \"t\": \"say \\\"x\\\"\\\\\", "
                      "\"o\": {\"f\": false}}");
  free(text);
}

static void what_has_no_parent_breaks_the_document(void **state) {
  (void)state;
  tool_json json = tool_json_begin();
  tool_json_number(&json, NULL, "n", 1.0);
  assert_true(json.broken);
  FILE *file = tmpfile();
  assert_false(tool_json_end(&json, file));
  assert_int_equal(ftell(file), 0);
  fclose(file);
}

static void elements_are_rounded_as_the_library_rounds(void **state) {
  (void)state;
  uint32_t bits = 1;
  for (int i = 0; i < 200000; i++) {
    float value;
    uint16_t half = 0;
    bits = bits * 1664525u + 1013904223u;
    memcpy(&value, &bits, sizeof value);
    if (isnan(value)) {
      continue;
    }
    tool_element_set(LCOMM_FLOAT16, &half, 0, (double)value);
    assert_int_equal(half, lcomm_f32_to_f16(value));
    assert_true(tool_element(LCOMM_FLOAT16, &half, 0) == (double)lcomm_f16_to_f32(half));
    tool_element_set(LCOMM_BFLOAT16, &half, 0, (double)value);
    assert_int_equal(half, lcomm_f32_to_bf16(value));
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_set_their_members),
    cmocka_unit_test(mistakes_are_named),
    cmocka_unit_test(a_line_of_json_has_all_kinds_of_values),
    cmocka_unit_test(what_has_no_parent_breaks_the_document),
    cmocka_unit_test(elements_are_rounded_as_the_library_rounds),
};
RUN_TESTS(tests)
