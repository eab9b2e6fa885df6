/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/transport/ucx/ucx_devices.h"
#include "libcomm/transport/ucx/ucx_environment.h"

/* Ours where the user sets no LCOMM_UCX_NAME. Ranks of one host that come here
 * at all come for a network. A connection may not block while it is made. That one
 * which died is noticed while it is idle, ucx_sockets.c sees to. */
#define COMMON "UCX_WARN_INVALID_CONFIG=n", "UCX_TCP_CONN_NB=y", "UCX_TCP_KEEPIDLE=inf"

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

struct lcomm_ucx_context {
  ucp_context_h handle;
  int users;
  pid_t process;
  bool only_tcp;
  char devices[SETTING_MAX]; /* a setting */
  char *key;                 /* all that it was made from */
  lcomm_ucx_context *next;
};

static lcomm_ucx_context *all;

lcomm_status lcomm_ucx_fail(ucs_status_t status, const char *what, lcomm_why *why) {
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "%s: %s", what, lcomm_ucx.ucs_status_string(status));
  return status == UCS_ERR_NO_MEMORY ? LCOMM_ERR_MEMORY : LCOMM_ERR_TRANSPORT;
}

/* ------------------------------------------------------------------- making */

/* Workers of several threads may belong to it. */
static lcomm_status init(ucp_context_h *context, lcomm_why *why) {
  ucp_config_t *config = NULL;
  ucs_status_t status = lcomm_ucx.ucp_config_read("LCOMM", NULL, &config);
  if (status != UCS_OK) {
    return lcomm_ucx_fail(status, "UCX refuses its settings, the variables LCOMM_UCX_*", why);
  }
  ucp_params_t params = {
      .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
      .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP,
      .mt_workers_shared = 1,
  };
  status = lcomm_ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, context);
  lcomm_ucx.ucp_config_release(config);
  return status == UCS_OK ? LCOMM_OK
                          : lcomm_ucx_fail(status, "UCX finds no device it may use", why);
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
    status = init(&context, why);
    lcomm_ucx_environment_leave();
  }
  if (status == LCOMM_OK) {
    *only_tcp = has_only_tcp(context);
    lcomm_ucx.ucp_cleanup(context);
  }
  return status;
}

bool lcomm_ucx_context_enter(const lcomm_ucx_context *context) {
  const char *const any[] = {HOST_MEMORY, COMMON, FOR_ANY, NULL};
  const char *const tcp[] = {HOST_MEMORY, COMMON, FOR_TCP,
                             context->devices[0] ? context->devices : NULL, NULL};
  return lcomm_ucx_environment_enter("UCX_", context->only_tcp ? tcp : any);
}

void lcomm_ucx_context_leave(void) {
  lcomm_ucx_environment_leave();
}

/* ------------------------------------------------------------------ sharing */

/* Devices, and the user's settings: a line each. NULL without memory. */
static char *make_key(const char *devices) {
  static const char prefix[] = "LCOMM_UCX_";
  char *key = NULL;
  size_t length = 0;
  FILE *stream = open_memstream(&key, &length);
  if (!stream) {
    return NULL;
  }
  fprintf(stream, "%s\n", devices);
  for (char **it = environ; it && *it; it++) {
    if (strncmp(*it, prefix, strlen(prefix)) == 0) {
      fprintf(stream, "%s\n", *it);
    }
  }
  bool written = fclose(stream) == 0;
  if (!written) {
    free(key);
    return NULL;
  }
  return key;
}

/* A child forgets those of its parent. */
static lcomm_ucx_context *find(const char *key) {
  lcomm_ucx_context *it = all;
  while (it && (it->process != getpid() || strcmp(it->key, key) != 0)) {
    it = it->next;
  }
  return it;
}

static lcomm_status make(const char *devices, lcomm_ucx_context *it, lcomm_why *why) {
  LCOMM_TRY(probe(&it->only_tcp, why));
  snprintf(it->devices, sizeof(it->devices), "%s%s", devices[0] ? "UCX_NET_DEVICES=" : "", devices);
  if (!lcomm_ucx_context_enter(it)) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = init(&it->handle, why);
  lcomm_ucx_context_leave();
  return status;
}

/* Takes the key. */
static lcomm_status add(const char *devices, char *key, lcomm_ucx_context **made, lcomm_why *why) {
  lcomm_ucx_context *it = calloc(1, sizeof *it);
  lcomm_status status = it ? make(devices, it, why) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_OK) {
    free(key);
    free(it);
    return status;
  }
  it->process = getpid();
  it->key = key;
  it->next = all;
  all = it;
  *made = it;
  return LCOMM_OK;
}

lcomm_status lcomm_ucx_context_get(const char *devices, lcomm_ucx_context **context,
                                   lcomm_why *why) {
  char *key = make_key(devices);
  lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "out of memory");
  if (!key) {
    return LCOMM_ERR_MEMORY;
  }
  *context = find(key);
  if (*context) {
    free(key);
  } else {
    LCOMM_TRY(add(devices, key, context, why));
  }
  (*context)->users++;
  return LCOMM_OK;
}

void lcomm_ucx_context_put(lcomm_ucx_context *context) {
  if (--context->users > 0) {
    return;
  }
  lcomm_ucx_context **link = &all;
  while (*link != context) {
    link = &(*link)->next;
  }
  *link = context->next;
  lcomm_ucx.ucp_cleanup(context->handle);
  free(context->key);
  free(context);
}

ucp_context_h lcomm_ucx_context_handle(const lcomm_ucx_context *context) {
  return context->handle;
}
