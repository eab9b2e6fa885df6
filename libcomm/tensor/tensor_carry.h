/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_CARRY_H
#define LCOMM_TENSOR_CARRY_H

/* Tensors, and residuals of calls, go over from a communicator that has failed into another one, of
 * those of its ranks that live: the same handles, and what error feedback remembers of them, shared
 * out anew as a saved state is. bootstrap/elastic/ makes the other communicator. */

#include <math.h>

#include "libcomm/feedback/checkpoint.h"
#include "libcomm/tensor/bucket.h"

/* Of what error feedback remembers of tensors and calls. */
typedef struct lcomm_remembered {
  /* Elements whose residual this rank keeps, and those of all ranks of the communicator together;
   * one that several ranks keep counts for each. */
  uint64_t kept, all;
  double squares; /* the sum of the squares of those that are kept */
} lcomm_remembered;

/* May a rank have said so? */
static inline bool lcomm_remembered_is_sound(const lcomm_remembered *it) {
  return it->kept <= it->all && isfinite(it->squares) && it->squares >= 0;
}

/* What ranks that have gone kept, as if its values were as large as those that are kept: the sum of
 * its squares. */
static inline double lcomm_remembered_lost(const lcomm_remembered *it) {
  return it->kept > 0 && it->kept < it->all
             ? it->squares / (double)it->kept * (double)(it->all - it->kept)
             : 0;
}

/* Where the tensors of a rank stand, and how many residuals of calls it has. */
typedef struct lcomm_standing {
  uint64_t steps;  /* that are finished here */
  bool complete;   /* all results of the next one are here, and perhaps everywhere */
  bool regrouping; /* what is remembered was on its way between ranks, and is of no use */
  bool holds;      /* it waits for newcomers (changes.held), who number residuals as they like */
  lcomm_remembered remembered;
  uint32_t blocks;    /* of saved states that this rank brings */
  uint32_t residuals; /* of calls */
} lcomm_standing;

lcomm_standing lcomm_standing_get(const lcomm_comm *comm);

/* Finish the step in flight, or undo it, so that `steps` are finished. Local; nothing is in flight.
 * True: a step is finished whose results are in the tensors' buffers, and the program of this rank
 * does not know it. */
bool lcomm_standing_settle(lcomm_comm *comm, uint64_t steps);

/* The bytes of a saved state of one rank. */
typedef struct lcomm_carry_block {
  uint8_t *bytes;
  size_t size;
} lcomm_carry_block;

/* Is there anything to carry over? */
bool lcomm_carry_has_any(const lcomm_comm *comm);

/* Of this rank; without what is remembered where that is of no use. The caller frees the bytes.
 * MEMORY. */
lcomm_status lcomm_carry_write(lcomm_comm *comm, bool empty, lcomm_carry_block *block);

/* A rank that leaves gives its block to an heir: all ranks of comm call it alike, the block is that
 * of `rank`, and becomes the heir's in *given. Collective; MEMORY and transport errors, sticky. */
lcomm_status lcomm_carry_give(lcomm_comm *comm, int rank, int heir, const lcomm_carry_block *block,
                              lcomm_carry_block *given);

/* What the ranks of a communicator bring: blocks, rank after rank. */
typedef struct lcomm_carry_blocks {
  const lcomm_carry_block *mine;
  const uint32_t *counts; /* of each rank; one at least has some */
} lcomm_carry_blocks;

/* Tensors that went over, until it is known that they stay. */
typedef struct lcomm_carry {
  lcomm_comm *from, *to;        /* NULL: nothing went over */
  struct lcomm_carry_row *rows; /* per tensor: what it was in `from` */
  size_t count;
  struct lcomm_residual_row *residuals; /* likewise, of calls (residual_carry.h) */
  size_t residual_count;
} lcomm_carry;

/* All tensors and residuals of `from` become those of `to`, which has none: tensors are registered,
 * frozen and guarded by nobody, in no bucket. MEMORY: nothing was moved. */
lcomm_status lcomm_carry_move(lcomm_carry *it, lcomm_comm *from, lcomm_comm *to);

/* Load what the ranks have written. Collective over `to`; then tensors that were frozen are so
 * again. Errors as lcomm_state_read. */
lcomm_status lcomm_carry_load(lcomm_carry *it, const lcomm_carry_blocks *blocks);

/* Bring blocks to a communicator, averages in which were of so many ranks, and load them in one of
 * two ways; nothing where there are none. */
typedef lcomm_status lcomm_carry_way(lcomm_comm *comm, const char *call,
                                     const lcomm_state_source *source, int ranks_before);
lcomm_status lcomm_carry_bring(lcomm_comm *comm, const lcomm_carry_blocks *blocks, int ranks_before,
                               lcomm_carry_way *way);

/* Instead of loading, where some ranks have no tensors yet: what is brought is held by the
 * communicator (changes.held), and loaded by the next step, once all ranks have the same tensors.
 */
typedef struct lcomm_carry_held {
  lcomm_carry_block *mine;
  uint32_t count;   /* of mine */
  uint32_t *counts; /* of each rank */
  int ranks_before; /* in averages */
  lcomm_remembered remembered;
} lcomm_carry_held;

/* A copy of all that is given; free it with lcomm_carry_release, after a failure, too. MEMORY. */
lcomm_status lcomm_carry_hold(lcomm_comm *comm, const lcomm_carry_held *held);
void lcomm_carry_release(lcomm_comm *comm);

/* Tensors that went over are frozen as they were. */
void lcomm_carry_freeze(lcomm_carry *it);

/* Inside a step that has compared the tensors: all are grouped, frozen ones too, and have what was
 * held. Does nothing where nothing was. Collective; errors as lcomm_state_read. */
lcomm_status lcomm_carry_resume(lcomm_comm *comm);

/* They go back, as they were; or they stay. Nothing is done where nothing went over. */
void lcomm_carry_undo(lcomm_carry *it);
void lcomm_carry_finish(lcomm_carry *it);

#endif
