/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages over UCX, for links between hosts: InfiniBand, RoCE or TCP, as UCX
 * finds them.
 *
 * Once a link has failed, all messages of that peer that are not over fail, except
 * those that have come before and were not asked for: a peer that has sent its last
 * message may leave before that one is received.
 * The bytes of a cancelled send may still be read, and are never written,
 * until the transport is closed. A cancelled receive is written no more when
 * cancel returns; for that a message whose beginning has come is waited for
 * a moment, and if its end does not come the whole transport is given up.
 */

#include <stdio.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/completion.h"
#include "libcomm/transport/ucx/ucx_internal.h"

#define ABANDON_S 0.1 /* for UCX to end what can no longer be ended */
#define CANCEL_S 1.0  /* for the rest of a message that is no longer wanted */

typedef enum record_state { SENDING, RECEIVING, OVER, FAILED } record_state;

/* What a transfer holds. */
typedef struct record {
  void *request; /* NULL: none */
  uint64_t size; /* received, once it is over */
  int32_t peer;
  record_state state;
} record;

_Static_assert(sizeof(record) <= sizeof(lcomm_transfer), "a record fits a transfer");

static record load(const lcomm_transfer *transfer) {
  record r;
  memcpy(&r, transfer->opaque, sizeof(r));
  return r;
}

static void store(lcomm_transfer *transfer, const record *r) {
  memcpy(transfer->opaque, r, sizeof *r);
}

static lcomm_ucx_transport *of(lcomm_transport *transport) {
  return (lcomm_ucx_transport *)transport;
}

/* ------------------------------------------------------------ messages */

/* Note what UCX made of a message that was started. */
static lcomm_status started(lcomm_ucx_transport *t, record *r, void *request,
                            lcomm_transfer *transfer) {
  lcomm_status status = LCOMM_OK;
  if (UCS_PTR_IS_ERR(request)) {
    r->state = FAILED;
    status = lcomm_ucx_blame_request(t, r->peer, UCS_PTR_STATUS(request));
  } else if (!request) {
    r->state = OVER;
    lcomm_ucx_proven(t, r->peer);
  } else {
    r->request = request;
  }
  store(transfer, r);
  return status;
}

static lcomm_status fail(lcomm_transfer *transfer, record *r) {
  r->state = FAILED;
  store(transfer, r);
  return LCOMM_ERR_TRANSPORT;
}

static lcomm_status ucx_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                             size_t size, lcomm_transfer *transfer) {
  lcomm_ucx_transport *t = of(transport);
  record r = {.size = size, .peer = peer, .state = SENDING};
  lcomm_completion_begin(transport, transfer);
  if (lcomm_ucx_check_link(t, peer) != LCOMM_OK) {
    return fail(transfer, &r);
  }
  return started(t, &r, lcomm_ucx_send(t, peer, lcomm_ucx_tag(t->rank, tag), bytes, size, transfer),
                 transfer);
}

static lcomm_status ucx_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                                size_t capacity, lcomm_transfer *transfer) {
  lcomm_ucx_transport *t = of(transport);
  record r = {.peer = peer, .state = RECEIVING};
  lcomm_completion_begin(transport, transfer);
  bool linked = lcomm_ucx_check_link(t, peer) == LCOMM_OK;
  if (!linked && (!t->place.worker || !t->peers[peer].endpoint)) {
    return fail(transfer, &r);
  }
  void *request =
      lcomm_ucx_receive(t, lcomm_ucx_tag(peer, tag), LCOMM_UCX_TAG_ALL, bytes, capacity, transfer);
  if (!linked && !lcomm_ucx_has_come(t, request, lcomm_clock_s() + ABANDON_S)) {
    return fail(transfer, &r);
  }
  return started(t, &r, request, transfer);
}

static void ucx_progress(lcomm_transport *transport) {
  lcomm_ucx_transport *t = of(transport);
  if (t->place.worker) {
    lcomm_ucx_progress(t);
  }
}

static ucs_status_t ask(record *r) {
  ucp_tag_recv_info_t info = {0};
  if (r->state == SENDING) {
    return lcomm_ucx.ucp_request_check_status(r->request);
  }
  ucs_status_t status = lcomm_ucx.ucp_tag_recv_request_test(r->request, &info);
  r->size = info.length;
  return status;
}

/* Let go of a request; true when UCX is through with its memory. */
static bool let_go(lcomm_ucx_transport *t, record *r) {
  if (r->state == RECEIVING) {
    lcomm_ucx.ucp_request_cancel(t->place.worker, r->request);
  }
  bool over = lcomm_ucx_state(r->request) != UCS_INPROGRESS;
  if (over || r->state == SENDING) {
    lcomm_ucx_release(r->request);
    r->request = NULL;
  }
  return over;
}

/* The message can no longer come to an end. Unless UCX ends it by itself, now
 * that the link is gone, only a part of it had come, and no more can. */
static lcomm_status abandon(lcomm_ucx_transport *t, record *r) {
  if (!let_go(t, r) && r->request) {
    lcomm_ucx_wait(t, r->request, lcomm_clock_s() + ABANDON_S);
    lcomm_ucx_release(r->request);
    r->request = NULL;
  }
  r->state = FAILED;
  return lcomm_ucx_blame_link(t, r->peer);
}

