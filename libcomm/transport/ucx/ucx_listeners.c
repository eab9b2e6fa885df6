/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_listeners.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "libcomm/transport/ucx/ucx_sockets.h"

/* ---------------------------------------------------------- which there are */

static uint64_t cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

static bool listens(int fd) {
  return lcomm_ucx_socket_option(fd, SOL_SOCKET, SO_ACCEPTCONN) > 0 &&
         lcomm_ucx_socket_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
}

/* Call `visit` for every open file of this process; false when they cannot be told. */
static bool visit_files(void (*visit)(int fd, void *argument), void *argument) {
  DIR *folder = opendir("/proc/self/fd");
  for (struct dirent *it = folder ? readdir(folder) : NULL; it; it = readdir(folder)) {
    if (it->d_name[0] != '.') {
      visit(atoi(it->d_name), argument);
    }
  }
  if (folder) {
    closedir(folder);
  }
  return folder != NULL;
}

static void record_listener(int fd, void *argument) {
  lcomm_ucx_listeners *found = argument;
  uint64_t cookie = listens(fd) ? cookie_of(fd) : 0;
  if (cookie == 0) {
    return;
  }
  if (found->count < LCOMM_UCX_LISTENERS_MAX) {
    found->of[found->count].fd = fd;
    found->of[found->count].cookie = cookie;
  }
  found->count++;
}

bool lcomm_ucx_listeners_find(lcomm_ucx_listeners *found) {
  found->count = 0;
  bool all = visit_files(record_listener, found) && found->count <= LCOMM_UCX_LISTENERS_MAX;
  found->count = all ? found->count : 0;
  return all;
}

static bool has(const lcomm_ucx_listeners *listeners, uint64_t cookie) {
  for (int i = 0; i < listeners->count; i++) {
    if (listeners->of[i].cookie == cookie) {
      return true;
    }
  }
  return false;
}

/* Does the address name the port of this socket? Another thread may have opened
 * a socket of its own meanwhile. */
static bool is_named(int fd, const unsigned char *address, size_t size) {
  struct sockaddr_in in = {0};
  socklen_t length = sizeof(in);
  if (getsockname(fd, (struct sockaddr *)&in, &length) != 0 || in.sin_family != AF_INET) {
    return false;
  }
  const unsigned char port[2] = {(unsigned char)(ntohs(in.sin_port) >> 8),
                                 (unsigned char)ntohs(in.sin_port)};
  for (size_t i = 0; i + 2 <= size; i++) {
    if (memcmp(address + i, port, 2) == 0) {
      return true;
    }
  }
  return false;
}

void lcomm_ucx_listeners_of(const lcomm_ucx_listeners *before, const void *address, size_t size,
                            lcomm_ucx_listeners *own) {
  lcomm_ucx_listeners now;
  own->count = 0;
  (void)lcomm_ucx_listeners_find(&now);
  for (int i = 0; i < now.count; i++) {
    if (!has(before, now.of[i].cookie) && is_named(now.of[i].fd, address, size)) {
      own->of[own->count++] = now.of[i];
    }
  }
}

/* ------------------------------------------------------------- who may connect */

/* A filter sees a packet from its TCP header on, and the IP header through
 * SKF_NET_OFF; what it returns is how much of the packet to keep. */
enum { KEEP = 0x7fffffff, DROP = 0, SOURCE_OFFSET = 12, ADDRESSES_MAX = 1000 };

static void attach(const lcomm_ucx_listeners *own, struct sock_filter *code, size_t length) {
  struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
  for (int i = 0; i < own->count; i++) {
    if (cookie_of(own->of[i].fd) == own->of[i].cookie) {
      (void)setsockopt(own->of[i].fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    }
  }
}

/* The distinct addresses of all ranks, in host byte order, or 0 when they may not
 * be all, or are too many. */
static size_t collect(const lcomm_ucx_interfaces *all, int size, uint32_t *addresses) {
  size_t count = 0;
  for (int rank = 0; rank < size; rank++) {
    uint32_t entries = all[rank].count;
    if (entries == 0 || entries >= LCOMM_UCX_INTERFACES_MAX) {
      return 0;
    }
    for (uint32_t i = 0; i < entries; i++) {
      uint32_t address = ntohl(all[rank].entries[i].address);
      size_t at = 0;
      while (at < count && addresses[at] != address) {
        at++;
      }
      if (at == ADDRESSES_MAX) {
        return 0;
      }
      addresses[at] = address;
      count += at == count;
    }
  }
  return count;
}

void lcomm_ucx_listeners_admit(const lcomm_ucx_listeners *own, const lcomm_ucx_interfaces *all,
                               int size) {
  uint32_t addresses[ADDRESSES_MAX];
  struct sock_filter code[2 * ADDRESSES_MAX + 8];
  size_t count = collect(all, size, addresses), length = 0;
  if (count == 0) {
    return;
  }
  code[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + SOURCE_OFFSET);
  for (size_t i = 0; i < count; i++) {
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, addresses[i], 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, KEEP);
  }
  code[length++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff000000);
  code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x7f000000, 0, 1);
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, KEEP);
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, DROP);
  attach(own, code, length);
}

void lcomm_ucx_listeners_close(const lcomm_ucx_listeners *own) {
  struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, DROP)};
  attach(own, drop, 1);
}

/* ------------------------------------------------------- who has connected */

static bool same_address(const struct sockaddr_in *a, const struct sockaddr_in *b) {
  return a->sin_family == b->sin_family && a->sin_port == b->sin_port &&
         a->sin_addr.s_addr == b->sin_addr.s_addr;
}

/* Was this connection made to one of the ports? It has their address. */
static bool came_through(const lcomm_ucx_listeners *own, int fd) {
  for (int i = 0; i < own->count; i++) {
    struct sockaddr_in port = {0}, local = {0};
    socklen_t port_size = sizeof(port), local_size = sizeof(local);
    if (getsockname(own->of[i].fd, (struct sockaddr *)&port, &port_size) == 0 &&
        getsockname(fd, (struct sockaddr *)&local, &local_size) == 0 &&
        cookie_of(own->of[i].fd) == own->of[i].cookie && cookie_of(fd) != own->of[i].cookie &&
        same_address(&port, &local)) {
      return true;
    }
  }
  return false;
}

/* A link begins with bytes from the side that connects. A connection has the
 * filter of the port that it came through, which has done its work. */
static void release_connection(int fd, void *argument) {
  struct tcp_info info = {0};
  socklen_t size = sizeof(info);
  int unused = 0;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(struct tcp_info, tcpi_segs_out) || !came_through(argument, fd)) {
    return;
  }
  (void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
  if (info.tcpi_bytes_received == 0) {
    (void)shutdown(fd, SHUT_RDWR);
  }
}

void lcomm_ucx_listeners_dismiss_silent(const lcomm_ucx_listeners *own) {
  lcomm_ucx_listeners ports = *own;
  (void)visit_files(release_connection, &ports);
}
