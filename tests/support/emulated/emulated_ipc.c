/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Handles for other processes: they open a memory file where this process has it. */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"
#include "tests/support/emulated/emulated_internal.h"

#define LABEL "libcomm-emulated"

static const uint64_t magic = UINT64_C(0x6c636f6d6d656d75);

_Static_assert(sizeof(emulated_handle) <= LCOMM_DEVICE_IPC_SIZE, "a handle holds it");

static uint64_t inode_of(int file) {
  struct stat facts;
  return fstat(file, &facts) == 0 ? facts.st_ino : 0;
}

bool emulated_file_create(size_t size, emulated_handle *handle) {
  memset(handle, 0, sizeof *handle);
  handle->magic = magic;
  handle->size = size;
  handle->pid = getpid();
  handle->file = lcomm_shm_file_create(LABEL, size);
  handle->inode = handle->file < 0 ? 0 : inode_of(handle->file);
  return handle->file >= 0;
}

int emulated_file_open(const uint8_t bytes[LCOMM_DEVICE_IPC_SIZE], emulated_handle *handle,
                       int *error) {
  memcpy(handle, bytes, sizeof *handle);
  *error = EMULATED_INVALID_VALUE;
  if (handle->magic != magic || handle->pid <= 0 || emulated.setup.without_sharing) {
    return -1;
  }
  if (handle->pid == getpid()) {
    *error = EMULATED_INVALID_CONTEXT;
    return -1;
  }
  int file = lcomm_shm_file_open(handle->pid, handle->file, O_RDWR, "/memfd:" LABEL);
  /* The process may have closed it, and have another one under that number. */
  if (file >= 0 &&
      (inode_of(file) != handle->inode || !lcomm_shm_file_is_fixed(file, handle->size))) {
    close(file);
    return -1;
  }
  return file;
}
