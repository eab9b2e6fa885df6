/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_FILE_H
#define LCOMM_BASE_FILE_H

/* Atomic files: written under a temporary name, flushed to the disk, then renamed, with an XXH3-64
 * of all bytes at their end. So a file is complete or absent. Functions that fail write one phrase
 * with the path and the cause into `why`. */

#include <stdint.h>
#include <stdio.h>

#include "libcomm/base/error.h"

enum { LCOMM_FILE_PATH_MAX = 4096 };

/* Make a folder, and those that it lies in. One that exists is fine. SYSTEM,
 * ARGUMENT when the path is too long. */
lcomm_status lcomm_folder_make(const char *folder, lcomm_why *why);

typedef struct lcomm_file {
  FILE *stream;
  void *hash; /* XXH3_state_t */
  int error;  /* errno of the first failure */
  char path[LCOMM_FILE_PATH_MAX], temporary[LCOMM_FILE_PATH_MAX];
} lcomm_file;

/* Begin `folder`/`name`. After a success end with lcomm_file_finish. ARGUMENT,
 * MEMORY, SYSTEM. */
lcomm_status lcomm_file_begin(lcomm_file *file, const char *folder, const char *name,
                              lcomm_why *why);

/* Append bytes; may be NULL when there are none. A failure is remembered. */
void lcomm_file_write(lcomm_file *file, const void *bytes, size_t size);

/* Append the checksum, and give the file its name if all went well; else
 * nothing of it is left, and what had that name before stays. SYSTEM. */
lcomm_status lcomm_file_finish(lcomm_file *file, lcomm_why *why);

/* The bytes of `folder`/`name`, to be freed by the caller. ARGUMENT, MEMORY,
 * SYSTEM. */
lcomm_status lcomm_file_read(const char *folder, const char *name, uint8_t **bytes, size_t *size,
                             lcomm_why *why);

#endif
