/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_address.h"
#include "libcomm/bootstrap/store/store_socket.h"

static const double CONNECT_S = 5; /* for one address, before the next is tried */

/* While nobody listens at a port of this host, a socket that tries to connect
 * to it may be given that very port and meet itself. */
static bool met_itself(int fd) {
  struct sockaddr_storage here, there;
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  memset(&here, 0, sizeof(here));
  memset(&there, 0, sizeof(there));
  return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 &&
         getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 && here_size == there_size &&
         memcmp(&here, &there, here_size) == 0;
}

/* 0, or the error. */
static int finish_connect(int fd, double until_s) {
  int error = 0, ready = 0;
  socklen_t size = sizeof(error);
  struct pollfd one = {.fd = fd, .events = POLLOUT};
  while (ready <= 0) {
    int wait_ms = lcomm_poll_ms(until_s);
    ready = poll(&one, 1, wait_ms);
    if (ready <= 0 && wait_ms == 0) {
      return ETIMEDOUT;
    }
  }
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  return error == 0 && met_itself(fd) ? ECONNREFUSED : error;
}

static int connect_to(const struct addrinfo *it, double until_s, lcomm_why *why) {
  int fd = socket(it->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
  if (fd < 0) {
    lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%.120s", strerror(errno));
    return -1;
  }
  if (connect(fd, it->ai_addr, it->ai_addrlen) != 0) {
    error = errno;
  }
  if (error == 0 || error == EINPROGRESS || error == EINTR) {
    error = finish_connect(fd, until_s);
  }
  if (error == 0) {
    lcomm_socket_hurry(fd);
    return fd;
  }
  close(fd);
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%.120s", strerror(error));
  errno = error;
  return -1;
}

int lcomm_socket_connect_to(const lcomm_store_place *place, int fd, double until_s,
                            lcomm_why *why) {
  struct sockaddr_storage there = {.ss_family = AF_INET};
  socklen_t size = sizeof(struct sockaddr_in);
  if (place->way == LCOMM_STORE_WAY_BESIDE) {
    if (!lcomm_socket_name(fd, true, &there, &size)) {
      return -1;
    }
  } else if (place->way == LCOMM_STORE_WAY_IPV4) {
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&there;
    memcpy(&in->sin_addr, place->address, sizeof(in->sin_addr));
  } else {
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&there;
    size = sizeof *in6;
    in6->sin6_family = AF_INET6;
    memcpy(&in6->sin6_addr, place->address, sizeof(in6->sin6_addr));
  }
  lcomm_socket_set_port(&there, place->port);
  struct addrinfo to = {
      .ai_family = there.ss_family, .ai_addr = (struct sockaddr *)&there, .ai_addrlen = size};
  return connect_to(&to, until_s, why);
}

int lcomm_socket_connect(const char *address, int port, unsigned first, double until_s,
                         unsigned *count, lcomm_why *why) {
  int fd = -1;
  *count = 0;
  struct addrinfo *list = lcomm_socket_resolve(address, port, 0, why);
  for (struct addrinfo *it = list; it; it = it->ai_next) {
    ++*count;
  }
  for (unsigned i = 0; i < *count && fd < 0; i++) {
    const struct addrinfo *it = list;
    for (unsigned skip = (first + i) % *count; skip > 0; skip--) {
      it = it->ai_next;
    }
    double limit_s = lcomm_clock_s() + CONNECT_S;
    fd = connect_to(it, limit_s < until_s ? limit_s : until_s, why);
  }
  if (list) {
    freeaddrinfo(list);
  }
  return fd;
}
