/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Links that are made with the first message. Eight ranks, whose links over distances of 3 and 5
 * are left for later. */

#include <fcntl.h>

#include "libcomm/transport/ucx/ucx_sockets.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

enum { RANKS = 8, AT_ONCE = 5, FAR = 3 };

static party open_late(forked *self) {
  lcomm_ucx_at_once_max = 2;
  return open_party(self);
}

static int count_links(const party *p) {
  int count = 0;
  for (int peer = 0; peer < p->self->size; peer++) {
    count += p->v->linked(p->t, peer);
  }
  return count;
}

static void count_connection(int fd, void *argument) {
  lcomm_ucx_connection connection;
  int *count = argument;
  *count += lcomm_ucx_connection_read(fd, &connection);
}

static int count_connections(const party *p) {
  int count = 0;
  lcomm_ucx_sockets_of(((lcomm_ucx_transport *)p->t)->event_fd, count_connection, &count);
  return count;
}

static void require_links(const party *p, int wanted) {
  int found = count_links(p);
  forked_require(p->self, found == wanted, "%d links instead of %d", found, wanted);
}

/* A byte each way between the ranks of a pair. */
static void exchange(const party *p, int peer) {
  lcomm_transfer sent, received;
  unsigned char out = (unsigned char)p->self->rank, in = 255;
  receive_from(p, peer, 1, &in, 1, &received);
  send_to(p, peer, 1, &out, 1, &sent);
  expect_end(p, &received, 1);
  expect_end(p, &sent, 1);
  forked_require(p->self, in == peer, "%d came from %d", in, peer);
}

/* -------------------------------------------------------- which are at once */

static int count_within(int size, int hops, int rank, bool *seen) {
  int count = 0;
  for (int peer = 0; hops > 0 && peer < size; peer++) {
    if (lcomm_ucx_is_linked_at_once(rank, peer, size) && (hops > 1 || !seen[peer])) {
      count += !seen[peer];
      seen[peer] = true;
      count += count_within(size, hops - 1, peer, seen);
    }
  }
  return count;
}

static void links_at_once_are_those_of_both_sides(void **state) {
  (void)state;
  for (int size = 1; size < 300; size += size < 70 ? 1 : 37) {
    for (int a = 0; a < size; a++) {
      assert_false(lcomm_ucx_is_linked_at_once(a, a, size));
      assert_int_equal(lcomm_ucx_count_at_once(a, size, NULL),
                       lcomm_ucx_count_at_once(0, size, NULL));
      for (int b = 0; b < size; b++) {
        bool forth = lcomm_ucx_is_linked_at_once(a, b, size);
        assert_true(forth == lcomm_ucx_is_linked_at_once(b, a, size));
        assert_true(forth || size > lcomm_ucx_at_once_max || a == b);
      }
    }
  }
}

/* A few of many, over which each rank reaches all others by way of one or two more. */
static void links_at_once_are_few_and_reach_all(void **state) {
  enum { MOST = 4096 };
  static bool seen[MOST];
  (void)state;
  assert_int_equal(lcomm_ucx_count_at_once(5, 32, NULL), 31);
  assert_int_equal(lcomm_ucx_count_at_once(5, 64, NULL), 11);
  assert_int_equal(lcomm_ucx_count_at_once(5, 1024, NULL), 19);
  assert_true(lcomm_ucx_count_at_once(5, MOST, NULL) <= 24);
  int many = lcomm_ucx_descriptors_most(MOST), few = lcomm_ucx_descriptors_most(32);
  assert_true(many > few && many < few + 64);
  memset(seen, 0, sizeof(seen));
  seen[0] = true;
  assert_int_equal(count_within(64, 3, 0, seen), 63);
}

/* -------------------------------------------------------- after the opening */

static void few_links_are_there_and_all_peers_are_reached(forked *self) {
  party p = open_late(self);
  require_links(&p, AT_ONCE);
  forked_require(self, count_connections(&p) <= 2 * AT_ONCE, "%d connections",
                 count_connections(&p));
  forked_barrier(self);
  close_party(&p);
}

