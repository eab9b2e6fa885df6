/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The list of the program while ours is shown, and the last list of ours. The
 * latter is kept until the next one, because another thread may still be
 * looking through it when the program's own is shown again. */
static char **own;
static char **shown;

static size_t length(char *const *list) {
  size_t count = 0;
  while (list && list[count]) {
    count++;
  }
  return count;
}

static bool begins_with(const char *text, const char *beginning) {
  return beginning && strncmp(text, beginning, strlen(beginning)) == 0;
}

/* "UCX_X=1" in "LCOMM_UCX_X=1"; NULL in others. */
static char *without_own_prefix(char *text, const char *hidden) {
  static const char own_prefix[] = "LCOMM_";
  char *rest = begins_with(text, own_prefix) ? text + strlen(own_prefix) : NULL;
  return rest && begins_with(rest, hidden) ? rest : NULL;
}

bool lcomm_ucx_environment_enter(const char *hidden, const char *const *standard) {
  size_t added = 0, count = 0, old = length(environ);
  while (standard[added]) {
    added++;
  }
  char **list = malloc((2 * old + added + 1) * sizeof *list);
  if (!list) {
    return false;
  }
  for (size_t i = 0; i < old; i++) {
    if (!begins_with(environ[i], hidden)) {
      list[count++] = environ[i];
    }
    char *rest = without_own_prefix(environ[i], hidden);
    if (rest) {
      list[count++] = rest;
    }
  }
  /* The first of two equal names is found, so what is set comes first. The
   * strings are only read; `environ` is not const by tradition. */
  memcpy(list + count, standard, (added + 1) * sizeof *list);
  free(shown);
  shown = list;
  own = environ;
  environ = list;
  return true;
}

void lcomm_ucx_environment_leave(void) {
  environ = own;
}
