/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_WORKER_H
#define LCOMM_TRANSPORT_UCX_UCX_WORKER_H

/* What a transport has of UCX: a worker, which is the place where messages come and go, in a
 * context that others may share. */

#include <stdbool.h>

#include "libcomm/base/error.h"
#include "libcomm/transport/ucx/ucx_api.h"
#include "libcomm/transport/ucx/ucx_context.h"
#include "libcomm/transport/ucx/ucx_listeners.h"

typedef struct lcomm_ucx_place {
  lcomm_ucx_context *context;
  ucp_worker_h worker; /* NULL when closed */
  lcomm_ucx_listeners listeners;
} lcomm_ucx_place;

/* After lcomm_ucx_load. `devices` are those to use where TCP is all there is,
 * in a comma-separated list; "" is all. Thread-safe. TRANSPORT or MEMORY with
 * a phrase in why. */
lcomm_status lcomm_ucx_place_open(const char *devices, lcomm_ucx_place *place, lcomm_why *why);
void lcomm_ucx_place_close(lcomm_ucx_place *place);

#endif
