/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The codec words of a policy, each read alone, and the numbers in them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy.h"
#include "tests/support/unit_tests.h"

static lcomm_codec_spec parse(const char *text) {
  lcomm_codec_spec choice;
  lcomm_why error;
  lcomm_status status = lcomm_format_parse(text, &choice, &error);
  if (status != LCOMM_OK) {
    print_error("'%s': %s\n", text, error.text);
  }
  assert_int_equal(status, LCOMM_OK);
  assert_string_equal(error.text, "");
  return choice;
}

/* `text` is written as `canonical`, which is read as the same choice. */
static lcomm_codec_spec expect(const char *text, const char *canonical) {
  char formatted[64];
  lcomm_codec_spec choice = parse(text);
  assert_string_equal(lcomm_codec_spec_format(&choice, formatted, sizeof formatted), canonical);
  lcomm_codec_spec reread = parse(formatted);
  assert_true(lcomm_format_equal(&choice.format, &reread.format));
  assert_int_equal(choice.error_feedback, reread.error_feedback);
  return choice;
}

static void expect_refusal(const char *text, int column, const char *what) {
  char start[64];
  lcomm_why error;
  lcomm_codec_spec untouched, choice;
  memset(&untouched, 0x5a, sizeof untouched);
  memcpy(&choice, &untouched, sizeof choice);
  snprintf(start, sizeof start, "codec, column %d: ", column);
  assert_int_equal(lcomm_format_parse(text, &choice, &error), LCOMM_ERR_POLICY);
  assert_memory_equal(&choice, &untouched, sizeof choice);
  if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, what)) {
    print_error("'%s': %s\n", text, error.text);
  }
  assert_int_equal(strncmp(error.text, start, strlen(start)), 0);
  assert_non_null(strstr(error.text, what));
  assert_non_null(strstr(error.text, "; for example "));
}

/* Those that send too little without it. */
static bool has_feedback(const lcomm_codec *codec) {
  return codec->id == LCOMM_CODEC_INT4 || codec->id == LCOMM_CODEC_SIGN ||
         codec->id == LCOMM_CODEC_INT2;
}

static void every_codec_has_its_standard_format(void **state) {
  (void)state;
  for (const lcomm_codec *const *codec = lcomm_codec_list; *codec != NULL; codec++) {
    char text[64];
    lcomm_format standard = lcomm_format_of(*codec);
    snprintf(text, sizeof text, "%s%s", (*codec)->name,
             (*codec)->id == LCOMM_CODEC_TOPK ? ":0.01" : "");
    lcomm_codec_spec choice = parse(text);
    assert_true(lcomm_format_equal(&choice.format, &standard));
    assert_int_equal(choice.error_feedback, has_feedback(*codec));
  }
}

static void endings_come_in_any_order_and_are_written_in_one(void **state) {
  (void)state;
  for (const lcomm_codec *const *codec = lcomm_codec_list; *codec != NULL; codec++) {
    char text[64], canonical[64];
    const char *kept = (*codec)->id == LCOMM_CODEC_TOPK ? ":0.5" : "";
    const char *off = has_feedback(*codec) ? "-ef" : "";
    if ((*codec)->id == LCOMM_CODEC_NONE) {
      continue;
    }
    snprintf(text, sizeof text, "%s%s+zstd+ef", (*codec)->name, kept);
    snprintf(canonical, sizeof canonical, "%s%s+ef+zstd", (*codec)->name, kept);
    lcomm_codec_spec choice = expect(text, canonical);
    assert_true(choice.error_feedback && choice.format.zstd);
    expect(canonical, canonical);
    snprintf(text, sizeof text, "%s%s+zstd-ef", (*codec)->name, kept);
    snprintf(canonical, sizeof canonical, "%s%s%s+zstd", (*codec)->name, kept, off);
    assert_false(expect(text, canonical).error_feedback);
    snprintf(text, sizeof text, "%s%s-ef", (*codec)->name, kept);
    assert_false(parse(text).format.zstd);
  }
  assert_true(expect("none+zstd", "none+zstd").format.zstd);
}

static void sign_and_int2_have_feedback_unless_told_otherwise(void **state) {
  (void)state;
  assert_true(expect("sign", "sign+ef").error_feedback);
  assert_true(expect("int2+zstd", "int2+ef+zstd").error_feedback);
  assert_false(expect("sign-ef", "sign-ef").error_feedback);
  assert_false(expect("int2:block=32-ef", "int2:block=32-ef").error_feedback);
  expect("sign:block=64", "sign:block=64+ef");
  expect("sign:block=128", "sign+ef");
  expect_refusal("int2:block=512", 12, "'512' is no block of int2; expected one of 128, 64, 32");
}

