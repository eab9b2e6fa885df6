/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void put_line(const launch_lines *self, const char *text, size_t size) {
  fputs(self->prefix, self->to);
  fwrite(text, 1, size, self->to);
  fputc('\n', self->to);
}

/* Lines that are over; a full buffer is one. */
static void put_lines(launch_lines *self) {
  size_t begin = 0;
  for (;;) {
    const char *end = memchr(self->text + begin, '\n', self->used - begin);
    if (!end) {
      break;
    }
    size_t size = (size_t)(end - self->text) - begin;
    put_line(self, self->text + begin, size);
    begin += size + 1;
  }
  if (begin == 0 && self->used == sizeof self->text) {
    put_line(self, self->text, self->used);
    begin = self->used;
  }
  self->used -= begin;
  memmove(self->text, self->text + begin, self->used);
}

static bool flushed(const launch_lines *self) {
  return fflush(self->to) == 0 && !ferror(self->to);
}

static void close_pipe(launch_lines *self) {
  if (self->from >= 0) {
    close(self->from);
  }
  self->from = -1;
}

bool launch_lines_read(launch_lines *self) {
  while (self->from >= 0) {
    ssize_t got = read(self->from, self->text + self->used, sizeof self->text - self->used);
    if (got > 0) {
      self->used += (size_t)got;
      put_lines(self);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      close_pipe(self);
    } else if (errno == EAGAIN) {
      break;
    }
  }
  return flushed(self);
}

bool launch_lines_end(launch_lines *self) {
  launch_lines_read(self);
  if (self->used > 0) {
    put_line(self, self->text, self->used);
  }
  self->used = 0;
  close_pipe(self);
  return flushed(self);
}
