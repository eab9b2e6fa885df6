/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_ELASTIC_H
#define LIBCOMM_ELASTIC_H

/* Going on without ranks that were lost, and with ranks that leave and join. libcomm.h includes
 * this header at its end; ownership, threads and errors are as it says at its beginning.
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
 * --no-kill and --kill-on-bad-exit=0 (newcomers come in a job step of their own, so set LCOMM_TOKEN
 * for all), or by another launcher that lets the others live. Messages of
 * elastic communicators do not travel over MPI. Each rank listens at a TCP port from the creation
 * on, at its address of the connection with rank 0; strangers are refused as at the store of
 * lcomm_create_env() (LCOMM_TOKEN). Parts of a communicator (lcomm_split) are not elastic. A job
 * may begin with one rank: it listens when the first newcomer has come.
 *
 * Ranks leave in order, and newcomers join, between two steps:
 *
 *   lcomm_changes changes;
 *   status = lcomm_tensors_wait(comm);  // or lcomm_barrier(comm), without tensors
 *   ...
 *   lcomm_changes_get(comm, &changes);
 *   if (changes.leaving > 0 || changes.waiting > 0) {
 *     lcomm_comm *next = NULL;
 *     status = lcomm_regroup(comm, &next);
 *     if (status == LCOMM_OK) {
 *       lcomm_destroy(comm);
 *       comm = next;  // NULL: this rank has left
 *     }
 *   } */

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
  /* Of what error feedback remembered of tensors and calls, counted in elements, the share that
   * lost ranks kept, from 0 to 1. It is gone. */
  double lost_residual;
  /* How large that is: its Euclidean norm, as if values that lost ranks kept were as large as those
   * that the others keep. Nobody knows those of a rank that is lost. */
  double lost_norm;
} lcomm_shrunk;

/* Of the shrink that made `comm`, or of lcomm_regroup(). Errors: ARGUMENT (NULL). */
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
 * Residuals of calls (libcomm_residuals.h) become those of the next communicator likewise: the same
 * handles, with or without a name, with what they keep and their places in warmup= and ramp=. A
 * call counts when all ranks that live have finished it. One that some have not is undone on all,
 * bit for bit, also where it has returned LCOMM_OK; lcomm_residual_calls() tells how many count,
 * the same on all ranks:
 *
 *   lcomm_residual_calls(residual, &calls);
 *   // calls == mine: all that have returned LCOMM_OK here
 *   // calls == mine - 1: the last one of these is undone: make it again
 *   // calls == mine + 1: the one that has failed here, or was not waited for, is finished
 *
 * So results change weights after lcomm_barrier(), or after another call for which all ranks wait:
 * whoever has passed it knows that all have finished the calls before it. What was undone is what
 * the residual keeps: the result stays in the caller's buffer. A residual of reduce-scatters has
 * other parts then, as even as they can be, the first ones one longer: count / ranks, and one more
 * for the first count % ranks of them (lcomm_residual_counts). A program with other parts takes
 * what the residual keeps (lcomm_residual_get), adds it to its next contribution, and makes another
 * residual; momentum of results that a lost rank received is gone. A residual that some ranks had
 * not made yet, or had destroyed already, goes over with nothing in it.
 *
 * Channels (libcomm_pairs.h) do not go over, because their peers are ranks of `comm`: what waits in
 * them can be had by lcomm_channel_get() until `comm` is destroyed; make others in the next one.
 *
 * A communicator may be shrunk again and again, down to one rank. A child that a rank has forked
 * and that outlives it keeps its port open: then the rank is taken for one that is silent.
 *
 * Tensors on a device, and residuals whose calls had buffers there, go over like those on the host.
 * The call waits until the device is through with what libcomm has put there, and with what that
 * waits for: streams in which tensors were reported, or calls made, wait for nothing that the
 * calling thread does later.
 *
 * comm   stays, failed, without tensors and residuals, and is the caller's to destroy, at any time;
 * requests of it can still be waited for, and return its error. It can be shrunk once. No other
 *        thread uses it or its tensors meanwhile
 * next   receives the communicator, owned by the caller: lcomm_destroy()
 * Errors: ARGUMENT; UNSUPPORTED (it is not elastic, or was shrunk already, or has more than 65536
 * residuals); STATE (nothing has failed, or not for a lost rank); TIMEOUT (too few ranks
 * came, or they could not agree in time), MISMATCH (another job meets there), and those of
 * lcomm_create(). After an error `comm` can be destroyed, and, but for UNSUPPORTED, the call be
 * tried again. */
LCOMM_API lcomm_status lcomm_shrink(lcomm_comm *comm, lcomm_comm **next);

/* ------------------------------------------------------------ leaving and joining */

/* What ranks have asked for. */
typedef struct lcomm_changes {
  int leaving; /* ranks that ask to leave */
  int waiting; /* newcomers that wait to join */
  int leaves;  /* 1: this rank is one of those that ask to leave */
} lcomm_changes;

/* This rank asks to leave: with the next lcomm_regroup() it goes. It takes part in all calls until
 * then. Local, from any thread, and from a signal handler: a notice that this host goes away is a
 * reason. A rank that goes without asking is a lost one, and what it keeps is gone. Errors:
 * ARGUMENT (NULL), UNSUPPORTED (not elastic). */