static void int4_has_feedback_unless_told_otherwise(void **state) {
  (void)state;
  assert_true(expect("int4", "int4+ef").error_feedback);
  assert_true(expect("int4+zstd", "int4+ef+zstd").error_feedback);
  assert_false(expect("int4-ef", "int4-ef").error_feedback);
  assert_false(expect("int4:block=128-ef", "int4:block=128-ef").error_feedback);
  assert_false(expect("int8", "int8").error_feedback);
}

static void fp16_has_a_scale(void **state) {
  (void)state;
  assert_int_equal(expect("fp16:scale=block", "fp16:scale=block").format.variant, LCOMM_FP16_BLOCK);
  lcomm_codec_spec choice = expect("fp16:scale=2^10", "fp16:scale=2^10");
  assert_int_equal(choice.format.variant, LCOMM_FP16_FIXED);
  assert_int_equal(choice.format.exponent, 10);
  choice = expect("fp16:scale=2^-24-ef", "fp16:scale=2^-24");
  assert_int_equal(choice.format.exponent, -24);
  assert_false(choice.error_feedback);
  assert_true(expect("fp16:scale=2^-03+ef", "fp16:scale=2^-3+ef").error_feedback);
  assert_int_equal(expect("fp16:scale=2^24", "fp16:scale=2^24").format.exponent, 24);
  assert_int_equal(expect("fp16:scale=2^0", "fp16").format.variant, LCOMM_VARIANT_PLAIN);
  expect("fp16:scale=2^-0+zstd", "fp16+zstd");
}

static void other_scales_are_refused(void **state) {
  (void)state;
  const char *const values[] = {"",       "1024",  "2^",     "2^25",  "2^-25",
                                "2^+3",   "2^--3", "2^1x",   "-2^3",  "3^2",
                                "blocks", "2^1.5", "2^-",    "2^300", "2",
                                "2^ 1",   "Block", "2^-+ef", "2**3",  "2^18446744073709551617"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "fp16:scale=%s", values[i]);
    expect_refusal(text, 12, "is no scale; expected scale=block or scale=2^N with -24 <= N <= 24");
  }
}

static void blocks_are_those_of_the_codec(void **state) {
  (void)state;
  for (const lcomm_codec *const *codec = lcomm_codec_list; *codec != NULL; codec++) {
    char text[64];
    for (const uint16_t *block = (*codec)->blocks; *block != 0; block++) {
      snprintf(text, sizeof text, "%s:block=%u+ef", (*codec)->name, *block);
      assert_int_equal(parse(text).format.block, *block);
    }
  }
  expect("fp8e4m3:block=128", "fp8e4m3");
  expect("fp8e5m2:block=0064", "fp8e5m2:block=64");
  expect("int8:block=128+ef", "int8+ef");
  expect("int8:block=32", "int8:block=32");
  expect("int4:block=32", "int4+ef");
  expect("int4:block=128", "int4:block=128+ef");
  expect_refusal("int8:block=64", 12, "'64' is no block of int8; expected one of 128, 32");
  expect_refusal("fp8e4m3:block=0", 15, "expected one of 128, 64, 32");
  expect_refusal("fp8e4m3:block=65568", 15, "'65568' is no block");
  expect_refusal("fp8e4m3:block=", 15, "'' is no block");
  expect_refusal("fp8e4m3:block=32K", 15, "'32K' is no block");
  expect_refusal("int4:block=-32", 12, "'' is no block");
}

static void fp8_can_be_rounded_stochastically(void **state) {
  (void)state;
  lcomm_codec_spec choice = expect("fp8e4m3:stochastic,block=32", "fp8e4m3:block=32,stochastic");
  assert_true(choice.format.stochastic);
  assert_int_equal(choice.format.block, 32);
  expect("fp8e5m2:stochastic+ef", "fp8e5m2:stochastic+ef");
  expect("fp8e5m2:block=128,stochastic+zstd", "fp8e5m2:stochastic+zstd");
  assert_false(parse("fp8e5m2:block=32").format.stochastic);
}

