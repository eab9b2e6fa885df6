/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_TENSORS_H
#define LIBCOMM_TENSORS_H

/* Named gradients, and saving what error feedback remembers of them. libcomm.h includes this header
 * at its end; ownership, threads and errors are as it says at its beginning. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- tensors */

/* Tensors are gradients with a name: they are averaged (or summed) every
 * step, fused into buckets, and own the error-feedback state of a lossy codec.
 *
 *   lcomm_tensor_add() for all, same order on all ranks
 *   each step: lcomm_tensor_ready(t) for each, in any order, from any thread;
 *              then lcomm_tensors_wait()
 *
 * Buckets follow the order of lcomm_tensor_add(), so add tensors in the order
 * in which backward produces them. A bucket starts when all of its tensors
 * are ready; buckets start in order on every rank, so ranks whose tensors
 * become ready in different orders cannot deadlock. */
typedef struct lcomm_tensor lcomm_tensor;

/* Register a tensor. Local call, before the first step or between two; the set is
 * compared between the ranks at the next lcomm_tensors_wait() (or lcomm_tensor_wait or
 * lcomm_tensor_test, whichever comes first), where MISMATCH names the first tensor that
 * differs, alike on all ranks. Buckets are then planned anew, see lcomm_tensor_freeze.
 * name     unique in the communicator, copied, at most 127 bytes
 * data     `count` elements of `dtype`: gradient in, result out. Owned by the
 *          caller, must stay valid until lcomm_destroy() or lcomm_tensor_data_set()
 * op       LCOMM_SUM or LCOMM_AVG
 * tensor   receives a handle that is valid until lcomm_destroy()
 * Errors: ARGUMENT (also a name used twice, and a buffer that overlaps that of
 * another tensor), STATE during a step, MEMORY. */
LCOMM_API lcomm_status lcomm_tensor_add(lcomm_comm *comm, const char *name, void *data,
                                        uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                        lcomm_tensor **tensor);

/* The same for a tensor that is a matrix: `rows` rows of `columns` elements, one row after the
 * other, both at least 1. With net=lowrank:RANK of the policy such tensors travel by low rank
 * (PowerSGD, Vogels et al. 2019): two factors of RANK * rows and RANK * columns elements are summed
 * in their place, and what they leave out of a step joins the next one. The more a gradient's rows
 * are alike, the less is left out. For a weight of any shape take the dimension of its outputs as
 * rows, and the others together as columns. Low rank acts on sums and averages of float32 and the
 * 16-bit types that are not exempt nor below min=, if the factors have less than half of the
 * elements: 2 * RANK * (rows + columns) < rows * columns. Others, and those that were added without
 * a shape, are summed as the rest of the policy says, or exactly. Without lowrank in the policy a
 * shape changes nothing; ranks compare it. Of a matrix, what is not finite in some rank's gradient
 * makes the whole result NaN, on all ranks. What is finite stays in the residual, which every rank
 * keeps of all elements. Errors: as lcomm_tensor_add; ARGUMENT also for a shape without elements.
 */
LCOMM_API lcomm_status lcomm_tensor_add_shaped(lcomm_comm *comm, const char *name, void *data,
                                               uint64_t rows, uint64_t columns, lcomm_dtype dtype,
                                               lcomm_op op, lcomm_tensor **tensor);

/* Give a tensor another buffer, for frameworks that allocate gradients anew. Local call: any
 * number of ranks may do it in any step. Nothing else of the tensor changes: its sum,
 * bucket, residual and momentum stay. It may be done between the steps, and in a step
 * until the tensor is reported ready; nothing reads the old buffer any more then.
 * data     as in lcomm_tensor_add, on the host, or on the device that the tensors of this
 *          communicator are on. NULL: none for now; the next lcomm_tensor_ready() needs one.
 *          Buffers of tensors that are ready do not overlap; lcomm_tensor_ready() refuses the
 *          second of two that do
 * Any thread, but not while another one reports this tensor ready.
 * Errors: ARGUMENT (not aligned to its element; in another place, both are named), STATE for
 * a tensor that was reported ready in this step, or the sticky error. */
LCOMM_API lcomm_status lcomm_tensor_data_set(lcomm_comm *comm, lcomm_tensor *tensor, void *data);

