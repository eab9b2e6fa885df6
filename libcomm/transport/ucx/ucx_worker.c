/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_worker.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/transport/transport.h"
#include "libcomm/transport/ucx/ucx_devices.h"
#include "libcomm/transport/ucx/ucx_environment.h"

/* Ours where the user sets no LCOMM_UCX_NAME. Ranks of one host that come here
 * at all come for a network. A connection may not block while it is made, and one
 * that died must be noticed while it is idle. */
#define COMMON                                                                                     \
  "UCX_WARN_INVALID_CONFIG=n", "UCX_TCP_CONN_NB=y", "UCX_TCP_KEEPIDLE=4s", "UCX_TCP_KEEPINTVL=2s", \
      "UCX_TCP_KEEPCNT=3"

/* All messages are in memory of the host, and whoever moves them calls no CUDA, UCX neither. */
#define HOST_MEMORY "UCX_TLS=^shm,self,cuda,rocm"

/* Only devices that read memory by themselves need a cache of registered memory. */
#define NO_CACHE "UCX_RCACHE_ENABLE=n"

/* Where TCP is all there is. A rendezvous asks the receiver first, and on TCP
 * the question and the answer queue behind the bytes that are on their way:
 * two ranks that send each other 2 MiB at a time got 113 of 200 Mbit/s with it
 * and 191 without. UCX's own probes are bytes that wait for an answer, and
 * while such wait the kernel does not probe: a host that vanished would be
 * missed for many minutes. And what is sent is never copied by UCX: of a copy it
 * says that it is sent, and the rest which a full socket did not take waits in
 * this process until its next call of UCX. Sent without a copy, a message is over
 * when the socket has all of it. */
#define FOR_TCP NO_CACHE, "UCX_RNDV_THRESH=inf", "UCX_ZCOPY_THRESH=0", "UCX_KEEPALIVE_INTERVAL=inf"
#define FOR_ANY "UCX_KEEPALIVE_INTERVAL=2s"

enum { SETTING_MAX = LCOMM_UCX_DEVICES_MAX + 32 };

/* The environment of the process is exchanged by one thread at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static lcomm_status fail(ucs_status_t status, const char *what, lcomm_why *why) {
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%s: %s", what, lcomm_ucx.ucs_status_string(status));
  return status == UCS_ERR_NO_MEMORY ? LCOMM_ERR_MEMORY : LCOMM_ERR_TRANSPORT;
}

static lcomm_status context_create(ucp_context_h *context, lcomm_why *why) {
  ucp_config_t *config = NULL;
  ucs_status_t status = lcomm_ucx.ucp_config_read("LCOMM", NULL, &config);
  if (status != UCS_OK) {
    return fail(status, "UCX refuses its settings, the variables LCOMM_UCX_*", why);
  }
  ucp_params_t params = {
      .field_mask = UCP_PARAM_FIELD_FEATURES,
      .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
  };
  status = lcomm_ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, context);
  lcomm_ucx.ucp_config_release(config);
  return status == UCS_OK ? LCOMM_OK : fail(status, "UCX finds no device it may use", why);
}

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
  ucs_status_t status = lcomm_ucx.ucp_worker_create(place->context, &params, &place->worker);
  if (status != UCS_OK) {
    return fail(status, "UCX cannot open its devices", why);
  }
  place->listeners.count = 0;
  if (known) {
    find_listeners(place, &before);
  }
  return LCOMM_OK;
}

static lcomm_status place_create(lcomm_ucx_place *place, lcomm_why *why) {
  LCOMM_TRY(context_create(&place->context, why));
  lcomm_status status = worker_create(place, why);
  if (status != LCOMM_OK) {
    lcomm_ucx.ucp_cleanup(place->context);
  }
  return status;
}

/* Is TCP all that UCX would use? It tells only people what it found, in lines
 * such as "resource 0 : md 0 dev 0 flags -- tcp/eth0". */
static bool has_only_tcp(ucp_context_h context) {
  char *text = NULL, *rest = NULL;
  size_t length = 0;
  int tcp = 0, others = 0;
  FILE *stream = open_memstream(&text, &length);
  if (!stream) {
    return false;
  }
  lcomm_ucx.ucp_context_print_info(context, stream);
  fclose(stream);
  for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\n", &rest)) {
    const char *last = strrchr(line, ' ');
    if (strstr(line, " resource ") && last) {
      *(strncmp(last, " tcp/", 5) == 0 ? &tcp : &others) += 1;
    }
  }
  free(text);
  return tcp > 0 && others == 0;
}

/* Look what there is. */
static lcomm_status probe(bool *only_tcp, lcomm_why *why) {
  static const char *const settings[] = {HOST_MEMORY, COMMON, NO_CACHE, NULL};
  ucp_context_h context = NULL;
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (lcomm_ucx_environment_enter("UCX_", settings)) {
    status = context_create(&context, why);
    lcomm_ucx_environment_leave();
  }
  if (status == LCOMM_OK) {
    *only_tcp = has_only_tcp(context);
    lcomm_ucx.ucp_cleanup(context);
  }
  return status;
}

static lcomm_status open_with(const char *const *settings, lcomm_ucx_place *place, lcomm_why *why) {
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (lcomm_ucx_environment_enter("UCX_", settings)) {
    status = place_create(place, why);
    lcomm_ucx_environment_leave();
  }
  return status;
}

lcomm_status lcomm_ucx_place_open(const char *devices, lcomm_ucx_place *place, lcomm_why *why) {
  char devices_setting[SETTING_MAX];
  const char *const any[] = {HOST_MEMORY, COMMON, FOR_ANY, NULL};
  const char *const tcp[] = {HOST_MEMORY, COMMON, FOR_TCP, devices[0] ? devices_setting : NULL,
                             NULL};
  bool only_tcp = false;
  snprintf(devices_setting, sizeof(devices_setting), "UCX_NET_DEVICES=%s", devices);
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "out of memory");
  pthread_mutex_lock(&lock);
  lcomm_status status = probe(&only_tcp, why);
  if (status == LCOMM_OK) {
    status = open_with(only_tcp ? tcp : any, place, why);
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void lcomm_ucx_place_close(lcomm_ucx_place *place) {
  lcomm_ucx.ucp_worker_destroy(place->worker);
  lcomm_ucx.ucp_cleanup(place->context);
  place->worker = NULL;
  place->context = NULL;
}
