/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_CONTEXT_H
#define LCOMM_TRANSPORT_UCX_UCX_CONTEXT_H

/* Contexts of UCX, which are settings and devices: one for all transports of the process that are
 * opened with the same settings. It ends with the last of them.
 *
 * Settings come from LCOMM_UCX_NAME, where UCX itself would read UCX_NAME, and else from the lists
 * in ucx_context.c. What the user sets as UCX_NAME is meant for MPI and does not count here.
 *
 * A forked child has contexts of its own. One thread at a time may call these functions: they
 * exchange the environment of the process.
 */

#include <stdbool.h>

#include "libcomm/base/error.h"
#include "libcomm/transport/ucx/ucx_api.h"

typedef struct lcomm_ucx_context lcomm_ucx_context;

/* After lcomm_ucx_load. `devices` are those to use where TCP is all there is, in a comma-separated
 * list; "" is all. TRANSPORT or MEMORY with a phrase in why. */
lcomm_status lcomm_ucx_context_get(const char *devices, lcomm_ucx_context **context,
                                   lcomm_why *why);
void lcomm_ucx_context_put(lcomm_ucx_context *context);

/* What became of a call of UCX, as a phrase in why; MEMORY or TRANSPORT. */
lcomm_status lcomm_ucx_fail(ucs_status_t status, const char *what, lcomm_why *why);

ucp_context_h lcomm_ucx_context_handle(const lcomm_ucx_context *context);

/* Around the making of what belongs to a context: the environment is that of its settings. False
 * without memory; leave must not be called then. */
bool lcomm_ucx_context_enter(const lcomm_ucx_context *context);
void lcomm_ucx_context_leave(void);

#endif
