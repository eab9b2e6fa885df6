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
enum {
  KEEP = 0x7fffffff,
  DROP = 0,
  SOURCE_OFFSET = 12,
  ADDRESSES_MAX = 1000, /* as older kernels take no longer filter */
  NETWORKS_MAX = 400,
  CODE_MAX = 2 * ADDRESSES_MAX + 8
};

typedef struct filter {
  size_t length;
  struct sock_filter code[CODE_MAX];
} filter;

static void attach(const lcomm_ucx_listeners *own, struct sock_filter *code, size_t length) {
  struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
  for (int i = 0; i < own->count; i++) {
    if (cookie_of(own->of[i].fd) == own->of[i].cookie) {
      (void)setsockopt(own->of[i].fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    }
  }
}

/* Are the addresses of all ranks known? */
static bool are_all_known(const lcomm_ucx_interfaces *all, int size) {
  for (int rank = 0; rank < size; rank++) {
    if (all[rank].count == 0 || all[rank].count >= LCOMM_UCX_INTERFACES_MAX) {
      return false;
    }
  }
  return true;
}

/* A network in host byte order; one host where the mask is full. */
typedef struct network {
  uint32_t address, mask;
} network;

/* The distinct networks of all ranks, or with `least` a full mask their hosts; 0 when there are
 * more than `most`. */
static size_t collect(const lcomm_ucx_interfaces *all, int size, uint32_t least, size_t most,
                      network *found) {
  size_t count = 0;
  for (int rank = 0; rank < size; rank++) {
    for (uint32_t i = 0; i < all[rank].count; i++) {
      uint32_t mask = ntohl(all[rank].entries[i].mask) | least;
      uint32_t address = ntohl(all[rank].entries[i].address) & mask;
      size_t at = 0;
      while (at < count && (found[at].address != address || found[at].mask != mask)) {
        at++;
      }
      if (at == most) {
        return 0;
      }
      found[at] = (network){address, mask};
      count += at == count;
    }
  }
  return count;
}

static void add(filter *f, struct sock_filter instruction) {
  f->code[f->length++] = instruction;
}

static void load_source(filter *f) {
  add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                      (uint32_t)SKF_NET_OFF + SOURCE_OFFSET));
}

static void keep_if(filter *f, uint32_t address) {
  add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, address, 0, 1));
  add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, KEEP));
}

static void mask_source(filter *f, uint32_t mask) {
  add(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
}

/* Hosts where they are not too many, else their networks. False when those are, too. */
static bool keep_all_of(filter *f, const lcomm_ucx_interfaces *all, int size) {
  network found[ADDRESSES_MAX];
  size_t count = collect(all, size, UINT32_MAX, ADDRESSES_MAX, found);
  for (size_t i = 0; i < count; i++) {
    keep_if(f, found[i].address);
  }
  if (count > 0) {
    return true;
  }
  count = collect(all, size, 0, NETWORKS_MAX, found);
  for (size_t i = 0; i < count; i++) {
    mask_source(f, found[i].mask);
    keep_if(f, found[i].address);
    load_source(f);
  }
  return count > 0;
}

void lcomm_ucx_listeners_admit(const lcomm_ucx_listeners *own, const lcomm_ucx_interfaces *all,
                               int size) {
  filter f = {0};
  load_source(&f);
  if (!are_all_known(all, size) || !keep_all_of(&f, all, size)) {
    return;
  }
  mask_source(&f, 0xff000000);
  keep_if(&f, 0x7f000000);
  add(&f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, DROP));
  attach(own, f.code, f.length);
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
