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
 * two functions before and after all of them, either of which may be NULL. An argument of the
 * program says which ones run: a pattern with * and ? of their names. */
#define RUN_TESTS(tests) RUN_TESTS_WITHIN(tests, NULL, NULL)
#define RUN_TESTS_WITHIN(tests, set_up, tear_down)                                                 \
  int main(int argc, char **argv) {                                                                \
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);                                             \
    return cmocka_run_group_tests(tests, set_up, tear_down);                                       \
  }

#endif
