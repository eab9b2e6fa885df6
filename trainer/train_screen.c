/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Open MPI gives every rank a pseudo-terminal, wherever mpirun itself writes
 * to; but it has a width only if mpirun's output is a real terminal. */
bool screen_is_live(void) {
  struct winsize window = {0};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) {
    return false;
  }
  return window.ws_col > 0;
}

/* Live, and colours are not refused (NO_COLOR, TERM=dumb). */
static bool terminal_has_colours(void) {
  const char *refused = getenv("NO_COLOR");
  if (refused && *refused) {
    return false;
  }
  const char *kind = getenv("TERM");
  if (!kind || strcmp(kind, "dumb") == 0) {
    return false;
  }
  return screen_is_live();
}

const char *screen_bold(void) {
  return terminal_has_colours() ? "\x1b[1m" : "";
}

const char *screen_green(void) {
  return terminal_has_colours() ? "\x1b[32m" : "";
}

const char *screen_plain(void) {
  return terminal_has_colours() ? "\x1b[0m" : "";
}

/* 60000 as "60,000"; returns text. */
const char *screen_count(uint64_t value, char text[SCREEN_COUNT_SIZE]) {
  char digits[SCREEN_COUNT_SIZE];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
  int used = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) {
      text[used++] = ',';
    }
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

const char *screen_plural(int count) {
  return count == 1 ? "" : "s";
}
