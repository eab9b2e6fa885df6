/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How many processors a rank has for itself. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/topo/processors.h"
#include "tests/support/remove_tree.h"
#include "tests/support/unit_tests.h"

enum { MANY = 64, PATH_SIZE = 512 };

/* May run on processors first..first + count - 1. */
static lcomm_processors rank_on(unsigned first, unsigned count, uint64_t machine) {
  lcomm_processors it = {.machine = machine, .host = machine};
  for (unsigned i = first; i < first + count; i++) {
    it.allowed[i / 64] |= UINT64_C(1) << (i % 64);
  }
  return it;
}

static uint64_t share(const lcomm_processors *all, int size, int rank) {
  return lcomm_processors_share(all, size, rank);
}

static void ranks_share_the_processors_they_may_all_use(void **state) {
  (void)state;
  lcomm_processors all[MANY];
  for (int size = 1; size <= MANY; size++) {
    all[size - 1] = rank_on(0, 96, 1);
    for (int rank = 0; rank < size; rank++) {
      assert_int_equal(share(all, size, rank), 9600 / size);
    }
  }
}

static void bound_ranks_have_their_own(void **state) {
  (void)state;
  lcomm_processors all[8];
  for (unsigned i = 0; i < 8; i++) {
    all[i] = rank_on(125 * i, 4, 1); /* far apart, across words */
  }
  assert_int_equal(share(all, 8, 5), 400);
  for (unsigned i = 0; i < 8; i++) {
    all[i] = rank_on(i, 1, 1);
  }
  assert_int_equal(share(all, 8, 0), 100);
}

/* The poorest decides, on its machine only. */
static void all_ranks_of_a_machine_find_the_same(void **state) {
  (void)state;
  lcomm_processors all[5] = {rank_on(0, 8, 1), rank_on(8, 2, 1), rank_on(10, 6, 1),
                             rank_on(0, 4, 2), rank_on(4, 16, 2)};
  for (int rank = 0; rank < 3; rank++) {
    assert_int_equal(share(all, 5, rank), 200);
  }
  assert_int_equal(share(all, 5, 3), 400);
  assert_int_equal(share(all, 5, 4), 400);
}

/* Ranks of a host share its quota; containers of a machine have quotas of their own. */
static void a_quota_is_shared_by_the_ranks_of_its_host(void **state) {
  (void)state;
  lcomm_processors all[4];
  for (unsigned i = 0; i < 4; i++) {
    all[i] = rank_on(0, 64, 1);
    all[i].quota_percent = 600;
  }
  assert_int_equal(share(all, 4, 0), 150);
  for (unsigned i = 0; i < 4; i++) {
    all[i].host = i;
  }
  assert_int_equal(share(all, 4, 0), 600);
  all[2].quota_percent = 0; /* none */
  assert_int_equal(share(all, 4, 2), 600);
}

static void a_rank_that_knows_of_no_processor_has_none(void **state) {
  (void)state;
  lcomm_processors all[2] = {rank_on(0, 0, 1), rank_on(0, 8, 1)};
  assert_int_equal(share(all, 2, 0), 0);
  assert_int_equal(share(all, 2, 1), 0);
}

static void this_process_has_one_at_least(void **state) {
  (void)state;
  lcomm_processors mine;
  lcomm_processors_self(7, &mine);
  assert_int_equal(mine.host, 7);
  assert_true(lcomm_processors_share(&mine, 1, 0) > 0);
}

/* ------------------------------------------------------------ control groups */

static char root[64];

static void put(const char *path, const char *text) {
  char whole[PATH_SIZE];
  snprintf(whole, sizeof(whole), "%s", root);
  for (const char *at = path; *at;) {
    size_t part = strcspn(at + 1, "/") + 1;
    size_t used = strlen(whole);
    if (at[part] == '/') {
      snprintf(whole + used, sizeof(whole) - used, "%.*s", (int)part, at);
      mkdir(whole, 0777);
    }
    at += part;
  }
  snprintf(whole, sizeof(whole), "%s%s", root, path);
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int make_root(void **state) {
  (void)state;
  snprintf(root, sizeof(root), "/tmp/libcomm-test-cgroup.XXXXXX");
  return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
  (void)state;
  return remove_tree(root);
}

/* The quota once the file says this. */
static void expect_quota(const char *path, const char *text, int quota) {
  put(path, text);
  assert_int_equal(lcomm_cgroup_quota(root), quota);
}

static void the_smallest_quota_on_the_way_up_counts(void **state) {
  (void)state;
  expect_quota("/proc/self/cgroup", "0::/job/task\n", 0);
  expect_quota("/sys/fs/cgroup/job/task/cpu.max", "max 100000\n", 0);
  expect_quota("/sys/fs/cgroup/job/cpu.max", "350000 100000\n", 350);
  expect_quota("/sys/fs/cgroup/job/task/cpu.max", "50000 100000\n", 50);
  expect_quota("/sys/fs/cgroup/cpu.max", "1000 100000\n", 1);
}

static void the_first_version_counts_too(void **state) {
  (void)state;
  put("/proc/self/cgroup", "9:name=systemd:/\n4:cpuset:/x\n3:cpu,cpuacct:/box\n2:cpuacct:/y\n");
  put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
  expect_quota("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n", 0);
  expect_quota("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "400000\n", 400);
}

static void nonsense_is_no_quota(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "\n",
                                      "x",
                                      "5",
                                      "5 ",
                                      "5 0",
                                      "0 5",
                                      "-5 5",
                                      "5 -5",
                                      "5 x",
                                      "5\t5",
                                      " 5 5",
                                      "99999999999999999999999 1"};
  put("/proc/self/cgroup", "0::/\n");
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    expect_quota("/sys/fs/cgroup/cpu.max", texts[i], 0);
  }
  put("/sys/fs/cgroup/cpu.max", "200000 100000");
  static const char *const lines[] = {"", ":", "::", "0:", "0::", "0::x", "\n\n\n", "a:cpux:/"};
  for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
    expect_quota("/proc/self/cgroup", lines[i], 0);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_share_the_processors_they_may_all_use),
    cmocka_unit_test(bound_ranks_have_their_own),
    cmocka_unit_test(all_ranks_of_a_machine_find_the_same),
    cmocka_unit_test(a_quota_is_shared_by_the_ranks_of_its_host),
    cmocka_unit_test(a_rank_that_knows_of_no_processor_has_none),
    cmocka_unit_test(this_process_has_one_at_least),
    cmocka_unit_test_setup_teardown(the_smallest_quota_on_the_way_up_counts, make_root,
                                    remove_root),
    cmocka_unit_test_setup_teardown(the_first_version_counts_too, make_root, remove_root),
    cmocka_unit_test_setup_teardown(nonsense_is_no_quota, make_root, remove_root),
};
RUN_TESTS(tests)