LCOMM_API lcomm_status lcomm_leave(lcomm_comm *comm);

/* What was asked for until the end of the last lcomm_tensors_wait() or lcomm_barrier() that has
 * succeeded: counts are the same on all ranks, so all decide alike. They travel with the barrier
 * that ends a step, and with that of the program, and cost no message of their own. All 0 before
 * the first of them. Local. Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_changes_get(const lcomm_comm *comm, lcomm_changes *changes);

/* What the call that made a communicator (lcomm_regroup, _join or _shrink) has changed. */
typedef struct lcomm_regrouped {
  int ranks_before; /* of the communicator before; 0: there was none, and the rest is 0, too */
  int left;         /* ranks of it that left in order, */
  int lost;         /* and that were lost meanwhile */
  int joined;       /* newcomers: the last so many ranks */
  int is_newcomer;  /* 1: this rank is one of them */
  uint64_t steps;   /* of tensors that are finished, the same on all ranks, newcomers too */
} lcomm_regrouped;

/* Of the call that made `comm`; also of an lcomm_shrink() that ranks made which did not know of a
 * change. Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_regrouped_get(const lcomm_comm *comm, lcomm_regrouped *regrouped);

/* Make a communicator without the ranks that ask to leave and with the newcomers that wait.
 * Collective over comm, between two steps, with no request in flight. Ranks that stay come first,
 * in their old order, newcomers behind them; so rank 0 of the next communicator always has been
 * there before. Policy, time-out, transports, progress, name and posed nodes are those of `comm`;
 * topology and plans are made anew. Nobody need leave or join: then the next communicator has the
 * same ranks.
 *
 * Tensors and residuals become those of the next communicator as with lcomm_shrink(). What error
 * feedback remembers (residuals, momentum, low rank) of those that leave goes to those that stay
 * before they go, so nothing is lost; all of it is shared out as by lcomm_state_load(), and
 * residuals of averages are scaled by the number of ranks. Steps, warmup= and ramp= go on.
 *
 * With newcomers, tensors are grouped anew by the next step (or lcomm_state_load()), and what is
 * remembered is shared out then. Until that, lcomm_tensor_residual() finds zeros. A newcomer adds
 * the same tensors in the same order, frozen ones too, before that step. Weights and the state of
 * the optimiser are the program's: send them from rank 0 by lcomm_broadcast(). With residuals of
 * calls that step may as well be the first call with one, which returns when all ranks have begun
 * it: before it newcomers make the same residuals in the same order (those of reduce-scatters with
 * even parts, as lcomm_shrink() says), and add the same tensors. Until that lcomm_residual_get()
 * finds zeros.
 *
 * A rank that is lost before the ranks have agreed ends the call with TRANSPORT on all that live,
 * and they call lcomm_shrink(comm): nothing is lost but what it kept, and who asked to leave is
 * still there. After that the others go on without it in the same call, and lcomm_regrouped_get()
 * tells. Newcomers that wait are then admitted by a later call, and so are those that come to a
 * rank 0 that leaves.
 *
 * comm   stays, without tensors and residuals, and is the caller's to destroy: nothing else can be
 * done with it next   receives the communicator, owned by the caller; NULL on ranks that have left
 * Errors: those of lcomm_shrink(); STATE for a step or a request in flight. After TRANSPORT or
 * TIMEOUT lcomm_shrink(comm) may be called. */
LCOMM_API lcomm_status lcomm_regroup(lcomm_comm *comm, lcomm_comm **next);

/* Join an elastic job that is under way. The caller waits at its rank 0, at MASTER_ADDR and
 * MASTER_PORT, until the others call lcomm_regroup(), at most for the time-out. LCOMM_TOKEN is that
 * of the job; RANK and WORLD_SIZE are not needed. Rank 0 may move to another host when it leaves or
 * is lost: MASTER_ADDR may be a list of hosts, host0,host1,..., which are tried in turn until one
 * lets this rank in. With LCOMM_JOIN=on lcomm_create_env() does the same, so a launcher can start a
 * rank anew without changing its program: lcomm_regrouped_get() tells whether it is a newcomer.
 *
 * Rank 0 listens there from its first lcomm_tensors_wait(), lcomm_barrier() or lcomm_regroup() on,
 * and looks for newcomers at the end of each step and in each barrier, without waiting. Who goes
 * away meanwhile is forgotten. One with another token, or whose libcomm or LCOMM_NODES does not
 * fit, is refused, and the others go on without it. At most 64 wait at once. The port of the job
 * stays taken as long as the job runs.
 *
 * Policy, transports, progress, time-out and name come from the others: what `config` says of them
 * is not used, but for the time-out of the waiting. NULL: as with LCOMM_CONFIG_INIT. Errors:
 * ARGUMENT; TIMEOUT (not admitted), MISMATCH (another token, or what does not fit), and those of
 * lcomm_create(). */
LCOMM_API lcomm_status lcomm_join(const lcomm_config *config, lcomm_comm **comm);

#ifdef __cplusplus
}
#endif

#endif
