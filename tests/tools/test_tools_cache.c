/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How large the caches are that processors share, by what the system says of each processor. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/temp_folder.h"
#include "tools/common/tool_cache.h"

static void put(const char *place, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", place, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* A processor with a cache of the third level. */
static void add_processor(const folder *in, int number, const char *shared, const char *size) {
  static const char *const parts[] = {"", "/cache", "/cache/index3"};
  char path[384];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    snprintf(path, sizeof path, "%s/cpu%d%s", in->path, number, parts[i]);
    assert_int_equal(mkdir(path, 0700), 0);
  }
  put(path, "shared_cpu_list", shared);
  put(path, "size", size);
}

static void a_cache_counts_once(void **state) {
  const folder *in = *state;
  add_processor(in, 0, "0-1\n", "32768K\n");
  add_processor(in, 1, "0-1\n", "32768K\n");
  assert_int_equal(tool_cache_size(in->path), 32 << 20);
}

static void all_caches_count(void **state) {
  const folder *in = *state;
  add_processor(in, 0, "0,2\n", "32M\n");
  add_processor(in, 2, "0,2\n", "32M\n");
  add_processor(in, 1, "1,10\n", "16M\n");
  add_processor(in, 10, "1,10\n", "16M\n");
  assert_int_equal(tool_cache_size(in->path), 48 << 20);
}

static void what_is_not_said_is_not_known(void **state) {
  const folder *in = *state;
  char path[512];
  assert_int_equal(tool_cache_size(in->path), 0);
  add_processor(in, 0, "0\n", "large\n");
  add_processor(in, 1, "", "32M\n");
  snprintf(path, sizeof path, "%s/cpufreq", in->path);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(tool_cache_size(in->path), 0);
  snprintf(path, sizeof path, "%s/none", in->path);
  assert_int_equal(tool_cache_size(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {IN_FOLDER(a_cache_counts_once), IN_FOLDER(all_caches_count),
                                     IN_FOLDER(what_is_not_said_is_not_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
