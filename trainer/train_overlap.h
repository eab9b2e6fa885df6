/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_OVERLAP_H
#define TRAINER_TRAIN_OVERLAP_H

#include <libcomm.h>

/* How much of the communication of gradients hides behind backward. Of a step:
 *
 *   began          the first gradients leave; backward goes on
 *   waiting        backward is done, nothing is left but to wait for averages
 *   ended          they are there
 *
 *   communication  the time with a message in flight (wire_s), at most began .. ended, at least
 * what was waited exposed        waiting .. ended
 *
 * Hidden is what is not exposed. A rank that waits for a slower one is exposed, too. */

typedef struct overlap {
  double began_s, waiting_s, wire_s; /* of this step; began_s 0: no gradients have left */
  double communication_s, exposed_s; /* of all steps, until somebody puts them to 0 */
} overlap;

/* When something of a step happens. */
typedef struct overlap_moment {
  double now_s;  /* of a clock that nobody sets, not 0 */
  double wire_s; /* with a message in flight, so far (lcomm_stats) */
} overlap_moment;

overlap_moment overlap_now(const lcomm_comm *comm);

void overlap_begin(overlap *self, overlap_moment at);
void overlap_sent(overlap *self, double now_s); /* the first time in a step counts */
void overlap_waits(overlap *self, double now_s);
void overlap_ends(overlap *self, overlap_moment at);

/* 0 to 1, of such times; 1 without communication. */
double overlap_hidden(double communication_s, double exposed_s);

#endif