/* As by shared memory in nodes of two. */
static void peers_that_others_link_have_none(forked *self) {
  lcomm_transport_setup setup = setup_of(self, LIMIT_S);
  bool linked[RANKS] = {false};
  lcomm_why why = {.text = ""};
  party p = {self, NULL, &lcomm_transport_ucx};
  linked[self->rank ^ 1] = true;
  setup.linked = linked;
  lcomm_status status = p.v->open(&setup, &p.t, &why);
  forked_require(self, status == LCOMM_OK, "%s", why.text);
  require_links(&p, RANKS - 2);
  for (int peer = 0; peer < RANKS; peer++) {
    bool near = peer / 2 == self->rank / 2;
    forked_require(self, near || p.v->reaches(p.t, peer), "%d is not reached: %s", peer, p.t->why);
    forked_require(self, p.v->linked(p.t, peer) == !near, "the link to %d", peer);
  }
  exchange(&p, self->rank ^ 2);
  close_party(&p);
}

static void first_message_makes_the_link_and_no_other(forked *self) {
  party p = open_late(self);
  bool one_of_two = self->rank % FAR == 0 && self->rank <= FAR;
  forked_barrier(self);
  if (one_of_two) {
    exchange(&p, FAR - self->rank);
    exchange(&p, FAR - self->rank);
  }
  require_links(&p, AT_ONCE + one_of_two);
  close_party(&p);
}

static void all_pairs_link_in_the_end(forked *self) {
  party p = open_late(self);
  for (int step = 1; step < RANKS; step++) { /* all at the same time, in pairs that change */
    exchange(&p, self->rank ^ step);
  }
  require_links(&p, RANKS - 1);
  close_party(&p);
}

/* A peer that makes no progress meanwhile answers when it comes. */
static void first_message_waits_for_a_peer_that_is_away(forked *self) {
  party p = open_late(self);
  forked_barrier(self);
  if (self->rank == FAR) {
    sleep_for(1.5);
  }
  if (self->rank == 0 || self->rank == FAR) {
    exchange(&p, FAR - self->rank);
  }
  close_party(&p);
}

/* Its sender may do something else from then on. */
static void first_message_that_is_over_needs_no_more_of_its_sender(forked *self) {
  party p = open_late(self);
  lcomm_transfer transfer;
  size_t size = 100000;
  unsigned char *out = pattern(size, 1), *in = calloc(1, size);
  if (self->rank == 0) {
    send_to(&p, FAR, 1, out, size, &transfer);
    expect_end(&p, &transfer, size);
    self->shared[0] = 1;
  }
  while (self->rank == FAR && self->shared[0] == 0) {
    p.v->progress(p.t);
  }
  if (self->rank == FAR) {
    receive_from(&p, 0, 1, in, size, &transfer);
    expect_end(&p, &transfer, size);
    forked_require(self, memcmp(in, out, size) == 0, "other bytes came");
  }
  forked_barrier(self); /* where rank 0 waits without progress */
  close_party(&p);
  free(out);
  free(in);
}

static void control_message_makes_a_link(forked *self) {
  party p = open_late(self);
  unsigned char message[LCOMM_CONTROL_SIZE] = {9};
  double deadline_s = lcomm_clock_s() + LIMIT_S;
  forked_barrier(self);
  if (self->rank == 0) {
    p.v->control.send(p.t, FAR, message);
    p.v->control.send_error(p.t, FAR, message);
  }
  for (int heard = 0; self->rank == FAR && heard < 2;) {
    p.v->progress(p.t);
    memset(message, 0, sizeof(message));
    if (p.v->control.receive(p.t, message)) {
      forked_require(self, message[0] == 9, "it says %d", message[0]);
      heard++;
    }
    forked_require(self, lcomm_clock_s() < deadline_s, "a control message did not come");
  }
  require_links(&p, AT_ONCE + (self->rank == 0));
  while (self->rank == 0 && self->shared[0] == 0) {
    p.v->progress(p.t);
  }
  self->shared[0] = self->rank == FAR ? 1 : self->shared[0];
  close_party(&p);
}

/* As for those that are made at once: an executed program does not have them, and the kernel asks
 * for no host that is this one. */
