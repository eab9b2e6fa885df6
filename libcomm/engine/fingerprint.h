/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FINGERPRINT_H
#define LCOMM_ENGINE_FINGERPRINT_H

/* Fingerprints: what a rank is doing in an operation, as it tells other ranks.
 *
 * Messages of an operation carry a hash of its plan, so ranks that make different calls find out as
 * soon as one message passes between them. When none does, somebody waits. A rank that has waited
 * for a moment therefore tells the next rank its fingerprint, which compares it with its own for
 * the same operation: the one in flight, one of the last that are over, or the one that it begins
 * later. So a difference is named on all ranks without a message per operation.
 *
 * Two programs may also wait for each other in different sequence spaces: one in a call, one for
 * its tensors. A fingerprint therefore says whether the program waits for the operation and can
 * begin nothing else meanwhile.
 *
 * A rank that receives a message of another call asks its sender for its fingerprint, so that the
 * sentence names both calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/plan/op_kind.h"

struct lcomm_comm;
struct lcomm_operation;

enum { LCOMM_FINGERPRINTS_KEPT = 64 };

typedef struct lcomm_fingerprint {
  uint32_t sequence;
  uint8_t collective, dtype, op, op_kind;
  uint32_t root;
  uint32_t parameters; /* lcomm_run.parameters, as in message headers */
  uint64_t count;
  uint64_t residual; /* which one, 0: none */
} lcomm_fingerprint;

/* The last fingerprints of this rank, and those of the rank before it that came too
 * early, by sequence modulo LCOMM_FINGERPRINTS_KEPT. */
typedef struct lcomm_fingerprint_book {
  lcomm_fingerprint mine[LCOMM_FINGERPRINTS_KEPT];
  lcomm_fingerprint early[LCOMM_FINGERPRINTS_KEPT];
  uint32_t early_count;    /* 0: nothing to compare when an operation begins */
  int equal_rank;          /* the last rank whose fingerprint was as ours, */
  uint32_t equal_sequence; /* and of which operation */
} lcomm_fingerprint_book;

enum { LCOMM_FINGERPRINT_TEXT_MAX = 160 };

/* For sentences: "all-reduce #8 of 1,000 float32", "lcomm_destroy". Any values are allowed.
 * Returns text. */
const char *lcomm_fingerprint_text(const lcomm_fingerprint *fingerprint,
                                   char text[LCOMM_FINGERPRINT_TEXT_MAX]);

#endif
