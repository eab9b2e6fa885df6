/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ADDRESS_H
#define LCOMM_INTERPOSE_NCCL_ADDRESS_H

/* The address of this host that an id carries. */

#include <stdbool.h>
#include <stddef.h>

#include "libcomm/interpose/nccl/nccl_calls.h"

/* Does NCCL_SOCKET_IFNAME choose the interface of this name? Its list "eth,ib" has beginnings of
 * names; "=eth0,eth1" whole names; behind "^", as "^docker,lo" or "^=eth3", those that are
 * excluded. Any text is allowed. */
bool lcomm_nccl_interface_matches(const char *list, const char *name);

/* The IPv4 address of the first interface that is up and that NCCL_SOCKET_IFNAME chooses. Without
 * the variable that of the first one that is not loopback; loopback where there is no other. A list
 * that excludes takes loopback last, too. ncclInvalidUsage, with a sentence, where it chooses none;
 * ncclSystemError. */
ncclResult_t lcomm_nccl_address_find(char *text, size_t size);

#endif
