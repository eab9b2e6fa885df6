/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_COLLECTIVES_H
#define LIBCOMM_COLLECTIVES_H

/* Collectives on plain buffers, of the host and of devices, and memory that is the fastest for
 * them. libcomm.h includes this header at its end; ownership, threads and errors are as it says at
 * its beginning. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- collectives */

/* All-reduce: receive[i] = sum (or average) over ranks of send[i].
 * send     `count` elements of `dtype`, read until completion
 * receive  `count` elements of `dtype`, written; equal to `send` for in
 *          place, otherwise it must not overlap it
 * count    any number, 0 included; buffers may be NULL when it is 0
 * Sums are made in float32: of the ranks of a node in rank order, then of the
 * nodes; long exact ones between more than two nodes go around a ring, in its
 * order. The order depends on count, type, policy and ranks only. float16 and bfloat16 buffers
 * travel and return in their own type; short ones travel as float32, and their sums are rounded
 * once. float64, int32, int64, int8 and uint8 are summed in their own type and are never
 * compressed; sums of n-bit integers wrap around modulo 2^n, and an average divides what is left
 * then.
 * Errors: ARGUMENT, MISMATCH, TRANSPORT, TIMEOUT, WIRE, REMOTE, MEMORY (first
 * call of a shape only), or the sticky error. */
LCOMM_API lcomm_status lcomm_allreduce(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t count, lcomm_dtype dtype, lcomm_op op);
LCOMM_API lcomm_status lcomm_iallreduce(lcomm_comm *comm, const void *send, void *receive,
                                        uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                        lcomm_request *request);

/* The same with factors: receive[i] = after * sum over ranks of before * send[i].
 * op       LCOMM_SUM or LCOMM_AVG; dtype is one of the floating-point types
 * before   multiplies the elements of every rank in float32 (float64 for
 * after    float64) before they are summed; `after` the finished sum, before it
 *          is rounded to a 16-bit type. Both finite and not 0, equal on all
 *          ranks (MISMATCH). */
LCOMM_API lcomm_status lcomm_allreduce_scaled(lcomm_comm *comm, const void *send, void *receive,
                                              uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                              double before, double after);
LCOMM_API lcomm_status lcomm_iallreduce_scaled(lcomm_comm *comm, const void *send, void *receive,
                                               uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                               double before, double after, lcomm_request *request);

/* Reduce-scatter: rank r receives elements r*receive_count .. of the sum.
 * send     size*receive_count elements
 * receive  receive_count elements; in place when it is
 *          send + rank*receive_count, or `send` itself; the rest of `send` is not changed
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_reduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                            uint64_t receive_count, lcomm_dtype dtype, lcomm_op op);
LCOMM_API lcomm_status lcomm_ireduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                             uint64_t receive_count, lcomm_dtype dtype, lcomm_op op,
                                             lcomm_request *request);

/* Reduce-scatter of uneven parts, as MPI_Reduce_scatter: rank r receives counts[r] elements of
 * the sum, those behind the parts of the ranks before it.
 * send     the sum of all counts, in elements
 * receive  counts[rank] elements; in place when it is where they lie in `send`, or `send`
 *          itself; the rest of `send` is not changed
 * counts   one number per rank, 0 allowed, equal on all ranks (else MISMATCH);
 *          read during the call only
 * min= and match= of the policy look at the mean of the parts, rounded up.
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_reduce_scatterv(lcomm_comm *comm, const void *send, void *receive,
                                             const uint64_t *counts, lcomm_dtype dtype,
                                             lcomm_op op);
LCOMM_API lcomm_status lcomm_ireduce_scatterv(lcomm_comm *comm, const void *send, void *receive,
                                              const uint64_t *counts, lcomm_dtype dtype,
                                              lcomm_op op, lcomm_request *request);

/* All-gather: receive[r*send_count ..] = send of rank r, exact.
 * send     send_count elements; in place when it is receive + rank*send_count
 * receive  size*send_count elements
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_allgather(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t send_count, lcomm_dtype dtype);
LCOMM_API lcomm_status lcomm_iallgather(lcomm_comm *comm, const void *send, void *receive,
                                        uint64_t send_count, lcomm_dtype dtype,
                                        lcomm_request *request);

/* All-gather of uneven parts: rank r gives counts[r] elements, and they lie one
 * after the other in rank order in `receive` on all ranks, exact.
 * send     counts[rank] elements; in place when it is where they belong in receive
 * receive  the sum of all counts
 * counts   one number per rank, 0 allowed, equal on all ranks (else MISMATCH);
 *          read during the call only
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_allgatherv(lcomm_comm *comm, const void *send, void *receive,
                                        const uint64_t *counts, lcomm_dtype dtype);
LCOMM_API lcomm_status lcomm_iallgatherv(lcomm_comm *comm, const void *send, void *receive,
                                         const uint64_t *counts, lcomm_dtype dtype,
                                         lcomm_request *request);

/* All-to-all: receive[s*count ..] on rank r = send[r*count ..] of rank s, exact.
 * send     size*count elements; in place when it is `receive`
 * receive  size*count elements
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_alltoall(lcomm_comm *comm, const void *send, void *receive,
                                      uint64_t count, lcomm_dtype dtype);
LCOMM_API lcomm_status lcomm_ialltoall(lcomm_comm *comm, const void *send, void *receive,
                                       uint64_t count, lcomm_dtype dtype, lcomm_request *request);

/* Broadcast: buffer of `root` is copied to all ranks, exact.
 * Errors as lcomm_allreduce. */
