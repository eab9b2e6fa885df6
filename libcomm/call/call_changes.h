/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_CHANGES_H
#define LCOMM_CALL_CALL_CHANGES_H

/* What ranks of an elastic communicator ask for travels with barriers, which are sums of counts
 * then: with the one that ends a step of tensors, and with lcomm_barrier(). */

#include "libcomm/call/call.h"

enum { LCOMM_CHANGES_COUNTS = 2 };

typedef struct lcomm_changes_barrier {
  int32_t counts[LCOMM_CHANGES_COUNTS];
  bool leaves;
} lcomm_changes_barrier;

/* The sum of what this rank asks for; `it` lives as long as the call. */
lcomm_call lcomm_changes_begin(lcomm_comm *comm, lcomm_changes_barrier *it);

/* The call has ended well: all ranks know. */
void lcomm_changes_end(lcomm_comm *comm, const lcomm_changes_barrier *it);

#endif
