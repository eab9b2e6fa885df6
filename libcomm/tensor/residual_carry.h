/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_CARRY_H
#define LCOMM_TENSOR_RESIDUAL_CARRY_H

/* Residuals of calls go over to another communicator: the same handles, with their numbers. All
 * ranks that go on have made the same calls with each: a call that some have not finished is undone
 * on the others. One at most is, because a rank finishes a call only when all have begun it, and
 * nobody begins the next call with a residual before the one before was waited for.
 *
 * A rank may have made or destroyed a residual of which another one does not know yet. Such a one
 * is apart: no call with it counts, and it goes over with nothing in it. */

#include "libcomm/tensor/residual.h"
#include "libcomm/tensor/tensor_carry.h"

/* A rank was lost: no call is in flight any more, and what calls that have failed had begun is
 * undone. Requests that were not waited for stay with the program. MEMORY. */
lcomm_status lcomm_residuals_break_off(lcomm_comm *comm);

/* Where calls with one residual stand on a rank. All zero: there is none. */
typedef struct lcomm_call_standing {
  uint64_t number, ended; /* of the residual */
} lcomm_call_standing;

uint32_t lcomm_residuals_count(const lcomm_comm *comm);

/* Writes that of each, ascending by their numbers. */
void lcomm_residuals_stand(const lcomm_comm *comm, lcomm_call_standing *mine);

/* From what all ranks say, `each` of them, with zeros behind: make all stand alike. MISMATCH, with
 * the thread's sentence, where they are too far apart. */
lcomm_status lcomm_residuals_settle(lcomm_comm *comm, const lcomm_call_standing *all, size_t each,
                                    int ranks);

/* Those of it->from become those of it->to, with nothing in them; of reduce-scatters with even
 * parts. MEMORY: nothing was moved. They go back, as they were; or they stay. */
lcomm_status lcomm_residuals_move(lcomm_carry *it);
void lcomm_residuals_undo(lcomm_carry *it);
void lcomm_residuals_finish(lcomm_carry *it);

/* Newcomers number theirs as the others do. Collective; MISMATCH where they have not made the same
 * ones, sticky. */
lcomm_status lcomm_residuals_number(lcomm_comm *comm);

#endif
