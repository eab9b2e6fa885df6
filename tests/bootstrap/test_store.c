/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting at a TCP store, and its allgathers, among processes that mean
 * well. Those that do not: test_store_strangers.c. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/time.h>

#include "tests/bootstrap/crew.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"

static void ranks_meet_in_any_order_of_arrival(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 8};
  for (int order = 0; order < 3; order++) {
    for (size_t i = 0; i < 3; i++) {
      crew c = new_crew(sizes[i], meet_and_gather);
      for (int rank = 0; rank < c.size; rank++) {
        int place = order == 0 ? rank : order == 1 ? c.size - 1 - rank : (rank * 5 + 3) % c.size;
        c.delay_ms[rank] = place * 20;
      }
      run_well(&c);
    }
  }
}

static void late_rank_0_is_waited_for(void **state) {
  (void)state;
  crew c = new_crew(3, meet_and_gather);
  c.delay_ms[0] = 1500;
  run_well(&c);
}

static void ranks_wait_as_long_as_rank_0_does(void **state) {
  (void)state;
  crew c = new_crew(3, meet_and_gather);
  c.timeout_s = 12;
  c.delay_ms[0] = 5000; /* its time is up long after that of rank 1 would be */
  c.delay_ms[2] = 12500;
  run_well(&c);
}

/* The kernel answers for a process that is stopped: the others hear nothing for
 * longer than any of their attempts should take, and are let in afterwards. */
static void rank_0_that_stands_still_is_waited_for(void **state) {
  (void)state;
  enum { STOPPED_S = 12 };
  crew c = new_crew(4, meet_and_gather);
  c.timeout_s = 120;
  start_member(&c, 0);
  int fd = call_until_heard(&c);
  assert_int_equal(kill(c.pids[0], SIGSTOP), 0);
  for (int rank = 1; rank < c.size; rank++) {
    start_member(&c, rank);
  }
  sleep_ms(STOPPED_S * 1000);
  assert_int_equal(kill(c.pids[0], SIGCONT), 0);
  end_crew(&c);
  close(fd);
  expect_good(&c);
  dismiss(&c);
}

/* Rank 0 may open fewer files than there are ranks. */
static void meet_with_few_files(const crew *c, int rank, report *mine) {
  if (rank > 0 || leave_files(c->size - 2, true)) {
    meet_and_gather(c, rank, mine);
  }
}

static void rank_0_with_too_few_files_says_so_on_all(void **state) {
  (void)state;
  crew c = new_crew(12, meet_with_few_files);
  c.delay_ms[3] = 300;
  run_crew(&c);
  for (int rank = 0; rank < c.size; rank++) {
    expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "it has too few file descriptors");
    expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "a meeting of 12 ranks needs 19");
    expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "`ulimit -n ");
    assert_non_null(strstr(c.reports[rank].sentence, "rank 0 (host "));
  }
  dismiss(&c);
}

static void missing_ranks_are_named_in_time_on_all(void **state) {
  (void)state;
  crew c = new_crew(6, meet_and_gather);
  c.timeout_s = 4;
  run_pair(&c, 0, 3);
  expect_failure(&c.reports[0], LCOMM_ERR_TIMEOUT, "4 of the WORLD_SIZE=6 ranks");
  expect_failure(&c.reports[0], LCOMM_ERR_TIMEOUT, "within 4 s: 1-2, 4-5.");
  expect_failure(&c.reports[3], LCOMM_ERR_TIMEOUT, "1-2, 4-5.");
  assert_true(c.reports[0].seconds >= 4);
  assert_true(c.reports[0].seconds < 60);
  dismiss(&c);
}

static void missing_rank_0_is_named_with_its_address(void **state) {
  (void)state;
  char words[64];
  crew c = new_crew(2, meet_and_gather);
  c.timeout_s = 0.5;
  start_member(&c, 1);
  end_crew(&c);
  snprintf(words, sizeof(words), "rank 0 at MASTER_ADDR 127.0.0.1 port %d", c.place.port);
  expect_failure(&c.reports[1], LCOMM_ERR_TIMEOUT, words);
  expect_failure(&c.reports[1], LCOMM_ERR_TIMEOUT, "Connection refused");
  dismiss(&c);
}

