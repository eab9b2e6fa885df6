/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_ELASTIC_H
#define LIBCOMM_ELASTIC_H

/* Going on without ranks that were lost. libcomm.h includes this header at its end; ownership,
 * threads and errors are as it says at its beginning.
 *
 * With LCOMM_ELASTIC=on on all ranks, communicators of lcomm_create_env() and lcomm_create_at() are
 * elastic: when a rank dies, the others fail with LCOMM_ERR_TRANSPORT or LCOMM_ERR_TIMEOUT, as
 * those of any communicator do, and can then make another communicator without it:
 *
 *   if (status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT) {
 *     lcomm_comm *next = NULL;
 *     if (lcomm_shrink(comm, &next) == LCOMM_OK) {
 *       lcomm_destroy(comm);
 *       comm = next;
 *     }
 *   }
 *
 * No launcher may end the job for a dead rank, as mpirun does: start ranks by hand, by srun with
 * --no-kill and --kill-on-bad-exit=0, or by another launcher that lets the others live. Messages of
 * elastic communicators do not travel over MPI. Each rank listens at a TCP port from the creation
 * on, at its address of the connection with rank 0; strangers are refused as at the store of
 * lcomm_create_env() (LCOMM_TOKEN). Parts of a communicator (lcomm_split) are not elastic. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make a communicator of the ranks that live. Collective over them: each calls it as soon as one of
 * its calls has failed. Policy, time-out, transports, progress, name and posed nodes are those of
 * `comm`; ranks are numbered anew in their old order; topology and plans are made anew, statistics
 * begin at zero. What net=auto measured is kept.
 *
 * The ranks meet at the lowest one that lives. A rank at whose port nobody listens any more is
 * dead, and not waited for. One that does not come is waited for as long as the time-out of `comm`;
 * one that computes that long is lost as well. Any of them, the one at which they meet too, may die
 * meanwhile. Those that came go on only when no others can: when they are more than half of the
 * ranks that are not known to be dead, or half of them with the lowest. So of two parts that a
 * network has cut from each other one goes on at most. Whoever does not ends with a sentence. No
 * call takes longer than four time-outs, and what it takes to make a communicator.
 *
 * A communicator may be shrunk again and again, down to one rank. A child that a rank has forked
 * and that outlives it keeps its port open: then the rank is taken for one that is silent.
 *
 * comm   stays as it is, failed, and is the caller's to destroy, at any time; requests of it can
 *        still be waited for, and return its error. It can be shrunk once
 * next   receives the communicator, owned by the caller: lcomm_destroy()
 * Errors: ARGUMENT; UNSUPPORTED (it is not elastic, or was shrunk already; it has tensors or
 * residuals, which are not carried over); STATE (nothing has failed, or not for a lost rank);
 * TIMEOUT (too few ranks came, or they could not agree in time), MISMATCH (another job meets
 * there), and those of lcomm_create(). After an error `comm` can be destroyed, and, but for
 * UNSUPPORTED, the call be tried again. */
LCOMM_API lcomm_status lcomm_shrink(lcomm_comm *comm, lcomm_comm **next);

#ifdef __cplusplus
}
#endif

#endif
