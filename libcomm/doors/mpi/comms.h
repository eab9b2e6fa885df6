/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_COMMS_H
#define LCOMM_DOORS_MPI_COMMS_H

/* The communicators that the door knows: made with the program's, as attributes of
 * them, and freed with them. */

#include "libcomm/doors/mpi/door.h"

/* Begin: the communicator of the world. Collective over it. False when libcomm
 * cannot start; the sentence is lcomm_last_error(NULL). */
bool lcomm_door_comms_open(void);

/* End: free what is left, in the order in which it was made. Collective. */
void lcomm_door_comms_close(void);

/* A communicator was made by one of MPI's blocking constructors. Collective over
 * it. Communicators that nothing would ever be chosen on stay unknown. */
void lcomm_door_adopt(MPI_Comm comm);

/* What is known of it; NULL: nothing, MPI alone serves it. */
lcomm_door_comm *lcomm_door_find(MPI_Comm comm);

/* libcomm's communicator for it, with a policy (NULL: that of LCOMM_POLICY), and what goes with
 * it. Collective; the same verdict on all ranks. The sentence is lcomm_last_error(NULL). */
lcomm_status lcomm_door_comm_equip(lcomm_door_comm *at, const char *policy);

/* The names of a communicator's ranks, if they agree on one; blocking. */
void lcomm_door_agree_on_name(lcomm_door_comm *at);

#endif
