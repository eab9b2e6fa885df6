/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the interposer has to say. */

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "libcomm/interpose/mpi/interpose.h"

enum { LINE_MAX_BYTES = 2048 };

/* One write, so that lines of ranks do not mix. */
void lcomm_interpose_say(const char *format, ...) {
  char line[LINE_MAX_BYTES] = "libcomm-mpi: ";
  size_t used = sizeof("libcomm-mpi: ") - 1, room = sizeof(line) - used - 1;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + used, room, format, arguments);
  va_end(arguments);
  if (length < 0) {
    return;
  }
  used += (size_t)length < room ? (size_t)length : room - 1;
  line[used++] = '\n';
  ssize_t written = write(STDERR_FILENO, line, used);
  (void)written; /* there is nobody else to tell */
}
