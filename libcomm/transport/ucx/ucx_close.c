/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The end of the transport. No wait in here is long, whatever peers do. */

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/transport/ucx/ucx_fork.h"
#include "libcomm/transport/ucx/ucx_internal.h"

#define NOTICES_S 0.25 /* for control messages to leave before a link is cut */
#define ORDERLY_S 2.0
#define FORCED_S 0.5

static void *close_endpoint(lcomm_ucx_peer *peer, uint32_t flags) {
  ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
  void *request = lcomm_ucx.ucp_ep_close_nbx(peer->endpoint, &param);
  peer->endpoint = NULL;
  return request;
}

/* Start closing all endpoints, then wait for all. A link that has failed can
 * only be cut. */
static void close_endpoints(lcomm_ucx_transport *t, uint32_t flags, double limit_s) {
  double deadline_s = lcomm_clock_s() + limit_s;
  void **requests = calloc((size_t)t->size, sizeof *requests);
  for (int i = 0; i < t->size; i++) {
    lcomm_ucx_peer *peer = &t->peers[i];
    if (peer->endpoint) {
      void *request =
          close_endpoint(peer, peer->failed == UCS_OK ? flags : UCP_EP_CLOSE_FLAG_FORCE);
      if (requests) {
        requests[i] = request;
      } else { /* no memory: one after the other */
        lcomm_ucx_wait(t, request, deadline_s);
        lcomm_ucx_release(request);
      }
    }
  }
  for (int i = 0; requests && i < t->size; i++) {
    lcomm_ucx_wait(t, requests[i], deadline_s);
    lcomm_ucx_release(requests[i]);
  }
  free(requests);
}

/* Control messages of a failure should leave before the links are cut. */
static void flush_notices(lcomm_ucx_transport *t) {
  double deadline_s = lcomm_clock_s() + NOTICES_S;
  for (int i = 0; i < t->size; i++) {
    for (int k = 0; k < LCOMM_UCX_CONTROL_MAX; k++) {
      lcomm_ucx_wait(t, t->peers[i].telling[k], deadline_s);
    }
  }
}

static void release_own(lcomm_ucx_transport *t) {
  if (UCS_PTR_IS_PTR(t->listening)) {
    lcomm_ucx.ucp_request_cancel(t->place.worker, t->listening);
  }
  lcomm_ucx_release(t->listening);
  t->listening = NULL;
  for (int i = 0; i < t->size; i++) {
    for (int k = 0; k < LCOMM_UCX_CONTROL_MAX; k++) {
      lcomm_ucx_release(t->peers[i].telling[k]);
      t->peers[i].telling[k] = NULL;
    }
  }
}

void lcomm_ucx_unlink(lcomm_ucx_transport *t, int rank, double deadline_s) {
  lcomm_ucx_peer *peer = &t->peers[rank];
  free(peer->address);
  peer->address = NULL;
  if (peer->endpoint) {
    void *request = close_endpoint(peer, UCP_EP_CLOSE_FLAG_FORCE);
    lcomm_ucx_wait(t, request, deadline_s);
    lcomm_ucx_release(request);
  }
}

void lcomm_ucx_give_up(lcomm_ucx_transport *t) {
  lcomm_ucx_fork_forget(t->event_fd);
  t->given_up = true;
  t->base.alarms++;
  release_own(t);
  for (int i = 0; i < t->size; i++) {
    if (t->peers[i].endpoint) {
      lcomm_ucx_release(close_endpoint(&t->peers[i], UCP_EP_CLOSE_FLAG_FORCE));
    }
  }
  lcomm_ucx_place_close(&t->place);
}

/* A send that was cancelled is over (ucx_cancel), unless the transport was given up for it: a
 * receiver on this host reads without a worker of the sender. */
bool lcomm_ucx_close(lcomm_transport *transport, bool orderly) {
  lcomm_ucx_transport *t = (lcomm_ucx_transport *)transport;
  if (t->place.worker) {
    lcomm_ucx_fork_forget(t->event_fd);
    flush_notices(t);
    release_own(t);
    close_endpoints(t, orderly ? 0 : UCP_EP_CLOSE_FLAG_FORCE, orderly ? ORDERLY_S : FORCED_S);
    lcomm_ucx_place_close(&t->place);
  }
  for (int i = 0; i < t->size; i++) {
    lcomm_ucx_control_free(&t->peers[i]);
    free(t->peers[i].address);
  }
  free(t->interfaces);
  free(t->peers);
  if (t->given_up) {
    return false;
  }
  free(t);
  return true;
}