static void topk_keeps_a_share_or_a_number(void **state) {
  (void)state;
  lcomm_codec_spec choice = expect("topk:k=1000", "topk:k=1000");
  assert_int_equal(choice.format.kept, 1000);
  assert_true(choice.format.density == 0);
  choice = expect("topk:0.25", "topk:0.25");
  assert_int_equal(choice.format.kept, 0);
  assert_true(choice.format.density == 0.25);
  assert_int_equal(expect("topk:k=4294967295", "topk:k=4294967295").format.kept, 4294967295u);
  expect("topk:k=007-ef", "topk:k=7");
  const char *const values[] = {"",   "0",  "4294967296", "x",
                                "1K", "-1", "1.5",        "18446744073709551617"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "topk:k=%s", values[i]);
    expect_refusal(text, 8, "is no number of values to keep; expected digits, 1 <= N < 2^32");
  }
  expect_refusal("topk", 5, "topk:DENSITY");
  expect_refusal("topk+ef", 5, "topk:DENSITY");
  expect_refusal("topk:values=int8", 6, "is no density");
}

static void kept_values_are_bf16_or_int8(void **state) {
  (void)state;
  lcomm_codec_spec choice = expect("topk:0.01,values=int8+ef", "topk:0.01,values=int8+ef");
  assert_int_equal(choice.format.variant, LCOMM_TOPK_INT8);
  choice = expect("topk:0.01,values=bf16", "topk:0.01");
  assert_int_equal(choice.format.variant, LCOMM_VARIANT_PLAIN);
  expect("topk:k=3,values=int8-ef+zstd", "topk:k=3,values=int8+zstd");
  expect_refusal("topk:0.01,values=fp16", 18, "'fp16' is no format of kept values");
  expect_refusal("topk:0.01,values=", 18, "'' is no format of kept values");
}

static void the_longest_text_fits(void **state) {
  (void)state;
  expect("topk:1.23456789012345e-8,values=int8+ef+zstd",
         "topk:1.23456789012345e-8,values=int8+ef+zstd");
  lcomm_codec_spec choice = parse("topk:0.01+ef");
  char text[8];
  assert_string_equal(lcomm_codec_spec_format(&choice, text, sizeof text), "topk:0.");
  assert_string_equal(lcomm_codec_spec_format(&choice, text, 1), "");
  text[0] = 'x';
  assert_int_equal(*lcomm_codec_spec_format(&choice, text, 0), 'x');
}

static void unknown_codecs_are_refused(void **state) {
  (void)state;
  lcomm_why error;
  lcomm_codec_spec choice;
  assert_int_equal(lcomm_format_parse("int9", &choice, &error), LCOMM_ERR_POLICY);
  assert_string_equal(
      error.text, "codec, column 1: unknown codec 'int9'; expected one of none, fp16, "
                  "bf16, fp8e4m3, fp8e5m2, int8, topk:DENSITY, int4, sign, int2; for example int8");
  expect_refusal(NULL, 1, "unknown codec ''");
  expect_refusal("", 1, "unknown codec ''");
  expect_refusal("+ef", 1, "unknown codec ''");
  expect_refusal("INT8", 1, "unknown codec 'INT8'");
  expect_refusal("int", 1, "unknown codec 'int'");
  expect_refusal("int88", 1, "unknown codec 'int88'");
  expect_refusal("int8 ", 1, "unknown codec 'int8 '");
  expect_refusal("net=int8", 1, "unknown codec 'net=int8'");
  expect_refusal("int8,block=32", 1, "unknown codec 'int8,block=32'");
}

static void options_are_those_of_the_codec(void **state) {
  (void)state;
  expect_refusal("none:1", 6, "codec none takes no options, found '1'; expected none alone");
  expect_refusal("bf16:", 6, "codec bf16 takes no options, found ''");
  expect_refusal("bf16:block=32", 6, "codec bf16 takes no options, found 'block'");
  expect_refusal("int8:0.1", 6, "codec int8 has no option '0.1'; expected block=N");
  expect_refusal("int8:stochastic", 6, "codec int8 has no option 'stochastic'");
  expect_refusal("int8:values=int8", 6, "codec int8 has no option 'values'");
  expect_refusal("fp16:block=32", 6, "expected scale=block|2^N; for example fp16:scale=2^10");
  expect_refusal("fp8e4m3:scale=block", 9, "expected block=N, stochastic; for example int8:block");
  expect_refusal("topk:0.1,k=5", 10, "codec topk has no option 'k'; expected values=bf16|int8");
  expect_refusal("int8:Block=32", 6, "has no option 'Block'");
  expect_refusal("int8:block=32,", 15, "has no option ''");
  expect_refusal("int8:,block=32", 6, "has no option ''");
  expect_refusal("int8:+ef", 6, "has no option ''");
}