/* The next state of a message whose request has not been seen to be over. What came before a link
 * failed may still lie in a socket. */
static lcomm_status look(lcomm_ucx_transport *t, record *r) {
  ucs_status_t status = ask(r);
  if (status == UCS_INPROGRESS && t->peers[r->peer].failed != UCS_OK) {
    lcomm_ucx_progress(t);
    status = ask(r);
  }
  if (status == UCS_INPROGRESS) {
    return t->peers[r->peer].failed == UCS_OK ? LCOMM_OK : abandon(t, r);
  }
  lcomm_ucx_release(r->request);
  r->request = NULL;
  r->state = status == UCS_OK ? OVER : FAILED;
  if (status == UCS_OK) {
    lcomm_ucx_proven(t, r->peer);
  }
  return status == UCS_OK ? LCOMM_OK : lcomm_ucx_blame_request(t, r->peer, status);
}

static lcomm_status ucx_test(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                             size_t *size) {
  lcomm_ucx_transport *t = of(transport);
  record r = load(transfer);
  lcomm_status status = LCOMM_OK;
  *over = false;
  if (r.request && !t->place.worker) {
    return LCOMM_ERR_TRANSPORT; /* the request went with the worker */
  }
  if (r.request) {
    status = look(t, &r);
    store(transfer, &r);
  }
  if (status != LCOMM_OK || r.state == FAILED) {
    lcomm_completion_remove(transfer);
    return LCOMM_ERR_TRANSPORT;
  }
  *over = r.state == OVER;
  if (*over) {
    lcomm_completion_remove(transfer);
  }
  if (*over && size) {
    *size = r.size;
  }
  return LCOMM_OK;
}

static void ucx_cancel(lcomm_transport *transport, lcomm_transfer *transfer) {
  lcomm_ucx_transport *t = of(transport);
  record r = load(transfer);
  if (r.request && t->place.worker && !let_go(t, &r) && r.request) {
    bool ended = t->peers[r.peer].failed != UCS_OK ||
                 lcomm_ucx_wait(t, r.request, lcomm_clock_s() + CANCEL_S);
    lcomm_ucx_release(r.request);
    if (!ended) {
      lcomm_ucx_blame(t, r.peer, "stopped in the middle of a message that is no longer wanted");
      lcomm_ucx_give_up(t);
    }
  }
  r.request = NULL;
  r.state = FAILED;
  store(transfer, &r);
  lcomm_completion_remove(transfer);
}

/* Requests call back for every transfer. */
static void ucx_watch(lcomm_transport *transport, lcomm_transfer *transfer, void *owner) {
  (void)transport;
  transfer->owner = owner;
}

/* ------------------------------------------------------------ sleeping */

static int ucx_arm(lcomm_transport *transport) {
  lcomm_ucx_transport *t = of(transport);
  if (!t->place.worker || t->event_fd < 0) {
    return LCOMM_ARM_NEVER;
  }
  ucs_status_t status = lcomm_ucx.ucp_worker_arm(t->place.worker);
  if (status == UCS_ERR_BUSY) {
    return LCOMM_ARM_BUSY;
  }
  return status == UCS_OK ? t->event_fd : LCOMM_ARM_NEVER;
}

/* The next progress of UCX finds what came; nothing is to be undone. */
static void ucx_disarm(lcomm_transport *transport) {
  (void)transport;
}

/* -------------------------------------------------------------- the table */

static bool ucx_reaches(const lcomm_transport *transport, int peer) {
  const lcomm_ucx_peer *it = &((const lcomm_ucx_transport *)transport)->peers[peer];
  return it->reached && !it->elsewhere;
}

static bool ucx_linked(const lcomm_transport *transport, int peer) {
  return ((const lcomm_ucx_transport *)(const void *)transport)->peers[peer].endpoint != NULL;
}

static const char *ucx_interface(const lcomm_transport *transport) {
  return ((const lcomm_ucx_transport *)(const void *)transport)->devices;
}

static const lcomm_transport_wakeup wakeup = {.arm = ucx_arm, .disarm = ucx_disarm};

const lcomm_transport_table lcomm_transport_ucx = {
    .name = "ucx",
    .summary = "UCX: InfiniBand, RoCE or TCP between hosts",
    .open = lcomm_ucx_open,
    .close = lcomm_ucx_close,
    .reaches = ucx_reaches,
    .linked = ucx_linked,
    .control = {.send = lcomm_ucx_control_send,
                .send_error = lcomm_ucx_control_send_error,
                .receive = lcomm_ucx_control_receive},
    .send = ucx_send,
    .receive = ucx_receive,
    .progress = ucx_progress,
    .test = ucx_test,
    .watch = ucx_watch,
    .cancel = ucx_cancel,
    .wakeup = &wakeup,
    .interface = ucx_interface,
    .unreachable = lcomm_ucx_unreachable,
    .descriptors = lcomm_ucx_descriptors,
    .descriptors_most = lcomm_ucx_descriptors_most,
    .introduce = lcomm_ucx_introduce,
    .rails_print = lcomm_ucx_rails_print,
};
