/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Names that patterns of a policy match. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/plan/policies.h"
#include "tests/support/unit_tests.h"

static void globs_match_whole_names(void **state) {
  (void)state;
  static const struct {
    const char *glob, *name;
    bool matches;
  } cases[] = {
      {"*.bias", "layer1.bias", true},
      {"*.bias", "layer1.bias2", false},
      {"*.bias", ".bias", true},
      {"*norm*", "norm", true},
      {"*norm*", "a.norm.weight", true},
      {"*norm*", "nor", false},
      {"a?c", "abc", true},
      {"a?c", "ac", false},
      {"a?c", "abbc", false},
      {"?", "", false},
      {"*", "", true},
      {"*", "x", true},
      {"**", "x", true},
      {"a", "a", true},
      {"a", "ab", false},
      {"ab", "a", false},
      {"*a*b", "aabab", true},
      {"*a*b", "aabaa", false},
      {"a*b*c", "aXbXbXc", true},
      {"*ab", "aab", true},
      {"[a]", "a", false},
      {"[a]", "[a]", true},
      {"\\*", "*", false},
      {"a*?", "a", false},
      {"a*?", "ab", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    snprintf(text, sizeof text, "exempt=zzz,%s", cases[i].glob);
    lcomm_policy policy = parse(text);
    if (lcomm_policy_exempts(&policy, cases[i].name) != cases[i].matches) {
      print_error("%s %s\n", cases[i].glob, cases[i].name);
    }
    assert_int_equal(lcomm_policy_exempts(&policy, cases[i].name), cases[i].matches);
  }
  lcomm_policy none = parse(NULL);
  assert_false(lcomm_policy_exempts(&none, ""));
}

/* Would not end with an exponential matcher. */
static void many_stars_match_in_bounded_work(void **state) {
  (void)state;
  char text[200] = "exempt=", name[128];
  for (int i = 0; i < 60; i++) {
    strcat(text, "*a");
  }
  strcat(text, "b");
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  lcomm_policy policy = parse(text);
  assert_false(lcomm_policy_exempts(&policy, name));
  name[sizeof name - 2] = 'b';
  assert_true(lcomm_policy_exempts(&policy, name));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(globs_match_whole_names),
    cmocka_unit_test(many_stars_match_in_bounded_work),
};
RUN_TESTS(tests)