static void options_are_given_once_and_whole(void **state) {
  (void)state;
  expect_refusal("int8:block=32,block=32", 15, "option block is given a second time");
  expect_refusal("fp8e4m3:stochastic,stochastic", 20, "option stochastic is given a second time");
  expect_refusal("int8:block", 11, "option block needs a value; expected block=N");
  expect_refusal("topk:1,values+ef", 14, "option values needs a value");
  expect_refusal("fp8e4m3:stochastic=1", 19, "option stochastic takes no value; expected stochas");
  expect_refusal("fp8e4m3:block=32:stochastic", 15, "'32:stochastic' is no block");
}

static void endings_are_checked(void **state) {
  (void)state;
  expect_refusal("none+ef", 5, "codec none is exact");
  expect_refusal("none-ef", 5, "codec none is exact");
  expect_refusal("none+zstd+ef", 10, "codec none is exact");
  expect_refusal("int8+lz4", 5, "unknown ending '+lz4' of a codec; expected +ef, -ef, +zstd");
  expect_refusal("int8+", 5, "unknown ending '+'");
  expect_refusal("int8-", 5, "unknown ending '-'");
  expect_refusal("int8-zstd", 5, "unknown ending '-zstd'");
  expect_refusal("int8++ef", 5, "unknown ending '+'");
  expect_refusal("int8+ef,block=32", 5, "unknown ending '+ef,block=32'");
  expect_refusal("int8+ef:block=32", 5, "unknown ending '+ef:block=32'");
  expect_refusal("topk:0.1+efx", 9, "unknown ending '+efx'");
  expect_refusal("int8+ef+ef", 8, "ending '+ef' comes a second time");
  expect_refusal("int8+ef-ef", 8, "ending '-ef' comes a second time");
  expect_refusal("int4-ef+zstd+ef", 13, "ending '+ef' comes a second time");
  expect_refusal("none+zstd+zstd", 10, "ending '+zstd' comes a second time");
}

/* ---------------------------------------------------------------- numbers */

static void densities_have_one_canonical_form(void **state) {
  (void)state;
  expect("topk:.01", "topk:0.01");
  expect("topk:1e-2", "topk:0.01");
  expect("topk:1E-2-ef", "topk:0.01");
  expect("topk:0.1e-1+ef", "topk:0.01+ef");
  expect("topk:10e-3", "topk:0.01");
  expect("topk:0.010000000000000000000000000000000", "topk:0.01");
  expect("topk:1", "topk:1");
  expect("topk:1.", "topk:1");
  expect("topk:1e+0+ef", "topk:1+ef");
  expect("topk:100000000000000000000e-20", "topk:1");
  expect("topk:0.0000000000000000000000000000001e30", "topk:0.1");
  expect("topk:0.00012345", "topk:0.00012345");
  expect("topk:0.000012345", "topk:1.2345e-5");
  expect("topk:1e-10", "topk:1e-10");
  expect("topk:0.3333333333333333", "topk:0.333333333333333");
  expect("topk:0.6666666666666666", "topk:0.666666666666667");
  expect("topk:0.9999999999999999", "topk:1");
  expect("topk:1e-22", "topk:1e-22");
}

static void densities_outside_0_to_1_are_refused(void **state) {
  (void)state;
  const char *const values[] = {"0",
                                "0.000",
                                "0e99999999999999999999",
                                "1e-99999999999999999999",
                                "1.1",
                                "1.00000000000001",
                                "1e1",
                                "1e99999999999999999999",
                                "99999999999999999999999999",
                                "0,01"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "topk:%s", values[i]);
    expect_refusal(text, 6, "is out of range; expected 0 < DENSITY <= 1, or k=N");
  }
}

static void malformed_densities_are_refused(void **state) {
  (void)state;
  const char *const values[] = {"",     ".",     "-0.1", "+0.1", "nan", "inf",   "0x1",
                                "0.1x", "0.1.1", "1e",   "1e-",  "e-3", "1e+ef", "0.1:values=int8"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[64];
    snprintf(text, sizeof text, "topk:%s", values[i]);
    expect_refusal(text, 6, "is no density");
  }
}

