/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/base/clock.h"

static const double CONNECT_S = 5; /* for one address, before the next is tried */

int lcomm_poll_ms(double until_s) {
  double left_ms = (until_s - lcomm_clock_s()) * 1000;
  return left_ms <= 0 ? 0 : left_ms >= 999 ? 1000 : (int)left_ms + 1;
}

/* ----------------------------------------------------------------- bytes */

static _Thread_local uint64_t moved_bytes;

uint64_t lcomm_socket_bytes(void) {
  return moved_bytes;
}

static lcomm_stream result_of(ssize_t moved, size_t *done) {
  if (moved > 0) {
    *done += (size_t)moved;
    moved_bytes += (uint64_t)moved;
    return LCOMM_STREAM_MOVED;
  }
  bool later = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? LCOMM_STREAM_WAITS : LCOMM_STREAM_GONE;
}

lcomm_stream lcomm_socket_read(int fd, void *bytes, size_t size, size_t *done) {
  return result_of(recv(fd, (char *)bytes + *done, size - *done, 0), done);
}

lcomm_stream lcomm_socket_write(int fd, const void *bytes, size_t size, size_t *done) {
  return result_of(send(fd, (const char *)bytes + *done, size - *done, MSG_NOSIGNAL), done);
}

lcomm_stream lcomm_socket_write_parts(int fd, const void *head, size_t head_size, const void *body,
                                      size_t body_size, size_t *done) {
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  while (stream == LCOMM_STREAM_MOVED && *done < head_size + body_size) {
    if (*done < head_size) {
      stream = lcomm_socket_write(fd, head, head_size, done);
    } else {
      size_t of_body = *done - head_size;
      stream = lcomm_socket_write(fd, body, body_size, &of_body);
      *done = head_size + of_body;
    }
  }
  return stream;
}

bool lcomm_socket_is_silent(int fd) {
  char byte;
  size_t got = 0;
  return lcomm_socket_read(fd, &byte, 1, &got) == LCOMM_STREAM_WAITS;
}

int lcomm_socket_poll(struct pollfd *sockets, int count, int wait_ms) {
  int ready = poll(sockets, (nfds_t)count, wait_ms);
  return ready < 0 && errno == EINTR ? 0 : ready;
}