/* Leave a tensor out of the steps, e.g. a layer that is not trained for a while; take it in
 * again. A frozen tensor is not reported ready, nobody waits for it, and its buffer is not
 * touched. Local calls between the steps, to be made for the same tensors on all ranks: what
 * changed is compared at the begin of the next step that is waited for, as for
 * lcomm_tensor_add, and a rank that differs is a MISMATCH that all ranks report in the same
 * words. To freeze a frozen tensor does nothing, and a change that is taken back before the
 * step is none.
 * Tensors are then grouped into buckets anew. A bucket with the same tensors as before stays
 * as it is. Of the others, residuals and momentum are kept: bit for bit where each rank keeps
 * the elements that it kept before, as it does with one rank per node. Where parts move between
 * the ranks of a node they are summed and shared out among those that keep them now, which takes
 * about as long as an exact sum of these tensors, and no mass is lost to more than rounding. What
 * belongs to a frozen tensor waits for it: lcomm_tensor_residual() and lcomm_state_save() show it,
 * its next sum takes it up. For a single step it may be faster to report zeros.
 * Errors: ARGUMENT, STATE during a step, or the sticky error. */
LCOMM_API lcomm_status lcomm_tensor_freeze(lcomm_comm *comm, lcomm_tensor *tensor);
LCOMM_API lcomm_status lcomm_tensor_unfreeze(lcomm_comm *comm, lcomm_tensor *tensor);

/* Factors of a tensor, as in lcomm_allreduce_scaled: `before` multiplies each
 * rank's gradient before anything else, `after` the finished result. Equal on
 * all ranks, finite, not 0; between steps, or before the first one. With error
 * feedback the residual is what was multiplied by `before`.
 * Errors: ARGUMENT, STATE during a step. */
LCOMM_API lcomm_status lcomm_tensor_scale(lcomm_comm *comm, lcomm_tensor *tensor, double before,
                                          double after);

/* The gradient of this step is in the tensor's buffer. The library owns the
 * buffer from here to the return of lcomm_tensors_wait(), or until
 * lcomm_tensor_wait() or lcomm_tensor_test() says that it holds the result. Any thread. Of
 * tensors on the host the call only marks the tensor; the thread that drives the communicator does
 * the work (lcomm_progress, lcomm_tensors_wait). Of tensors on a device the call that makes a
 * bucket whole also puts its work on the device, and waits for no result; it may wait for a call
 * that another thread makes on the communicator. In the first step, and where no thread moves
 * messages, that is left to the next call that waits for tensors, or lcomm_progress().
 * Errors: ARGUMENT (also a buffer that overlaps that of another tensor of this step, which
 * is not over), STATE if it was already ready in this step, is frozen or has no
 * buffer, or where results were not asked for (lcomm_tensors_next, with stale=), or the sticky
 * error. */
LCOMM_API lcomm_status lcomm_tensor_ready(lcomm_comm *comm, lcomm_tensor *tensor);

/* The same for a tensor on a device (all tensors of a communicator are in one
 * place): its gradient is there when `stream` has come to this call, which does not
 * wait for it, but with quorum= of the policy: then both calls return when the gradient is on the
 * host. Errors: as lcomm_tensor_ready, ARGUMENT for a tensor on the host,
 * SYSTEM when a call of CUDA fails. */
LCOMM_API lcomm_status lcomm_tensor_ready_on_stream(lcomm_comm *comm, lcomm_tensor *tensor,
                                                    void *stream);

