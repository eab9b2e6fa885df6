/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_ECHO_H
#define LCOMM_INTERPOSE_MPI_ECHO_H

/* When a generalized request fails, Open MPI asks the error handler of MPI_COMM_WORLD,
 * which by default ends the job, whatever the communicator of the call says. The
 * failure was told to the right handler by then, so this second question is kept
 * from the program. */

/* The calling thread is about to give MPI the error code of a generalized request. */
void lcomm_interpose_echo_expect(void);

#endif
