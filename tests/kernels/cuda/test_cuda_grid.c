/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The emulated grid does what a device does, and stops where a device would hang
 * or go wrong. */

#include "tests/kernels/kernel_samples.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kernels/cuda/grid_sample.h"
#include "tests/support/emulated/emulated_blocks.h"
#include "tests/support/emulated/emulated_shared.h"
#include "tests/support/unit_tests.h"

static const uint64_t orders[] = {0, 1, 77, 123456789};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static uint32_t *random_words(uint64_t *random, size_t n) {
  uint32_t *words = sample_memory(n * sizeof *words);
  for (size_t i = 0; i < n; i++) {
    words[i] = (uint32_t)(sample_u64(random) >> 20);
  }
  return words;
}

static void every_thread_knows_its_place(void **state) {
  (void)state;
  for (uint32_t threads = 32; threads <= 256; threads += 32) {
    uint32_t blocks = 5, *result = sample_memory(blocks * threads * sizeof *result);
    assert_int_equal(grid_sample_places(result, blocks, threads, NULL), 0);
    for (uint32_t b = 0; b < blocks; b++) {
      for (uint32_t t = 0; t < threads; t++) {
        assert_int_equal(result[b * threads + t], 1000 * b + t + t % 32 + t / 32);
      }
    }
    free(result);
  }
}

static void no_blocks_are_no_launch(void **state) {
  (void)state;
  assert_int_equal(grid_sample_places(NULL, 0, 32, NULL), 0);
}

/* The same sums by barriers and by shuffles. */
static void check_sums(uint32_t blocks, uint32_t threads) {
  uint64_t random = 5 + threads;
  uint32_t *source = random_words(&random, blocks * threads);
  uint32_t *sums = sample_memory(blocks * sizeof *sums);
  uint32_t *by_warps = sample_memory(blocks * sizeof *by_warps);
  grid_sample_sum(source, sums, blocks, threads, NULL);
  grid_sample_sum_by_warps(source, by_warps, blocks, threads, NULL);
  for (uint32_t b = 0; b < blocks; b++) {
    uint32_t wanted = 0;
    for (uint32_t t = 0; t < threads; t++) {
      wanted += source[b * threads + t];
    }
    assert_int_equal(sums[b], wanted);
    assert_int_equal(by_warps[b], wanted);
  }
  free(source);
  free(sums);
  free(by_warps);
}

static void barriers_and_shuffles_hold_in_every_order(void **state) {
  (void)state;
  for (size_t o = 0; o < ORDERS; o++) {
    lcomm_emulated_order = orders[o];
    for (uint32_t threads = 32; threads <= 256; threads += 32) {
      check_sums(7, threads);
    }
  }
  lcomm_emulated_order = 0;
}

static void lanes_exchange_as_the_instructions_say(void **state) {
  (void)state;
  enum { THREADS = 96 };
  uint64_t random = 31;
  uint32_t *source = random_words(&random, THREADS), *result = sample_memory(5 * 4 * THREADS);
  for (size_t o = 0; o < ORDERS; o++) {
    lcomm_emulated_order = orders[o];
    grid_sample_exchange(source, result, THREADS, NULL);
    for (uint32_t t = 0; t < THREADS; t++) {
      uint32_t lane = t % 32, ballot = 0, *warp = source + t - lane, *got = result + 5 * t;
      for (uint32_t i = 0; i < 32; i++) {
        ballot |= warp[i] % 2 << i;
      }
      assert_int_equal(got[0], warp[lane ^ 5]);
      assert_int_equal(got[1], warp[lane < 3 ? lane : lane - 3]);
      assert_int_equal(got[2], warp[7 * lane % 32]);
      assert_int_equal(got[3], ballot);
      assert_int_equal(got[4], 32);
    }
  }
  lcomm_emulated_order = 0;
  free(source);
  free(result);
}