/* Finish the step: returns when every tensor holds its result; with stale=N of the policy it may
 * return before, see lcomm_tensors_next(). All tensors that are not frozen must have been reported
 * ready. Errors: STATE naming the first tensor that was not, or as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_tensors_wait(lcomm_comm *comm);

/* The next result, for programs that go on without the newest ones (stale=N of the policy):
 *
 *   each step: lcomm_tensor_ready(t) for each; lcomm_tensors_wait();
 *              while (lcomm_tensors_next(comm, &there) == LCOMM_OK && there) { apply it }
 *   before weights are compared, tested or saved:
 *              while (lcomm_tensors_sync(comm, &there) == LCOMM_OK && there) { apply it }
 *
 * *there = 1: the tensors hold the result of the next step in order, which no call has handed out
 * so far. 0: it is not here yet, or there is none; the tensors hold nothing of use. After a step
 * the program asks until it is 0, else lcomm_tensor_ready() is refused. A result may be that of a
 * step before the last one, there may be several, or none. Every rank gets each once, in the same
 * order, so an optimiser that makes one update of each makes the same updates on all ranks. No rank
 * is without the results of more than N steps when it begins a gradient; where it would be,
 * lcomm_tensors_wait() waits. lcomm_staleness_get() tells the age.
 * next does not wait and is local. Between the steps; without stale= it is 1 once after each step,
 * whose result is in the tensors, so that one loop serves all policies.
 * While results are under way a step is in flight to all calls that are made between the steps,
 * such as lcomm_tensor_freeze(), lcomm_tensor_residual(), lcomm_state_save() and
 * lcomm_policy_set(): sync first. With stale= lcomm_tensor_wait() and lcomm_tensor_test() are
 * refused.
 * sync waits for the next result that is under way. It is collective when there is none: then ranks
 * compare how many steps they have made, and with stale= a hash of all results; MISMATCH on all
 * ranks where they differ. So all ranks, with servers all workers, call it until it is 0, after the
 * same step.
 * lcomm_tensors_not_finite() is of the result that was handed out last.
 * Errors: ARGUMENT (NULL), STATE (in a step; a tensor has no buffer; sync on a server, or with
 * servers and without tensors); sync as lcomm_allreduce, and MISMATCH. */
LCOMM_API lcomm_status lcomm_tensors_next(lcomm_comm *comm, int *there);
LCOMM_API lcomm_status lcomm_tensors_sync(lcomm_comm *comm, int *there);

/* Wait for one tensor, so that an optimiser can step each layer as soon as its sum is there;
 * test: *done = 1 if the tensor holds its result, else 0. From then on its buffer is the
 * caller's. The step goes on until lcomm_tensors_wait(), which is still to be called: only
 * then may tensors be ready again. The tensor must have been reported ready in this step.
 * Buckets start in order: the sum of a tensor begins when all tensors of its bucket, and of
 * those before, are ready. Until then a test says 0, and a wait is refused, as nothing would
 * end it. A smaller bucket= gives results earlier. In the first step, and after tensors were
 * added, frozen or unfrozen, the first of these calls waits for all ranks to compare their
 * tensors. A time-out counts as for lcomm_test and lcomm_wait.
 * Errors: ARGUMENT, STATE for a tensor that was not reported ready in this step; of a wait
 * also when another one has to be ready first, which is named; or as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_tensor_test(lcomm_comm *comm, lcomm_tensor *tensor, int *done);
LCOMM_API lcomm_status lcomm_tensor_wait(lcomm_comm *comm, lcomm_tensor *tensor);

/* How many values of the results of the last finished step were NaN or Inf,
 * over all tensors; the same on all ranks. Dense codecs carry all of them; top-k
 * sends them before all other values, but no more than its k values, so it may count
 * fewer than there were, never none. A loss scaler asks here instead of looking
 * at every gradient again. 0 for NULL. */
LCOMM_API uint64_t lcomm_tensors_not_finite(const lcomm_comm *comm);

