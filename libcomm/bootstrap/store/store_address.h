/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_ADDRESS_H
#define LCOMM_BOOTSTRAP_STORE_STORE_ADDRESS_H

/* Addresses of TCP sockets: what a name means, and what an address says of its host. */

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "libcomm/base/error.h"
#include "libcomm/bootstrap/store/store_wire.h"

/* The addresses of a host name, for freeaddrinfo(); flags as for getaddrinfo(). NULL with a phrase
 * in `why`. */
struct addrinfo *lcomm_socket_resolve(const char *address, int port, int flags, lcomm_why *why);

bool lcomm_socket_is_loopback(const struct sockaddr *address);

/* Loopback, or one that is good on one link only: of no use to other hosts. */
bool lcomm_socket_is_near(const struct sockaddr *address);

/* The address of this side of a connection, or of the other one; false without an address of IP. */
bool lcomm_socket_name(int fd, bool other_side, struct sockaddr_storage *address, socklen_t *size);

int lcomm_socket_port(const struct sockaddr_storage *address);
void lcomm_socket_set_port(struct sockaddr_storage *address, uint16_t port);

/* Where the other side of a connection is, as others may reach its host; the port is left. WAY_STAR
 * where that is not known. */
void lcomm_socket_place_of(int fd, lcomm_store_place *place);

/* The same of this side of it. */
void lcomm_socket_place_here(int fd, lcomm_store_place *place);

/* The other side's address as it is, loopback too. */
void lcomm_socket_place_seen(int fd, lcomm_store_place *place);

#endif