static void check_socket(int fd, void *argument) {
  lcomm_ucx_connection connection;
  int *wrong = argument;
  if (lcomm_ucx_connection_read(fd, &connection)) {
    *wrong += connection.kept_alive || !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
}

static void late_connections_are_like_others(forked *self) {
  party p = open_late(self);
  int wrong = 0;
  if (self->rank == 0 || self->rank == FAR) {
    exchange(&p, FAR - self->rank);
  }
  lcomm_ucx_sockets_of(((lcomm_ucx_transport *)p.t)->event_fd, check_socket, &wrong);
  forked_require(self, wrong == 0, "%d connections are not", wrong);
  close_party(&p);
}

/* ------------------------------------------------------------ what goes wrong */

/* Who has no link to the dead hears of it with the first message, which may be a receive. */
static void peer_that_died_before_its_first_message_is_named(forked *self) {
  party p = open_late(self);
  lcomm_transfer transfer;
  unsigned char byte = 0;
  forked_barrier(self);
  if (self->rank == FAR) {
    forked_die();
  }
  forked_barrier(self);
  if (self->rank == 0) {
    lcomm_status status = p.v->receive(p.t, FAR, 1, &byte, 1, &transfer);
    status = status == LCOMM_OK ? finish(&p, &transfer, NULL) : status;
    expect_failure(&p, status, "rank 3 (host here)", "no connection could be made");
    status = p.v->send(p.t, FAR, 1, &byte, 1, &transfer);
    expect_failure(&p, status, "rank 3 (host here)", "no connection could be made");
  }
  if (self->rank == 0 || self->rank == 5) { /* the living go on */
    exchange(&p, 5 - self->rank);
  }
  forked_barrier(self);
  p.v->close(p.t, false);
}

static void link_without_descriptors_is_a_sentence(forked *self) {
  party p = open_late(self);
  lcomm_transfer transfer;
  unsigned char byte = 0;
  struct rlimit usual;
  getrlimit(RLIMIT_NOFILE, &usual);
  if (self->rank == 0) {
    forked_require(self, leave_files(4, false), "setrlimit");
    lcomm_status status = p.v->send(p.t, FAR, 1, &byte, 1, &transfer);
    expect_failure(&p, status, "rank 3 (host here): no connection can be made", "`ulimit -n`");
    p.v->control.send(p.t, FAR, self->shared);
    setrlimit(RLIMIT_NOFILE, &usual);
  }
  require_links(&p, AT_ONCE);
  forked_barrier(self); /* before, rank 0 could accept nobody */
  if (self->rank == 0 || self->rank == FAR) {
    exchange(&p, FAR - self->rank);
  }
  close_party(&p);
}

/* Towards a peer that makes no progress any more, and closes at the same time. */
static void close_does_not_wait_for_half_made_links(forked *self) {
  party p = open_late(self);
  lcomm_transfer transfer;
  unsigned char byte = 0;
  forked_barrier(self);
  if (self->rank == 0) {
    send_to(&p, FAR, 1, &byte, 1, &transfer);
    p.v->cancel(p.t, &transfer);
  }
  forked_barrier(self);
  double before_s = lcomm_clock_s();
  p.v->close(p.t, self->rank != 0);
  double took_s = lcomm_clock_s() - before_s;
  forked_require(self, took_s < LIMIT_S / 4, "close took %.1f s", took_s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(links_at_once_are_those_of_both_sides),
    cmocka_unit_test(links_at_once_are_few_and_reach_all),
    UCX_TEST(few_links_are_there_and_all_peers_are_reached, RANKS),
    UCX_TEST(peers_that_others_link_have_none, RANKS),
    UCX_TEST(first_message_makes_the_link_and_no_other, RANKS),
    UCX_TEST(all_pairs_link_in_the_end, RANKS),
    UCX_TEST(first_message_waits_for_a_peer_that_is_away, RANKS),
    UCX_TEST(first_message_that_is_over_needs_no_more_of_its_sender, RANKS),
    UCX_TEST(control_message_makes_a_link, RANKS),
    UCX_TEST(late_connections_are_like_others, RANKS),
    UCX_TEST_DYING(peer_that_died_before_its_first_message_is_named, RANKS, FAR),
    UCX_TEST(link_without_descriptors_is_a_sentence, RANKS),
    UCX_TEST(close_does_not_wait_for_half_made_links, RANKS),
};
RUN_TESTS(tests)
