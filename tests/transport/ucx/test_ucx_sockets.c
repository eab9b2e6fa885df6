/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The sockets of a worker, and when a host is taken for vanished. What takes
 * hosts that vanish is in script_ucx_vanished.sh. */

#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/transport/ucx/ucx_sockets.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

/* ------------------------------------------------------------------ silence */

static bool is_silent(double heard_s, unsigned unacknowledged, unsigned retransmissions,
                      unsigned probes) {
  lcomm_ucx_connection connection = {0, heard_s, unacknowledged, retransmissions, probes, false};
  return lcomm_ucx_connection_is_silent(&connection);
}

static void host_that_leaves_many_questions_open_is_silent(void **state) {
  (void)state;
  assert_true(is_silent(8.0, 10, 4, 0)); /* bytes in flight */
  assert_true(is_silent(8.0, 0, 0, 3));  /* an idle connection, probed */
  assert_true(is_silent(8.0, 0, 0, 2));  /* no room the last time, probed */
}

/* Over an interface without a cable nothing is sent again: the first was not sent. */
static void host_that_is_asked_while_idle_answers_before_bytes_wait(void **state) {
  (void)state;
  assert_true(lcomm_ucx_connection_is_silent(
      &(lcomm_ucx_connection){.heard_s = 8.0, .unacknowledged = 1, .kept_alive = true}));
  assert_false(lcomm_ucx_connection_is_silent(
      &(lcomm_ucx_connection){.heard_s = 7.9, .unacknowledged = 1, .kept_alive = true}));
  /* a full window: the next probe may be minutes away */
  assert_false(lcomm_ucx_connection_is_silent(
      &(lcomm_ucx_connection){.heard_s = 100, .probes = 1, .kept_alive = true}));
}

static void host_that_was_heard_or_not_asked_is_not_silent(void **state) {
  (void)state;
  assert_false(is_silent(7.9, 10, 4, 3));  /* not for long */
  assert_false(is_silent(3600, 0, 0, 0));  /* nobody asked */
  assert_false(is_silent(3600, 0, 0, 1));  /* the next probe of a full window is just on its way */
  assert_false(is_silent(3600, 10, 0, 0)); /* as are bytes */
  assert_false(is_silent(3600, 10, 1, 0));
}

/* A listener whose kernel drops all that comes, as if its host had vanished. */
static int listen_silently(struct sockaddr_in *address) {
  struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  struct sock_fprog program = {.len = 1, .filter = drop};
  socklen_t size = sizeof *address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bool listens = bind(listener, (struct sockaddr *)address, size) == 0 &&
                 listen(listener, 5) == 0 &&
                 getsockname(listener, (struct sockaddr *)address, &size) == 0 &&
                 setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
  return listens ? listener : -1;
}

/* A link that is made after the host has vanished. */
static void host_that_answers_no_connection_is_silent(void **state) {
  (void)state;
  struct sockaddr_in address;
  lcomm_ucx_connection connection;
  int listener = listen_silently(&address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  double begin_s = lcomm_clock_s(), deadline_s = begin_s + LIMIT_S;
  assert_true(listener >= 0 && fd >= 0);
  assert_int_not_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_false(lcomm_ucx_connection_read(fd, &connection)); /* not yet */
  while (!lcomm_ucx_connection_read(fd, &connection)) {
    assert_true(lcomm_clock_s() < deadline_s);
    sleep_for(0.1);
  }
  assert_true(lcomm_clock_s() - begin_s > 5); /* a few packets may be lost */
  assert_true(lcomm_ucx_connection_is_silent(&connection));
  assert_int_equal(connection.peer_address, htonl(INADDR_LOOPBACK));
  close(fd);
  close(listener);
}

/* -------------------------------------------------------------- which sockets */

static void count(int fd, void *argument) {
  lcomm_ucx_connection connection;
  int *found = argument;
  if (lcomm_ucx_connection_read(fd, &connection) && connection.peer_address != 0) {
    ++*found;
  }
}

static void sockets_to_all_peers_are_found(forked *self) {
  lcomm_why why;
  party p = open_party(self);
  int found = 0, none = 0;
  lcomm_ucx_sockets_of(((lcomm_ucx_transport *)p.t)->event_fd, count, &found);
  lcomm_ucx_sockets_of(-1, count, &none);
  forked_require(self, found >= self->size - 1, "%d sockets for %d peers", found, self->size - 1);
  forked_require(self, none == 0, "%d sockets of nothing", none);
  forked_require(self, p.v->unreachable(p.t, &why) < 0, "%s", why.text);
  close_party(&p);
}

static void count_kept_alive(int fd, void *argument) {
  lcomm_ucx_connection connection;
  int *found = argument;
  if (lcomm_ucx_connection_read(fd, &connection)) {
    found[connection.kept_alive]++;
  }
}

static void look_for_keepalive(forked *self) {
  party p = open_party(self);
  int found[2] = {0, 0};
  lcomm_ucx_sockets_of(((lcomm_ucx_transport *)p.t)->event_fd, count_kept_alive, found);
  forked_require(self, found[true] == 0 && found[false] >= self->size - 1,
                 "%d connections are kept alive, %d are not", found[true], found[false]);
  forked_barrier(self);
  close_party(&p);
}

/* Hundreds of ranks of a host have tens of thousands of connections. */
static void connections_within_a_host_are_not_asked_over(void **state) {
  (void)state;
  skip_without_ucx();
  forked_run(4, look_for_keepalive);
}

/* To a listener on 127.0.0.1, from this address. */
static int connect_from(const char *own, const struct sockaddr_in *listener) {
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(own)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)listener, sizeof *listener), 0);
  return fd;
}

