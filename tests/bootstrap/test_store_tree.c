/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tree along which all-gathers of large worlds run: its shape, how many bytes go through a
 * rank, and what happens where it cannot be built or breaks. test_store.c runs all its properties
 * along a tree, too. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/ioctl.h>

#include "codecs/little_endian.h"
#include "libcomm/comm/handshake.h"
#include "libcomm/transport/shm/shm_internal.h"
#include "libcomm/transport/ucx/ucx_addresses.h"
#include "tests/bootstrap/crew.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"

enum { FOREVER_S = 600 };

static int small_tree(void **state) {
  (void)state;
  crew_shape = (lcomm_store_shape){.star_most = 2, .fan_out = 2};
  return 0;
}

/* ------------------------------------------------------------------- shape */

/* Every rank but 0 is child of one parent, and what is below a rank follows it. */
static void check_tree(int size, int fan_out) {
  int children = 0;
  for (int rank = 0; rank < size; rank++) {
    lcomm_store_branch it, below;
    lcomm_store_branch_find(size, fan_out, rank, &it);
    assert_true(it.child_count >= 0 && it.child_count <= fan_out);
    assert_true(it.end > rank && it.end <= size);
    int next = rank + 1;
    for (int i = 0; i < it.child_count; i++) {
      lcomm_store_branch_find(size, fan_out, it.child[i], &below);
      assert_int_equal(it.child[i], next);
      assert_int_equal(below.parent, rank);
      assert_int_equal(below.end, it.child[i + 1]);
      assert_int_equal(lcomm_store_branch_below(&it, it.child[i]), below.end - it.child[i]);
      next = below.end;
    }
    assert_int_equal(next, it.end);
    assert_int_equal(lcomm_store_branch_below(&it, rank), 0);
    assert_int_equal(it.parent, rank == 0 ? -1 : it.parent);
    children += it.child_count;
  }
  assert_int_equal(children, size - 1);
}

static void all_ranks_are_in_the_tree_once(void **state) {
  (void)state;
  for (int fan_out = 1; fan_out <= LCOMM_STORE_FAN_OUT_MAX; fan_out++) {
    for (int size = 1; size <= 70; size++) {
      check_tree(size, fan_out);
    }
    check_tree(1024, fan_out);
  }
}

static void the_tree_of_1024_ranks_is_five_high(void **state) {
  (void)state;
  int highest = 0;
  for (int rank = 0; rank < 1024; rank++) {
    int height = 0;
    lcomm_store_branch it;
    lcomm_store_branch_find(1024, 4, rank, &it);
    for (; it.parent >= 0; height++) {
      lcomm_store_branch_find(1024, 4, it.parent, &it);
    }
    highest = height > highest ? height : highest;
  }
  assert_int_equal(highest, 5);
}

/* ------------------------------------------------------------------- bytes */

/* What a rank says while a communicator over several hosts is made and nothing differs. */
static const size_t said[] = {sizeof(lcomm_handshake_brief), sizeof(lcomm_shm_offer),
                              sizeof(lcomm_links_uniform), LCOMM_UCX_OFFER_SIZE,
                              sizeof(lcomm_links_uniform)};

enum { SAID = sizeof(said) / sizeof(said[0]), FAN_OUT = 4 };

/* A rank that has at most FAN_OUT children reads all once and its part from below, and writes its
 * part once and all to each child. Greetings, words of who is here, and headers come to less than
 * 1 KiB a rank at rank 0. */
static uint64_t most_bytes(int ranks) {
  uint64_t all = 0;
  for (size_t i = 0; i < SAID; i++) {
    all += (uint64_t)ranks * said[i];
  }
  return (FAN_OUT + 2) * all + UINT64_C(1024) * (uint64_t)ranks;
}

typedef struct participant {
  pthread_t thread;
  const crew *c;
  int rank;
  bool good, tree;
  uint64_t bytes;
} participant;

