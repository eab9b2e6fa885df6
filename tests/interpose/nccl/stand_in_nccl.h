/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_STAND_IN_NCCL_H
#define LCOMM_TESTS_STAND_IN_NCCL_H

/* A library that has NCCL's functions and does nothing but note how it was called. */

#include <stddef.h>

enum { STAND_IN_PARAMETERS = 12, STAND_IN_BYTES = 128, STAND_IN_VERSION = 23007 };

typedef struct stand_in_call {
  char name[64]; /* without nccl */
  int count;     /* of parameters */
  size_t sizes[STAND_IN_PARAMETERS];
  unsigned char bytes[STAND_IN_PARAMETERS][STAND_IN_BYTES];
} stand_in_call;

/* Its data, for dlsym(): "stand_in_last", the last call. */

/* What a function of this name returns: a result of 0 to 8, or more than that as a number. */
static inline int stand_in_outcome(const char *name) {
  int sum = 0;
  for (const char *at = name; *at; at++) {
    sum = sum * 31 % 1009 + *at;
  }
  return sum;
}

#endif
