/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/interpose_log.h"

#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 9216 };

/* One write for each line, so lines of several ranks do not mix. */
void lcomm_interpose_log_line(const char *library, const char *format, va_list arguments) {
  char line[LINE_MAX_BYTES];
  size_t room = sizeof(line) - 1;
  int length = snprintf(line, room, "%s: ", library);
  if (length < 0 || (size_t)length >= room) {
    return;
  }
  size_t used = (size_t)length;
  length = vsnprintf(line + used, room - used, format, arguments);
  if (length < 0) {
    return;
  }
  used += (size_t)length < room - used ? (size_t)length : room - used - 1;
  line[used++] = '\n';
  ssize_t written = write(STDERR_FILENO, line, used);
  (void)written; /* there is no other way to report it */
}