static void *take_part(void *argument) {
  participant *it = argument;
  report mine = {0};
  lcomm_launcher_env place = place_of(it->c, it->rank);
  lcomm_store *store = NULL;
  it->good = lcomm_store_meet(&place, it->c->timeout_s, &store) == LCOMM_OK;
  it->tree = it->good && store->tree;
  for (size_t i = 0; it->good && i < SAID; i++) {
    it->good = gather_once(store, said[i], &mine);
  }
  lcomm_store_close(store);
  it->bytes = lcomm_socket_bytes();
  return NULL;
}

static void few_bytes_go_through_any_rank(void **state) {
  enum { RANKS = 64, FILES = 1000 };
  static participant all[RANKS];
  struct rlimit limit;
  pthread_attr_t small;
  (void)state;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < FILES) {
    skip();
  }
  limit.rlim_cur = limit.rlim_cur > FILES ? limit.rlim_cur : FILES;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  crew c = new_crew(2, NULL);
  c.place.world_size = RANKS;
  c.timeout_s = 300;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, (size_t)1 << 20);
  for (int i = 0; i < RANKS; i++) {
    all[i] = (participant){.c = &c, .rank = i};
    assert_int_equal(pthread_create(&all[i].thread, &small, take_part, &all[i]), 0);
  }
  for (int i = 0; i < RANKS; i++) {
    pthread_join(all[i].thread, NULL);
    assert_true(all[i].good);
    assert_true(all[i].tree == all[0].tree);
  }
  for (int i = 0; all[0].tree && i < RANKS; i++) {
    assert_true(all[i].bytes <= most_bytes(RANKS));
  }
  pthread_attr_destroy(&small);
  dismiss(&c);
}

static void through_a_rank_of_1024_go_at_most_10_megabytes(void **state) {
  (void)state;
  assert_true(most_bytes(1024) <= 10 * 1000 * 1000);
}

/* ---------------------------------------------------- where it cannot be built */

static void read_all(int fd, void *bytes, size_t size) {
  assert_int_equal(recv(fd, bytes, size, MSG_WAITALL), size);
}

/* The next frame that is not WAIT. */
static lcomm_store_frame next_frame(int fd) {
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_frame frame = {.kind = LCOMM_STORE_WAIT};
  while (frame.kind == LCOMM_STORE_WAIT) {
    read_all(fd, header, sizeof(header));
    assert_int_equal(lcomm_store_read_frame(header, &frame), LCOMM_OK);
  }
  return frame;
}

