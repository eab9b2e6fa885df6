/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which ranks belong together, by color, and in which order, by key. */

#include <stdlib.h>

#include "libcomm/comm/split.h"

typedef struct candidate {
  int32_t key;
  int rank;
} candidate;

static int by_key(const void *left, const void *right) {
  const candidate *a = left, *b = right;
  if (a->key != b->key) {
    return a->key < b->key ? -1 : 1;
  }
  return a->rank < b->rank ? -1 : 1;
}

int lcomm_split_members(const lcomm_split_color_key *wishes, int size, int rank, int *members,
                        int *me) {
  int count = 0;
  candidate *candidates = calloc((size_t)size, sizeof *candidates);
  if (!candidates) {
    return 0;
  }
  for (int other = 0; other < size; other++) {
    if (wishes[other].color == wishes[rank].color) {
      candidates[count++] = (candidate){.key = wishes[other].key, .rank = other};
    }
  }
  qsort(candidates, (size_t)count, sizeof *candidates, by_key);
  for (int i = 0; i < count; i++) {
    members[i] = candidates[i].rank;
    *me = candidates[i].rank == rank ? i : *me;
  }
  free(candidates);
  return count;
}
