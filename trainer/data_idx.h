/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_DATA_IDX_H
#define TRAINER_DATA_IDX_H

#include <stdint.h>

#include "trainer/failure.h"

/* IDX files, the format of MNIST and its relatives: a big-endian header
 * (magic, then one size per dimension) and unsigned bytes. Plain or gzip. */

enum {
  IDX_DIMENSIONS_MAX = 3,
  IDX_SIZE_MAX = 10 * 1000 * 1000, /* of one dimension; float32 counts it exactly */
  IDX_BYTES_MAX = 1 << 30
};

typedef struct idx_array {
  int dimensions; /* 3 for images, 1 for labels */
  uint32_t sizes[IDX_DIMENSIONS_MAX];
  uint8_t *bytes; /* sizes[0] * sizes[1] * ... of them, owned */
} idx_array;

/* Read a file that must have `dimensions` (1 or 3) dimensions. Every size is
 * checked, and memory grows with what is really in the file, not with what
 * its header announces. Returns 0, or -1 with `why`; then nothing is kept. */
int idx_read(const char *path, int dimensions, idx_array *made, failure *why);

void idx_free(idx_array *self);

#endif
