/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_NOTE_H
#define LCOMM_INTERPOSE_MPI_NOTE_H

/* Calls as the report (report.h) counts them. */

#include "libcomm/interpose/mpi/interpose.h"

/* Note one call. call->at may be NULL, its dtype is meaningless where libcomm does
 * not have the type. taken: it is, or with LCOMM_INTERPOSE=report would be, libcomm's. */
void lcomm_interpose_note_call(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                               const lcomm_interpose_call *call, lcomm_selection choice, bool taken,
                               const char *why);

#endif
