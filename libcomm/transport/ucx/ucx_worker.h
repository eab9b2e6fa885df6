/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_WORKER_H
#define LCOMM_TRANSPORT_UCX_UCX_WORKER_H

/* What a transport has of UCX: a context, which is settings and devices, and a
 * worker, which is the place where messages come and go.
 *
 * Settings come from LCOMM_UCX_NAME, where UCX itself would read UCX_NAME, and
 * else from the list in ucx_worker.c. What the user sets as UCX_NAME is meant
 * for MPI and does not count here.
 */

#include <stdbool.h>

#include "libcomm/transport/ucx/ucx_api.h"
#include "libcomm/transport/ucx/ucx_listeners.h"

typedef struct lcomm_ucx_place {
  ucp_context_h context;
  ucp_worker_h worker; /* NULL when closed */
  lcomm_ucx_listeners listeners;
} lcomm_ucx_place;

/* After lcomm_ucx_load. `devices` are those to use where TCP is all there is,
 * in a comma-separated list; "" is all. Thread-safe. TRANSPORT or MEMORY with
 * a phrase in why. */
lcomm_status lcomm_ucx_place_open(const char *devices, lcomm_ucx_place *place, lcomm_why *why);
void lcomm_ucx_place_close(lcomm_ucx_place *place);

#endif
