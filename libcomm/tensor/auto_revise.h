/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_AUTO_REVISE_H
#define LCOMM_TENSOR_AUTO_REVISE_H

/* net=auto, revised by tensors (call/call_watch.h: by plain calls). Steps of tensors are watched:
 * how long sums were in flight, and how long the program computed meanwhile. At agreed steps rank 0
 * compares that with the predictions. Where they differ by half it corrects the figures
 * (plan/auto_figures.h); and where sums hide behind the
 * computation it allows no coarser codec than hides. All ranks take its figures and plan their
 * buckets anew. */

#include "libcomm/engine/engine.h"
#include "libcomm/plan/auto_figures.h"

/* Of the steps since the last comparison. */
typedef struct lcomm_auto_watch {
  double begun_s;      /* the first bucket of this step started; 0: none has */
  double busy_since_s; /* a sum is in flight since then */
  double busy_s;       /* of this step: sums were in flight */
  double window_s;     /* of this step: from its first sum to the wait for all */
  double least_busy_s; /* least of all steps; 0: none is over */
  double least_window_s;
  unsigned in_flight;
  bool counts; /* a step is over since plans were made */
} lcomm_auto_watch;

/* Called under the communicator's turn: a bucket starts, a bucket is over, the program waits for
 * all tensors. Nothing is done, and no clock is read, where net=auto does not act. */
void lcomm_auto_watch_begin(lcomm_comm *comm);
void lcomm_auto_watch_end(lcomm_comm *comm);
void lcomm_auto_watch_wait(lcomm_comm *comm);

/* A step of tensors is over on all ranks; collective at the agreed steps. Errors as of an
 * all-reduce, sticky. */
lcomm_status lcomm_auto_step_over(lcomm_comm *comm);

#endif
