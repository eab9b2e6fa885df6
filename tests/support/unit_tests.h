/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_UNIT_TESTS_H
#define LCOMM_TESTS_UNIT_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* main() of a program of unit tests, which are a table of struct CMUnitTest. The second one calls
 * two functions before and after all of them, either of which may be NULL. */
#define RUN_TESTS(tests) RUN_TESTS_WITHIN(tests, NULL, NULL)
#define RUN_TESTS_WITHIN(tests, set_up, tear_down)                                                 \
  int main(void) { return cmocka_run_group_tests(tests, set_up, tear_down); }

#endif
