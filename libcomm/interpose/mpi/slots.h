/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_SLOTS_H
#define LCOMM_INTERPOSE_MPI_SLOTS_H

/* Communicators of MPI for messages over MPI, where neither shared memory nor UCX reaches all
 * ranks: made in MPI_Init, over the world, because nothing may be made later. Each serves one
 * communicator of libcomm at a time. Numbered from 1, the same on all ranks; 0: none. */

#include "libcomm/interpose/mpi/meeting.h"

enum { LCOMM_INTERPOSE_SLOTS = 63 };

/* Collective over the world: make them, where its messages travel over MPI. */
bool lcomm_interpose_slots_open(void);
void lcomm_interpose_slots_close(void);

/* *slot: one that is free on all ranks of the point, 0 where none is needed; taken by the
 * caller. Collective over them, the same answer on all. False: none is free, or a rank does
 * not come, as the point says. */
bool lcomm_interpose_slot_take(lcomm_interpose_meeting_point *point, int *slot);

/* Its communicator, NULL of 0. */
MPI_Comm *lcomm_interpose_slot_comm(int slot);

/* Nothing comes any more from the ranks that it served: drop what nobody took. */
void lcomm_interpose_slot_give_back(int slot);

#endif