LCOMM_API lcomm_status lcomm_broadcast(lcomm_comm *comm, void *buffer, uint64_t count,
                                       lcomm_dtype dtype, int root);
LCOMM_API lcomm_status lcomm_ibroadcast(lcomm_comm *comm, void *buffer, uint64_t count,
                                        lcomm_dtype dtype, int root, lcomm_request *request);

/* Barrier: returns when all ranks have entered it. In elastic communicators lcomm_barrier() also
 * tells all who wants to leave and to join (lcomm_changes_get), and lcomm_ibarrier() does not:
 * there all ranks call the same one. */
LCOMM_API lcomm_status lcomm_barrier(lcomm_comm *comm);
LCOMM_API lcomm_status lcomm_ibarrier(lcomm_comm *comm, lcomm_request *request);

/* Move all running operations forward without waiting. Call it now and then
 * from a long computation so that the wire stays busy.
 * Operations are moved in every communicator of the process while a thread waits, tests
 * or calls this in one of them, unless another thread is inside a call on it: ranks may
 * wait for what they have started on several communicators in different orders.
 * Messages that the program has in flight in MPI move while a thread waits or tests in a
 * communicator that was made while MPI runs. */
LCOMM_API lcomm_status lcomm_progress(lcomm_comm *comm);

/* test: *done = 1 if the operation is over, else 0; wait: return when it is.
 * Both return the operation's result once it is over. A request that is over
 * may be tested or waited for again and gives the same result until it is
 * reused. A peer that is silent for the time-out fails the operation: counted from
 * the begin of the wait, or from the first test that found it in flight.
 * Errors: STATE if the request was never started, ARGUMENT (both are named) if it was
 * started on another communicator, which then still has it. */
LCOMM_API lcomm_status lcomm_test(lcomm_comm *comm, lcomm_request *request, int *done);
LCOMM_API lcomm_status lcomm_wait(lcomm_comm *comm, lcomm_request *request);

/* How many values of the result of a sum that is over were NaN or Inf, if it
 * went through a lossy codec; 0 for exact operations, which nobody looks
 * through, and for one that is not over. Of a reduce-scatter: in the segment of
 * this rank; of an all-reduce: the same on all ranks. */
LCOMM_API uint64_t lcomm_request_not_finite(const lcomm_request *request);

/* ------------------------------------------------------ buffers of devices */

/* Every buffer above may as well be memory of a CUDA device: where it is, is found
 * out by its address. Both buffers of a call are in one place. Data is encoded,
 * summed and decoded on the device, and only what travels crosses to the host.
 * Ranks may have their data in different places, and several ranks may share a
 * device. Managed memory counts as the device's, pinned memory as the host's.
 *
 * Without a stream the data must be there when a call is made (the program has
 * synchronised with what makes it), and the result is complete when the operation
 * is over. Errors besides those of the call: SYSTEM when a call of CUDA fails.
 *
 * The calls below are in order with `stream`, a cudaStream_t of the device that the
 * buffers are on (NULL: the default stream; cudaStreamPerThread is allowed): they
 * begin when the stream has come to them, and what is put into the stream after
 * them sees the result. What fails after an early return lets the stream go on, with a result that
 * means nothing, and is returned by the next call on the communicator. Other arguments and errors
 * as those of the calls without a stream; ARGUMENT for buffers on the host. The time-out counts
 * from when the rank's own device has come to the call. `counts` is read during the call only. The
 * same with a residual: lcomm_allreduce_ef_on_stream() in libcomm_residuals.h.
 *
 * They return at once, and the stream waits for an event; only what gets memory may wait, below: a
 * new shape and one more in flight than before. A thread moves messages from the first such call
 * on, or from the first one without a stream whose buffers are on a device, or from the first step
 * of tensors there, also with LCOMM_PROGRESS=calls; for them it calls no CUDA. The program may get
 * and free memory, make streams and load kernels at any time. Where all streams of a device share
 * one queue (CUDA_DEVICE_MAX_CONNECTIONS=1), these calls, and reports of tensors there
 * (lcomm_tensor_ready), come in one order on all ranks. A call gets memory where it is the first
 * of its shape, or more of that are in flight than ever before, and the first eight after that
 * open memory of other ranks of the node whose devices reach each other (LCOMM_CUDA_IPC=off:
 * none), as the first eight steps of tensors do; CUDA may wait for that until the device is idle:
 * no stream may wait then for something that the calling thread does later.
 *
 * On a stream that is being captured into a graph (CUDA's: cudaStreamBeginCapture) such a call is
 * put there, and each launch of the graph makes it again, any number of times, with what the
 * buffers hold then. All ranks capture the same calls in the same order and launch them equally
 * often; a call that is captured waits for the other ranks to capture it, and for an idle device,
 * as one that gets memory. Of two executables that were made from one graph one is launched at a
 * time. A replay that fails lets the stream go on, too, and the next call on the communicator says
 * so. Launches that were not over in a stream when lcomm_destroy() is called, and later ones, go
 * through and give no result. Errors besides: ARGUMENT, on all ranks, where no thread can move a
 * rank's messages, and for calls with a residual; MISMATCH where ranks capture different calls;
 * neither is the end of the communicator. Messages between two ranks can be captured, too, in the
 * same graph (libcomm_pairs.h).
 *
 * Graphs are launched in one order on all ranks, among each other and among captures and calls
 * that get memory: a launch that one rank has made, and another one has not yet, keeps the first
 * one's device from being idle. Another thread of the program may get and free memory meanwhile,
 * as long as this order is kept: CUDA lets that thread wait for all that was launched, and the next
 * launch for that thread, so ranks that had begun with different graphs would wait for each other
 * for good. Only where nothing of this kind happens, and streams do not share a queue, may graphs
 * in several streams be launched in another order on every rank.
 *
 * Where no thread can move messages (over MPI, without MPI_THREAD_MULTIPLE) they return when the
 * result is there. */
