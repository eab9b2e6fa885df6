/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_POLICIES_H
#define LCOMM_TESTS_POLICIES_H

/* Policies that are read, and such that are refused. cmocka.h comes before this header. */

#include <stdio.h>
#include <string.h>

#include "libcomm/plan/policy.h"

static inline lcomm_policy parse(const char *text) {
  lcomm_policy policy;
  lcomm_why error;
  lcomm_status status = lcomm_policy_parse(text, &policy, &error);
  if (status != LCOMM_OK) {
    print_error("'%s': %s\n", text != NULL ? text : "", error.text);
  }
  assert_int_equal(status, LCOMM_OK);
  assert_string_equal(error.text, "");
  return policy;
}

static inline void expect_canonical(const char *text, const char *canonical) {
  lcomm_policy policy = parse(text);
  char formatted[LCOMM_POLICY_MAX];
  lcomm_policy_format(&policy, formatted);
  assert_string_equal(formatted, canonical);
}

/* The sentence of a refused policy; valid until the next call. */
static inline const char *refusal(const char *text) {
  static lcomm_why error;
  lcomm_policy untouched, policy;
  memset(&untouched, 0x5a, sizeof untouched);
  memcpy(&policy, &untouched, sizeof policy);
  lcomm_status status = lcomm_policy_parse(text, &policy, &error);
  if (status != LCOMM_ERR_POLICY) {
    print_error("'%s' is not refused\n", text);
  }
  assert_int_equal(status, LCOMM_ERR_POLICY);
  assert_memory_equal(&policy, &untouched, sizeof policy);
  return error.text;
}

static inline void expect_refusal(const char *text, int column, const char *what) {
  char start[64];
  snprintf(start, sizeof start, "policy, column %d: ", column);
  const char *sentence = refusal(text);
  if (strncmp(sentence, start, strlen(start)) != 0 || !strstr(sentence, what) ||
      !strstr(sentence, "; for example ")) {
    print_error("'%s': %s\n", text, sentence);
  }
  assert_int_equal(strncmp(sentence, start, strlen(start)), 0);
  assert_non_null(strstr(sentence, what));
  assert_non_null(strstr(sentence, "; for example "));
}

#endif
