/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_CONTROL_H
#define LCOMM_INTERPOSE_MPI_CONTROL_H

/* Changing one's mind while the program runs. LCOMM_INTERPOSE_CONTROL names a file with
 * one line:
 *   on             as the policy says (also: no file, or an empty one)
 *   off            all calls are MPI's; what error feedback owes is paid first
 *   policy WORDS   another policy
 * Rank 0 of a communicator reads it at the first blocking sum on it that is long enough for
 * the policy, and at every 16th after it; the ranks agree in that call, so all change at the
 * same one. Until then LCOMM_POLICY holds.
 */

#include "libcomm/interpose/mpi/interpose.h"

/* Is a file named at all? */
bool lcomm_interpose_control_wanted(void);

/* One of its blocking sums begins. Collective over it. */
void lcomm_interpose_control_look(lcomm_interpose_comm *at);

/* Leave what the policy before has made, when nothing is owed to it any more. */
void lcomm_interpose_control_settle(lcomm_interpose_comm *at);

#endif
