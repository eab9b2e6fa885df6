/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How a device's module is found and judged, and what is said where there is none.
 * What lasts for a process happens in processes of their own. */

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/device/module.h"
#include "libcomm/include/libcomm.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

/* ------------------------------------------------------------------ judging */

/* What a module's device answers. */
static int count_error, count_result, driver_version, runtime_version;

static int fake_count(int *count) {
  *count = count_result;
  return count_error;
}

static const char *fake_explain(int error) {
  return error == 802 ? "system not yet initialized" : "unknown";
}

static int fake_version(int *driver, int *runtime) {
  *driver = driver_version;
  *runtime = runtime_version;
  return 0;
}

static const lcomm_device_table fake = {
    .name = "fake", .count = fake_count, .explain = fake_explain, .version = fake_version};

static bool (*asked)(void); /* by its table */

static struct lcomm_device_module fitting(void) {
  return (struct lcomm_device_module){LCOMM_DEVICE_MODULE_SIZE, (uint32_t)lcomm_version(), &fake,
                                      &asked};
}

/* The module is refused, and the sentence names both of these. */
static void expect_refusal(const struct lcomm_device_module *module, const char *what,
                           const char *remedy) {
  lcomm_why why;
  assert_null(lcomm_device_module_check(module, &why));
  if (!strstr(why.text, what) || !strstr(why.text, remedy)) {
    fail_msg("'%s' does not say '%s' and '%s'", why.text, what, remedy);
  }
  assert_true(strlen(why.text) < sizeof(why.text) - 1); /* all of it */
}

static void module_that_fits_gives_its_table(void **state) {
  struct lcomm_device_module module = fitting();
  lcomm_why why;
  (void)state;
  count_error = 0;
  count_result = 2;
  assert_ptr_equal(lcomm_device_module_check(&module, &why), &fake);
  assert_ptr_equal(asked, lcomm_device_is_barred);
  module.is_barred = NULL; /* one that asks nothing */
  assert_ptr_equal(lcomm_device_module_check(&module, &why), &fake);
}

