/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_RESIDUALS_H
#define LIBCOMM_RESIDUALS_H

/* Sums with error feedback that have no tensor. libcomm_interpose.h includes this header;
 * ownership, threads and errors are as libcomm.h says at its beginning. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plain all-reduce has no memory. A residual gives it one: what a call with it
 * did not send is added to the next call with it. It belongs to a buffer of a
 * fixed length whose meaning stays, such as one layer's gradient.
 *
 * A residual with a name is to calls what a tensor is to steps: lcomm_state_save() and
 * lcomm_state_write() save it, and exempt=, momentum= and clip= of the policy act on its calls.
 * One without a name is not saved: flush before a checkpoint; and momentum= and clip= leave
 * its calls alone. */
typedef struct lcomm_residual lcomm_residual;

/* Make one, with nothing in it. Local call, in the same order on all ranks.
 * count     of float32 elements, the same in every call, on all ranks; 0 is allowed
 * op        LCOMM_SUM or LCOMM_AVG, likewise
 * Ranks know a residual by the order in which they make them: a call with another
 * one is a MISMATCH.
 * residual  receives it, owned by the communicator: valid until
 *           lcomm_residual_destroy() or lcomm_destroy(); after lcomm_shrink() and
 *           lcomm_regroup() it is of the next communicator
 * Errors: ARGUMENT, MEMORY, or the sticky error. */
LCOMM_API lcomm_status lcomm_residual_create(lcomm_comm *comm, uint64_t count, lcomm_op op,
                                             lcomm_residual **residual);

/* The same with a name.
 * name   unique among the residuals of the communicator, copied, 1 to 127 bytes, equal on all
 *        ranks. Tensors have names of their own: a tensor may be called the same
 * Errors: as lcomm_residual_create, ARGUMENT for a name that is used or has another length. */
LCOMM_API lcomm_status lcomm_residual_create_named(lcomm_comm *comm, const char *name,
                                                   uint64_t count, lcomm_op op,
                                                   lcomm_residual **residual);

/* One for reduce-scatters, as of ZeRO and FSDP.
 * counts  elements that each rank receives, one number per rank, 0 allowed, equal on all
 *         ranks; read during the call only. As long ones on all ranks make an even reduce-scatter
 * name    as above; NULL: none
 * Memory: float32 for each element whose contributions of the node this rank sums, which is one
 * of (ranks of the node) elements; twice that with momentum=. Where the calls' buffers are on a
 * device it is memory that host and device share.
 * Errors: as lcomm_residual_create_named. */
LCOMM_API lcomm_status lcomm_residual_create_scatter(lcomm_comm *comm, const char *name,
                                                     const uint64_t *counts, lcomm_op op,
                                                     lcomm_residual **residual);

/* lcomm_allreduce() of float32, through the policy's codec with error feedback
 * where the policy asks for it (+ef); what was not sent stays in the residual.
 * One call at a time may be in flight with a residual: until its request was waited for, or
 * tested and found over. send, receive: as in lcomm_allreduce, on the host or on a device. What
 * the residual holds lies where they do: a call with buffers elsewhere than those of the call
 * before moves it, and makes anew what the calls work with; ranks may differ in this. Of the
 * policy, match= does not act here, momentum= and clip= where the residual has a name; node=
 * rounds without a residual. With momentum= the result is that of an optimiser with momentum,
 * whose own must be 0, in exact calls, too.
 * With quorum= of the policy a call does not wait for the slowest rank: its result is of the ranks
 * that were used, as of tensors (libcomm.h), the same on all ranks, and what was not used of this
 * rank is in its residual, like what the codec leaves out, with +ef or without. The first call with
 * a residual, and the first after lcomm_policy_set(), is exact and waits for all ranks; so do calls
 * that flush. lcomm_behind() and lcomm_lateness_get() count the others. The residual is of all
 * elements on every rank then. lcomm_residual_destroy() leaves what others still need, until they
 * have it. Sums are made on the host: data on a device comes through pinned memory of as many
 * elements, so a call waits until the device has brought it, before it begins, and its request for
 * the result to be back. Calls with different residuals are not compared: a rank that makes another
 * call is one that does not contribute.
 * Errors: as lcomm_allreduce; ARGUMENT for a residual of reduce-scatters; STATE while another
 * call with it is in flight; with quorum= SYSTEM where data of a device cannot be copied. */