/* A host that vanishes while nothing is in flight sends nothing, not even an end. */
static void all_connections_to_others_are_kept_alive(void **state) {
  (void)state;
  static const int ON = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(listener, 5), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
  int other = connect_from("127.0.0.2", &address), same = connect_from("127.0.0.1", &address);
  assert_int_equal(setsockopt(same, SOL_SOCKET, SO_KEEPALIVE, &ON, sizeof(ON)), 0);
  int watching = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN};
  assert_int_equal(epoll_ctl(watching, EPOLL_CTL_ADD, other, &event), 0);
  assert_int_equal(epoll_ctl(watching, EPOLL_CTL_ADD, same, &event), 0);
  lcomm_ucx_sockets_keep_alive(watching);
  assert_true(lcomm_ucx_socket_option(other, SOL_SOCKET, SO_KEEPALIVE) > 0);
  assert_int_equal(lcomm_ucx_socket_option(other, IPPROTO_TCP, TCP_KEEPIDLE), 4);
  assert_int_equal(lcomm_ucx_socket_option(same, SOL_SOCKET, SO_KEEPALIVE), 0);
  close(watching);
  close(same);
  close(other);
  close(listener);
}

/* ------------------------------------------------------------- whose address */

static lcomm_ucx_interfaces host_with(const char *first, const char *second) {
  lcomm_ucx_interfaces host = {.count = second ? 2 : 1};
  host.entries[0].address = inet_addr(first);
  if (second) {
    host.entries[1].address = inet_addr(second);
  }
  return host;
}

static void address_names_the_first_rank_of_another_host(void **state) {
  (void)state;
  lcomm_ucx_interfaces all[4] = {host_with("10.0.0.1", NULL), host_with("10.0.0.1", NULL),
                                 host_with("10.0.0.2", "10.1.0.2"),
                                 host_with("10.0.0.2", "10.1.0.2")};
  assert_int_equal(lcomm_ucx_interfaces_find(all, 4, 0, inet_addr("10.1.0.2")), 2);
  assert_int_equal(lcomm_ucx_interfaces_find(all, 4, 3, inet_addr("10.0.0.1")), 0);
  assert_int_equal(lcomm_ucx_interfaces_find(all, 4, 1, inet_addr("10.0.0.1")), -1);
  assert_int_equal(lcomm_ucx_interfaces_find(all, 4, 0, inet_addr("10.0.0.3")), -1);
  all[2].count = UINT32_MAX; /* from a peer */
  assert_int_equal(lcomm_ucx_interfaces_find(all, 4, 0, inet_addr("10.0.0.3")), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(host_that_leaves_many_questions_open_is_silent),
    cmocka_unit_test(host_that_is_asked_while_idle_answers_before_bytes_wait),
    cmocka_unit_test(host_that_was_heard_or_not_asked_is_not_silent),
    cmocka_unit_test(host_that_answers_no_connection_is_silent),
    UCX_TEST(sockets_to_all_peers_are_found, 4),
    cmocka_unit_test(connections_within_a_host_are_not_asked_over),
    cmocka_unit_test(all_connections_to_others_are_kept_alive),
    cmocka_unit_test(address_names_the_first_rank_of_another_host),
};
RUN_TESTS(tests)
