/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/bootstrap/store/store_address.h"
#include "libcomm/bootstrap/store/store_socket.h"

/* A host's own name often is a loopback address in its /etc/hosts, which
 * nobody else can reach. An address in figures is meant as it is. */
static bool hides_host(const char *address, const struct addrinfo *list) {
  lcomm_why why;
  struct addrinfo *figures = lcomm_socket_resolve(address, 1, AI_NUMERICHOST, &why);
  if (figures) {
    freeaddrinfo(figures);
    return false;
  }
  for (; list; list = list->ai_next) {
    if (!lcomm_socket_is_loopback(list->ai_addr)) {
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
  struct addrinfo *list = lcomm_socket_resolve(address, port, 0, why);
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
  list = lcomm_socket_resolve(NULL, port, AI_PASSIVE, why);
  if (list) {
    count = listen_at_all(list, fds, in_use, why);
    freeaddrinfo(list);
  }
  return count;
}

/* Every address of a family. */
static void set_any(struct sockaddr_storage *address) {
  sa_family_t family = address->ss_family;
  memset(address, 0, sizeof *address); /* INADDR_ANY and in6addr_any are zeros */
  address->ss_family = family;
}

static int listen_free(struct sockaddr_storage *here, socklen_t size, int *port) {
  lcomm_socket_set_port(here, 0);
  struct addrinfo at = {
      .ai_family = here->ss_family, .ai_addr = (struct sockaddr *)here, .ai_addrlen = size};
  int listener = listen_at(&at);
  if (listener >= 0 && lcomm_socket_name(listener, false, here, &size)) {
    *port = lcomm_socket_port(here);
  }
  return listener;
}

int lcomm_socket_listen_beside(int fd, bool one_host, int *port) {
  struct sockaddr_storage here;
  socklen_t size = 0;
  if (!lcomm_socket_name(fd, false, &here, &size)) {
    return -1;
  }
  if (lcomm_socket_is_near((struct sockaddr *)&here) && !one_host) {
    set_any(&here);
  }
  return listen_free(&here, size, port);
}

int lcomm_socket_listen_wide(int fd, int *port) {
  struct sockaddr_storage here;
  socklen_t size = 0;
  if (!lcomm_socket_name(fd, false, &here, &size)) {
    return -1;
  }
  set_any(&here);
  return listen_free(&here, size, port);
}

int lcomm_socket_accept(int listener, bool *full) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  *full = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
  if (fd >= 0) {
    lcomm_socket_hurry(fd);
  }
  return fd;
}