static void module_of_another_build_is_refused(void **state) {
  struct lcomm_device_module module = fitting();
  char own[32];
  (void)state;
  count_error = 0;
  count_result = 1;
  snprintf(own, sizeof(own), "%d.%d.%d", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  module.version = 20304;
  expect_refusal(&module, "2.3.4", own);
  module = fitting();
  module.size += 8;
  expect_refusal(&module, own, "install both anew");
  module.size = 4; /* the rest is not there */
  expect_refusal(&module, "0.0.0", "install both anew");
  module = fitting();
  module.table = NULL;
  expect_refusal(&module, own, "install both anew");
}

/* Where counting the devices fails. */
static struct lcomm_device_module failing(int error, int driver, int runtime) {
  count_error = error;
  driver_version = driver;
  runtime_version = runtime;
  return fitting();
}

static void missing_driver_is_named(void **state) {
  (void)state;
  struct lcomm_device_module module = failing(35, 0, 13000);
  expect_refusal(&module, "libcuda.so.1", "install");
}

static void old_driver_is_named_with_both_versions(void **state) {
  (void)state;
  struct lcomm_device_module module = failing(35, 12040, 13000);
  expect_refusal(&module, "12.4", "13.0");
  expect_refusal(&module, "update the driver", "build libcomm with CUDA 12");
}

static void other_errors_are_explained_by_the_device(void **state) {
  (void)state;
  struct lcomm_device_module module = failing(802, 13010, 13000);
  expect_refusal(&module, "system not yet initialized", "nvidia-smi");
}

static void no_device_is_no_error_but_said(void **state) {
  struct lcomm_device_module module = fitting();
  (void)state;
  count_error = 0;
  count_result = 0;
  expect_refusal(&module, "no CUDA device", "CUDA_VISIBLE_DEVICES");
}

/* ------------------------------------------------------------------ finding */

static const char *given_library, *given_mode, *expected[2];

/* In a process of its own. */
static void find_none(forked *self) {
  lcomm_why why, again;
  lcomm_device_library = given_library;
  if (given_mode) {
    setenv("LCOMM_CUDA", given_mode, 1);
  } else {
    unsetenv("LCOMM_CUDA");
  }
  forked_require(self, !lcomm_device_get(NULL), "there is a device");
  forked_require(self, !lcomm_device_get(&why), "there is a device, after all");
  unsetenv("LCOMM_CUDA"); /* too late */
  forked_require(self, !lcomm_device_get(&again), "a device has come");
  for (int i = 0; i < 2; i++) {
    forked_require(self, strstr(why.text, expected[i]) != NULL, "'%s' does not say '%s'", why.text,
                   expected[i]);
  }
  forked_require(self, strcmp(why.text, again.text) == 0, "'%s', then '%s'", why.text, again.text);
}

static void expect_none(const char *mode, const char *library, const char *what,
                        const char *remedy) {
  given_mode = mode;
  given_library = library;
  expected[0] = what;
  expected[1] = remedy;
  forked_run(1, find_none);
}

static void cuda_can_be_switched_off(void **state) {
  (void)state;
  expect_none("off", "libm.so.6", "LCOMM_CUDA=off", "unset it");
  expect_none("maybe", "libm.so.6", "LCOMM_CUDA=maybe", "neither auto nor off");
}

static void missing_module_is_named(void **state) {
  (void)state;
  expect_none(NULL, "libcomm-there-is-none.so", "libcomm-there-is-none.so is neither", "nvcc");
  expect_none("auto", "libcomm-there-is-none.so", "libcomm-there-is-none.so is neither", "nvcc");
}

static void another_library_is_not_taken_for_the_module(void **state) {
  (void)state;
  expect_none(NULL, "libm.so.6", "libm.so.6 has no lcomm_device_module", "install");
}

/* ------------------------------------------------------- beside this program */

static char beside_name[64], beside_path[PATH_MAX];

static bool choose_path(void) {
  char own[PATH_MAX] = "";
  ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
  char *end = length > 0 ? strrchr(own, '/') : NULL;
  if (!end) {
    return false;
  }
  *end = '\0';
  snprintf(beside_name, sizeof(beside_name), "libcomm-module-%d.so", (int)getpid());
  length = snprintf(beside_path, sizeof(beside_path), "%s/%s", own, beside_name);
  return length > 0 && (size_t)length < sizeof(beside_path);
}

static void module_that_is_damaged_is_named(void **state) {
  (void)state;
  assert_true(choose_path());
  FILE *file = fopen(beside_path, "w");
  assert_non_null(file);
  fputs("no library\n", file);
  fclose(file);
  expect_none(NULL, beside_name, "cannot be loaded", beside_name);
  unlink(beside_path);
}

/* A module with a count of 3 and nothing else, or one of another version. */
static bool compile_module(int version) {
  char command[PATH_MAX + 64];
  snprintf(command, sizeof(command), "cc -x c -shared -fPIC -I. -o '%s' - 2>/dev/null",
           beside_path);
  FILE *compiler = popen(command, "w");
  if (!compiler) {
    return false;
  }
  fprintf(compiler,
          "#include \"libcomm/device/device.h\"\n"
          "static int count(int *n) { *n = 3; return 0; }\n"
          "static const lcomm_device_table table = {.name = \"small\", .count = count};\n"
          "const struct lcomm_device_module lcomm_device_module = {\n"
          "  LCOMM_DEVICE_MODULE_SIZE, %d, &table, 0};\n",
          version);
  return pclose(compiler) == 0;
}

enum { THREADS = 4 };

static void *get_device(void *unused) {
  (void)unused;
  return (void *)(uintptr_t)lcomm_device_get(NULL);
}

/* All threads get the same one, and it is replaced for all. */
static void find_module(forked *self) {
  pthread_t threads[THREADS];
  lcomm_why why;
  int count = 0;
  lcomm_device_library = given_library;
  unsetenv("LCOMM_CUDA");
  for (int i = 0; i < THREADS; i++) {
    forked_require(self, pthread_create(&threads[i], NULL, get_device, NULL) == 0, "no thread");
  }
  const lcomm_device_table *table = lcomm_device_get(&why);
  forked_require(self, table != NULL, "%s", why.text);
  for (int i = 0; i < THREADS; i++) {
    void *found = NULL;
    pthread_join(threads[i], &found);
    forked_require(self, found == table, "another table");
  }
  forked_require(self, table->count(&count) == 0 && count == 3, "count %d", count);
  lcomm_device_replace(&fake);
  forked_require(self, lcomm_device_get(&why) == &fake, "not replaced");
  lcomm_device_replace(NULL);
  forked_require(self, !lcomm_device_get(&why) && strstr(why.text, "replaced"), "'%s'", why.text);
}

static void module_beside_the_program_is_found(void **state) {
  (void)state;
  assert_true(choose_path());
  if (!compile_module(lcomm_version())) {
    unlink(beside_path);
    skip(); /* no compiler */
  }
  given_library = beside_name;
  forked_run(1, find_module);
  unlink(beside_path);
}

static void module_of_another_version_is_not_used(void **state) {
  (void)state;
  assert_true(choose_path());
  if (!compile_module(990102)) {
    unlink(beside_path);
    skip(); /* no compiler */
  }
  expect_none(NULL, beside_name, "99.1.2", "one build");
  unlink(beside_path);
}

static void device_can_be_replaced_before_it_is_looked_for(forked *self) {
  lcomm_device_library = "libcomm-there-is-none.so";
  setenv("LCOMM_CUDA", "off", 1);
  lcomm_device_replace(&fake);
  forked_require(self, lcomm_device_get(NULL) == &fake, "not replaced");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(module_that_fits_gives_its_table),
    cmocka_unit_test(module_of_another_build_is_refused),
    cmocka_unit_test(missing_driver_is_named),
    cmocka_unit_test(old_driver_is_named_with_both_versions),
    cmocka_unit_test(other_errors_are_explained_by_the_device),
    cmocka_unit_test(no_device_is_no_error_but_said),
    cmocka_unit_test(cuda_can_be_switched_off),
    cmocka_unit_test(missing_module_is_named),
    cmocka_unit_test(another_library_is_not_taken_for_the_module),
    cmocka_unit_test(module_that_is_damaged_is_named),
    cmocka_unit_test(module_beside_the_program_is_found),
    cmocka_unit_test(module_of_another_version_is_not_used),
    FORKED_TEST(device_can_be_replaced_before_it_is_looked_for, 1),
};
RUN_TESTS(tests)
