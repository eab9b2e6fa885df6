/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/completion.h"

static bool is_listed(const lcomm_transfer *transfer) {
  return transfer->next != transfer;
}

void lcomm_completion_add(lcomm_transfer *transfer) {
  lcomm_transport *transport = transfer->transport;
  if (!transfer->owner || is_listed(transfer)) {
    return;
  }
  transfer->next = NULL;
  transfer->previous = transport->listed_last;
  if (transport->listed_last) {
    transport->listed_last->next = transfer;
  } else {
    transport->listed = transfer;
  }
  transport->listed_last = transfer;
}

void lcomm_completion_remove(lcomm_transfer *transfer) {
  lcomm_transport *transport = transfer->transport;
  if (!is_listed(transfer)) {
    return;
  }
  if (transfer->previous) {
    transfer->previous->next = transfer->next;
  } else {
    transport->listed = transfer->next;
  }
  if (transfer->next) {
    transfer->next->previous = transfer->previous;
  } else {
    transport->listed_last = transfer->previous;
  }
  transfer->next = transfer;
}

void *lcomm_completion_pop(lcomm_transport *transport) {
  lcomm_transfer *first = transport->listed;
  if (!first) {
    return NULL;
  }
  lcomm_completion_remove(first);
  return first->owner;
}
