/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* UCX chooses the devices of a link from the two addresses alone and cannot
 * know whether a packet would arrive. So each pair of ranks exchanges a hello
 * and a word that it was seen before the link counts; a device without a way
 * to the other side is found here, not in the first operation. */

#include <stdlib.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/transport/ucx/ucx_internal.h"

enum { IDLE_NS = 50000 };

/* What is done with one peer before it counts as reached, in this order.
 * SEEN goes out only when nothing of the hello is left to be done, so a rank
 * that has met its peer can stop making progress without holding it up. SEEN
 * is not flushed: UCX may need the peer for that, which may have stopped. */
typedef enum rendezvous_step {
  SEND_HELLO,
  FLUSH_HELLO,
  HEAR_HELLO,
  SEND_SEEN,
  HEAR_SEEN,
  MET,
  LOST
} rendezvous_step;

typedef struct rendezvous {
  rendezvous_step step;
  void *request;  /* of this step */
  void *heard[2]; /* receives of hello and seen; NULL once their step has come */
} rendezvous;

static void *begin_step(lcomm_ucx_transport *t, int rank, rendezvous *with) {
  ucp_request_param_t none = {0};
  void *request = NULL, **heard = NULL;
  switch (with->step) {
  case SEND_HELLO:
    return lcomm_ucx_send(t, rank, lcomm_ucx_tag_own(t->rank, LCOMM_UCX_HANDSHAKE), NULL, 0, NULL);
  case SEND_SEEN:
    return lcomm_ucx_send(t, rank, lcomm_ucx_tag_own(t->rank, LCOMM_UCX_SEEN), NULL, 0, NULL);
  case FLUSH_HELLO:
    return lcomm_ucx.ucp_ep_flush_nbx(t->peers[rank].endpoint, &none);
  case HEAR_HELLO:
  case HEAR_SEEN:
    heard = &with->heard[with->step == HEAR_SEEN];
    request = *heard;
    *heard = NULL;
    return request;
  default:
    return NULL;
  }
}

static void begin_rendezvous(lcomm_ucx_transport *t, int rank, rendezvous *with) {
  with->step = LOST;
  if (!t->peers[rank].endpoint) {
    return;
  }
  for (int i = 0; i < 2; i++) {
    ucp_tag_t tag = lcomm_ucx_tag_own(rank, i == 0 ? LCOMM_UCX_HANDSHAKE : LCOMM_UCX_SEEN);
    with->heard[i] = lcomm_ucx_receive(t, tag, LCOMM_UCX_TAG_ALL, NULL, 0, NULL);
  }
  with->step = SEND_HELLO;
  with->request = begin_step(t, rank, with);
}

static void forget_request(lcomm_ucx_transport *t, void **request) {
  if (UCS_PTR_IS_PTR(*request)) {
    lcomm_ucx.ucp_request_cancel(t->place.worker, *request);
  }
  lcomm_ucx_release(*request);
  *request = NULL;
}

static void lose(lcomm_ucx_transport *t, int rank, rendezvous *with, ucs_status_t status) {
  lcomm_ucx_peer *peer = &t->peers[rank];
  peer->failed = peer->failed != UCS_OK ? peer->failed : status;
  forget_request(t, &with->request);
  forget_request(t, &with->heard[0]);
  forget_request(t, &with->heard[1]);
  with->step = LOST;
}

/* Go as far as possible; true while there is something to wait for. */
static bool go_on(lcomm_ucx_transport *t, int rank, rendezvous *with) {
  while (with->step < MET) {
    ucs_status_t status = lcomm_ucx_state(with->request);
    if (t->peers[rank].failed != UCS_OK) {
      status = t->peers[rank].failed;
    }
    if (status == UCS_INPROGRESS) {
      return true;
    }
    if (status != UCS_OK) {
      lose(t, rank, with, status);
      return false;
    }
    lcomm_ucx_release(with->request);
    with->step = (rendezvous_step)(with->step + 1);
    with->request = begin_step(t, rank, with);
  }
  return false;
}

/* One look at every peer; true while there is something to wait for. */
static bool go_on_with_all(lcomm_ucx_transport *t, rendezvous *all) {
  bool waiting = false;
  for (int i = 0; i < t->size; i++) {
    waiting = go_on(t, i, &all[i]) || waiting;
  }
  return waiting;
}

void lcomm_ucx_meet(lcomm_ucx_transport *t, double deadline_s) {
  lcomm_backoff backoff = {.sleep_ns = IDLE_NS};
  rendezvous *all = calloc((size_t)t->size, sizeof *all);
  if (!all) {
    return;
  }
  for (int i = 0; i < t->size; i++) {
    begin_rendezvous(t, i, &all[i]);
  }
  while (go_on_with_all(t, all) && lcomm_clock_s() < deadline_s) {
    if (lcomm_ucx.ucp_worker_progress(t->place.worker) == 0) {
      lcomm_backoff_step(&backoff);
    }
  }
  for (int i = 0; i < t->size; i++) {
    if (all[i].step < MET) {
      lose(t, i, &all[i], UCS_ERR_TIMED_OUT);
    }
    t->peers[i].proven = all[i].step == MET;
    t->peers[i].reached = t->peers[i].proven || t->peers[i].address || t->peers[i].elsewhere;
  }
  free(all);
}