LCOMM_API lcomm_status lcomm_allreduce_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                 uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                                 void *stream);
LCOMM_API lcomm_status lcomm_reduce_scatter_on_stream(lcomm_comm *comm, const void *send,
                                                      void *receive, uint64_t receive_count,
                                                      lcomm_dtype dtype, lcomm_op op, void *stream);
LCOMM_API lcomm_status lcomm_reduce_scatterv_on_stream(lcomm_comm *comm, const void *send,
                                                       void *receive, const uint64_t *counts,
                                                       lcomm_dtype dtype, lcomm_op op,
                                                       void *stream);
LCOMM_API lcomm_status lcomm_allgather_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                 uint64_t send_count, lcomm_dtype dtype,
                                                 void *stream);
LCOMM_API lcomm_status lcomm_allgatherv_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                  const uint64_t *counts, lcomm_dtype dtype,
                                                  void *stream);
LCOMM_API lcomm_status lcomm_alltoall_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                uint64_t count, lcomm_dtype dtype, void *stream);
LCOMM_API lcomm_status lcomm_broadcast_on_stream(lcomm_comm *comm, void *buffer, uint64_t count,
                                                 lcomm_dtype dtype, int root, void *stream);

/* Sums with factors, likewise. (With all elements in the part of one rank,
 * lcomm_reduce_scatterv_on_stream() is a reduction to that rank.) */
LCOMM_API lcomm_status lcomm_allreduce_scaled_on_stream(lcomm_comm *comm, const void *send,
                                                        void *receive, uint64_t count,
                                                        lcomm_dtype dtype, lcomm_op op,
                                                        double before, double after, void *stream);
LCOMM_API lcomm_status lcomm_reduce_scatterv_scaled_on_stream(lcomm_comm *comm, const void *send,
                                                              void *receive, const uint64_t *counts,
                                                              lcomm_dtype dtype, lcomm_op op,
                                                              double before, double after,
                                                              void *stream);

/* ---------------------------------------------------------------- memory */

/* Memory of the host that the other ranks of this host can view. Calls take any buffer;
 * what is sent out of this memory is read where it lies, where other memory is copied first or
 * read by calls of the kernel. It pays from some 64 KiB on.
 *
 * Any part of it may be a buffer of any call, or a tensor, on every communicator of the process,
 * also one that is made later. Other processes can look into it where they may trace this one
 * (ranks of one user); they never write to it.
 *
 * Both functions may be called from any thread at any time. */

/* size     bytes; 0 is allowed
 * memory   receives the address: zeroed, aligned to a page (at least 4096), owned by the
 *          caller until lcomm_memory_free(). It belongs to the process, not to a
 *          communicator: lcomm_destroy() leaves it as it is. What is never freed lasts as long
 *          as the process. A forked child sees its parent's, as with MAP_SHARED; it cannot
 *          free it, and gets memory of its own
 * Takes whole pages: not for small objects. Where the system gives no such memory, for want
 * of file descriptors say, it is private memory, which works as well.
 * Errors: ARGUMENT (memory is NULL), MEMORY; the sentence is lcomm_last_error(NULL). */
LCOMM_API lcomm_status lcomm_memory_alloc(size_t size, void **memory);

/* Free it. No operation may be using it: those that were started are over, communicators of
 * its tensors destroyed; after a failure lcomm_destroy() comes first. NULL is allowed.
 * Errors: ARGUMENT for anything that lcomm_memory_alloc() has not given to this process, or
 * that was freed before; nothing is done then. */
LCOMM_API lcomm_status lcomm_memory_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