LCOMM_API lcomm_status lcomm_allreduce_ef(lcomm_residual *residual, const void *send,
                                          void *receive);
LCOMM_API lcomm_status lcomm_iallreduce_ef(lcomm_residual *residual, const void *send,
                                           void *receive, lcomm_request *request);

/* The same in order with `stream`, a stream of the device that both buffers are on, as
 * lcomm_allreduce_on_stream(): what libcomm_collectives.h says there of streams, of early returns
 * and of what fails after one, goes for it. Nobody has a request of it: the next function that
 * uses the residual, lcomm_policy_set(), what saves and loads states, and lcomm_destroy() wait
 * until it is over, so a second call with the residual returns when the one before is over. What
 * nonfinite=discard undoes is undone then. With quorum= the call waits for the stream, and returns
 * when the result is there.
 * Errors: as lcomm_allreduce_ef and lcomm_allreduce_on_stream. */
LCOMM_API lcomm_status lcomm_allreduce_ef_on_stream(lcomm_residual *residual, const void *send,
                                                    void *receive, void *stream);

/* The exact all-reduce of send plus what all ranks' residuals hold, which is
 * nothing afterwards: nothing is lost when a program goes on without error
 * feedback. Momentum joins in once more and starts anew, as that of all that is sent does.
 * Otherwise as above. */
LCOMM_API lcomm_status lcomm_allreduce_flush(lcomm_residual *residual, const void *send,
                                             void *receive);
LCOMM_API lcomm_status lcomm_iallreduce_flush(lcomm_residual *residual, const void *send,
                                              void *receive, lcomm_request *request);

/* lcomm_allreduce_flush() in order with `stream`, as lcomm_allreduce_ef_on_stream(). */
LCOMM_API lcomm_status lcomm_allreduce_flush_on_stream(lcomm_residual *residual, const void *send,
                                                       void *receive, void *stream);

/* lcomm_reduce_scatterv() of float32 with error feedback, and the exact one that leaves
 * nothing: as the two above, with a residual of lcomm_residual_create_scatter().
 * send     the sum of all counts, in elements
 * receive  counts[rank] elements; in place as in lcomm_reduce_scatterv
 * What a rank sends to itself is whole; with net=topk what other nodes send of it is
 * their largest values, and the rest waits in their residuals. With momentum= the rank's own
 * part, which is whole, has the momentum of an exact sum. */
LCOMM_API lcomm_status lcomm_reduce_scatter_ef(lcomm_residual *residual, const void *send,
                                               void *receive);
LCOMM_API lcomm_status lcomm_ireduce_scatter_ef(lcomm_residual *residual, const void *send,
                                                void *receive, lcomm_request *request);
/* lcomm_reduce_scatter_ef() in order with `stream`, as lcomm_allreduce_ef_on_stream(). With
 * nonfinite=discard in the policy the ranks ask each other, so it returns when that is over. */
LCOMM_API lcomm_status lcomm_reduce_scatter_ef_on_stream(lcomm_residual *residual, const void *send,
                                                         void *receive, void *stream);

LCOMM_API lcomm_status lcomm_reduce_scatter_flush(lcomm_residual *residual, const void *send,
                                                  void *receive);
LCOMM_API lcomm_status lcomm_ireduce_scatter_flush(lcomm_residual *residual, const void *send,
                                                   void *receive, lcomm_request *request);

/* lcomm_reduce_scatter_flush() in order with `stream`, as lcomm_reduce_scatter_ef_on_stream(). */
LCOMM_API lcomm_status lcomm_reduce_scatter_flush_on_stream(lcomm_residual *residual,
                                                            const void *send, void *receive,
                                                            void *stream);