/* With adam= of the policy: *is_momentum = 1 if the results of the step in flight, or else of the
 * one that was finished last, are averages (or sums) of the momentum; 0 if they are those of the
 * gradients, as in the steps of warmup= and refresh=, without adam=, and before the first step. The
 * same on all ranks. With g the average of the gradients of a step, B that is beta1=, and m zero at
 * first,
 *
 *   a step of gradients   brings g; libcomm makes m = B * m + (1 - B) * g
 *   a step of momentum    each rank contributes B * m + (1 - B) * its own gradient, which a lossy
 *                         codec makes up for later where it is wrong; m is the average, and the
 *                         result
 *
 * so an optimiser with means m and v of g and g^2 updates both of them in the former, and in the
 * latter takes the result as m and leaves v as it is. Tensors that stay exact bring momentum in the
 * same steps, and those of integers bring sums always. Factors and clipping act on gradients;
 * `after` of lcomm_tensor_scale() on what arrives. NaN and Inf stay in the result and leave m zero.
 * m is kept with the residuals: it is saved, moved, and undone like them.
 * Valid as soon as a result of the step is there. Local call, from any thread.
 * Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_tensors_momentum(lcomm_comm *comm, int *is_momentum);

/* Undo the step that was finished last, as if it had never been: residuals, momentum, the steps of
 * warmup= and ramp= and the random numbers of stochastic rounding are again what they were before
 * its first tensor was ready, bit for bit. For a loss scaler that skips a step: without this, what
 * a step with far too large a scale has left in the residuals is sent in the steps that follow.
 * The results in the tensors' buffers stay; restoring them is the caller's, as is the optimiser.
 * Needs undo=on or nonfinite=discard in the policy. Nothing is copied: two buffers of residuals and
 * momentum take turns.
 * Collective, right after lcomm_tensors_wait() of that step, on all ranks for the same step: a
 * small message goes from rank 0 to the others. One step can be undone, not the one before it. A
 * step that nonfinite=discard has undone already stays so, and the call returns LCOMM_OK.
 * What does not come back: tensors that were added, frozen, unfrozen or given another buffer
 * between the steps; factors; statistics; numbers of steps in traces, which are used again.
 * Errors: ARGUMENT (NULL), STATE without undo=on, during a step, and where there is no step to
 * undo: none was finished, or a state was loaded, the policy set, or codecs chosen anew since, by
 * net=auto or the guard; MISMATCH when other ranks do not discard the step; or as lcomm_allreduce.
 */
LCOMM_API lcomm_status lcomm_tensors_discard(lcomm_comm *comm);

/* The part of a tensor's error-feedback residual that lives on this rank:
 * copies elements that this rank keeps into `residual` (count float32, in
 * tensor order) and writes zero elsewhere. The sum over the ranks is the mass
 * not yet applied: sum_ranks(gradient + residual before) ==
 * size*average + sum_ranks(residual after), to float32 rounding. Zero
 * everywhere for exact tensors. Between steps only (else STATE). */
LCOMM_API lcomm_status lcomm_tensor_residual(lcomm_comm *comm, const lcomm_tensor *tensor,
                                             float *residual);

/* The codec that the policy has for a tensor on links of this class (LCOMM_LINK_NET: between nodes;
 * all others are inside one) when warmup= and ramp= are over, written as a CODEC of a policy, such
 * as "topk:0.01+ef"; "none" where the tensor stays exact. Writes at most `size` bytes with the
 * terminating zero; cuts what does not fit. Local call. Errors: ARGUMENT. */
LCOMM_API lcomm_status lcomm_tensor_codec(lcomm_comm *comm, const lcomm_tensor *tensor,
                                          lcomm_link link, char *text, size_t size);

/* ----------------------------------------------------------------- guard */

