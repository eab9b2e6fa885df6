/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((noinline)) void folder_join(folder_path made, const char *folder, const char *name) {
  snprintf(made, sizeof(folder_path), "%s/%s", folder, name);
}

int folder_fail(const char *doing, const char *path, failure *why) {
  return failure_set(why, EXIT_SETUP, "cannot %s %s: %s", doing, path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk) {
  (void)about;
  (void)kind;
  (void)walk;
  return remove(path);
}

int folder_remove(const char *path, failure *why) {
  if (nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) {
    return 0;
  }
  return folder_fail("remove", path, why);
}

int folder_sync(const char *path, failure *why) {
  int folder = open(path, O_RDONLY | O_DIRECTORY);
  int result = folder >= 0 ? fsync(folder) : -1;
  if (result) {
    folder_fail("write to the disk", path, why);
  }
  if (folder >= 0) {
    close(folder);
  }
  return result;
}

/* "step-" and twelve digits; the order of the names is that of the steps. */
static int is_checkpoint(const struct dirent *entry) {
  size_t digits =
      strspn(entry->d_name + (strncmp(entry->d_name, "step-", 5) == 0 ? 5 : 0), "0123456789");
  return digits == 12 && strlen(entry->d_name) == 17;
}

int folder_list(const char *folder, struct dirent ***entries, failure *why) {
  *entries = NULL;
  int count = scandir(folder, entries, is_checkpoint, alphasort);
  if (count < 0 && errno == ENOENT) {
    return 0;
  }
  return count < 0 ? folder_fail("read the folder", folder, why) : count;
}

void folder_list_free(struct dirent **entries, int count) {
  for (int i = 0; i < count; i++) {
    free(entries[i]);
  }
  free(entries);
}
