/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/observe/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/write_guard.h"

lcomm_status lcomm_trace_file_open(lcomm_trace_file *file) {
  file->size = file->buffer_used = 0;
  file->handle = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  file->error = file->handle < 0 ? errno : 0;
  return file->handle < 0 ? LCOMM_ERR_SYSTEM : LCOMM_OK;
}

/* 0, or errno. */
static int write_parts(int handle, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(handle, bytes, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return written < 0 ? errno : EIO;
    }
    bytes += written;
    size -= (size_t)written;
  }
  return 0;
}

static int write_all(int handle, const char *bytes, size_t size) {
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  int error = write_parts(handle, bytes, size);
  lcomm_write_guard_end(&guard, error);
  return error;
}

/* What is in an ordinary file stays whole lines; elsewhere a reader finds a cut
 * line, and can bear it. */
static void give_up(lcomm_trace_file *file, int error) {
  int cut = ftruncate(file->handle, (off_t)file->size);
  (void)cut;
  close(file->handle);
  file->handle = -1;
  file->error = error;
}

void lcomm_trace_file_flush(lcomm_trace_file *file) {
  if (file->handle >= 0 && file->buffer_used > 0) {
    int error = write_all(file->handle, file->buffer, file->buffer_used);
    if (error) {
      give_up(file, error);
    } else {
      file->size += file->buffer_used;
    }
  }
  file->buffer_used = 0;
}

void lcomm_trace_file_append(lcomm_trace_file *file, const lcomm_trace_line *line) {
  const char *separator = file->size + file->buffer_used > 0 ? ",\n" : "[\n";
  if (file->buffer_used + line->length + 2 > sizeof(file->buffer)) {
    lcomm_trace_file_flush(file);
  }
  memcpy(file->buffer + file->buffer_used, separator, 2);
  memcpy(file->buffer + file->buffer_used + 2, line->text, line->length);
  file->buffer_used += line->length + 2;
}

void lcomm_trace_file_close(lcomm_trace_file *file) {
  lcomm_trace_file_flush(file);
  if (file->handle < 0) {
    return;
  }
  int error = write_all(file->handle, "\n]\n", 3);
  if (error) {
    give_up(file, error);
    return;
  }
  file->error = close(file->handle) == 0 ? 0 : errno;
  file->handle = -1;
}