/* GUARD: with guard=STEPS of the policy, in each STEPS-th step, lcomm_tensors_wait() sums a sample
 * of every compressed tensor over the ranks once more, exactly, and compares it with what the codec
 * made of it. The sample is blocks of 16 elements spread over the tensor, others in each check, the
 * same on all ranks, at most 1 % of the compressed data (a block of each tensor at least), and no
 * more than 65536 elements of a tensor. It travels as one sum of its own, 1 or, with error
 * feedback, 2 float32 for each element; nothing else of the step changes, not a bit. Where an
 * element is sampled,
 *
 *   gradient  is the exact sum over the ranks of what they contribute to this step: multiplied by
 *             the tensor's factor, clipped, with momentum= and adam= after momentum joined
 *             in
 *   result    is the sum that all ranks received; an average times the number of ranks
 *   residual  is what the ranks keep after the step, gradient + residual before - result
 *
 * and of these as vectors
 *
 *   error     |result - gradient| / |gradient|
 *   cosine    of the angle between result and gradient
 *   residual  |residual| / |gradient|; 0 without error feedback
 *
 * Without error feedback an error is lost for ever: a tensor is beyond its limit when error >
 * limit. With it what a step leaves out comes later, and top-k's results are far from the gradient
 * of their step in every healthy run: error is then no fault. But the residual is all that was ever
 * left out, the exact distance between the sum of all gradients so far and the sum of all results,
 * so a tensor is beyond its limit when this distance is more than `residual` gradients. A few are
 * usual for a density of 1 %, some tens for 0.1 % while a run is young.
 *
 * Figures are estimates. Of a sparse result only the entries count that the sample meets: with some
 * hundred of them figures are within a tenth of those of the whole tensor, with a few they scatter.
 *
 * What is beyond its limit goes from its codec, that of net= or of the pattern that fits it, to the
 * next milder one of
 *     topk -> int4 -> int8 -> bf16 -> none     fp8e4m3, fp8e5m2 -> int8     fp16 -> bf16
 *     sign -> int2 -> int4     lowrank -> int4
 *     auto:topk, auto:lowrank -> auto:sign -> auto:int2 -> auto:int4 -> auto:int8 -> auto:bf16
 *         -> auto:lossless,
 *     to below the codec that auto had chosen,
 * whose limit is that of its checks from the next step on, on all ranks alike, because all have the
 * same figures; rank 0 warns in one sentence. int2, int4 and int8 have error feedback
 * there if the policy's codec has it and there is no momentum=. What the tensor keeps stays with
 * it, or is paid out with its next result, as with lcomm_policy_set(). After 10 good checks in a
 * row the tensor goes back by one codec; each time that this was too early it takes twice as many.
 * lcomm_policy_set() puts all tensors back. A saved state holds what a tensor has fallen to, and a
 * run that loads it under the same policy goes on with it; under another one it begins with the
 * policy's codecs.
 *
 * A check that finds no finite gradient other than 0 says nothing and decides nothing, nor does a
 * step that nonfinite=discard undoes. Tensors that stay exact (min=, exempt=, warm-up steps) are
 * not checked. Of tensors on a device what is sampled is copied to the host, where it is summed and
 * compared. Calls with a residual are guarded likewise (lcomm_residual_guard() in
 * libcomm_residuals.h). */

enum { LCOMM_GUARD_CODEC_MAX = 64 };

/* What the last check found of a tensor; the same on all ranks. */
typedef struct lcomm_guard_figures {
  const char *tensor; /* its name, valid until lcomm_destroy() */
  uint64_t checks;    /* of it so far; 0: none, and the rest means nothing */
  uint64_t step;      /* that was checked, counted from 0 */
  uint64_t samples;   /* elements that were compared */
  double error, cosine, residual;
  uint64_t waited;    /* entries that top-k picked in this step and that found no room, over all
                         elements and ranks; they are in the residuals. 0 for other codecs */
  uint64_t fallbacks; /* how often it went to a milder codec so far */
  int beyond;         /* 1: beyond its limit */
  char codec[LCOMM_GUARD_CODEC_MAX]; /* that is compared, such as "topk:0.01+ef" */
  char next[LCOMM_GUARD_CODEC_MAX];  /* of the steps from here on */
} lcomm_guard_figures;

/* What the last check found of this tensor. Between steps or in one. Errors: ARGUMENT, or the
 * sticky error. */
LCOMM_API lcomm_status lcomm_tensor_guard(lcomm_comm *comm, const lcomm_tensor *tensor,
                                          lcomm_guard_figures *figures);

/* Called for each tensor that was checked, on every rank, by the thread that is in
 * lcomm_tensors_wait(); and for each residual, by the one that finds its request over. figures:
 * valid during the call. It must not call libcomm. */
typedef void (*lcomm_guard_function)(void *context, const lcomm_guard_figures *figures);

/* From the next check on `function` is called; NULL: none is. Local call. Errors: ARGUMENT, or the
 * sticky error. */
LCOMM_API lcomm_status lcomm_guard_set(lcomm_comm *comm, lcomm_guard_function function,
                                       void *context);

/* ------------------------------------------------------ saving the state */

/* What error feedback and momentum correction remember belongs into a
 * checkpoint like the parameters: without it a run that goes on loses what was
 * not sent yet. All ranks save and load, between two steps, with no call under
 * way that has a residual with a name (else STATE).
 *
 * A saved state is a folder with one file per rank, rank-RRRRR-of-NNNNN.lcs, or
 * as many blocks of bytes; codecs/codec_state.h has every byte. It holds the step counter and the
 * number of calls with each residual, so warm-up and density stages go on where they were,
 * and for every tensor, frozen or not, and every residual with a name (libcomm_residuals.h), what
 * this rank keeps of it: residual and momentum, of a matrix that travels by low rank its factor,
 * and the codec that the guard has given it (guard=), which goes on under the same policy. Samples
 * of a call that wait for the next one are not saved: that check is left out.
 */

