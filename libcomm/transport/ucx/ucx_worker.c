/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_worker.h"

#include <pthread.h>
#include <stdbool.h>

/* One thread at a time makes or ends contexts and workers. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The ports that the worker has opened since `before`. */
static void find_listeners(lcomm_ucx_place *place, const lcomm_ucx_listeners *before) {
  ucp_worker_attr_t own = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
  if (lcomm_ucx.ucp_worker_query(place->worker, &own) == UCS_OK) {
    lcomm_ucx_listeners_of(before, own.address, own.address_length, &place->listeners);
    lcomm_ucx.ucp_worker_release_address(place->worker, own.address);
  }
}

static lcomm_status worker_create(lcomm_ucx_place *place, lcomm_why *why) {
  lcomm_ucx_listeners before;
  ucp_worker_params_t params = {
      .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
      .thread_mode = UCS_THREAD_MODE_SERIALIZED,
      .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK, /* after a failure some never end */
  };
  bool known = lcomm_ucx_listeners_find(&before);
  ucs_status_t status = lcomm_ucx.ucp_worker_create(lcomm_ucx_context_handle(place->context),
                                                    &params, &place->worker);
  if (status != UCS_OK) {
    return lcomm_ucx_fail(status, "UCX cannot open its devices", why);
  }
  place->listeners.count = 0;
  if (known) {
    find_listeners(place, &before);
  }
  return LCOMM_OK;
}

/* The context has been got. */
static lcomm_status open_in_context(lcomm_ucx_place *place, lcomm_why *why) {
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (lcomm_ucx_context_enter(place->context)) {
    status = worker_create(place, why);
    lcomm_ucx_context_leave();
  }
  if (status != LCOMM_OK) {
    lcomm_ucx_context_put(place->context);
  }
  return status;
}

lcomm_status lcomm_ucx_place_open(const char *devices, lcomm_ucx_place *place, lcomm_why *why) {
  pthread_mutex_lock(&lock);
  lcomm_status status = lcomm_ucx_context_get(devices, &place->context, why);
  if (status == LCOMM_OK) {
    status = open_in_context(place, why);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void lcomm_ucx_place_close(lcomm_ucx_place *place) {
  pthread_mutex_lock(&lock);
  lcomm_ucx.ucp_worker_destroy(place->worker);
  lcomm_ucx_context_put(place->context);
  pthread_mutex_unlock(&lock);
  place->worker = NULL;
  place->context = NULL;
}
