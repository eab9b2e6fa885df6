/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_REMOVE_TREE_H
#define LCOMM_TESTS_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_tree_entry(const char *path, const struct stat *facts, int kind,
                                    struct FTW *place) {
  (void)facts;
  (void)kind;
  (void)place;
  return remove(path);
}

/* A folder with all that is in it. Not 0 where something stays. */
static inline int remove_tree(const char *folder) {
  return nftw(folder, remove_tree_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