static void unknown_name_of_rank_0_is_said(void **state) {
  (void)state;
  crew c = new_crew(2, meet_and_gather);
  c.timeout_s = 0.5;
  snprintf(c.place.address, sizeof(c.place.address), "no-such-host.invalid");
  run_crew(&c);
  expect_failure(&c.reports[0], LCOMM_ERR_TRANSPORT, "no-such-host.invalid");
  expect_failure(&c.reports[1], LCOMM_ERR_TIMEOUT, "the name is not known");
  dismiss(&c);
}

static void port_that_is_taken_is_said(void **state) {
  (void)state;
  crew c = new_crew(2, meet_and_gather);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)c.place.port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(fd, 4), 0);
  c.timeout_s = 0.5;
  start_member(&c, 0);
  end_crew(&c);
  close(fd);
  expect_failure(&c.reports[0], LCOMM_ERR_TRANSPORT, "another program has the port");
  dismiss(&c);
}

/* ------------------------------------------------------------ allgathers */

static void parts_of_megabytes_are_gathered(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && gather_once(store, (size_t)8 << 20, mine) && gather_once(store, 3, mine);
  lcomm_store_close(store);
}

/* Rank 2 leaves before the second allgather, in the way the test says. */
static void leave_by_exit(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && gather_once(store, 100, mine);
  if (rank == 2) {
    raise(SIGKILL);
  }
  mine->good = mine->good && !gather_once(store, 1 << 20, mine) && !gather_once(store, 8, mine);
  lcomm_store_close(store);
}

static void killed_rank_is_named_by_all(void **state) {
  (void)state;
  crew c = new_crew(4, leave_by_exit);
  run_crew(&c);
  for (int rank = 0; rank < 4; rank++) {
    if (rank != 2) {
      expect_failure(&c.reports[rank], LCOMM_ERR_TRANSPORT, "rank 2 (host ");
      assert_true(c.reports[rank].good);
      assert_true(c.reports[rank].seconds < c.timeout_s);
    }
  }
  dismiss(&c);
}

static report *dying;

static void die(int number) {
  (void)number;
  dying->good = 1;
  raise(SIGKILL);
}

/* Rank 3 dies with its part given, while all wait for rank 1. */
static void die_waiting(const crew *c, int rank, report *mine) {
  struct itimerval soon = {.it_value = {.tv_usec = 300000}};
  volatile const int *dies = &c->reports[3].good;
  lcomm_store *store = meet(c, rank, mine);
  if (rank == 3) {
    dying = mine;
    signal(SIGALRM, die);
    setitimer(ITIMER_REAL, &soon, NULL);
  }
  while (rank == 1 && !*dies) {
    sleep_ms(10);
  }
  if (rank == 1) {
    sleep_ms(500);
  }
  mine->good = store && !gather_once(store, 100, mine);
  lcomm_store_close(store);
}

static void rank_killed_while_it_waits_is_named(void **state) {
  (void)state;
  crew c = new_crew(4, die_waiting);
  run_ill(&c, 3, LCOMM_ERR_TRANSPORT, "rank 3 (host ");
}

static void leave_rank_0(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  if (rank == 0) {
    raise(SIGKILL);
  }
  mine->good = store && !gather_once(store, 1 << 20, mine);
  lcomm_store_close(store);
}

static void killed_rank_0_is_named_by_all(void **state) {
  (void)state;
  crew c = new_crew(3, leave_rank_0);
  run_ill(&c, 0, LCOMM_ERR_TRANSPORT, "rank 0 at 127.0.0.1");
}

static int silent_rank;

/* Silent until the others have noticed. */
static void say_nothing(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  if (rank != silent_rank) {
    mine->good = store && !gather_once(store, 100, mine);
  }
  for (int other = 0; rank == silent_rank && other < c->size; other++) {
    volatile const int *status = &c->reports[other].status;
    while (other != rank && *status == LCOMM_OK) {
      sleep_ms(10);
    }
  }
  lcomm_store_close(store);
}

static void silent_rank_is_named_in_time(void **state) {
  (void)state;
  crew c = new_crew(3, say_nothing);
  c.timeout_s = 4;
  silent_rank = 2;
  run_ill(&c, 2, LCOMM_ERR_TIMEOUT, "rank 2 (host ");
}

static void silent_rank_0_is_named_in_time(void **state) {
  (void)state;
  crew c = new_crew(3, say_nothing);
  c.timeout_s = 4;
  silent_rank = 0;
  run_crew(&c);
  expect_failure(&c.reports[1], LCOMM_ERR_TIMEOUT, "rank 0 at 127.0.0.1");
  expect_failure(&c.reports[2], LCOMM_ERR_TIMEOUT, "has said nothing for 4 s");
  dismiss(&c);
}

