/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_FOLDER_H
#define TRAINER_TRAIN_FOLDER_H

#include <dirent.h>

#include "trainer/train_peers.h"

/* The folder of checkpoints, which lie in it as folders of their own. What can fail returns -1 with
 * `why`, else 0. */

enum { FOLDER_PATH_SIZE = 1024 };
typedef char folder_path[FOLDER_PATH_SIZE];

/* Folder, slash and name; options_parse() sees to it that they fit. */
void folder_join(folder_path made, const char *folder, const char *name);

/* "cannot DOING PATH: " and the error of the last system call; returns -1. */
int folder_fail(const char *doing, const char *path, failure *why);

/* With all that is in it. What is not there is removed already. */
int folder_remove(const char *path, failure *why);

/* Names in a folder are on the disk only when the folder is. */
int folder_sync(const char *path, failure *why);

/* All checkpoints in a folder, the oldest first; free with folder_list_free(). A folder that is not
 * there has none. Returns how many, or -1 with `why`. */
int folder_list(const char *folder, struct dirent ***entries, failure *why);
void folder_list_free(struct dirent **entries, int count);

#endif
