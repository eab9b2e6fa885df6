/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_NOTE_H
#define LCOMM_DOORS_MPI_NOTE_H

/* Calls as the report (report.h) counts them. */

#include "libcomm/doors/mpi/door.h"

/* Note one call. call->at may be NULL, its dtype is meaningless where libcomm does
 * not have the type. taken: it is, or with LCOMM_DOOR=report would be, libcomm's. */
void lcomm_door_note_call(MPI_Comm comm, MPI_Datatype type, MPI_Op op, const lcomm_door_call *call,
                          lcomm_selection choice, bool taken, const char *why);

#endif
