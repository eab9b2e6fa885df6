/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Requests of UCX. What a call returns is NULL when all is over already, a
 * coded error, or a request to be asked and given back. */

#include <stdio.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/transport/completion.h"
#include "libcomm/transport/ucx/ucx_internal.h"

enum { ROUNDS_MAX = 32, IDLE_NS = 50000 };

ucs_status_t lcomm_ucx_state(void *request) {
  if (!request) {
    return UCS_OK;
  }
  return UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request)
                                 : lcomm_ucx.ucp_request_check_status(request);
}

void lcomm_ucx_release(void *request) {
  if (UCS_PTR_IS_PTR(request)) {
    lcomm_ucx.ucp_request_free(request);
  }
}

void lcomm_ucx_progress(lcomm_ucx_transport *t) {
  for (int i = 0; i < ROUNDS_MAX && lcomm_ucx.ucp_worker_progress(t->place.worker) > 0; i++) {
  }
}

bool lcomm_ucx_wait(lcomm_ucx_transport *t, void *request, double deadline_s) {
  lcomm_backoff backoff = {.sleep_ns = IDLE_NS};
  while (lcomm_ucx_state(request) == UCS_INPROGRESS) {
    unsigned events = lcomm_ucx.ucp_worker_progress(t->place.worker);
    if (lcomm_clock_s() >= deadline_s) {
      return lcomm_ucx_state(request) != UCS_INPROGRESS;
    }
    if (events == 0) {
      lcomm_backoff_step(&backoff);
    }
  }
  return true;
}

bool lcomm_ucx_has_come(lcomm_ucx_transport *t, void *request, double deadline_s) {
  if (lcomm_ucx_state(request) != UCS_INPROGRESS) {
    return true;
  }
  lcomm_ucx.ucp_request_cancel(t->place.worker, request);
  lcomm_ucx_wait(t, request, deadline_s);
  lcomm_ucx_release(request);
  return false;
}

/* All memory is the host's: saying so spares UCX the search in its tables. */
static const ucp_request_param_t of_host = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
    .memory_type = UCS_MEMORY_TYPE_HOST,
};

static void on_sent(void *request, ucs_status_t status, void *transfer) {
  (void)request;
  (void)status;
  lcomm_completion_add(transfer);
}

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                        void *transfer) {
  (void)request;
  (void)status;
  (void)info;
  lcomm_completion_add(transfer);
}

/* UCX calls back for a request until it is given back. */
static void call_back(ucp_request_param_t *param, lcomm_transfer *transfer) {
  if (transfer) {
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param->user_data = transfer;
  }
}

void *lcomm_ucx_send(lcomm_ucx_transport *t, int peer, ucp_tag_t tag, const void *bytes,
                     size_t size, lcomm_transfer *transfer) {
  ucp_request_param_t param = of_host;
  param.cb.send = on_sent;
  call_back(&param, transfer);
  return lcomm_ucx.ucp_tag_send_nbx(t->peers[peer].endpoint, bytes, size, tag, &param);
}

void *lcomm_ucx_receive(lcomm_ucx_transport *t, ucp_tag_t tag, ucp_tag_t mask, void *bytes,
                        size_t capacity, lcomm_transfer *transfer) {
  ucp_request_param_t param = of_host;
  param.cb.recv = on_received;
  call_back(&param, transfer);
  /* Only a request tells how many bytes came: UCX 1.13 leaves recv_info as it is. */
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return lcomm_ucx.ucp_tag_recv_nbx(t->place.worker, bytes, capacity, tag, mask, &param);
}

lcomm_status lcomm_ucx_blame(lcomm_ucx_transport *t, int peer, const char *what) {
  snprintf(t->base.why, sizeof(t->base.why), "rank %d (host %s): %s", peer, t->peers[peer].host,
           what);
  return LCOMM_ERR_TRANSPORT;
}

lcomm_status lcomm_ucx_blame_link(lcomm_ucx_transport *t, int peer) {
  char what[96];
  snprintf(what, sizeof(what), "%s (UCX: %s)",
           t->peers[peer].proven ? "the connection broke" : "no connection could be made",
           lcomm_ucx.ucs_status_string(t->peers[peer].failed));
  return lcomm_ucx_blame(t, peer, what);
}

lcomm_status lcomm_ucx_blame_request(lcomm_ucx_transport *t, int peer, ucs_status_t status) {
  if (t->peers[peer].failed != UCS_OK) {
    return lcomm_ucx_blame_link(t, peer);
  }
  return lcomm_ucx_blame(t, peer,
                         status == UCS_ERR_MESSAGE_TRUNCATED ? "sent more bytes than expected"
                                                             : lcomm_ucx.ucs_status_string(status));
}

lcomm_status lcomm_ucx_check_link(lcomm_ucx_transport *t, int peer) {
  if (!t->place.worker) {
    return LCOMM_ERR_TRANSPORT; /* why says it since it was given up */
  }
  if (t->peers[peer].failed != UCS_OK) {
    return lcomm_ucx_blame_link(t, peer);
  }
  LCOMM_TRY(lcomm_ucx_link_now(t, peer));
  if (t->peers[peer].failed != UCS_OK) {
    return lcomm_ucx_blame_link(t, peer);
  }
  return t->peers[peer].endpoint ? LCOMM_OK : lcomm_ucx_blame(t, peer, "there is no link over UCX");
}