static void numbers_are_read_as_the_nearest_double(void **state) {
  (void)state;
  const char *const texts[] = {"0.1",
                               "0.3",
                               "0.7",
                               "0.01",
                               "0.001",
                               "0.0003",
                               "0.00017",
                               "1e-6",
                               "3e-7",
                               "1.1e-5",
                               "7.77e-9",
                               "0.05",
                               "0.015",
                               "1e-1",
                               "1.25e-4",
                               "9e-22",
                               "0.999999999999",
                               "0.123456789012345",
                               "1e9",
                               "999999999.999999",
                               "123456.789",
                               "1.1e3",
                               "0.3e8",
                               "1000000000",
                               "12345678.9012345",
                               "7e0",
                               "1e-15"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double number = -1;
    assert_int_equal(lcomm_read_decimal(texts[i], strlen(texts[i]), &number), strlen(texts[i]));
    assert_true(number == strtod(texts[i], NULL)); /* in the C locale */
  }
}

static void numbers_above_1e9_are_read_as_infinity(void **state) {
  (void)state;
  const char *const texts[] = {"1000000000.00001", "1e10",
                               "10000000000",      "2e9",
                               "9e999999999999",   "123456789012345678901234567890"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double number = -1;
    assert_int_equal(lcomm_read_decimal(texts[i], strlen(texts[i]), &number), strlen(texts[i]));
    assert_true(number > 1e308);
  }
}

static void numbers_survive_their_text(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int i = 0; i < 40000; i++) {
    char text[64], again[64];
    double number, reread;
    random = random * 6364136223846793005u + 1442695040888963407u;
    snprintf(text, sizeof text, "%.*fe%d", (int)(random >> 60), (double)(random >> 11) / 9.1e15,
             9 - (int)((random >> 55) % 29));
    assert_int_equal(lcomm_read_decimal(text, strlen(text), &number), strlen(text));
    if (number > LCOMM_DECIMAL_MAX) {
      continue;
    }
    lcomm_format_decimal(number, again, sizeof again);
    assert_int_equal(lcomm_read_decimal(again, strlen(again), &reread), strlen(again));
    if (number != reread) {
      print_error("%s is written as %s\n", text, again);
    }
    assert_true(number == reread);
  }
}

static void numbers_are_written_short(void **state) {
  (void)state;
  static const struct {
    double number;
    const char *text;
  } cases[] = {{0, "0"},
               {1, "1"},
               {10, "10"},
               {100, "100"},
               {12.5, "12.5"},
               {120.25, "120.25"},
               {1e9, "1000000000"},
               {123456789.5, "123456789.5"},
               {0.0001, "0.0001"},
               {0.00001, "1e-5"},
               {1.5e-7, "1.5e-7"},
               {999999999.999999, "999999999.999999"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[64];
    lcomm_format_decimal(cases[i].number, text, sizeof text);
    assert_string_equal(text, cases[i].text);
  }
}

/* Some locale whose decimal point is a comma, if this machine has one. */
static const char *comma_locale(void) {
  const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "nl_NL.UTF-8"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (setlocale(LC_ALL, names[i])) {
      return names[i];
    }
  }
  return NULL;
}

static void the_locale_does_not_matter(void **state) {
  (void)state;
  if (!comma_locale()) {
    skip();
  }
  expect("topk:1.5e-3+ef", "topk:0.0015+ef");
  expect_refusal("topk:0,01", 6, "out of range");
  setlocale(LC_ALL, "C");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_codec_has_its_standard_format),
    cmocka_unit_test(endings_come_in_any_order_and_are_written_in_one),
    cmocka_unit_test(sign_and_int2_have_feedback_unless_told_otherwise),
    cmocka_unit_test(int4_has_feedback_unless_told_otherwise),
    cmocka_unit_test(fp16_has_a_scale),
    cmocka_unit_test(other_scales_are_refused),
    cmocka_unit_test(blocks_are_those_of_the_codec),
    cmocka_unit_test(fp8_can_be_rounded_stochastically),
    cmocka_unit_test(topk_keeps_a_share_or_a_number),
    cmocka_unit_test(kept_values_are_bf16_or_int8),
    cmocka_unit_test(the_longest_text_fits),
    cmocka_unit_test(unknown_codecs_are_refused),
    cmocka_unit_test(options_are_those_of_the_codec),
    cmocka_unit_test(options_are_given_once_and_whole),
    cmocka_unit_test(endings_are_checked),
    cmocka_unit_test(densities_have_one_canonical_form),
    cmocka_unit_test(densities_outside_0_to_1_are_refused),
    cmocka_unit_test(malformed_densities_are_refused),
    cmocka_unit_test(numbers_are_read_as_the_nearest_double),
    cmocka_unit_test(numbers_above_1e9_are_read_as_infinity),
    cmocka_unit_test(numbers_survive_their_text),
    cmocka_unit_test(numbers_are_written_short),
    cmocka_unit_test(the_locale_does_not_matter),
};
RUN_TESTS(tests)