void lcomm_socket_expect(int fd, double acknowledged_s) {
  unsigned limit_ms = (unsigned)(acknowledged_s * 1000);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

/* Small messages leave at once. */
static void hurry(int fd) {
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* ------------------------------------------------------------- addresses */

static struct addrinfo *resolve(const char *address, int port, int flags, lcomm_why *why) {
  char service[16];
  struct addrinfo *found = NULL;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
  snprintf(service, sizeof(service), "%d", port);
  int code = getaddrinfo(address, service, &hints, &found);
  if (code != 0) {
    lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "the name is not known: %.120s",
                  code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
    return NULL;
  }
  return found;
}

static bool is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, address, sizeof(in));
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  struct sockaddr_in6 in6;
  memcpy(&in6, address, sizeof(in6));
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

/* A host's own name often is a loopback address in its /etc/hosts, which
 * nobody else can reach. An address in figures is meant as it is. */
static bool hides_host(const char *address, const struct addrinfo *list) {
  lcomm_why why;
  struct addrinfo *figures = resolve(address, 1, AI_NUMERICHOST, &why);
  if (figures) {
    freeaddrinfo(figures);
    return false;
  }
  for (; list; list = list->ai_next) {
    if (!is_loopback(list->ai_addr)) {
      return false;
    }
  }
  return strcmp(address, "localhost") != 0;
}

static bool came_before(const struct addrinfo *list, const struct addrinfo *it) {
  for (; list != it; list = list->ai_next) {
    if (list->ai_addrlen == it->ai_addrlen &&
        memcmp(list->ai_addr, it->ai_addr, it->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

/* ------------------------------------------------------------- listening */

/* Loopback, or one that is good on one link only: of no use to other hosts. */
static bool is_near(const struct sockaddr *address) {
  struct sockaddr_in6 in6;
  if (address->sa_family != AF_INET6) {
    return is_loopback(address);
  }
  memcpy(&in6, address, sizeof(in6));
  return is_loopback(address) || IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

/* -1 with errno. */
static int listen_at(const struct addrinfo *it) {
  int yes = 1, fd = socket(it->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return -1;
  }
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (it->ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
  }
  if (bind(fd, it->ai_addr, it->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static void close_all(const int *fds, int count) {
  for (int i = 0; i < count; i++) {
    close(fds[i]);
  }
}

/* An address that another host has is no error; a port that is taken is. */
static int listen_at_all(const struct addrinfo *list, int *fds, bool *in_use, lcomm_why *why) {
  int count = 0;
  for (const struct addrinfo *it = list; it && count < LCOMM_LISTEN_MAX; it = it->ai_next) {
    int fd = came_before(list, it) ? -2 : listen_at(it);
    if (fd >= 0) {
      fds[count++] = fd;
    } else if (fd == -1) {
      lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%.120s", strerror(errno));
      *in_use = *in_use || errno == EADDRINUSE;
    }
  }
  if (*in_use) {
    close_all(fds, count);
    count = 0;
  }
  return count;
}

int lcomm_socket_listen(const char *address, int port, bool one_host, int *fds, bool *in_use,
                        lcomm_why *why) {
  int count = 0;
  *in_use = false;
  struct addrinfo *list = resolve(address, port, 0, why);
  if (!list) {
    return 0;
  }
  if (one_host || !hides_host(address, list)) {
    count = listen_at_all(list, fds, in_use, why);
  }
  freeaddrinfo(list);
  if (count > 0 || *in_use) {
    return count;
  }
  list = resolve(NULL, port, AI_PASSIVE, why);
  if (list) {
    count = listen_at_all(list, fds, in_use, why);
    freeaddrinfo(list);
  }
  return count;
}

static int port_of(const struct sockaddr_storage *address) {
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
  memcpy(&in, address, sizeof(in));
  memcpy(&in6, address, sizeof(in6));
  return ntohs(address->ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

static void set_port(struct sockaddr_storage *address, uint16_t port) {
  if (address->ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
  } else {
    ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
  }
}

/* Every address of a family. */
static void set_any(struct sockaddr_storage *address) {
  sa_family_t family = address->ss_family;
  memset(address, 0, sizeof *address); /* INADDR_ANY and in6addr_any are zeros */
  address->ss_family = family;
}

static bool has_name(int fd, bool other_side, struct sockaddr_storage *address, socklen_t *size) {
  *size = sizeof *address;
  memset(address, 0, sizeof *address);
  struct sockaddr *to = (struct sockaddr *)address;
  return (other_side ? getpeername(fd, to, size) : getsockname(fd, to, size)) == 0 &&
         (address->ss_family == AF_INET || address->ss_family == AF_INET6);
}

int lcomm_socket_listen_beside(int fd, bool one_host, int *port) {
  struct sockaddr_storage here;
  socklen_t size = 0;
  if (!has_name(fd, false, &here, &size)) {
    return -1;
  }
  if (is_near((struct sockaddr *)&here) && !one_host) {
    set_any(&here);
  }
  set_port(&here, 0);
  struct addrinfo at = {
      .ai_family = here.ss_family, .ai_addr = (struct sockaddr *)&here, .ai_addrlen = size};
  int listener = listen_at(&at);
  if (listener >= 0 && has_name(listener, false, &here, &size)) {
    *port = port_of(&here);
  }
  return listener;
}

void lcomm_socket_place_of(int fd, lcomm_store_place *place) {
  struct sockaddr_storage there;
  socklen_t size = 0;
  *place = (lcomm_store_place){.way = LCOMM_STORE_WAY_STAR};
  if (!has_name(fd, true, &there, &size)) {
    return;
  }
  if (is_near((struct sockaddr *)&there)) {
    place->way =
        is_loopback((struct sockaddr *)&there) ? LCOMM_STORE_WAY_BESIDE : LCOMM_STORE_WAY_STAR;
  } else if (there.ss_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, &there, sizeof(in));
    place->way = LCOMM_STORE_WAY_IPV4;
    memcpy(place->address, &in.sin_addr, sizeof(in.sin_addr));
  } else {
    struct sockaddr_in6 in6;
    memcpy(&in6, &there, sizeof(in6));
    place->way = LCOMM_STORE_WAY_IPV6;
    memcpy(place->address, &in6.sin6_addr, sizeof(in6.sin6_addr));
  }
}

int lcomm_socket_accept(int listener, bool *full) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  *full = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (fd >= 0) {
    hurry(fd);
  }
  return fd;
}

/* ------------------------------------------------------------ connecting */

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
    hurry(fd);
    return fd;
  }
  close(fd);
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%.120s", strerror(error));
  return -1;
}

int lcomm_socket_connect_to(const lcomm_store_place *place, int fd, double until_s,
                            lcomm_why *why) {
  struct sockaddr_storage there = {.ss_family = AF_INET};
  socklen_t size = sizeof(struct sockaddr_in);
  if (place->way == LCOMM_STORE_WAY_BESIDE) {
    if (!has_name(fd, true, &there, &size)) {
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
  set_port(&there, place->port);
  struct addrinfo to = {
      .ai_family = there.ss_family, .ai_addr = (struct sockaddr *)&there, .ai_addrlen = size};
  return connect_to(&to, until_s, why);
}

int lcomm_socket_connect(const char *address, int port, unsigned first, double until_s,
                         unsigned *count, lcomm_why *why) {
  int fd = -1;
  *count = 0;
  struct addrinfo *list = resolve(address, port, 0, why);
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

/* --------------------------------------------------------------- parting */

/* Is the other side done? One that never stops talking is not listened to. */
static bool drain(int fd) {
  char bytes[4096];
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  for (int times = 0; stream == LCOMM_STREAM_MOVED && times < 256; times++) {
    size_t done = 0;
    stream = lcomm_socket_read(fd, bytes, sizeof(bytes), &done);
  }
  return stream == LCOMM_STREAM_GONE;
}

void lcomm_socket_part(struct pollfd *sockets, int count, double limit_s) {
  double until_s = lcomm_clock_s() + limit_s;
  int left = 0;
  for (int i = 0; i < count; i++) {
    shutdown(sockets[i].fd, SHUT_WR);
    sockets[i].events = POLLIN;
    left++;
  }
  while (left > 0 && lcomm_clock_s() < until_s) {
    int ready = poll(sockets, (nfds_t)count, lcomm_poll_ms(until_s));
    for (int i = 0; ready > 0 && i < count; i++) {
      if (sockets[i].fd >= 0 && sockets[i].revents != 0 && drain(sockets[i].fd)) {
        close(sockets[i].fd);
        sockets[i].fd = -1; /* which poll passes over */
        left--;
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (sockets[i].fd >= 0) {
      close(sockets[i].fd);
    }
  }
}
