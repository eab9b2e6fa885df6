/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Open MPI gives every rank a pseudo-terminal, wherever mpirun itself writes
 * to; but it has a width only if mpirun's output is a real terminal. */
bool terminal_is_live(void) {
  struct winsize window = {0};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) {
    return false;
  }
  return window.ws_col > 0;
}

bool terminal_has_colours(void) {
  const char *refused = getenv("NO_COLOR");
  if (refused && *refused) {
    return false;
  }
  const char *kind = getenv("TERM");
  if (!kind || strcmp(kind, "dumb") == 0) {
    return false;
  }
  return terminal_is_live();
}
