/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store_address.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct addrinfo *lcomm_socket_resolve(const char *address, int port, int flags, lcomm_why *why) {
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

bool lcomm_socket_is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, address, sizeof(in));
    return ntohl(in.sin_addr.s_addr) >> 24 == 127;
  }
  struct sockaddr_in6 in6;
  memcpy(&in6, address, sizeof(in6));
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

/* Loopback, or one that is good on one link only: of no use to other hosts. */
bool lcomm_socket_is_near(const struct sockaddr *address) {
  struct sockaddr_in6 in6;
  if (address->sa_family != AF_INET6) {
    return lcomm_socket_is_loopback(address);
  }
  memcpy(&in6, address, sizeof(in6));
  return lcomm_socket_is_loopback(address) || IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr);
}

int lcomm_socket_port(const struct sockaddr_storage *address) {
  struct sockaddr_in in;
  struct sockaddr_in6 in6;
  memcpy(&in, address, sizeof(in));
  memcpy(&in6, address, sizeof(in6));
  return ntohs(address->ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

void lcomm_socket_set_port(struct sockaddr_storage *address, uint16_t port) {
  if (address->ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons(port);
  } else {
    ((struct sockaddr_in *)(void *)address)->sin_port = htons(port);
  }
}

bool lcomm_socket_name(int fd, bool other_side, struct sockaddr_storage *address, socklen_t *size) {
  *size = sizeof *address;
  memset(address, 0, sizeof *address);
  struct sockaddr *to = (struct sockaddr *)address;
  return (other_side ? getpeername(fd, to, size) : getsockname(fd, to, size)) == 0 &&
         (address->ss_family == AF_INET || address->ss_family == AF_INET6);
}

static void put_address(const struct sockaddr_storage *from, lcomm_store_place *place) {
  if (from->ss_family == AF_INET) {
    struct sockaddr_in in;
    memcpy(&in, from, sizeof(in));
    place->way = LCOMM_STORE_WAY_IPV4;
    memcpy(place->address, &in.sin_addr, sizeof(in.sin_addr));
  } else {
    struct sockaddr_in6 in6;
    memcpy(&in6, from, sizeof(in6));
    place->way = LCOMM_STORE_WAY_IPV6;
    memcpy(place->address, &in6.sin6_addr, sizeof(in6.sin6_addr));
  }
}

static void place_of(int fd, bool other_side, lcomm_store_place *place) {
  struct sockaddr_storage address;
  socklen_t size = 0;
  *place = (lcomm_store_place){.way = LCOMM_STORE_WAY_STAR};
  if (!lcomm_socket_name(fd, other_side, &address, &size)) {
    return;
  }
  if (!lcomm_socket_is_near((struct sockaddr *)&address)) {
    put_address(&address, place);
  } else if (lcomm_socket_is_loopback((struct sockaddr *)&address)) {
    place->way = LCOMM_STORE_WAY_BESIDE;
  }
}

void lcomm_socket_place_of(int fd, lcomm_store_place *place) {
  place_of(fd, true, place);
}

void lcomm_socket_place_here(int fd, lcomm_store_place *place) {
  place_of(fd, false, place);
}

void lcomm_socket_place_seen(int fd, lcomm_store_place *place) {
  struct sockaddr_storage there;
  socklen_t size = 0;
  *place = (lcomm_store_place){.way = LCOMM_STORE_WAY_STAR};
  if (lcomm_socket_name(fd, true, &there, &size)) {
    put_address(&there, place);
  }
}
