/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---------------------------------------------------------- which there are */

int lcomm_ucx_socket_option(int fd, int level, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(fd, level, option, &value, &size) == 0 ? value : -1;
}

/* A worker watches its interfaces, and an interface its sockets, each with an
 * epoll instance; a line of /proc/self/fdinfo for each file that one watches. */
static void visit_watched(int epoll, int depth, lcomm_ucx_socket_visit visit, void *argument) {
  char name[64], line[256];
  int fd = -1;
  snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", epoll);
  FILE *file = fopen(name, "re");
  while (file && fgets(line, sizeof(line), file)) {
    if (sscanf(line, "tfd: %d", &fd) != 1) {
      continue;
    }
    if (lcomm_ucx_socket_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP) {
      visit(fd, argument);
    } else if (depth > 0) {
      visit_watched(fd, depth - 1, visit, argument);
    }
  }
  if (file) {
    fclose(file);
  }
}

void lcomm_ucx_sockets_of(int event_fd, lcomm_ucx_socket_visit visit, void *argument) {
  if (event_fd >= 0) {
    visit_watched(event_fd, 1, visit, argument);
  }
}

/* ------------------------------------------------------- how a connection is */

static bool is_kept_alive(int fd) {
  enum { IDLE_MAX_S = LCOMM_UCX_SILENT_S / 2 };
  int idle_s = lcomm_ucx_socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
  return lcomm_ucx_socket_option(fd, SOL_SOCKET, SO_KEEPALIVE) > 0 && idle_s >= 0 &&
         idle_s <= IDLE_MAX_S;
}

static bool is_within_host(int fd) {
  struct sockaddr_in own = {0}, peer = {0};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
         getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0 && own.sin_family == AF_INET &&
         peer.sin_family == AF_INET && own.sin_addr.s_addr == peer.sin_addr.s_addr;
}

void lcomm_ucx_socket_keep_alive(int fd) {
  static const int ON = 1, OFF = 0, IDLE_S = 4, INTERVAL_S = 2, COUNT = 3;
  if (is_within_host(fd)) {
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &OFF, sizeof(OFF));
    return;
  }
  if (is_kept_alive(fd)) {
    return;
  }
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &IDLE_S, sizeof(IDLE_S));
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &INTERVAL_S, sizeof(INTERVAL_S));
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &COUNT, sizeof(COUNT));
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &ON, sizeof(ON));
}

static void keep_alive(int fd, void *unused) {
  (void)unused;
  lcomm_ucx_socket_keep_alive(fd);
}

void lcomm_ucx_sockets_keep_alive(int event_fd) {
  lcomm_ucx_sockets_of(event_fd, keep_alive, NULL);
}

/* While a connection is being made getpeername() knows nobody. A line of the kernel's list has a
 * number, addresses in hexadecimal, a state, and in its tenth column the inode. */
static bool find_address(int fd, uint32_t *address) {
  struct stat facts;
  char line[256];
  unsigned remote = 0;
  unsigned long inode = 0;
  bool found = false;
  FILE *list = fstat(fd, &facts) == 0 ? fopen("/proc/self/net/tcp", "re") : NULL;
  while (list && !found && fgets(line, sizeof(line), list)) {
    found = sscanf(line, "%*d: %*x:%*x %x:%*x %*x %*s %*s %*s %*d %*d %lu", &remote, &inode) == 2 &&
            inode == facts.st_ino;
  }
  if (list) {
    fclose(list);
  }
  *address = remote;
  return found;
}

/* For how long at least the kernel has asked for a connection: newer kernels ask a few times at
 * equal intervals, then all double them each time. */
static double asked_s(const struct tcp_info *info) {
  unsigned doubled = info->tcpi_backoff < 16 ? info->tcpi_backoff : 16;
  unsigned equal = info->tcpi_retransmits > doubled ? info->tcpi_retransmits - doubled : 0;
  double first_s = 1e-6 * (double)(info->tcpi_rto >> doubled);
  return first_s * (double)((1u << doubled) - 1 + equal);
}

/* It asks after 7 s, and then not before 11. */
static bool read_unmade(int fd, const struct tcp_info *info, lcomm_ucx_connection *connection) {
  bool silent = asked_s(info) > LCOMM_UCX_SILENT_S - 2;
  *connection = (lcomm_ucx_connection){.heard_s = silent ? LCOMM_UCX_SILENT_S : 0,
                                       .unacknowledged = info->tcpi_unacked,
                                       .retransmissions = info->tcpi_retransmits,
                                       .kept_alive = is_kept_alive(fd)};
  return silent && find_address(fd, &connection->peer_address);
}

bool lcomm_ucx_connection_read(int fd, lcomm_ucx_connection *connection) {
  enum { ESTABLISHED = 1, SYN_SENT = 2 };
  struct tcp_info info = {0};
  struct sockaddr_in peer = {0};
  socklen_t info_size = sizeof(info), peer_size = sizeof(peer);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_size) != 0) {
    return false;
  }
  if (info.tcpi_state == SYN_SENT) {
    return read_unmade(fd, &info, connection);
  }
  if (info.tcpi_state != ESTABLISHED ||
      getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0 || peer.sin_family != AF_INET) {
    return false;
  }
  *connection = (lcomm_ucx_connection){.peer_address = peer.sin_addr.s_addr,
                                       .heard_s = 1e-3 * info.tcpi_last_ack_recv,
                                       .unacknowledged = info.tcpi_unacked,
                                       .retransmissions = info.tcpi_retransmits,
                                       .probes = info.tcpi_probes,
                                       .kept_alive = is_kept_alive(fd)};
  return true;
}

/* Bytes that are not acknowledged may just be on their way; not so when they were
 * sent several times, nor when the kernel asked before them: it does not count
 * what an interface without a cable drops. */
bool lcomm_ucx_connection_is_silent(const lcomm_ucx_connection *connection) {
  enum { RETRANSMISSIONS = 3, PROBES = 2 }; /* one may just be on its way */
  bool asked = connection->unacknowledged > 0 &&
               (connection->kept_alive || connection->retransmissions >= RETRANSMISSIONS);
  return connection->heard_s >= LCOMM_UCX_SILENT_S && (asked || connection->probes >= PROBES);
}