/* Undo the last call with it, a flush too, as if it had never been: what the residual holds, its
 * momentum, its place in warmup= and ramp=, and, where it has a name, the random numbers of
 * stochastic rounding are again what they were before, bit for bit. lcomm_tensors_discard() has
 * the why; the policy needs undo=on or nonfinite=discard likewise, and the result stays where it
 * is. With nonfinite=discard an all-reduce whose result holds NaN or Inf is undone when its request
 * was waited for. Of a reduce-scatter each rank sees its part only: lcomm_reduce_scatter_ef() and
 * lcomm_reduce_scatter_flush() ask all ranks before they return, by one more small message, and it
 * is undone on all if any part holds one, which lcomm_stats.discarded counts. After
 * lcomm_ireduce_scatter_ef() the ranks have to agree on lcomm_request_not_finite() and call this.
 * Collective, before the next call with it, on all ranks for the same call. A call that was undone
 * already stays so. A call with buffers elsewhere than those of the call before moves what is held:
 * the call itself can be undone, and then all is where its buffers are.
 * Errors: ARGUMENT, STATE without undo=on, while a call with it is in flight, and where there is no
 * call to undo; MISMATCH when other ranks do not discard it; or as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_residual_discard(lcomm_residual *residual);

/* The part that lives on this rank: `count` values, zero where it keeps none. The sum
 * over the ranks is what was not applied yet, in units of contributions, also for averages:
 * sum_ranks(send + residual before) == size*average + sum_ranks(residual after). With quorum= that
 * holds once all ranks have made the same calls, and an average is of as many as were used.
 * Of reduce-scatters: the sum of all counts, in the order of `send`.
 * values  on the host, wherever the calls' buffers are
 * Errors: ARGUMENT, STATE while a call with it is in flight. */
LCOMM_API lcomm_status lcomm_residual_get(const lcomm_residual *residual, float *values);

/* How many calls with it, those that flush it too, have been finished and not undone: by their
 * requests, or by the call itself. Local. After lcomm_shrink() it is the same on all ranks, and
 * says whether the call that was broken off is finished (libcomm_elastic.h). A newcomer
 * (lcomm_join) has the number of the others once a step of tensors or a call with a residual was
 * made. Errors: ARGUMENT, or the failure of a call that was left to a stream. */
LCOMM_API lcomm_status lcomm_residual_calls(const lcomm_residual *residual, uint64_t *calls);

/* How many elements each rank receives: the counts of lcomm_residual_create_scatter(), until
 * lcomm_shrink() or lcomm_regroup() shares out the vector among other ranks.
 * counts  one number per rank of the communicator
 * Local. Errors: ARGUMENT, also for a residual of all-reduces. */
LCOMM_API lcomm_status lcomm_residual_counts(const lcomm_residual *residual, uint64_t *counts);

/* What the guard (guard=STEPS of the policy; libcomm_tensors.h under GUARD, where all figures are
 * defined) found of its calls. Each STEPS-th call is sampled; the samples are summed beside the
 * next call with the residual, whose request waits for that, too; and the figures are there when
 * that one is over. A call beside which samples are summed is not sampled. What is beyond its limit
 * goes to a milder codec with the call after that one, which is exact and flushes the residual, on
 * all ranks alike. lcomm_policy_set() puts all residuals back to the policy's codec; a loaded state
 * says nothing of it. The sum of samples is one of the program's calls in the numbers by which
 * stochastic rounding is seeded in plain calls and in those of residuals without a name.
 * figures->tensor is the name of the residual, "" without one; `step` counts calls. Errors:
 * ARGUMENT, or the sticky error. */
LCOMM_API lcomm_status lcomm_residual_guard(const lcomm_residual *residual,
                                            lcomm_guard_figures *figures);

/* Forget it, and what it holds. Local call. Errors: ARGUMENT for NULL, STATE while a call
 * with it is in flight. */
LCOMM_API lcomm_status lcomm_residual_destroy(lcomm_residual *residual);

#ifdef __cplusplus
}
#endif

#endif
