/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_HEADER_CHECK_H
#define LCOMM_ENGINE_HEADER_CHECK_H

/* The check of a header that is not the expected one: does it belong to another call, or was it
 * damaged on its way?
 *
 * Its parameters are a hash of the plan, the operation and all calls before, so those of another
 * call differ from ours in about half of their bits, and in no more than LCOMM_HEADER_NEAR_BITS
 * once in eight million calls. A header whose parameters are so near to ours is of our call: what
 * else differs in it was damaged. So was a header whose payload size cannot be that of its own
 * count. */

#include <stdbool.h>

#include "codecs/wire.h"

enum { LCOMM_HEADER_NEAR_BITS = 2 };

/* X(name, text): what can differ, in the order in which it is looked for. */
#define LCOMM_HEADER_FIELD_LIST(X)                                                                 \
  X(LCOMM_HEADER_SEQUENCE, "operation number")                                                     \
  X(LCOMM_HEADER_COUNT, "element count")                                                           \
  X(LCOMM_HEADER_DTYPE, "data type")                                                               \
  X(LCOMM_HEADER_CODEC, "codec")                                                                   \
  X(LCOMM_HEADER_FLAGS, "codec flags")                                                             \
  X(LCOMM_HEADER_PARAMETERS, "hash of the call")                                                   \
  X(LCOMM_HEADER_PAYLOAD_SIZE, "payload bytes")

typedef enum lcomm_header_field {
#define LCOMM_HEADER_FIELD_ENUM(name, text) name,
  LCOMM_HEADER_FIELD_LIST(LCOMM_HEADER_FIELD_ENUM)
#undef LCOMM_HEADER_FIELD_ENUM
      LCOMM_HEADER_FIELD_COUNT
} lcomm_header_field;

const char *lcomm_header_field_name(lcomm_header_field field);

/* What a plan expects. */
typedef struct lcomm_header_expected {
  lcomm_wire_header header; /* payload size: the most that is possible; no checksum */
  bool exact_size;          /* the payload has exactly that size */
} lcomm_header_expected;

typedef struct lcomm_header_verdict {
  lcomm_status status;      /* OK; MISMATCH: of another call; WIRE: damaged */
  lcomm_header_field field; /* that shows it */
  uint64_t theirs, ours;    /* its values */
} lcomm_header_verdict;

/* theirs: unpacked by lcomm_wire_unpack, so codec, dtype and flags exist. */
lcomm_header_verdict lcomm_header_check(const lcomm_wire_header *theirs,
                                        const lcomm_header_expected *expected);

#endif
