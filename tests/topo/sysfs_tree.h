/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOPO_SYSFS_TREE_H
#define LCOMM_TESTS_TOPO_SYSFS_TREE_H

/* A folder that looks like /sys, made from tests/topo/fixtures/NAME.tree. */

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/remove_tree.h"
#include "tests/topo/topo_fixtures.h"

enum { SYSFS_TREE_PATH_MAX = 512 };

static inline void sysfs_tree_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
}

static inline void sysfs_tree_line(const char *root, char *line) {
  char path[SYSFS_TREE_PATH_MAX];
  char *name = strchr(line, ' ') + 1, *rest = strchr(name, ' ');
  assert_non_null(rest);
  *rest++ = '\0';
  snprintf(path, sizeof(path), "%s/%s", root, name);
  sysfs_tree_folders(path);
  if (strncmp(line, "link ", 5) == 0) {
    assert_int_equal(symlink(rest, path), 0);
    return;
  }
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s\n", rest);
  fclose(file);
}

/* root: a template for mkdtemp, which becomes the folder's name. */
static inline void sysfs_tree_make(const char *fixture, char *root) {
  char *text = fixture_text(fixture), *next = NULL;
  assert_non_null(mkdtemp(root));
  for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
    if (line[0] != '#') {
      sysfs_tree_line(root, line);
    }
  }
  free(text);
}

#endif
