/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The transport of a communicator with one rank. It needs nothing, not even
 * MPI. A schedule of one rank holds no message, so asking for one is a fault
 * of the caller and is refused. */

#include "libcomm/transport/transport.h"

static void self_close(lcomm_transport *transport, bool orderly) {
  (void)transport;
  (void)orderly;
}

static lcomm_status self_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                              size_t size, lcomm_transfer *transfer) {
  (void)transport, (void)peer, (void)tag, (void)bytes, (void)size, (void)transfer;
  return LCOMM_ERR_TRANSPORT;
}

static lcomm_status self_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                                 size_t capacity, lcomm_transfer *transfer) {
  (void)transport, (void)peer, (void)tag, (void)bytes, (void)capacity, (void)transfer;
  return LCOMM_ERR_TRANSPORT;
}

static lcomm_status self_test(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                              size_t *size) {
  (void)transport, (void)transfer, (void)over, (void)size;
  return LCOMM_ERR_TRANSPORT;
}

static void self_cancel(lcomm_transport *transport, lcomm_transfer *transfer) {
  (void)transport, (void)transfer;
}

static void self_tell(lcomm_transport *transport, int peer, const void *notice) {
  (void)transport, (void)peer, (void)notice;
}

static bool self_hear(lcomm_transport *transport, void *notice) {
  (void)transport, (void)notice;
  return false;
}

static const char *self_why(const lcomm_transport *transport) {
  (void)transport;
  return "a communicator of one rank has no peer to talk to";
}

const lcomm_transport_table lcomm_transport_self = {
    .name = "self",
    .summary = "one rank alone, no messages",
    .close = self_close,
    .send = self_send,
    .receive = self_receive,
    .test = self_test,
    .cancel = self_cancel,
    .tell = self_tell,
    .hear = self_hear,
    .why = self_why,
};

lcomm_status lcomm_transport_self_open(lcomm_transport **transport) {
  static lcomm_transport self = {&lcomm_transport_self};
  *transport = &self;
  return LCOMM_OK;
}