static size_t common_size;

static void gather_unequal(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store && !gather_once(store, rank == 1 ? 12 : common_size, mine);
  lcomm_store_close(store);
}

/* Also where much is still on its way to rank 0 that it does not read any more. */
static void different_sizes_are_named_on_all(void **state) {
  (void)state;
  static const size_t sizes[] = {16, (size_t)8 << 20};
  for (int i = 0; i < 2; i++) {
    char words[64];
    crew c = new_crew(4, gather_unequal);
    common_size = sizes[i];
    snprintf(words, sizeof(words), "gives 12 bytes where rank 0 gives %zu", common_size);
    run_crew(&c);
    for (int rank = 0; rank < 4; rank++) {
      assert_true(c.reports[rank].good);
      expect_failure(&c.reports[rank], LCOMM_ERR_MISMATCH, words);
    }
    dismiss(&c);
  }
}

/* ------------------------------------------------------------ what is left */

static void nothing_listens_after_the_meeting(const crew *c, int rank, report *mine) {
  lcomm_store *store = meet(c, rank, mine);
  int fd = !store ? -1 : rank == 0 ? store->peers[1].fd : store->fd;
  int other = call_in(c);
  mine->good = fd >= 0 && other < 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 &&
               (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
  lcomm_store_close(store);
}

static void ranks_meet_at_one_port_again_and_again(const crew *c, int rank, report *mine) {
  meet_again_and_again(c, rank, 1000, mine);
}

static void ranks_meet_over_ipv6(void **state) {
  (void)state;
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool there = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
  if (fd >= 0) {
    close(fd);
  }
  if (!there) {
    skip();
  }
  crew c = new_crew(3, meet_and_gather);
  snprintf(c.place.address, sizeof(c.place.address), "::1");
  run_well(&c);
}

static void ranks_meet_at_a_name(void **state) {
  (void)state;
  crew c = new_crew(3, meet_and_gather);
  snprintf(c.place.address, sizeof(c.place.address), "localhost");
  run_well(&c);
}

/* The address of a gateway in front of rank 0's host is not rank 0's own. */
static void foreign_address_makes_rank_0_listen_everywhere(void **state) {
  (void)state;
  crew c = new_crew(2, meet_and_gather);
  snprintf(c.place.address, sizeof(c.place.address), "198.51.100.77");
  start_member(&c, 0);
  snprintf(c.place.address, sizeof(c.place.address), "127.0.0.1");
  start_member(&c, 1);
  end_crew(&c);
  expect_good(&c);
  dismiss(&c);
}

/* The same properties hold of a tree, in which every rank has at most two children. */
static int grow_a_tree(void **state) {
  (void)state;
  crew_shape = (lcomm_store_shape){.star_most = 2, .fan_out = 2};
  return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_meet_in_any_order_of_arrival),
    cmocka_unit_test(late_rank_0_is_waited_for),
    cmocka_unit_test(ranks_wait_as_long_as_rank_0_does),
    cmocka_unit_test(rank_0_that_stands_still_is_waited_for),
    cmocka_unit_test(rank_0_with_too_few_files_says_so_on_all),
    cmocka_unit_test(missing_ranks_are_named_in_time_on_all),
    cmocka_unit_test(missing_rank_0_is_named_with_its_address),
    cmocka_unit_test(unknown_name_of_rank_0_is_said),
    cmocka_unit_test(port_that_is_taken_is_said),
    CREW_TEST(parts_of_megabytes_are_gathered, 4),
    cmocka_unit_test(killed_rank_is_named_by_all),
    cmocka_unit_test(rank_killed_while_it_waits_is_named),
    cmocka_unit_test(killed_rank_0_is_named_by_all),
    cmocka_unit_test(silent_rank_is_named_in_time),
    cmocka_unit_test(silent_rank_0_is_named_in_time),
    cmocka_unit_test(different_sizes_are_named_on_all),
    CREW_TEST(nothing_listens_after_the_meeting, 2),
    CREW_TEST(ranks_meet_at_one_port_again_and_again, 4),
    cmocka_unit_test(ranks_meet_over_ipv6),
    cmocka_unit_test(ranks_meet_at_a_name),
    cmocka_unit_test(foreign_address_makes_rank_0_listen_everywhere),
};

int main(void) {
  int failed = cmocka_run_group_tests_name("through rank 0", tests, NULL, NULL);
  return failed + cmocka_run_group_tests_name("along a tree", tests, grow_a_tree, NULL);
}
