/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_GREETING_H
#define LCOMM_DOORS_MPI_GREETING_H

/* What the doors of two ranks tell each other in their meeting (hello.h), and what of
 * it may be believed. Knows nothing of MPI. */

#include <stdbool.h>
#include <stdint.h>

enum { LCOMM_DOOR_POLICY_MAX = 1024, LCOMM_DOOR_SENTENCE_MAX = 2600 };

typedef struct lcomm_door_hello {
  char magic[8];
  int32_t version, mode;              /* lcomm_door_mode that the rank was told */
  int32_t level;                      /* what it is allowed of threads */
  int32_t controlled;                 /* LCOMM_DOOR_CONTROL is set */
  char policy[LCOMM_DOOR_POLICY_MAX]; /* LCOMM_POLICY */
} lcomm_door_hello;

/* What rank 0 has found. */
typedef struct lcomm_door_verdict {
  char magic[8];
  int32_t good;
  char sentence[LCOMM_DOOR_SENTENCE_MAX];
} lcomm_door_verdict;

/* Fill in magic and version. */
void lcomm_door_hello_begin(lcomm_door_hello *mine);
void lcomm_door_verdict_begin(lcomm_door_verdict *mine);

/* Does what another rank says, any bytes, differ from what rank 0 says? Then
 * `sentence` (LCOMM_DOOR_SENTENCE_MAX bytes) says in what. */
bool lcomm_door_hello_differs(const lcomm_door_hello *first, const lcomm_door_hello *other,
                              int rank, char *sentence);

/* Is it a verdict? Its sentence is made a text. */
bool lcomm_door_verdict_take(lcomm_door_verdict *heard);

#endif