static void atomics_count_everything_once(void **state) {
  (void)state;
  enum { N = 1000 };
  uint64_t random = 8, sum = 0, wide = UINT64_C(1) << 40;
  uint32_t *source = random_words(&random, N), counts[3] = {0}, most = 0, all = 0;
  for (size_t i = 0; i < N; i++) {
    sum += source[i];
    most = source[i] > most ? source[i] : most;
    all |= source[i];
  }
  grid_sample_atomics(source, N, counts, &wide, NULL);
  assert_int_equal(counts[0], (uint32_t)sum);
  assert_int_equal(counts[1], most);
  assert_int_equal(counts[2], all);
  assert_true(wide == sum + (UINT64_C(1) << 40));
  free(source);
}

static void vectors_are_copied_whole(void **state) {
  (void)state;
  enum { N = 45 };
  uint64_t random = 3;
  uint32_t *source = random_words(&random, 6 * N), *copied = sample_memory(6 * N * sizeof *copied);
  grid_sample_copy(source, copied, source + 4 * N, copied + 4 * N, N, NULL);
  assert_memory_equal(copied, source, 6 * N * sizeof *source);
  assert_int_equal(grid_sample_set(copied + 1, 4 * (6 * N - 2), NULL), 0);
  for (size_t i = 1; i < 6 * N - 1; i++) {
    assert_int_equal(copied[i], 0);
  }
  assert_int_equal(copied[0], source[0]);
  assert_int_equal(copied[6 * N - 1], source[6 * N - 1]);
  assert_int_equal(grid_sample_copy_in(copied, source, 4 * 6 * N, NULL), 0);
  assert_memory_equal(copied, source, 6 * N * sizeof *source);
  free(source);
  free(copied);
}

/* Where the build can do it; see support/emulated/shared.h. */
static void shared_memory_is_never_left_from_another_block(void **state) {
  (void)state;
  uint32_t found[3];
  grid_sample_shared(found, 3, NULL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (int i = 0; i < 3; i++) {
    assert_int_equal(found[i], 0xa7a7a7a7u);
  }
#endif
}

/* ----------------------------------------------------------------- mistakes */

static void a_missing_barrier_is_seen_in_some_order(void **state) {
  (void)state;
  uint64_t random = 12;
  uint32_t result[64], wrong = 0;
  for (size_t o = 0; o < ORDERS; o++) {
    uint32_t *source = random_words(&random, 64);
    lcomm_emulated_order = orders[o];
    grid_sample_lacks_barrier(source, result, NULL);
    wrong += memcmp(result + 1, source, 63 * sizeof *source) != 0;
    free(source);
  }
  lcomm_emulated_order = 0;
  assert_int_equal(wrong, ORDERS - 1);
}

/* Run the mistake in a process of its own: what it says before it ends. */
static void check_mistake(grid_sample_mistake mistake, const char *const *words) {
  int ends[2];
  char text[4096] = "";
  uint32_t *memory = NULL;
  assert_int_equal(posix_memalign((void **)&memory, 64, 4096), 0);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    grid_sample_make(mistake, memory, NULL);
    _exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length<sizeof text - 1; length += got> 0 ? (size_t)got : 0) {
    got = read(ends[0], text + length, sizeof text - 1 - length);
  }
  int status = 0;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
  for (size_t i = 0; words[i]; i++) {
    if (!strstr(text, words[i])) {
      fail_msg("mistake %d: no \"%s\" in: %s", (int)mistake, words[i], text);
    }
  }
  free(memory);
}

static void threads_that_return_before_a_barrier_are_named(void **state) {
  (void)state;
  static const char *const words[] = {"kernel returns_early, block 0 of 3",
                                      "threads 0 to 31 are at lcomm_sync_block",
                                      "threads 32 to 63 have returned", NULL};
  check_mistake(GRID_SAMPLE_RETURNS_EARLY, words);
}

static void barriers_at_two_places_are_named(void **state) {
  (void)state;
  static const char *const words[] = {"kernel other_barrier", "meet at different places",
                                      "threads 0 to 31 are at lcomm_sync_block",
                                      "grid_sample.cu:", NULL};
  check_mistake(GRID_SAMPLE_OTHER_BARRIER, words);
}

static void different_exchanges_of_one_warp_are_named(void **state) {
  (void)state;
  static const char *const words[] = {"kernel other_shuffle",
                                      "threads 0 to 8 are at lcomm_shuffle_xor",
                                      "threads 9 to 9 are at lcomm_ballot", NULL};
  check_mistake(GRID_SAMPLE_OTHER_SHUFFLE, words);
}

