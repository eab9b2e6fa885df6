/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_TRANSPORT_H
#define LCOMM_TRANSPORT_TRANSPORT_H

/* A transport moves bytes between ranks. It knows nothing of gradients,
 * codecs or schedules. Every transport is one const table; messages match by
 * (peer, tag) and those with equal peer and tag arrive in the order sent.
 *
 * Not thread-safe: the thread that drives the communicator calls it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"

enum {
  LCOMM_TAG_CONTROL = 1 << 30, /* set in tags that are no part of a schedule */
  LCOMM_TAG_TICKET = LCOMM_TAG_CONTROL | 1,
  LCOMM_NOTICE_SIZE = 1152 /* bytes of a notice, always */
};

/* One message on its way. Lives with the caller at a fixed address. */
typedef struct lcomm_transfer {
  uint64_t opaque[2];
} lcomm_transfer;

typedef struct lcomm_transport lcomm_transport;

typedef struct lcomm_transport_table {
  const char *name;
  const char *summary; /* one line for people */

  /* Free everything. orderly: no transfer is under way anywhere; otherwise
   * nothing collective may be done and peers may never answer. */
  void (*close)(lcomm_transport *transport, bool orderly);

  /* Start a message. The bytes must stay as they are until it is over. */
  lcomm_status (*send)(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                       size_t size, lcomm_transfer *transfer);
  lcomm_status (*receive)(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                          size_t capacity, lcomm_transfer *transfer);

  /* *over = true once the message is over, and *size (may be NULL) the bytes
   * received. Must not be asked again after that. */
  lcomm_status (*test)(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                       size_t *size);

  /* Forget a message that is not over: no byte is received after this. */
  void (*cancel)(lcomm_transport *transport, lcomm_transfer *transfer);

  /* Notices: LCOMM_NOTICE_SIZE bytes to one peer, outside all ordering, at
   * most one per peer; used to spread an error. hear copies one that has
   * arrived and returns true. */
  void (*tell)(lcomm_transport *transport, int peer, const void *notice);
  bool (*hear)(lcomm_transport *transport, void *notice);

  /* What the last failure was, for people. */
  const char *(*why)(const lcomm_transport *transport);
} lcomm_transport_table;

/* Every transport begins with this. */
struct lcomm_transport {
  const lcomm_transport_table *table;
};

/* All transports of this build, ended by NULL. */
extern const lcomm_transport_table *const lcomm_transport_list[];

/* The transport of a single rank: there is nobody to send to. */
lcomm_status lcomm_transport_self_open(lcomm_transport **transport);

#endif
