/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_FILE_H
#define LCOMM_TRANSPORT_SHM_SHM_FILE_H

/* Memory files that processes of a host share through /proc/PID/fd. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file of `size` zero bytes without a name that nobody can make shorter or
 * longer; -1 with errno. */
int lcomm_shm_file_create(const char *label, size_t size);
/* Open a file of another process; -1 with errno. kind: what its link begins
 * with. Anything else is left alone: opening can do harm, to a device say. */
int lcomm_shm_file_open(pid_t pid, int file, int flags, const char *kind);
#define LCOMM_SHM_FILE "/memfd:libcomm"
#define LCOMM_SHM_PIPE "pipe:"
/* Has it this size, now and always? */
bool lcomm_shm_file_is_fixed(int file, size_t size);
/* Close it, unless it is -1; errno stays. */
void lcomm_shm_file_close(int file);
/* NULL with errno. protection: PROT_READ, PROT_WRITE. */
void *lcomm_shm_file_map(int file, size_t size, int protection);

#endif
