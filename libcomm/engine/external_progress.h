/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_EXTERNAL_PROGRESS_H
#define LCOMM_ENGINE_EXTERNAL_PROGRESS_H

/* External progress: messages that the program has in flight in MPI move only while somebody is
 * inside MPI. A rank that waits in libcomm is not, so it calls the bootstrap's progress function
 * (bootstrap_object.h) at intervals: a peer may need such a message before it can come to the call
 * that is waited for. The intervals grow from 20 us to 8 ms while nothing moves there, from wait to
 * wait, because MPI has no file descriptor to sleep on. MPI does not say whether anything moved;
 * progress that takes several times as long as the shortest did is taken for it.
 */

#include "libcomm/transport/bootstrap_object.h"

typedef struct lcomm_external_pace {
  double last_s, next_s; /* when it was made, when it is due */
  double pause_s;        /* between the two */
  double shortest_s;     /* that it ever took: nothing moved then; 0: not known */
} lcomm_external_pace;

/* Begin a wait that has found nothing to do. */
void lcomm_external_begin(lcomm_external_pace *pace, double now_s);

/* Make progress if it is due. Does nothing without a function for it. */
void lcomm_external_progress(lcomm_external_pace *pace, lcomm_bootstrap_object *bootstrap,
                             double now_s);

/* The longest sleep that is allowed, at most limit_s. */
double lcomm_external_limit_s(const lcomm_external_pace *pace,
                              const lcomm_bootstrap_object *bootstrap, double now_s,
                              double limit_s);

#endif
