/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tree: every rank and those below it are ranks one after the other, so what they give is one
 * piece of memory, and ranks of one host are close to each other. A parent has a lower number than
 * its children. */

#include "libcomm/bootstrap/store/store_internal.h"

/* The ranks behind `rank` up to `end`, in up to fan_out parts of equal length. */
static void divide(int rank, int end, int fan_out, lcomm_store_branch *branch) {
  int below = end - rank - 1, parts = below < fan_out ? below : fan_out;
  branch->end = end;
  branch->child_count = parts;
  for (int i = 0; i <= parts && parts > 0; i++) {
    branch->child[i] = rank + 1 + (int)((long)below * i / parts);
  }
}

void lcomm_store_branch_find(int size, int fan_out, int rank, lcomm_store_branch *branch) {
  int at = 0;
  branch->parent = -1;
  divide(at, size, fan_out, branch);
  while (at != rank) {
    int i = 0;
    while (branch->child[i + 1] <= rank) {
      i++;
    }
    branch->parent = at;
    at = branch->child[i];
    divide(at, branch->child[i + 1], fan_out, branch);
  }
}

int lcomm_store_branch_below(const lcomm_store_branch *branch, int rank) {
  for (int i = 0; i < branch->child_count; i++) {
    if (branch->child[i] == rank) {
      return branch->child[i + 1] - rank;
    }
  }
  return 0;
}
