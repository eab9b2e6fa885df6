/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_SOCKET_H
#define LCOMM_BOOTSTRAP_STORE_STORE_SOCKET_H

/* TCP sockets that never block, are closed on exec and raise no signal. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "libcomm/base/error.h"
#include "libcomm/bootstrap/store/store_wire.h"

enum { LCOMM_LISTEN_MAX = 8 };

typedef enum lcomm_stream {
  LCOMM_STREAM_MOVED, /* some bytes went through */
  LCOMM_STREAM_WAITS, /* none can now */
  LCOMM_STREAM_GONE   /* the other side closed it, or it is broken */
} lcomm_stream;

/* Read or write what is still missing of `size` bytes; *done counts them. */
lcomm_stream lcomm_socket_read(int fd, void *bytes, size_t size, size_t *done);
lcomm_stream lcomm_socket_write(int fd, const void *bytes, size_t size, size_t *done);

/* The same for a message of two parts, one after the other, until it is written or nothing moves.
 */
lcomm_stream lcomm_socket_write_parts(int fd, const void *head, size_t head_size, const void *body,
                                      size_t body_size, size_t *done);

/* Has the other side said nothing, and not gone? Takes one byte if it has. */
bool lcomm_socket_is_silent(int fd);

/* Listen at all addresses of a host name that are this host's own. Where none
 * is, or the name means nothing but loopback while others must come from
 * outside (one_host false), listen at every address. Returns the number of
 * sockets, at most LCOMM_LISTEN_MAX, or 0 with a phrase in `why`;
 * *in_use: somebody else has the port. */
int lcomm_socket_listen(const char *address, int port, bool one_host, int *fds, bool *in_use,
                        lcomm_why *why);

/* The next one that has connected, or -1; *full: none can be taken for lack of
 * descriptors or memory. */
int lcomm_socket_accept(int listener, bool *full);

/* Connect to one of the addresses of a host name, beginning with number `first`
 * of them, until `until_s` on lcomm_clock_s; *count: how many there are. -1 with a
 * phrase in `why`. */
int lcomm_socket_connect(const char *address, int port, unsigned first, double until_s,
                         unsigned *count, lcomm_why *why);

/* Bytes that this thread has read and written with these functions. */
uint64_t lcomm_socket_bytes(void);

/* Listen at a free port of the address that this side of a connection has; at all of this host's
 * where that is loopback and others come from outside. -1 without one. */
int lcomm_socket_listen_beside(int fd, bool one_host, int *port);

/* Listen at a free port of every address of the kind that a connection has. -1 without one. */
int lcomm_socket_listen_wide(int fd, int *port);

/* Connect to a place, as lcomm_socket_connect; fd: the connection with rank 0, which only a place
 * beside it needs. On failure errno says why, ECONNREFUSED where nobody listens. */
int lcomm_socket_connect_to(const lcomm_store_place *place, int fd, double until_s, lcomm_why *why);

/* The connection breaks when the other host's system acknowledges nothing for so
 * long; 0: as the system has it. A process that stands still is no reason. */
void lcomm_socket_expect(int fd, double acknowledged_s);

/* Small messages leave at once. */
void lcomm_socket_hurry(int fd);

/* poll(), but 0 when a signal came; -1 with errno. */
int lcomm_socket_poll(struct pollfd *sockets, int count, int wait_ms);

/* Say no more, and let the other side read what was said: closing while its
 * bytes lie unread here would take back ours. Closes all, within limit_s. */
void lcomm_socket_part(struct pollfd *sockets, int count, double limit_s);

/* Time-out for poll() until then, in milliseconds: rounded up, at most 1000. */
int lcomm_poll_ms(double until_s);

#endif
