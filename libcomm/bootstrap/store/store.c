/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/bootstrap/store/store_internal.h"

const char *lcomm_store_who(const lcomm_store *store, int rank, char *text, size_t size) {
  const char *host = rank == store->rank ? store->host
                     : store->peers      ? store->peers[rank].host
                                         : "";
  snprintf(text, size, "rank %d%s%.63s%s", rank, host[0] ? " (host " : "", host,
           host[0] ? ")" : "");
  return text;
}

lcomm_status lcomm_store_fail(lcomm_store *store, lcomm_status status, const char *format, ...) {
  char who[96], text[LCOMM_ERROR_MAX - 100];
  va_list arguments;
  if (store->status != LCOMM_OK) {
    return store->status;
  }
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  snprintf(store->sentence, sizeof(store->sentence), "%s: %s",
           lcomm_store_who(store, store->rank, who, sizeof(who)), text);
  store->status = status;
  return lcomm_error_thread(status, "%s", store->sentence);
}

static lcomm_status begin(const lcomm_launcher_env *launcher, double timeout_s,
                          lcomm_store **store) {
  lcomm_identity self;
  lcomm_store *made = calloc(1, sizeof *made);
  size_t size = (size_t)launcher->world_size;
  if (made && launcher->rank == 0) {
    made->peers = calloc(size, sizeof *made->peers);
    made->polls = calloc(LCOMM_STORE_POLLS(size), sizeof *made->polls);
  }
  if (!made || (launcher->rank == 0 && (!made->peers || !made->polls))) {
    lcomm_store_close(made);
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", launcher->rank);
  }
  for (size_t i = 0; made->peers && i < size; i++) {
    made->peers[i].fd = -1;
  }
  if (getrandom(&made->process, sizeof(made->process), 0) != (ssize_t)sizeof(made->process)) {
    made->process = (uint64_t)getpid(); /* a number of its own, if not by lot */
  }
  lcomm_identity_self(&self);
  memcpy(made->host, self.host, sizeof(made->host));
  snprintf(made->where, sizeof(made->where), "%s port %d", launcher->address, launcher->port);
  made->rank = launcher->rank;
  made->size = launcher->world_size;
  made->timeout_s = timeout_s;
  made->fd = -1;
  *store = made;
  return LCOMM_OK;
}

/* At rank 0 one for each rank, and a few: to listen, and for who is no member yet.
 * Who has too few is told at once what the links will take, too. */
static lcomm_status check_descriptors(lcomm_store *store) {
  enum { TO_JOIN = 4, TO_LISTEN = 8, LINKS = 64 };
  char what[64], text[LCOMM_DESCRIPTORS_TEXT_MAX];
  int needed = store->rank == 0 ? store->size - 1 + TO_LISTEN : TO_JOIN;
  int left = lcomm_descriptors_free();
  if (left >= needed) {
    return LCOMM_OK;
  }
  snprintf(what, sizeof(what), "a meeting of %d ranks", store->size);
  return lcomm_store_fail(store, LCOMM_ERR_SYSTEM, "it has too few file descriptors: %s",
                          lcomm_descriptors_lack(lcomm_descriptors_limit(), left, needed,
                                                 needed + 2 * (store->size - 1) + LINKS, what,
                                                 text));
}

lcomm_status lcomm_store_meet(const lcomm_launcher_env *launcher, double timeout_s,
                              lcomm_store **store) {
  lcomm_store *made = NULL;
  LCOMM_TRY(begin(launcher, timeout_s, &made));
  made->launcher = launcher;
  lcomm_status status = check_descriptors(made);
  if (launcher->rank == 0) {
    status = lcomm_store_open(made); /* tells the others what is missing */
  } else if (status == LCOMM_OK) {
    status = lcomm_store_join(made);
  }
  made->launcher = NULL;
  if (status != LCOMM_OK) {
    lcomm_store_close(made);
    return status;
  }
  *store = made;
  return LCOMM_OK;
}

int lcomm_store_allgather(void *context, const void *send, void *receive, size_t size) {
  lcomm_store *store = context;
  if (store->status == LCOMM_OK && size > (SIZE_MAX / 2) / (size_t)store->size) {
    lcomm_store_fail(store, LCOMM_ERR_ARGUMENT, "%zu bytes of each rank are too many", size);
  }
  if (store->status != LCOMM_OK) {
    return 1;
  }
  return (store->rank == 0 ? lcomm_store_serve(store, send, receive, size)
                           : lcomm_store_exchange(store, send, receive, size)) != LCOMM_OK;
}

lcomm_status lcomm_store_failure(const lcomm_store *store, const char **sentence) {
  *sentence = store->sentence;
  return store->status;
}

void lcomm_store_close(lcomm_store *store) {
  if (!store) {
    return;
  }
  for (int i = 0; store->peers && i < store->size; i++) {
    if (store->peers[i].fd >= 0) {
      close(store->peers[i].fd);
    }
  }
  if (store->fd >= 0) {
    close(store->fd);
  }
  free(store->peers);
  free(store->polls);
  free(store);
}
