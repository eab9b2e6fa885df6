/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_COMPLETION_H
#define LCOMM_TRANSPORT_COMPLETION_H

/* The completion list of a transport: watched transfers about which test() has something new to
 * say, because they are over, have failed, or can go on now. Who has many messages in flight asks
 * about these alone. A transfer is on the list at most once, and leaves it when it is popped, when
 * test() says that it is over, and when it is cancelled. What fails together with a peer need not
 * be on the list: `alarms` of the transport grows then, and the owner asks about all its transfers.
 */

#include "libcomm/transport/transport.h"

/* For transports. A message is started: nobody watches it, it is on no list. */
static inline void lcomm_completion_begin(lcomm_transport *transport, lcomm_transfer *transfer) {
  transfer->owner = NULL;
  transfer->transport = transport;
  transfer->next = transfer;
  transfer->previous = NULL;
}

/* test() has something new to say. Does nothing where nobody watches, or it is listed. */
void lcomm_completion_add(lcomm_transfer *transfer);

/* It is over or cancelled. */
void lcomm_completion_remove(lcomm_transfer *transfer);

/* For callers: take the first one off the list, NULL when there is none, and return its owner. */
void *lcomm_completion_pop(lcomm_transport *transport);

#endif
