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

/* What lcomm_shrink() has found. */
typedef struct lcomm_shrunk {
  int ranks_before; /* of the communicator that was shrunk; 0: none was, and the rest is 0, too */
  int lost;         /* ranks of it that are not in the next one */
  uint64_t steps;   /* of tensors that are finished, the same on all ranks */
  /* Of this rank. 1: its lcomm_tensors_wait() has failed, but the step is finished on all ranks,
   * and its results are in the tensors' buffers: go on as if the call had returned LCOMM_OK. 0:
   * what was begun of step number `steps` (from 0) is undone: make its gradients again. */
  int finished;
  /* Of what error feedback remembered of tensors, counted in elements, the share that lost ranks
   * kept, from 0 to 1. It is gone. */
  double lost_residual;
} lcomm_shrunk;

/* Of the shrink that made `comm`. Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_shrunk_get(const lcomm_comm *comm, lcomm_shrunk *shrunk);

/* Make a communicator of the ranks that live. Collective over them: each calls it as soon as one of
 * its calls has failed. Policy, time-out, transports, progress, name and posed nodes are those of
 * `comm`; ranks are numbered anew in their old order; topology and plans are made anew, statistics
 * begin at zero.
 *
 * The ranks meet at the lowest one that lives. A rank at whose port nobody listens any more is
 * dead, and not waited for. One that does not come is waited for as long as the time-out of `comm`;
 * one that computes that long is lost as well. Any of them, the one at which they meet too, may die
 * meanwhile. Those that came go on only when no others can: when they are more than half of the
 * ranks that are not known to be dead, or half of them with the lowest. So of two parts that a
 * network has cut from each other one goes on at most. Whoever does not ends with a sentence. No
 * call takes longer than four time-outs, and what it takes to make a communicator.
 *
 * Tensors of `comm` become those of the next communicator: the same handles, in the same order,
 * with buffers, factors and what is frozen. All ranks stand at the same step afterwards. A step of
 * tensors counts when all ranks have its results: lcomm_tensors_wait() ends with a barrier in
 * elastic communicators, and whoever has passed it knows that the others have them, too. A step
 * that some rank has passed is finished by those that have not; one that nobody has passed is
 * finished if all that live have its results, else it is undone on all, bit for bit (undo=on is
 * implied by LCOMM_ELASTIC=on, and error feedback takes twice the memory). lcomm_shrunk_get() tells
 * which. So weights change after lcomm_tensors_wait(), not after lcomm_tensor_wait(). Residuals and
 * momentum are shared out among the ranks that live as by lcomm_state_load(): no mass of theirs is
 * lost, and a residual of averages is scaled by the ranks that are left. What a lost rank kept is
 * gone; lcomm_shrunk_get() tells its share. warmup=, ramp= and the numbers of steps go on. Where
 * the rank was lost while tensors were grouped anew (lcomm_tensor_freeze, guard=), residuals and
 * momentum begin at zero; where lcomm_policy_set() was under way, ranks may have different
 * policies: MISMATCH. What is remembered travels from each rank to all, rank after rank.
 *
 * A communicator may be shrunk again and again, down to one rank. A child that a rank has forked
 * and that outlives it keeps its port open: then the rank is taken for one that is silent.
 *
 * comm   stays, failed and without tensors, and is the caller's to destroy, at any time; requests
 *        of it can still be waited for, and return its error. It can be shrunk once. No other
 *        thread uses it or its tensors meanwhile
 * next   receives the communicator, owned by the caller: lcomm_destroy()
 * Errors: ARGUMENT; UNSUPPORTED (it is not elastic, or was shrunk already; it has residuals
 * of calls, or tensors on a device, which are not carried over); STATE (nothing has failed, or not
 * for a lost rank); TIMEOUT (too few ranks came, or they could not agree in time), MISMATCH
 * (another job meets there), and those of lcomm_create(). After an error `comm` can be destroyed,
 * and, but for UNSUPPORTED, the call be tried again. */
LCOMM_API lcomm_status lcomm_shrink(lcomm_comm *comm, lcomm_comm **next);

#ifdef __cplusplus
}
#endif

#endif
