/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Shared memory without names: memory files that others open through
 * /proc/PID/fd, so nothing is left of them when their processes end, however
 * they end. The right to open them is the right to trace the process. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcomm/base/write_guard.h"
#include "libcomm/transport/shm/shm_internal.h"

/* No code is run from these files. Kernels before 6.3 do not know the flag,
 * later ones may insist on it. */
enum { MEMFD_NOEXEC_SEAL = 8 };

/* A file that cannot become shorter cannot be a SIGBUS for whoever maps it. */
enum { FIXED = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* A limit of file sizes counts here, too. */
static bool set_size(int file, size_t size) {
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  bool good = ftruncate(file, (off_t)size) == 0;
  lcomm_write_guard_end(&guard, good ? 0 : errno);
  return good;
}

int lcomm_shm_file_create(const char *label, size_t size) {
  int file = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) {
    file = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  }
  if (file < 0) {
    return -1;
  }
  if (fchmod(file, 0600) != 0 || !set_size(file, size) || fcntl(file, F_ADD_SEALS, FIXED) != 0) {
    lcomm_shm_file_close(file);
    return -1;
  }
  return file;
}

int lcomm_shm_file_open(pid_t pid, int file, int flags, const char *kind) {
  char path[64], found[64] = "";
  snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)pid, file);
  ssize_t length = readlink(path, found, sizeof(found) - 1);
  if (length < 0) {
    return -1;
  }
  if (strncmp(found, kind, strlen(kind)) != 0) {
    errno = EBADF;
    return -1;
  }
  return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void lcomm_shm_file_close(int file) {
  int error = errno;
  if (file >= 0) {
    close(file);
  }
  errno = error;
}

bool lcomm_shm_file_is_fixed(int file, size_t size) {
  struct stat facts;
  int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file, &facts) == 0 &&
         S_ISREG(facts.st_mode) && (uint64_t)facts.st_size == size;
}

void *lcomm_shm_file_map(int file, size_t size, int protection) {
  void *base = mmap(NULL, size, protection, MAP_SHARED, file, 0);
  return base == MAP_FAILED ? NULL : base;
}