static void write_all(int fd, const void *bytes, size_t size) {
  assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

/* A rank that has a child, and takes it nowhere. */
static int come_without_a_listener(const crew *c, uint32_t rank, lcomm_store_place *parent) {
  uint8_t greeting[LCOMM_STORE_HANDSHAKE_SIZE], place[LCOMM_STORE_PLACE_SIZE];
  lcomm_store_handshake handshake = {.rank = rank,
                                     .world_size = (uint32_t)c->size,
                                     .host = "elsewhere",
                                     .process = 1000,
                                     .attempt = 1,
                                     .port = (uint32_t)free_port()};
  memcpy(handshake.token, c->place.token, sizeof(handshake.token));
  lcomm_store_pack_handshake(&handshake, greeting);
  int fd = call_until_heard(c);
  write_all(fd, greeting, sizeof(greeting));
  lcomm_store_frame frame = next_frame(fd);
  assert_int_equal(frame.kind, LCOMM_STORE_WELCOME);
  read_all(fd, place, sizeof(place));
  assert_int_equal(lcomm_store_read_place(place, parent), LCOMM_OK);
  return fd;
}

static void say_kind(int fd, lcomm_store_kind kind) {
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_pack_frame((lcomm_store_frame){kind, 0}, header);
  write_all(fd, header, sizeof(header));
}

static void gather_one_byte(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && !store->tree && gather_once(store, 1, mine);
  lcomm_store_close(store);
}

/* Rank 1 cannot be connected to by its child: all go through rank 0, it too. */
static void a_parent_that_is_out_of_reach_makes_a_star(void **state) {
  enum { RANKS = 6, PARENT = 1 };
  uint8_t bytes[LCOMM_STORE_HEADER_SIZE + 1] = {0}, all[RANKS];
  lcomm_store_place parent;
  crew c = new_crew(RANKS, gather_one_byte);
  (void)state;
  c.timeout_s = FOREVER_S;
  for (int rank = 0; rank < RANKS; rank++) {
    if (rank != PARENT) {
      start_member(&c, rank);
    }
  }
  int fd = come_without_a_listener(&c, PARENT, &parent);
  assert_int_equal(parent.way, LCOMM_STORE_WAY_ROOT);
  assert_int_equal(next_frame(fd).kind, LCOMM_STORE_STAR);
  say_kind(fd, LCOMM_STORE_ALONE);
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_DATA, 1}, bytes);
  bytes[LCOMM_STORE_HEADER_SIZE] = byte_of(PARENT, 0);
  write_all(fd, bytes, sizeof(bytes));
  lcomm_store_frame frame = next_frame(fd);
  assert_int_equal(frame.kind, LCOMM_STORE_DATA);
  assert_int_equal(frame.size, RANKS);
  read_all(fd, all, sizeof(all));
  for (int rank = 0; rank < RANKS; rank++) {
    assert_int_equal(all[rank], byte_of(rank, 0));
  }
  end_crew(&c);
  close(fd);
  for (int rank = 0; rank < RANKS; rank++) {
    assert_true(rank == PARENT || c.reports[rank].good);
  }
  dismiss(&c);
}

/* --------------------------------------------------------- where it breaks */

/* Rank 3 closes its connection with its parent, and lives. */
static void lose_the_parent(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && store->tree && gather_once(store, 100, mine);
  if (rank == 3 && store) {
    shutdown(store->parent.fd, SHUT_RDWR);
  }
  mine->good = mine->good && !gather_once(store, 1000, mine);
  for (int other = 0; rank == 3 && other < c->size; other++) {
    volatile const int *status = &c->reports[other].status;
    while (other != rank && *status == LCOMM_OK) { /* a rank that lives is no rank that has gone */
      sleep_ms(10);
    }
  }
  lcomm_store_close(store);
}

static void a_lost_connection_is_told_with_both_ends(void **state) {
  (void)state;
  lcomm_store_branch branch;
  char one[64], other[64];
  crew c = new_crew(9, lose_the_parent);
  c.timeout_s = FOREVER_S;
  lcomm_store_branch_find(9, crew_shape.fan_out, 3, &branch);
  assert_true(branch.parent > 0);
  run_crew(&c);
  snprintf(one, sizeof(one), "rank 3 (host ");
  snprintf(other, sizeof(other), "rank %d (host ", branch.parent);
  for (int rank = 0; rank < c.size; rank++) {
    assert_true(c.reports[rank].good);
    expect_failure(&c.reports[rank], LCOMM_ERR_TRANSPORT, "has lost its connection with ");
    expect_failure(&c.reports[rank], LCOMM_ERR_TRANSPORT, one);
    expect_failure(&c.reports[rank], LCOMM_ERR_TRANSPORT, other);
  }
  dismiss(&c);
}

/* Any rank of the tree may be the one that is killed, wherever it is. */
static int victim;

/* Of nine ranks all but the victim fail, with its name and the reason. */
static void expect_all_to_name_it(crew_part part, lcomm_status status, const char *reason) {
  char words[64];
  crew c = new_crew(9, part);
  c.timeout_s = FOREVER_S;
  snprintf(words, sizeof(words), "rank %d (host ", victim);
  run_crew(&c);
  for (int rank = 0; rank < c.size; rank++) {
    if (rank != victim) {
      expect_failure(&c.reports[rank], status, words);
      expect_failure(&c.reports[rank], status, reason);
      assert_true(c.reports[rank].good);
    }
  }
  dismiss(&c);
}

