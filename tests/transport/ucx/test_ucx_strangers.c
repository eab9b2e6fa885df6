/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who may connect to the ports of UCX, and who not. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "libcomm/transport/ucx/ucx_listeners.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

enum { REFUSED_MS = 700, ADMITTED_MS = 30000 };

/* A connection from this process to a socket that listens; -1 when none came about
 * in time. */
static int knock(int listener, int limit_ms) {
  struct sockaddr_in address = {0};
  socklen_t size = sizeof(address), error_size = sizeof(int);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
  assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
  assert_true(fd >= 0);
  (void)connect(fd, (struct sockaddr *)&address, size);
  struct pollfd one = {.fd = fd, .events = POLLOUT};
  bool made = poll(&one, 1, limit_ms) == 1 &&
              getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) == 0 && error == 0;
  if (!made) {
    close(fd);
  }
  return made ? fd : -1;
}

/* ------------------------------------------------- once all links are made */

/* Nobody gets in: not into the port of a transport, whatever he would say. */
static void nobody_gets_in_after_open(forked *self) {
  party p = open_party(self);
  const lcomm_ucx_listeners *own = &((lcomm_ucx_transport *)p.t)->place.listeners;
  forked_require(self, own->count > 0, "no port of UCX was found");
  for (int i = 0; i < own->count; i++) {
    int fd = knock(own->of[i].fd, REFUSED_MS);
    forked_require(self, fd < 0, "a stranger got in");
  }
  idle(&p, 0.05);
  unsigned char out = 1, in = 0;
  lcomm_transfer sent, received;
  receive_from(&p, 1 - self->rank, 1, &in, 1, &received);
  send_to(&p, 1 - self->rank, 1, &out, 1, &sent);
  expect_end(&p, &received, 1);
  expect_end(&p, &sent, 1);
  close_party(&p);
}

/* On one host nothing but the loop-back is opened. */
static void look_at_ports(forked *self) {
  party p = open_party(self);
  const lcomm_ucx_listeners *own = &((lcomm_ucx_transport *)p.t)->place.listeners;
  for (int i = 0; i < own->count; i++) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof(address);
    getsockname(own->of[i].fd, (struct sockaddr *)&address, &size);
    bool inside = ntohl(address.sin_addr.s_addr) >> 24 == 127;
    forked_require(self, inside, "%s is open", inet_ntoa(address.sin_addr));
  }
  close_party(&p);
}

static void one_host_opens_no_port_to_others(void **state) {
  lcomm_ucx_interfaces own;
  lcomm_ucx_names names;
  (void)state;
  skip_without_ucx();
  lcomm_ucx_interfaces_own(&own, &names);
  if (own.count == 0) {
    skip(); /* without a network that is UCX's choice */
  }
  forked_run(2, look_at_ports);
}

/* A firewall can know the ports. */
static void range_of_ports_is_kept(forked *self) {
  setenv("LCOMM_UCX_TCP_PORT_RANGE", "42100-42900", 1);
  party p = open_party(self);
  const lcomm_ucx_listeners *own = &((lcomm_ucx_transport *)p.t)->place.listeners;
  forked_require(self, own->count > 0, "no port of UCX was found");
  for (int i = 0; i < own->count; i++) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof(address);
    getsockname(own->of[i].fd, (struct sockaddr *)&address, &size);
    int port = ntohs(address.sin_port);
    forked_require(self, port >= 42100 && port <= 42900, "port %d", port);
  }
  close_party(&p);
}

/* ------------------------------------------------------ while links are made */

/* Has the other side ended the connection, which UCX does when it next looks? */
static bool is_ended(int fd, const lcomm_ucx_place *place) {
  double deadline_s = lcomm_clock_s() + LIMIT_S;
  unsigned char byte;
  while (lcomm_clock_s() < deadline_s) {
    lcomm_ucx.ucp_worker_progress(place->worker);
    if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) {
      return true;
    }
    sleep_for(1e-3);
  }
  return false;
}

static void open_place(forked *self, lcomm_ucx_place *place) {
  lcomm_why why;
  bool works =
      lcomm_ucx_load(&why) == LCOMM_OK && lcomm_ucx_place_open("", place, &why) == LCOMM_OK;
  forked_require(self, works, "%s", why.text);
}

