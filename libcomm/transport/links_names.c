/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Lists of transports, such as "shm,ucx". */

#include <string.h>

#include "libcomm/transport/links.h"

/* The next name of a list: its length, 0 at the end. Moves *at behind it. */
static size_t next_name(const char **at, const char **name) {
  while (**at == ',') {
    ++*at;
  }
  *name = *at;
  *at += strcspn(*at, ",");
  return (size_t)(*at - *name);
}

static bool is_auto(const char *names) {
  return !names || strcmp(names, "auto") == 0;
}

/* Does a list hold this name? */
static bool lists(const char *names, const char *wanted) {
  const char *name = NULL;
  for (size_t n = next_name(&names, &name); n > 0; n = next_name(&names, &name)) {
    if (strlen(wanted) == n && memcmp(name, wanted, n) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_known(const char *name, size_t length) {
  for (int i = 0; lcomm_transport_list[i]; i++) {
    const char *known = lcomm_transport_list[i]->name;
    if (strlen(known) == length && memcmp(known, name, length) == 0) {
      return true;
    }
  }
  return false;
}

bool lcomm_links_may_use(const char *names, const char *name) {
  return is_auto(names) || lists(names, name);
}

lcomm_status lcomm_links_parse(const char *names, lcomm_why *why) {
  const char *at = names, *name = NULL;
  size_t found = 0;
  if (is_auto(names)) {
    return LCOMM_OK;
  }
  for (size_t n = next_name(&at, &name); n > 0; n = next_name(&at, &name), found++) {
    if (!is_known(name, n)) {
      return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                           "'%.*s' is no transport; use auto, or some of shm,ucx,mpi",
                           (int)(n < 40 ? n : 40), name);
    }
  }
  if (found == 0) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "the list of transports is empty; use auto, or some of shm,ucx,mpi");
  }
  return LCOMM_OK;
}
