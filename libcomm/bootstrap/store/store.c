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

static void find_branch(lcomm_store *store, lcomm_store_shape shape) {
  store->shape = shape;
  store->may_be_tree = store->size > shape.star_most;
  store->branch.parent = store->rank > 0 ? 0 : -1;
  if (store->may_be_tree) {
    lcomm_store_branch_find(store->size, shape.fan_out, store->rank, &store->branch);
  }
}

lcomm_status lcomm_store_begin(const lcomm_launcher_env *launcher, double timeout_s,
                               lcomm_store_shape shape, lcomm_store **store) {
  lcomm_identity self;
  lcomm_store *made = calloc(1, sizeof *made);
  size_t size = (size_t)launcher->world_size;
  bool meets = launcher->rank == 0;
  if (made) {
    made->fd = made->parent.fd = made->listener = -1;
    made->rank = launcher->rank;
    made->size = launcher->world_size;
    find_branch(made, shape);
    meets = meets || made->branch.child_count > 0;
  }
  if (made && meets) {
    made->peers = calloc(size, sizeof *made->peers);
    made->polls = calloc(LCOMM_STORE_POLLS(size), sizeof *made->polls);
  }
  for (size_t i = 0; made && made->peers && i < size; i++) {
    made->peers[i].fd = -1;
  }
  if (!made || (meets && (!made->peers || !made->polls))) {
    lcomm_store_close(made);
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", launcher->rank);
  }
  if (getrandom(&made->process, sizeof(made->process), 0) != (ssize_t)sizeof(made->process)) {
    made->process = (uint64_t)getpid(); /* a number of its own, if not by lot */
  }
  lcomm_identity_self(&self);
  memcpy(made->host, self.host, sizeof(made->host));
  snprintf(made->where, sizeof(made->where), "%s port %d", launcher->address, launcher->port);
  made->timeout_s = timeout_s;
  made->next_wait_s = launcher->rank == 0 ? 0 : 1e18; /* rank 0 alone says it */
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

lcomm_status lcomm_store_meet_as(const lcomm_launcher_env *launcher, double timeout_s,
                                 lcomm_store_shape shape, lcomm_store **store) {
  lcomm_store *made = NULL;
  LCOMM_TRY(lcomm_store_begin(launcher, timeout_s, shape, &made));
  made->launcher = launcher;
  lcomm_status status = check_descriptors(made);
  if (launcher->rank == 0) {
    status = lcomm_store_open(made); /* tells the others what is missing */
  } else if (status == LCOMM_OK) {
    status = lcomm_store_join(made);
    if (status == LCOMM_OK && made->parent.place.way != LCOMM_STORE_WAY_STAR) {
      status = lcomm_store_link(made);
    }
  }
  made->launcher = NULL;
  if (status != LCOMM_OK) {
    lcomm_store_close(made);
    return status;
  }
  *store = made;
  return LCOMM_OK;
}

lcomm_status lcomm_store_meet(const lcomm_launcher_env *launcher, double timeout_s,
                              lcomm_store **store) {
  static const lcomm_store_shape standard = {.star_most = 32, .fan_out = 4};
  return lcomm_store_meet_as(launcher, timeout_s, standard, store);
}

int lcomm_store_allgather(void *context, const void *send, void *receive, size_t size) {
  lcomm_store *store = context;
  if (store->status == LCOMM_OK && size > (SIZE_MAX / 2) / (size_t)store->size) {
    lcomm_store_fail(store, LCOMM_ERR_ARGUMENT, "%zu bytes of each rank are too many", size);
  }
  if (store->status != LCOMM_OK) {
    return 1;
  }
  lcomm_status status = store->rank == 0 ? lcomm_store_serve(store, send, receive, size)
                        : store->tree    ? lcomm_store_pass(store, send, receive, size)
                                         : lcomm_store_exchange(store, send, receive, size);
  return status != LCOMM_OK;
}

lcomm_status lcomm_store_failure(const lcomm_store *store, const char **sentence) {
  *sentence = store->sentence;
  return store->status;
}

/* Who gets the last bytes from its parent may see the end of rank 0 before them. */
static void say_done(const lcomm_store *store) {
  for (int rank = 1; store->rank == 0 && store->tree && rank < store->size; rank++) {
    if (store->peers[rank].fd >= 0 && lcomm_store_branch_below(&store->branch, rank) == 0) {
      lcomm_store_say(store->peers[rank].fd, LCOMM_STORE_DONE);
    }
  }
}

static void close_socket(int fd) {
  if (fd >= 0) {
    close(fd);
  }
}

void lcomm_store_close(lcomm_store *store) {
  if (!store) {
    return;
  }
  if (store->status == LCOMM_OK) {
    say_done(store);
  }
  for (int i = 0; store->peers && i < store->size; i++) {
    close_socket(store->peers[i].fd);
  }
  close_socket(store->fd);
  close_socket(store->parent.fd);
  close_socket(store->listener);
  free(store->peers);
  free(store->polls);
  free(store);
}
