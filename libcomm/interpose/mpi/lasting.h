/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_LASTING_H
#define LCOMM_INTERPOSE_MPI_LASTING_H

/* Error feedback for calls that have no name: which buffer is it? A program that
 * trains makes the same calls again in every step. On one communicator the
 * position of a call in that repeating pattern (pattern.h), its count and its operation are
 * the buffer's identity, which has a residual. While no pattern is known, and
 * after it broke, calls are exact, and one whose count and operation are those of an
 * identity that still owes something pays it.
 */

#include <stdbool.h>

#include "libcomm_interpose.h"

typedef enum lcomm_interpose_feedback {
  LCOMM_INTERPOSE_PLAIN,  /* exact, without a residual */
  LCOMM_INTERPOSE_LASTS,  /* with error feedback */
  LCOMM_INTERPOSE_FLUSHES /* exact, and what is owed is paid with it */
} lcomm_interpose_feedback;

/* The identities of one communicator. */
typedef struct lcomm_interpose_lasting lcomm_interpose_lasting;

/* made: where the residuals live, longer than the identities; NULL: there is no communicator
 * yet, and residuals are made by lcomm_interpose_lasting_residual(). step_calls: of the
 * policy, 0: found out. NULL when memory is short. */
lcomm_interpose_lasting *lcomm_interpose_lasting_create(lcomm_comm *made, uint32_t step_calls);

/* Forgets all; no call with a residual is under way. NULL ok. */
void lcomm_interpose_lasting_destroy(lcomm_interpose_lasting *lasting);

/* The next call with error feedback on the communicator: what to do, and with which
 * residual (NULL for PLAIN). Depends on the calls before alone, so that all ranks do
 * the same. Allocates when an identity is new; without memory for it *status says so and
 * nothing may be done on this rank. */
lcomm_interpose_feedback lcomm_interpose_lasting_next(lcomm_interpose_lasting *lasting,
                                                      uint64_t count, lcomm_op op,
                                                      lcomm_residual **residual,
                                                      lcomm_status *status);

/* Which identity the last answer was about. Stays the same as long as the identities live. */
uint32_t lcomm_interpose_lasting_identity(const lcomm_interpose_lasting *lasting);

/* The residual of an identity of identities that were created without a communicator, made in
 * `made` (always the same one) the first time: in the order of the calls, which is the same on
 * all ranks. */
lcomm_status lcomm_interpose_lasting_residual(lcomm_interpose_lasting *lasting, uint32_t identity,
                                              lcomm_comm *made, lcomm_residual **residual);

/* From here on nothing is compressed; calls flush what is owed as they come by. */
void lcomm_interpose_lasting_end(lcomm_interpose_lasting *lasting);

/* Take that back: a pattern is learned anew, and what is owed goes on being owed. */
void lcomm_interpose_lasting_resume(lcomm_interpose_lasting *lasting);

/* How many identities owe something that no call has paid yet. The same on all
 * ranks: an identity owes from its first call with error feedback to its flush. */
unsigned lcomm_interpose_lasting_owing(const lcomm_interpose_lasting *lasting);

/* How many identities there are, and the length of the pattern (0: none known). */
unsigned lcomm_interpose_lasting_count(const lcomm_interpose_lasting *lasting);
unsigned lcomm_interpose_lasting_period(const lcomm_interpose_lasting *lasting);

/* Tell where the buffer of the call is that lcomm_interpose_lasting_next() spoke of last.
 * Only to warn: true once, when positions are clearly used by several buffers in turn (the
 * addresses of a position repeat with a period of 2 to 64 of its calls), so that the
 * pattern was found too short. Never changes what is done. */
bool lcomm_interpose_lasting_suspects(lcomm_interpose_lasting *lasting, const void *buffer);

#endif
