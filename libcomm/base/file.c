/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libcomm/base/write_guard.h"

static lcomm_status say(lcomm_why *why, lcomm_status status, const char *path, const char *what,
                        int error) {
  return lcomm_why_set(why, status, "%.300s %s: %s", path, what, strerror(error));
}

/* Bytes of a number, the lowest first. */
static void put(uint8_t *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(value >> (8 * i));
  }
}

/* --------------------------------------------------------------- folders */

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Other ranks may make the same folder at the same time. */
static bool make_one(const char *path) {
  return mkdir(path, 0777) == 0 || is_folder(path);
}

lcomm_status lcomm_folder_make(const char *folder, lcomm_why *why) {
  char path[LCOMM_FILE_PATH_MAX];
  size_t length = strlen(folder);
  if (length == 0 || length >= sizeof(path)) {
    return say(why, LCOMM_ERR_ARGUMENT, folder, "is no folder", length ? ENAMETOOLONG : ENOENT);
  }
  memcpy(path, folder, length + 1);
  for (size_t i = 1; i < length; i++) {
    if (path[i] != '/') {
      continue;
    }
    path[i] = '\0';
    make_one(path); /* what matters is the last one */
    path[i] = '/';
  }
  return make_one(path) ? LCOMM_OK
                        : say(why, LCOMM_ERR_SYSTEM, folder, "cannot be made a folder", errno);
}

static lcomm_status join(char *path, const char *folder, const char *name, const char *ending,
                         lcomm_why *why) {
  int length = snprintf(path, LCOMM_FILE_PATH_MAX, "%s/%s%s", folder, name, ending);
  return length < LCOMM_FILE_PATH_MAX
             ? LCOMM_OK
             : say(why, LCOMM_ERR_ARGUMENT, folder, "is too long", ENAMETOOLONG);
}

/* --------------------------------------------------------------- writing */

lcomm_status lcomm_file_begin(lcomm_file *file, const char *folder, const char *name,
                              lcomm_why *why) {
  memset(file, 0, sizeof *file);
  lcomm_status status = join(file->path, folder, name, "", why);
  if (status == LCOMM_OK) {
    status = join(file->temporary, folder, name, ".tmp", why);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  file->hash = XXH3_createState();
  if (!file->hash) {
    return say(why, LCOMM_ERR_MEMORY, file->path, "cannot be written", ENOMEM);
  }
  XXH3_64bits_reset(file->hash);
  file->stream = fopen(file->temporary, "wb");
  if (!file->stream) {
    int error = errno;
    XXH3_freeState(file->hash);
    return say(why, LCOMM_ERR_SYSTEM, file->temporary, "cannot be opened", error);
  }
  return LCOMM_OK;
}

static void write_bytes(lcomm_file *file, const void *bytes, size_t size) {
  lcomm_write_guard guard;
  if (file->error) {
    return;
  }
  lcomm_write_guard_begin(&guard);
  if (fwrite(bytes, 1, size, file->stream) != size) {
    file->error = errno ? errno : EIO;
  }
  lcomm_write_guard_end(&guard, file->error);
}

void lcomm_file_write(lcomm_file *file, const void *bytes, size_t size) {
  if (size > 0) {
    XXH3_64bits_update(file->hash, bytes, size);
    write_bytes(file, bytes, size);
  }
}

/* The name itself must reach the disk, too. */
static void sync_folder(const char *path) {
  char folder[LCOMM_FILE_PATH_MAX];
  snprintf(folder, sizeof(folder), "%s", path);
  *strrchr(folder, '/') = '\0';
  int handle = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY);
  if (handle >= 0) {
    fsync(handle); /* some file systems cannot, and lose nothing by it */
    close(handle);
  }
}

static void remember(lcomm_file *file, bool good) {
  if (!good && !file->error) {
    file->error = errno ? errno : EIO;
  }
}

lcomm_status lcomm_file_finish(lcomm_file *file, lcomm_why *why) {
  uint8_t checksum[8];
  put(checksum, XXH3_64bits_digest(file->hash), sizeof(checksum));
  XXH3_freeState(file->hash);
  write_bytes(file, checksum, sizeof(checksum));
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  remember(file, fflush(file->stream) == 0);
  remember(file, file->error || fsync(fileno(file->stream)) == 0);
  remember(file, fclose(file->stream) == 0);
  lcomm_write_guard_end(&guard, file->error);
  remember(file, file->error || rename(file->temporary, file->path) == 0);
  if (file->error) {
    unlink(file->temporary);
    return say(why, LCOMM_ERR_SYSTEM, file->path, "cannot be written", file->error);
  }
  sync_folder(file->path);
  return LCOMM_OK;
}

/* --------------------------------------------------------------- reading */

static lcomm_status read_all(FILE *stream, const char *path, uint8_t **bytes, size_t *size,
                             lcomm_why *why) {
  struct stat found;
  if (fstat(fileno(stream), &found) != 0) {
    return say(why, LCOMM_ERR_SYSTEM, path, "cannot be read", errno);
  }
  if (!S_ISREG(found.st_mode)) {
    return say(why, LCOMM_ERR_SYSTEM, path, "cannot be read", EINVAL);
  }
  *size = (size_t)found.st_size;
  *bytes = malloc(*size + 1);
  if (!*bytes) {
    return say(why, LCOMM_ERR_MEMORY, path, "cannot be read", ENOMEM);
  }
  if (fread(*bytes, 1, *size, stream) != *size) {
    int error = ferror(stream) && errno ? errno : EIO;
    free(*bytes);
    return say(why, LCOMM_ERR_SYSTEM, path, "cannot be read", error);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_file_read(const char *folder, const char *name, uint8_t **bytes, size_t *size,
                             lcomm_why *why) {
  char path[LCOMM_FILE_PATH_MAX];
  LCOMM_TRY(join(path, folder, name, "", why));
  FILE *stream = fopen(path, "rb");
  if (!stream) {
    return say(why, LCOMM_ERR_SYSTEM, path, "cannot be opened", errno);
  }
  lcomm_status status = read_all(stream, path, bytes, size, why);
  fclose(stream);
  return status;
}