/* Silent connections do not stay. */
static void silent_connections_end_when_links_are_made(forked *self) {
  enum { MANY = 20 };
  lcomm_ucx_place place;
  int fds[MANY];
  open_place(self, &place);
  int port = place.listeners.of[0].fd;
  for (int i = 0; i < MANY; i++) {
    fds[i] = knock(port, ADMITTED_MS);
    forked_require(self, fds[i] >= 0, "connection %d was not made", i);
  }
  double end_s = lcomm_clock_s() + 1; /* for UCX to take them in */
  while (lcomm_clock_s() < end_s) {
    lcomm_ucx.ucp_worker_progress(place.worker);
  }
  lcomm_ucx_listeners_close(&place.listeners);
  lcomm_ucx_listeners_dismiss_silent(&place.listeners);
  for (int i = 0; i < MANY; i++) {
    forked_require(self, is_ended(fds[i], &place), "silent connection %d stays", i);
    close(fds[i]);
  }
  lcomm_ucx_place_close(&place);
}

/* A port that is not the loop-back's; -1: there is none. */
static int outer_port(const lcomm_ucx_place *place) {
  int port = -1;
  for (int i = 0; i < place->listeners.count; i++) {
    struct sockaddr_in address = {0};
    socklen_t size = sizeof(address);
    getsockname(place->listeners.of[i].fd, (struct sockaddr *)&address, &size);
    if (ntohl(address.sin_addr.s_addr) >> 24 != 127) {
      port = place->listeners.of[i].fd;
    }
  }
  return port;
}

/* The last of these ranks is this host: it gets in, and without it does not. */
static void only_these_get_in(forked *self, lcomm_ucx_interfaces *all, int size) {
  lcomm_ucx_place place;
  lcomm_ucx_names names;
  open_place(self, &place);
  int port = outer_port(&place);
  if (port >= 0) {
    lcomm_ucx_listeners_admit(&place.listeners, all, size - 1);
    int fd = knock(port, REFUSED_MS);
    forked_require(self, fd < 0, "a host that takes no part got in");
    lcomm_ucx_interfaces_own(&all[size - 1], &names);
    lcomm_ucx_listeners_admit(&place.listeners, all, size);
    fd = knock(port, ADMITTED_MS);
    forked_require(self, fd >= 0, "a host that takes part did not get in");
    close(fd);
  }
  lcomm_ucx_place_close(&place);
}

static void only_hosts_that_take_part_get_in(forked *self) {
  lcomm_ucx_interfaces all[2] = {{.count = 1}};
  all[0].entries[0].address = inet_addr("198.51.100.7");
  only_these_get_in(self, all, 2);
}

/* More addresses than a filter holds. */
static void only_networks_of_many_hosts_get_in(forked *self) {
  enum { MANY = 300, EACH = 4 };
  lcomm_ucx_interfaces *all = calloc(MANY + 1, sizeof *all);
  for (uint32_t rank = 0; rank < MANY; rank++) {
    all[rank].count = EACH;
    for (uint32_t i = 0; i < EACH; i++) {
      all[rank].entries[i].address = htonl(0xc6120000 + EACH * rank + i); /* 198.18.0.0 */
      all[rank].entries[i].mask = htonl(0xfffe0000);
    }
  }
  only_these_get_in(self, all, MANY + 1);
  free(all);
}

/* -------------------------------------------------------------- whose ports */

static void sockets_of_the_program_are_left_alone(void **state) {
  (void)state;
  lcomm_ucx_listeners before, own;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  int older = socket(AF_INET, SOCK_STREAM, 0), newer = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(older, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(older, 5), 0);
  assert_true(lcomm_ucx_listeners_find(&before));
  assert_int_equal(bind(newer, (struct sockaddr *)&address, size), 0);
  assert_int_equal(listen(newer, 5), 0);
  getsockname(newer, (struct sockaddr *)&address, &size);
  lcomm_ucx_listeners_of(&before, "nothing", 7, &own); /* opened meanwhile, by another thread */
  assert_int_equal(own.count, 0);
  lcomm_ucx_listeners_of(&before, &address.sin_port, 2, &own);
  assert_int_equal(own.count, 1);
  assert_int_equal(own.of[0].fd, newer);
  /* its number goes to another socket */
  assert_int_equal(dup2(older, newer), newer);
  lcomm_ucx_listeners_close(&own);
  int fd = knock(older, ADMITTED_MS);
  assert_true(fd >= 0);
  close(fd);
  close(older);
  close(newer);
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(nobody_gets_in_after_open, 2),
    cmocka_unit_test(one_host_opens_no_port_to_others),
    UCX_TEST(range_of_ports_is_kept, 2),
    UCX_TEST(silent_connections_end_when_links_are_made, 1),
    UCX_TEST(only_hosts_that_take_part_get_in, 1),
    UCX_TEST(only_networks_of_many_hosts_get_in, 1),
    cmocka_unit_test(sockets_of_the_program_are_left_alone),
};
RUN_TESTS(tests)
