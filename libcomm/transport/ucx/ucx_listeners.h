/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_LISTENERS_H
#define LCOMM_TRANSPORT_UCX_UCX_LISTENERS_H

/* The TCP ports at which UCX listens, and who may connect to them. UCX believes
 * whoever connects, and a few bytes end the process. So the kernel drops what
 * strangers send, by filters on the listening sockets: while links are made, all
 * that does not come from a host of the communicator; once all are made, everything.
 *
 * All of it is done as far as the kernel allows; where it has no socket filters,
 * or no /proc, the ports stay as UCX made them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/transport/ucx/ucx_devices.h"

enum { LCOMM_UCX_LISTENERS_MAX = 256 };

typedef struct lcomm_ucx_listeners {
  int count;
  struct {
    int fd;
    uint64_t cookie; /* of the socket: `fd` may name another one later */
  } of[LCOMM_UCX_LISTENERS_MAX];
} lcomm_ucx_listeners;

/* All listening TCP sockets of this process; none, and false, when they cannot be
 * told or are too many. */
bool lcomm_ucx_listeners_find(lcomm_ucx_listeners *found);

/* Of all that there are now: those that were not there before, and whose port is
 * in the address of a worker (`size` bytes). */
void lcomm_ucx_listeners_of(const lcomm_ucx_listeners *before, const void *address, size_t size,
                            lcomm_ucx_listeners *own);

/* Admit connections from the interfaces of these `size` ranks, where they are very many from their
 * networks, and from this host. Without effect when a rank may have other interfaces, too. */
void lcomm_ucx_listeners_admit(const lcomm_ucx_listeners *own, const lcomm_ucx_interfaces *all,
                               int size);

/* Admit nobody any more. */
void lcomm_ucx_listeners_close(const lcomm_ucx_listeners *own);

/* All links are made: end the connections through these ports over which no byte
 * has come. */
void lcomm_ucx_listeners_dismiss_silent(const lcomm_ucx_listeners *own);

#endif