/* Save into `folder`, which is made if need be. Use a new folder each time: a
 * file that exists is replaced, and files of different saves do not go
 * together: a folder with files of another number of ranks is refused. A file has its name only
 * once it is whole and on the disk, so a crash leaves a file that is missing, never half a file.
 * Ranks do not wait for each other; the folder is complete when all have returned LCOMM_OK. Errors:
 * ARGUMENT (also for such a folder; nothing was written then), STATE during a step, SYSTEM (the
 * path and the cause are in lcomm_last_error), MEMORY, or the sticky error. The state is not
 * changed. */
LCOMM_API lcomm_status lcomm_state_save(lcomm_comm *comm, const char *folder);

/* Load what lcomm_state_save() wrote: after all tensors were added, before the
 * first step or between two. Collective. All ranks restore it or none does:
 * after an error nothing has changed, and the sentence on every rank names the
 * first rank that failed, and the file.
 * On as many ranks and nodes as saved, with buckets and parts as they were, the
 * restored run goes on bit for bit as the saved one would have. Each rank then
 * reads its own file only. Otherwise every rank reads all files, one at a time,
 * and the residuals are handed out anew: those that the old ranks kept of an
 * element are summed in rank order (each sum rounded to float32) and go to one
 * of the ranks that keep the element now, taking turns by 1024 elements. No
 * mass is lost: for LCOMM_AVG tensors a residual weighs 1/size, so it is scaled
 * by new size / old size. Momentum likewise. Where nobody keeps a residual any
 * more (a single node, an exact policy) what is left is added to the result of
 * the next step, and until then lcomm_tensor_residual() shows it on rank 0.
 * The policy may be another one; momentum is dropped by one without, and the factor of a matrix by
 * one without low rank of the same rank.
 * Tensors are matched by name. One with a state must be here, with the same
 * count and operation; its type may differ. One without starts at zero. Likewise
 * residuals with a name, which are made before loading, all-reduces and reduce-scatters each
 * for themselves; reduce-scatters may have other parts, if these are as long together.
 * Errors: ARGUMENT (also a tensor that is not here or differs), STATE during a
 * step or while a tensor is frozen (load first, then freeze), SYSTEM (a file or the folder cannot
 * be read), WIRE (a file is damaged, or files are not of one set), UNSUPPORTED (another version of
 * the format), MISMATCH (ranks read different sets, or have different tensors), MEMORY, or as
 * lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_state_load(lcomm_comm *comm, const char *folder);

/* The same as bytes, for programs with checkpoints of their own. What a rank writes is one
 * block: the very bytes of the file that lcomm_state_save() would write, so either can be had
 * from the other. The three are used between two steps.
 *
 * Local calls: size and write. Ranks need not call them together.
 * size     receives the bytes that the state takes now; it may differ from rank to rank, and
 *          changes with steps and calls
 * bytes    memory of the host with room for `size` of them, at any address, owned by the
 *          caller; as many as lcomm_state_size() says are written, others left alone
 * Errors: ARGUMENT (also too small a `size`; nothing was written then), STATE during a step,
 * MEMORY, or the sticky error. */
LCOMM_API lcomm_status lcomm_state_size(lcomm_comm *comm, size_t *size);
LCOMM_API lcomm_status lcomm_state_write(lcomm_comm *comm, void *bytes, size_t size);

/* Restore what lcomm_state_write() wrote, as lcomm_state_load() does with files. Collective: all
 * ranks restore it or none does.
 * bytes    one block or several, one after the other in any order; not kept, never trusted.
 *          On as many ranks and nodes as saved, with buckets and parts as they were, each
 *          rank needs its own block only. Otherwise every rank needs those of all ranks that
 *          saved
 * size     bytes in all
 * Errors: as lcomm_state_load; ARGUMENT also when a block is needed that was not given. */
LCOMM_API lcomm_status lcomm_state_read(lcomm_comm *comm, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
