/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_SOCKETS_H
#define LCOMM_TRANSPORT_UCX_UCX_SOCKETS_H

/* The TCP sockets that UCX opened for one worker. UCX does not tell them; the
 * kernel tells which files an epoll instance watches. */

#include <stdbool.h>
#include <stdint.h>

/* An option of a socket whose value is an int; -1: it has none. */
int lcomm_ucx_socket_option(int fd, int level, int option);

/* Call `visit` for each TCP socket that the worker behind `event_fd` watches.
 * None is found where /proc is not mounted. */
typedef void (*lcomm_ucx_socket_visit)(int fd, void *argument);
void lcomm_ucx_sockets_of(int event_fd, lcomm_ucx_socket_visit visit, void *argument);

/* What the kernel knows of a connection. Times are before now, counts since
 * the last packet of the other side. */
typedef struct lcomm_ucx_connection {
  uint32_t peer_address; /* IPv4, in network byte order */
  double heard_s;        /* the last packet of the other side that acknowledged something */
  unsigned unacknowledged, retransmissions, probes;
  bool kept_alive; /* while nothing is in flight the kernel asks every few seconds */
} lcomm_ucx_connection;

/* False unless it is an established connection over IPv4, or one that is being made and has not
 * been answered for some seconds. */
bool lcomm_ucx_connection_read(int fd, lcomm_ucx_connection *connection);

enum { LCOMM_UCX_SILENT_S = 8 };

/* Have the kernel ask over every idle connection of the worker whether the other host
 * is there, and end one that does not answer within ten seconds. UCX would ask for that
 * only at one end of some. What is asked for already stays as it is. Connections within
 * a host are not asked over: the kernel knows when the other side ends, and where
 * hundreds of ranks share a host it drops packets when all connections ask. */
void lcomm_ucx_sockets_keep_alive(int event_fd);
void lcomm_ucx_socket_keep_alive(int fd); /* of one connection */

/* Has the other host not answered for so long, although it was asked several
 * times? A host whose programs are busy or stopped answers: its kernel
 * acknowledges what comes, and says again and again that it has no room. */
bool lcomm_ucx_connection_is_silent(const lcomm_ucx_connection *connection);

#endif
