/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory that peers can view: zeroed, apart, found, and nothing is left of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/transport/shm/shm_heap.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"

enum { PAGE = 4096, MEBIBYTE = 1 << 20, LARGE = 100 << 20 };

static unsigned char *get(size_t size) {
  unsigned char *memory = lcomm_shm_heap_get(size);
  assert_non_null(memory);
  assert_true((uintptr_t)memory % PAGE == 0);
  return memory;
}

static void require_zero(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    assert_int_equal(bytes[i], 0);
  }
}

static void memory_is_zero_also_when_it_serves_again(void **state) {
  (void)state;
  unsigned char *first = get(1); /* keeps the region */
  for (int i = 0; i < 3; i++) {
    unsigned char *memory = get(MEBIBYTE);
    require_zero(memory, MEBIBYTE);
    memset(memory, 7, MEBIBYTE);
    unsigned char *other = get(1);
    require_zero(other, PAGE);
    memset(other, 8, PAGE);
    assert_int_equal(memory[MEBIBYTE - 1], 7);
    assert_true(lcomm_shm_heap_free(other));
    assert_true(lcomm_shm_heap_free(memory));
  }
  assert_true(lcomm_shm_heap_free(first));
}

static void pieces_lie_apart_in_any_order_of_freeing(void **state) {
  (void)state;
  enum { MANY = 40, ROUNDS = 20 };
  static unsigned char *pieces[MANY];
  static size_t sizes[MANY];
  uint32_t random = 1;
  for (int i = 0; i < MANY * ROUNDS; i++) {
    random = random * 1664525u + 1013904223u;
    int at = (int)(random >> 16) % MANY;
    if (pieces[at]) {
      for (size_t j = 0; j < sizes[at]; j += 1000) {
        assert_int_equal(pieces[at][j], at + 1);
      }
      assert_true(lcomm_shm_heap_free(pieces[at]));
      pieces[at] = NULL;
      continue;
    }
    sizes[at] = (random >> 8) % (5 * MEBIBYTE) + 1;
    pieces[at] = get(sizes[at]);
    memset(pieces[at], at + 1, sizes[at]);
  }
  for (int i = 0; i < MANY; i++) {
    assert_true(!pieces[i] || lcomm_shm_heap_free(pieces[i]));
  }
}

static void what_the_heap_has_not_given_is_not_freed(void **state) {
  (void)state;
  int other = 0;
  unsigned char *memory = get(3 * PAGE);
  assert_false(lcomm_shm_heap_free(NULL));
  assert_false(lcomm_shm_heap_free(&other));
  assert_false(lcomm_shm_heap_free(memory + 1));
  assert_false(lcomm_shm_heap_free(memory + PAGE));
  assert_true(lcomm_shm_heap_free(memory));
  assert_false(lcomm_shm_heap_free(memory));
}

static void bytes_are_found_where_they_are(void **state) {
  (void)state;
  lcomm_shm_address address, next;
  unsigned char *memory = get(MEBIBYTE), *large = get(LARGE);
  assert_true(lcomm_shm_heap_find(memory + 5, MEBIBYTE - 5, &address));
  assert_true(address.offset % PAGE == 5 && address.file >= 0);
  assert_true(lcomm_shm_heap_find(large + LARGE - 1, 1, &next));
  assert_true(next.offset >= LARGE - 1 && next.region_size >= LARGE);
  assert_true(next.region != address.region);
  assert_false(lcomm_shm_heap_find(large, (size_t)next.region_size + 1, &next));
  assert_false(lcomm_shm_heap_find(state, 1, &address));
  assert_true(lcomm_shm_heap_free(memory));
  assert_true(lcomm_shm_heap_free(large));
  assert_false(lcomm_shm_heap_find(large, 1, &next));
}

static void a_region_that_is_made_anew_has_another_generation(void **state) {
  (void)state;
  lcomm_shm_address first, second;
  unsigned char *memory = get(LARGE);
  assert_true(lcomm_shm_heap_find(memory, 1, &first));
  assert_true(lcomm_shm_heap_free(memory));
  memory = get(LARGE);
  assert_true(lcomm_shm_heap_find(memory, 1, &second));
  assert_int_equal(first.region, second.region);
  assert_int_not_equal(first.generation, second.generation);
  assert_true(lcomm_shm_heap_free(memory));
}

static void nothing_is_left_open(void **state) {
  (void)state;
  int before = count_files();
  for (int i = 0; i < 100; i++) {
    unsigned char *memory = get(MEBIBYTE), *large = get(LARGE);
    assert_true(count_files() <= before + 2);
    assert_true(lcomm_shm_heap_free(memory));
    assert_true(lcomm_shm_heap_free(large));
  }
  assert_int_equal(count_files(), before);
}

static void absurd_sizes_are_refused(void **state) {
  (void)state;
  assert_null(lcomm_shm_heap_get(SIZE_MAX));
  assert_null(lcomm_shm_heap_get(SIZE_MAX - 1));
  unsigned char *memory = get(0);
  memory[0] = 1;
  assert_true(lcomm_shm_heap_free(memory));
}

/* It works all the same; only nobody can view it. */
static void without_descriptors_memory_is_private(void **state) {
  (void)state;
  struct rlimit limit, none;
  lcomm_shm_address address;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = limit;
  none.rlim_cur = 0;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 3; i++) {
    unsigned char *memory = lcomm_shm_heap_get(MEBIBYTE);
    assert_non_null(memory);
    require_zero(memory, MEBIBYTE);
    memset(memory, 9, MEBIBYTE);
    unsigned char *other = lcomm_shm_heap_get(MEBIBYTE);
    assert_non_null(other);
    assert_false(lcomm_shm_heap_find(memory, MEBIBYTE, &address));
    assert_true(lcomm_shm_heap_free(memory));
    assert_true(lcomm_shm_heap_free(other));
  }
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Exit code of what a child does with memory of its parent. */
static int use_in_child(unsigned char *memory) {
  lcomm_shm_address address;
  if (lcomm_shm_heap_free(memory) || lcomm_shm_heap_find(memory, 1, &address)) {
    return 1;
  }
  unsigned char *own = lcomm_shm_heap_get(MEBIBYTE);
  if (!own || own == memory || own[0] != 0 || memory[0] != 5) {
    return 2;
  }
  memset(own, 6, MEBIBYTE);
  return lcomm_shm_heap_free(own) ? 0 : 3;
}

static void a_forked_child_has_a_heap_of_its_own(void **state) {
  (void)state;
  unsigned char *memory = get(MEBIBYTE);
  memset(memory, 5, MEBIBYTE);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    _exit(use_in_child(memory));
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  for (size_t i = 0; i < MEBIBYTE; i++) {
    assert_int_equal(memory[i], 5);
  }
  unsigned char *next = get(MEBIBYTE);
  require_zero(next, MEBIBYTE);
  assert_true(lcomm_shm_heap_free(next));
  assert_true(lcomm_shm_heap_free(memory));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_zero_also_when_it_serves_again),
    cmocka_unit_test(pieces_lie_apart_in_any_order_of_freeing),
    cmocka_unit_test(what_the_heap_has_not_given_is_not_freed),
    cmocka_unit_test(bytes_are_found_where_they_are),
    cmocka_unit_test(a_region_that_is_made_anew_has_another_generation),
    cmocka_unit_test(nothing_is_left_open),
    cmocka_unit_test(absurd_sizes_are_refused),
    cmocka_unit_test(without_descriptors_memory_is_private),
    cmocka_unit_test(a_forked_child_has_a_heap_of_its_own),
};
RUN_TESTS(tests)
