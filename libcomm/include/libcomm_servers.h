/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_SERVERS_H
#define LIBCOMM_SERVERS_H

/* Parameter servers. libcomm.h includes this header at its end; ownership, threads and errors are
 * as it says at its beginning. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With algo=servers of the policy the ranks of servers= are servers: they own all tensors in
 * pieces, and bring no gradients. All others are workers.
 *
 *   all ranks   lcomm_tensor_add() of the same tensors in the same order; the buffers of a
 *               server only give shapes
 *   a worker    steps as ever: lcomm_tensor_ready(), lcomm_tensors_wait(); after the last of
 *               them lcomm_server_end()
 *   a server    lcomm_server_run(), which returns when all workers have ended
 *   all ranks   collectives, states, changes of tensors; then steps again, or lcomm_destroy()
 *
 * A server sums what workers send of its pieces, and sends the sum or average back. With an update
 * function it sends what that makes of it, new weights say: the tensors of workers then hold
 * weights after a step in place of gradients.
 *
 * Gradients travel by the codec of net=, and every worker keeps what that leaves out; between ranks
 * of one node they are exact. Sums and averages come back by the same codec, and what it leaves out
 * of them waits at the server for its next one. What an update function makes comes back as exact
 * float32, because an error in a weight is no gradient that could be sent later. Each worker
 * takes the server's bytes, so replicas are identical.
 *
 * Buckets are cut in chunks of 65536 elements, and these in pieces of whole blocks of 128, balanced
 * over the servers by bytes and by the shares of servers=, over all buckets; a chunk of 4096
 * elements at most goes whole to one server. With quorum= a server does not wait for all workers,
 * see there; without it a step is of all of them.
 *
 * With stale=N a worker goes on for up to N steps without the newest results, and takes them by
 * lcomm_tensors_next() and lcomm_tensors_sync(), each once, in order: averages, or weights, of
 * which the ones that were handed out last are the newest. A gradient of age A is multiplied with
 * 1/(1+A), as without servers. Servers sum the steps of a piece, and call the update function, in
 * their order. With :drop they do not wait for a worker that is more than N steps behind more than
 * half of the workers; what comes later goes back to it, and is sent with its next gradients. All
 * workers call lcomm_tensors_sync() until it hands out no more, and lcomm_server_end() then. Sync
 * compares the workers, stale= or not. Servers take part in it by lcomm_server_run(), before the
 * first step as well. */

/* What a server has of a tensor in a step. Valid during the call. */
typedef struct lcomm_server_piece {
  struct lcomm_tensor *tensor; /* an lcomm_tensor of libcomm_tensors.h */
  const char *name;            /* its name */
  uint64_t first, count;       /* elements of the tensor, at least one */
  float *values; /* [count] in: the sum or average of the gradients; out: what workers receive */
  uint64_t step; /* of this tensor, from 0, over all calls of lcomm_server_run; in order */
  int used;      /* workers whose gradients are in it */
} lcomm_server_piece;

/* Make of a gradient what workers receive. Called on the thread that called lcomm_server_run, once
 * for each step and piece, of which a tensor may have several, in any order, but each piece in the
 * order of the steps; the pieces of a tensor are the same in all steps, as long as tensors do not
 * change. It makes no collective call. Returns
 * 0; any other number is a failure, which ends the communicator on all ranks. */
typedef int (*lcomm_server_update)(void *context, const lcomm_server_piece *piece);

/* Be a server until all workers have called lcomm_server_end(). update: NULL to send gradients
 * back as they are; given by all servers or by none, in all calls alike. context: its argument.
 * However long workers take, the call waits; it ends with an error when a worker or another server
 * is lost, or when some workers have contributed to a step and another one has not for
 * LCOMM_TIMEOUT_S. It takes part in lcomm_tensors_sync() of workers.
 * Errors: STATE on a rank that is no server, without tensors, with another kind of update than in
 * the call before; MISMATCH where some servers have an update and others none, or tensors differ,
 * or workers by lcomm_tensors_sync(), or some of them end where others sync; ABORTED when an update
 * has failed; TIMEOUT and those of lcomm_allreduce; sticky, but for the first. */
LCOMM_API lcomm_status lcomm_server_run(lcomm_comm *comm, lcomm_server_update update,
                                        void *context);

/* On a worker: there are no more steps for now, so servers return from lcomm_server_run(). All
 * workers call it, between the same two steps, and it waits for all of them. Until then servers
 * take part in nothing else: a collective call of this communicator would wait for them in vain.
 * Tensors are added, frozen and unfrozen after it, on all ranks. lcomm_destroy() calls it where it
 * was forgotten. Before the first step or sync of a run, and the second time, it does nothing: a
 * run that has no step is lcomm_tensors_sync() and this.
 * Errors: STATE on a rank that is no worker, during a step, and where results are under way
 * (stale=): sync first; MISMATCH where another worker syncs; or as lcomm_barrier. */
LCOMM_API lcomm_status lcomm_server_end(lcomm_comm *comm);

/* Is this rank a server? Local. 0 for NULL, and without algo=servers. */
LCOMM_API int lcomm_is_server(const lcomm_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