static void one_is_killed(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && store->tree && gather_once(store, 100, mine);
  if (rank == victim) {
    raise(SIGKILL);
  }
  mine->good = mine->good && !gather_once(store, 1000, mine);
  lcomm_store_close(store);
}

static void whoever_is_killed_is_named_by_all(void **state) {
  (void)state;
  for (victim = 1; victim < 9; victim++) {
    expect_all_to_name_it(one_is_killed, LCOMM_ERR_TRANSPORT, "has gone");
  }
}

/* --- who is late --- */

enum { PART = 1000, ENTRY = LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_NOTE_SIZE };

/* What rank 0 has to read of a rank once all have done what they can without the victim. */
static int bytes_of(const lcomm_store *store, int rank) {
  lcomm_store_branch it;
  lcomm_store_branch_find(store->size, store->shape.fan_out, rank, &it);
  bool waits = victim >= rank && victim < it.end;
  int passed = it.parent > 0 ? 0 : (it.end - rank) * PART;
  return waits ? ENTRY : ENTRY + LCOMM_STORE_HEADER_SIZE + passed;
}

/* So nothing is left to wait for but the victim, however slow the machine is. */
static void wait_for_all_others(const lcomm_store *store) {
  for (int rank = 1; rank < store->size; rank++) {
    int there = 0;
    while (ioctl(store->peers[rank].fd, FIONREAD, &there) == 0 && there < bytes_of(store, rank)) {
      sleep_ms(5);
    }
  }
}

/* The victim says that it is in, and goes no further until the others know. */
static void enter_and_stand(const crew *c, const lcomm_store *store) {
  uint8_t bytes[ENTRY];
  lcomm_store_pack_frame((lcomm_store_frame){LCOMM_STORE_ENTER, LCOMM_STORE_NOTE_SIZE}, bytes);
  lcomm_le_put(bytes + LCOMM_STORE_HEADER_SIZE, PART, LCOMM_STORE_NOTE_SIZE);
  write_all(store->fd, bytes, sizeof(bytes));
  for (int other = 0; other < c->size; other++) {
    volatile const int *status = &c->reports[other].status;
    while (other != victim && *status == LCOMM_OK) {
      sleep_ms(10);
    }
  }
}

static void one_stands_still(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && store->tree && gather_once(store, 100, mine);
  if (mine->good && rank == victim) {
    enter_and_stand(c, store);
  } else if (mine->good) {
    if (rank == 0) {
      wait_for_all_others(store);
      store->timeout_s = 1;
    }
    mine->good = !gather_once(store, PART, mine);
  }
  lcomm_store_close(store);
}

/* Nobody is who waits for it, above it or below it. */
static void who_passes_nothing_on_is_late(void **state) {
  (void)state;
  for (victim = 1; victim <= 3; victim++) {
    expect_all_to_name_it(one_stands_still, LCOMM_ERR_TIMEOUT, "has sent nothing for 1 s");
  }
}

/* Ranks leave when they have all, while others still wait for it. */
static void leave_early(const crew *c, int rank, report *mine) {
  meet_again_and_again(c, rank, 200000, mine);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_ranks_are_in_the_tree_once),
    cmocka_unit_test(the_tree_of_1024_ranks_is_five_high),
    cmocka_unit_test(few_bytes_go_through_any_rank),
    cmocka_unit_test(through_a_rank_of_1024_go_at_most_10_megabytes),
    cmocka_unit_test(a_parent_that_is_out_of_reach_makes_a_star),
    cmocka_unit_test(a_lost_connection_is_told_with_both_ends),
    cmocka_unit_test(whoever_is_killed_is_named_by_all),
    cmocka_unit_test(who_passes_nothing_on_is_late),
    CREW_TEST(leave_early, 12),
};
RUN_TESTS_WITHIN(tests, small_tree, NULL)
