/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OBSERVE_TRACE_FILE_H
#define LCOMM_OBSERVE_TRACE_FILE_H

/* A file of whole lines that may end at any time: a JSON array that is valid
 * but for its last bracket. The separator comes before a line, not after it. */

#include "libcomm/base/file.h"
#include "libcomm/observe/trace_format.h"

enum { LCOMM_TRACE_BUFFER_SIZE = 1 << 16 };

typedef struct lcomm_trace_file {
  int handle;         /* -1: closed */
  int error;          /* errno of what closed it early */
  size_t size;        /* whole lines in the file */
  size_t buffer_used; /* whole lines that are not there yet */
  char buffer[LCOMM_TRACE_BUFFER_SIZE];
  char path[LCOMM_FILE_PATH_MAX];
} lcomm_trace_file;

/* Begin the file at file->path. SYSTEM, with errno in `error`; then it is closed. */
lcomm_status lcomm_trace_file_open(lcomm_trace_file *file);

/* Append a line, to memory first; bring it to the file. A failure is kept in
 * `error` and closes the file; nothing is written any more. */
void lcomm_trace_file_append(lcomm_trace_file *file, const lcomm_trace_line *line);
void lcomm_trace_file_flush(lcomm_trace_file *file);

/* Close the array and the file. */
void lcomm_trace_file_close(lcomm_trace_file *file);

#endif