static void a_warp_torn_between_barrier_and_shuffle_is_named(void **state) {
  (void)state;
  static const char *const words[] = {"kernel barrier_or_shuffle",
                                      "threads 0 to 32 are at lcomm_sync_block",
                                      "threads 33 to 63 are at lcomm_shuffle_up", NULL};
  check_mistake(GRID_SAMPLE_BARRIER_OR_SHUFFLE, words);
}

static void misaligned_vectors_are_named(void **state) {
  (void)state;
  static const char *const words[] = {"kernel misaligned", "no multiple of 16", NULL};
  check_mistake(GRID_SAMPLE_MISALIGNED, words);
}

/* Elsewhere it is only another array that is hit. */
static void address_sanitizer_guards_shared_memory(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  static const char *const words[] = {"grid_sample.cu", NULL};
  check_mistake(GRID_SAMPLE_BEYOND_SHARED, words);
#else
  skip();
#endif
}

/* ---------------------------------------------------- several at one time */

static void *sum_often(void *unused) {
  for (uint32_t i = 0; i < 20; i++) {
    check_sums(3, 32 + i % 8 * 32);
  }
  return unused;
}

static void threads_of_the_system_may_run_grids_side_by_side(void **state) {
  (void)state;
  enum { RUNNERS = 4 };
  pthread_t runners[RUNNERS];
  for (int i = 0; i < RUNNERS; i++) {
    assert_int_equal(pthread_create(&runners[i], NULL, sum_often, NULL), 0);
  }
  for (int i = 0; i < RUNNERS; i++) {
    assert_int_equal(pthread_join(runners[i], NULL), 0);
  }
}

static struct {
  uint32_t blocks, threads;
  size_t args_size;
  void *stream;
  char name[32];
} seen;

static int refuse(lcomm_emulated_kernel *kernel, const void *args, size_t args_size,
                  uint32_t blocks, uint32_t threads, void *stream, const char *name) {
  (void)kernel;
  (void)args;
  seen.blocks = blocks;
  seen.threads = threads;
  seen.args_size = args_size;
  seen.stream = stream;
  snprintf(seen.name, sizeof seen.name, "%s", name);
  return 719;
}

static void launches_go_through_the_hook(void **state) {
  (void)state;
  lcomm_emulated_hooks kept = lcomm_emulated;
  uint32_t untouched = 3;
  lcomm_emulated.launch = refuse;
  assert_int_equal(grid_sample_places(&untouched, 9, 64, &seen), 719);
  lcomm_emulated = kept;
  assert_int_equal(untouched, 3);
  assert_int_equal(seen.blocks, 9);
  assert_int_equal(seen.threads, 64);
  assert_int_equal(seen.args_size, 24);
  assert_ptr_equal(seen.stream, &seen);
  assert_string_equal(seen.name, "places");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_thread_knows_its_place),
    cmocka_unit_test(no_blocks_are_no_launch),
    cmocka_unit_test(barriers_and_shuffles_hold_in_every_order),
    cmocka_unit_test(lanes_exchange_as_the_instructions_say),
    cmocka_unit_test(atomics_count_everything_once),
    cmocka_unit_test(vectors_are_copied_whole),
    cmocka_unit_test(shared_memory_is_never_left_from_another_block),
    cmocka_unit_test(a_missing_barrier_is_seen_in_some_order),
    cmocka_unit_test(threads_that_return_before_a_barrier_are_named),
    cmocka_unit_test(barriers_at_two_places_are_named),
    cmocka_unit_test(different_exchanges_of_one_warp_are_named),
    cmocka_unit_test(a_warp_torn_between_barrier_and_shuffle_is_named),
    cmocka_unit_test(misaligned_vectors_are_named),
    cmocka_unit_test(address_sanitizer_guards_shared_memory),
    cmocka_unit_test(threads_of_the_system_may_run_grids_side_by_side),
    cmocka_unit_test(launches_go_through_the_hook),
};
RUN_TESTS(tests)
