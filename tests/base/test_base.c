/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Names and texts of codes, the environment table, error sentences. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/include/libcomm_interpose.h"
#include "tests/support/unit_tests.h"

static void every_status_has_a_name_and_a_text(void **state) {
  (void)state;
  for (int status = LCOMM_OK; status >= LCOMM_ERR_INTERNAL; status--) {
    assert_int_equal(strncmp(lcomm_status_name((lcomm_status)status), "LCOMM_", 6), 0);
    assert_string_not_equal(lcomm_status_name((lcomm_status)status), "LCOMM_ERR_UNKNOWN");
    assert_string_not_equal(lcomm_status_string((lcomm_status)status), "unknown status");
  }
}

static void values_that_are_no_codes_are_answered(void **state) {
  (void)state;
  static const int strange[] = {1, 99, -100, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
    assert_string_equal(lcomm_status_name((lcomm_status)strange[i]), "LCOMM_ERR_UNKNOWN");
    assert_string_equal(lcomm_status_string((lcomm_status)strange[i]), "unknown status");
  }
  assert_int_equal(lcomm_dtype_size((lcomm_dtype)77), 0);
  assert_string_equal(lcomm_dtype_name((lcomm_dtype)-1), "unknown dtype");
  assert_string_equal(lcomm_link_name((lcomm_link)LCOMM_LINK_COUNT), "unknown link");
}

static void data_types_have_their_sizes(void **state) {
  (void)state;
  assert_int_equal(lcomm_dtype_size(LCOMM_FLOAT32), 4);
  assert_int_equal(lcomm_dtype_size(LCOMM_FLOAT16), 2);
  assert_int_equal(lcomm_dtype_size(LCOMM_BFLOAT16), 2);
  assert_string_equal(lcomm_dtype_name(LCOMM_BFLOAT16), "bfloat16");
  assert_string_equal(lcomm_link_name(LCOMM_LINK_NET), "net");
}

static void every_variable_has_a_prefix_and_a_help(void **state) {
  (void)state;
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    assert_int_equal(strncmp(lcomm_env_table[i].variable, "LCOMM_", 6), 0);
    assert_true(strlen(lcomm_env_table[i].help) > 10);
  }
}

static void an_empty_variable_counts_as_unset(void **state) {
  (void)state;
  setenv("LCOMM_HOSTID", "", 1);
  assert_null(lcomm_env_get(LCOMM_ENV_HOSTID));
  setenv("LCOMM_HOSTID", "x", 1);
  assert_string_equal(lcomm_env_get(LCOMM_ENV_HOSTID), "x");
  unsetenv("LCOMM_HOSTID");
}

static void only_settings_of_libcomm_are_told(void **state) {
  (void)state;
  setenv("LCOMM_HOSTID", "x", 1);
  setenv("LCOMM_NOTHING", "x", 1);
  setenv("RANK", "0", 1);
  assert_string_equal(lcomm_setting("LCOMM_HOSTID"), "x");
  assert_null(lcomm_setting("LCOMM_HOSTI"));
  setenv("LCOMM_HOSTID", "", 1);
  assert_null(lcomm_setting("LCOMM_HOSTID"));
  assert_null(lcomm_setting("LCOMM_NOTHING"));
  assert_string_equal(lcomm_setting("RANK"), "0"); /* a launcher's, which libcomm reads */
  assert_null(lcomm_setting("PATH"));
  assert_null(lcomm_setting(""));
  assert_null(lcomm_setting(NULL));
  unsetenv("LCOMM_HOSTID");
  assert_null(lcomm_setting("LCOMM_HOSTID"));
  unsetenv("LCOMM_NOTHING");
  unsetenv("RANK");
}

static void sentences_that_are_too_long_are_cut(void **state) {
  (void)state;
  char text[3 * LCOMM_ERROR_MAX];
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  assert_int_equal(lcomm_error_thread(LCOMM_ERR_SYSTEM, "%s", text), LCOMM_ERR_SYSTEM);
  assert_int_equal(strlen(lcomm_last_error(NULL)), LCOMM_ERROR_MAX - 1);
}

static void queries_without_a_communicator_are_answered(void **state) {
  (void)state;
  lcomm_stats stats;
  char text[8];
  assert_int_equal(lcomm_rank(NULL), -1);
  assert_int_equal(lcomm_size(NULL), -1);
  assert_int_equal(lcomm_nodes(NULL), -1);
  assert_string_equal(lcomm_policy_string(NULL), "");
  assert_int_equal(lcomm_stats_get(NULL, &stats), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_abort(NULL, "x"), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_plan_print(NULL, 1, LCOMM_FLOAT32, 0, text, sizeof(text)),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_destroy(NULL), LCOMM_OK);
  assert_int_equal(lcomm_version(), 100);
}

static void a_sentence_on_its_way_up_is_cut_and_ends(void **state) {
  (void)state;
  lcomm_why why;
  char text[3 * LCOMM_WHY_MAX];
  assert_int_equal(lcomm_why_set(&why, LCOMM_ERR_ARGUMENT, "%d of %s", 3, "four"),
                   LCOMM_ERR_ARGUMENT);
  assert_string_equal(why.text, "3 of four");
  memset(text, 'x', sizeof(text) - 1);
  text[sizeof(text) - 1] = '\0';
  assert_int_equal(lcomm_why_set(&why, LCOMM_ERR_MEMORY, "%s", text), LCOMM_ERR_MEMORY);
  assert_int_equal(strlen(why.text), LCOMM_WHY_MAX - 1);
}

static lcomm_status tried(lcomm_status first, lcomm_status second, int *calls) {
  ++*calls;
  LCOMM_TRY(first);
  ++*calls;
  LCOMM_TRY(second);
  ++*calls;
  return LCOMM_OK;
}

static void the_first_status_that_is_not_ok_is_forwarded(void **state) {
  (void)state;
  int calls = 0;
  assert_int_equal(tried(LCOMM_OK, LCOMM_OK, &calls), LCOMM_OK);
  assert_int_equal(calls, 3);
  assert_int_equal(tried(LCOMM_OK, LCOMM_ERR_STATE, &calls), LCOMM_ERR_STATE);
  assert_int_equal(calls, 5);
  assert_int_equal(tried(LCOMM_ERR_WIRE, LCOMM_ERR_STATE, &calls), LCOMM_ERR_WIRE);
  assert_int_equal(calls, 6);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_sentence_on_its_way_up_is_cut_and_ends),
    cmocka_unit_test(the_first_status_that_is_not_ok_is_forwarded),
    cmocka_unit_test(every_status_has_a_name_and_a_text),
    cmocka_unit_test(values_that_are_no_codes_are_answered),
    cmocka_unit_test(data_types_have_their_sizes),
    cmocka_unit_test(every_variable_has_a_prefix_and_a_help),
    cmocka_unit_test(an_empty_variable_counts_as_unset),
    cmocka_unit_test(only_settings_of_libcomm_are_told),
    cmocka_unit_test(sentences_that_are_too_long_are_cut),
    cmocka_unit_test(queries_without_a_communicator_are_answered),
};
RUN_TESTS(tests)
