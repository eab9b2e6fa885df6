/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_INTERPOSE_H
#define LIBCOMM_INTERPOSE_H

#include "libcomm.h"
#include "libcomm_residuals.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For libraries that take over the calls of another one, such as libcomm-mpi.so:
 * which calls the policy means, and error feedback for calls that have no tensor.
 * Ownership, threads and errors are as libcomm.h says at its beginning. */

/* ------------------------------------------------- which calls, and how */

/* What the policy says of a call, for programs that have another way to make
 * it, such as the MPI interposer. Kinds of calls: X(name, text in match=call=). */
#define LCOMM_CALL_LIST(X)                                                                         \
  X(LCOMM_CALL_ALLREDUCE, "allreduce")                                                             \
  X(LCOMM_CALL_REDUCE_SCATTER, "reduce-scatter")                                                   \
  X(LCOMM_CALL_ALLGATHER, "allgather")                                                             \
  X(LCOMM_CALL_BROADCAST, "broadcast")

typedef enum lcomm_call_kind {
#define LCOMM_CALL_ENUM(name, text) name,
  LCOMM_CALL_LIST(LCOMM_CALL_ENUM)
#undef LCOMM_CALL_ENUM
      LCOMM_CALL_KINDS
} lcomm_call_kind;

LCOMM_API const char *lcomm_call_name(lcomm_call_kind kind);

typedef enum lcomm_selection {
  LCOMM_SELECT_NONE = 0,  /* the policy has nothing to do with it: any MPI would do */
  LCOMM_SELECT_EXACT = 1, /* selected, and exact: net=none, integers, data that is moved */
  LCOMM_SELECT_LOSSY = 2, /* selected, and lossy */
  LCOMM_SELECT_EF = 3     /* selected, and lossy with a residual (+ef); without one exact. Of
                             all-reduces and reduce-scatters of float32 */
} lcomm_selection;

/* Is this plain call one that the policy selects: on a communicator whose ranks are
 * on several nodes (or any, when node= names a codec), of at least min= bytes, and
 * fitting a rule of match=, or a sum of floats of 16 or 32 bits where there is
 * none? Depends only on its arguments, which are equal on all ranks.
 * count    as the call of this kind counts; of an uneven all-gather the sum of
 *          all parts
 * op       of sums; LCOMM_SUM for data that is moved
 * why      receives one constant sentence that says why the call is not
 *          selected, or exact, "" otherwise; may be NULL
 * Any thread, at any time; never waits, allocates nothing. NULL, or a kind, dtype or
 * op that does not exist: NONE. */
LCOMM_API lcomm_selection lcomm_policy_query(const lcomm_comm *comm, lcomm_call_kind kind,
                                             uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                             const char **why);

/* What such a call sends between nodes, from this rank, payloads only and at most:
 * as the policy says, and if it were exact: of an all-gather with equal parts, of a
 * broadcast from rank 0. error_feedback: 1 with a residual (sums of float32 only), 0
 * without. Makes a plan for it and forgets it again. Local call.
 * Errors: ARGUMENT, MEMORY. */
LCOMM_API lcomm_status lcomm_call_bytes(lcomm_comm *comm, lcomm_call_kind kind, uint64_t count,
                                        lcomm_dtype dtype, lcomm_op op, int error_feedback,
                                        uint64_t *sent_bytes, uint64_t *exact_bytes);

/* What a policy says in numbers. */
typedef struct lcomm_policy_facts {
  uint64_t min_bytes;  /* smaller calls are never selected */
  int lossy;           /* 1: net or node names a lossy codec */
  int error_feedback;  /* 1: with +ef */
  int uses_names;      /* 1: a rule of match= asks for the communicator's name */
  int inside_nodes;    /* 1: node= names a codec, so calls inside one node are selected, too */
  uint32_t step_calls; /* step=, 0 without */
} lcomm_policy_facts;

/* Of the communicator's policy. Errors: ARGUMENT. Any thread. */
LCOMM_API lcomm_status lcomm_policy_facts_get(const lcomm_comm *comm, lcomm_policy_facts *facts);

/* Give the communicator a name, for match=comm=GLOB; at first it is "". Local call;
 * the name must be equal on all ranks. name: copied, at most 127 bytes, longer ones are cut.
 * Errors: ARGUMENT, STATE after the first operation (lcomm_split is one), or the
 * sticky error. */
LCOMM_API lcomm_status lcomm_name_set(lcomm_comm *comm, const char *name);

/* What the policy would say of calls on some ranks of a communicator before they are one:
 * which of its calls would be selected, and what they would send. A preview is local: nothing
 * is exchanged, nothing waits, and every rank that asks about the same ranks gets the same
 * answers as from lcomm_policy_query() on a communicator of them. */
typedef struct lcomm_preview lcomm_preview;

/* members  count ranks of `comm`, in the order of their new ranks; this rank among them
 * policy   NULL: the one of `comm`; text is copied
 * preview  receives it, owned by the caller until lcomm_preview_destroy(); it does not need
 *          `comm` any more
 * Errors: ARGUMENT, POLICY, MEMORY; the sentence is lcomm_last_error(NULL). */
LCOMM_API lcomm_status lcomm_preview_create(const lcomm_comm *comm, const int *members, int count,
                                            const char *policy, lcomm_preview **preview);
LCOMM_API void lcomm_preview_destroy(lcomm_preview *preview); /* NULL ok */

/* For match=comm=GLOB, as lcomm_name_set(). Not while another thread asks. */
LCOMM_API void lcomm_preview_name_set(lcomm_preview *preview, const char *name);

/* As lcomm_policy_query(), lcomm_call_bytes(), lcomm_policy_facts_get(), lcomm_policy_string() and
 * lcomm_nodes() of a communicator of these ranks. Any thread. */
LCOMM_API lcomm_selection lcomm_preview_query(const lcomm_preview *preview, lcomm_call_kind kind,
                                              uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                              const char **why);
LCOMM_API lcomm_status lcomm_preview_bytes(const lcomm_preview *preview, lcomm_call_kind kind,
                                           uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                           int error_feedback, uint64_t *sent_bytes,
                                           uint64_t *exact_bytes);
LCOMM_API void lcomm_preview_facts(const lcomm_preview *preview, lcomm_policy_facts *facts);
LCOMM_API const char *lcomm_preview_policy(const lcomm_preview *preview);
LCOMM_API int lcomm_preview_nodes(const lcomm_preview *preview);

/* ------------------------------------- communicators made and freed apart */

/* Make a communicator of some ranks of another one, as lcomm_create() does, over a bootstrap
 * that is the caller's: nothing is exchanged over `base`, no collective function of MPI is called,
 * and several parts of the same ranks may be made at a time, by different threads.
 * base      lives at least as long as the part
 * members   the part's ranks in `base`, by their new ranks: bootstrap->world_size of them
 * bootstrap      of the part; used until this returns
 * mpi       NULL, or an MPI_Comm * of the ranks of `base`, for messages over MPI: nobody else
 *           sends any on it as long as the part lives; the caller frees it
 * config    NULL, or what differs: policy and posed nodes are those of `base` else
 * Errors as lcomm_create(), and ARGUMENT for members that do not exist. */
LCOMM_API lcomm_status lcomm_create_part(const lcomm_comm *base, const int *members,
                                         const lcomm_bootstrap *bootstrap, void *mpi,
                                         const lcomm_config *config, lcomm_comm **part);

/* Where ranks meet: at a TCP store that rank 0 opens, as for lcomm_create_env(). */
typedef struct lcomm_meeting {
  int rank, world_size;
  const char *address; /* of rank 0's host, at which the others reach it */
  int port;            /* at which rank 0 listens, free there */
  const char *token;   /* a secret that only these ranks know, NULL for none: see LCOMM_TOKEN */
} lcomm_meeting;

/* Make a communicator of ranks that meet at a place that the caller names. Collective over them.
 * meeting  equal on all ranks but for the rank; texts are read during the call only
 * config, comm, errors: as lcomm_create_env() */
LCOMM_API lcomm_status lcomm_create_at(const lcomm_meeting *meeting, const lcomm_config *config,
                                       lcomm_comm **comm);

/* Sums to which each rank gives its elements times a factor of its own, in order with `stream`:
 * receive[i] = sum over ranks of factor * send[i].
 * factor   any number, 0, NaN and infinity, too; ranks may have different ones. It multiplies in
 *          float32, float64 in float64, before anything is compressed
 * dtype    one of the floating-point types
 * counts   as in lcomm_reduce_scatterv()
 * All ranks have the same bits, as of lcomm_allreduce_on_stream(). All make such a call: a rank
 * that makes one with equal factors (lcomm_allreduce_scaled_on_stream), or without, is MISMATCH.
 * Errors as of that. */
LCOMM_API lcomm_status lcomm_allreduce_weighted_on_stream(lcomm_comm *comm, const void *send,
                                                          void *receive, uint64_t count,
                                                          lcomm_dtype dtype, double factor,
                                                          void *stream);
LCOMM_API lcomm_status lcomm_reduce_scatterv_weighted_on_stream(lcomm_comm *comm, const void *send,
                                                                void *receive,
                                                                const uint64_t *counts,
                                                                lcomm_dtype dtype, double factor,
                                                                void *stream);

/* Devices, for libraries that call no CUDA themselves. `device` is a CUDA ordinal of this process.
 * All return SYSTEM, with a sentence in lcomm_last_error(NULL), where CUDA refuses or is missing;
 * ARGUMENT for what is NULL. Any thread.
 * is_loaded  1: this process has loaded CUDA's driver, before which no memory is a device's; never
 *            loads it, costs some 20 ns
 * holds      1: the memory is a device's, or managed. Likewise
 * use        for this thread
 * current    the one of this thread; -1: it has not come to use one */
LCOMM_API int lcomm_device_is_loaded(void);
LCOMM_API int lcomm_device_holds(const void *memory);
LCOMM_API lcomm_status lcomm_device_use(int device);
LCOMM_API lcomm_status lcomm_device_current(int *device);

/* Threads that a library starts to make and end communicators in place of its program, because that
 * waits for other ranks. They are none of the program's, so they call no CUDA: the program's thread
 * tells before which device they stand for, and frees later what they would have freed there.
 * noted         note the device of this thread for such threads. Its number; -1: it has none
 * defer_thread  the calling thread is such a one, to its end; `device` was noted, or is -1. It
 *               makes, splits, names and destroys communicators, and uses buffers of the host only:
 *               all else on devices fails
 * free_deferred in a thread of the program, in no call of libcomm: free all that such threads have
 *               left on devices. It may wait for them. So does lcomm_destroy(), and each call that
 *               needs new memory on a device. Nothing where nothing is left, or in such a thread */
LCOMM_API int lcomm_device_noted(void);
LCOMM_API void lcomm_device_defer_thread(int device);
LCOMM_API void lcomm_device_free_deferred(void);

/* Memory of the thread's device that other processes of the host can open (cudaMalloc). */
LCOMM_API lcomm_status lcomm_device_memory_alloc(size_t size, void **memory);
LCOMM_API lcomm_status lcomm_device_memory_free(void *memory);

/* Copy `size` bytes on a device, or to or from it, in order with `stream` of it. lcomm_device_read
 * waits until the stream has done it, and needs no pinned memory; ARGUMENT where the stream is
 * captured into a graph, which goes on as if nothing had been. lcomm_device_copy does so in a
 * stream of its own: both pieces of memory are ready, and it waits for no stream of the program. */
LCOMM_API lcomm_status lcomm_device_copy(void *to, const void *from, size_t size);
LCOMM_API lcomm_status lcomm_device_copy_on_stream(void *to, const void *from, size_t size,
                                                   void *stream);
LCOMM_API lcomm_status lcomm_device_read(void *to, const void *from, size_t size, void *stream);

/* 1: `stream` is captured into a graph, or, of the legacy default stream, another one is, so that
 * neither can be waited for; else 0. */
LCOMM_API lcomm_status lcomm_device_captured(void *stream, int *captured);

/* 1: an operation of `comm` over memory of the host awaits a payload that a peer of this host has
 * left on its device, and a thread that may call CUDA has to read it: in lcomm_progress(),
 * lcomm_test() or lcomm_wait(). A thread that defers does not. 0 for NULL. */
LCOMM_API int lcomm_device_reads_awaited(lcomm_comm *comm);

/* For processes that have several ranks of this communicator, each with a device: nothing that it
 * puts on a device waits for another rank, so memory of any of them can be got and freed at any
 * time. Its calls on devices go step by step, in calls of the program; a call on a stream returns
 * when the result is there. Local call, before the first operation.
 * Errors: ARGUMENT, STATE where a thread moves its messages (LCOMM_PROGRESS_THREAD) or an operation
 * was made. */
LCOMM_API lcomm_status lcomm_device_step_by_step(lcomm_comm *comm);

/* Wait until `stream`, of the device that `memory` is on, has done all that is in it. Errors:
 * ARGUMENT for memory of the host, and for a stream that is captured into a graph: nothing is done
 * then; SYSTEM, as above. */
LCOMM_API lcomm_status lcomm_device_finish(const void *memory, void *stream);

/* 1: messages between some of its ranks travel so ("shm", "ucx", "mpi"). Any thread. */
LCOMM_API int lcomm_travels_over(const lcomm_comm *comm, const char *transport);

/* What messages of this rank travel by ("shm,ucx"), and the network devices they travel over
 * ("eth0,lo"); empty where there are none, or they are not known. Cut to `size` bytes. Return
 * text. Any thread. */
LCOMM_API const char *lcomm_transports(const lcomm_comm *comm, char *text, size_t size);
LCOMM_API const char *lcomm_interfaces(const lcomm_comm *comm, char *text, size_t size);

/* No table of this communicator is printed at the end (LCOMM_STATS): its owner shows one. */
LCOMM_API void lcomm_stats_hide(lcomm_comm *comm);

/* 1: an operation of this rank is in flight, also one that its stream has not come to; launches of
 * graphs do not count. Local, never waits; 0 for NULL and in a forked child. */
LCOMM_API int lcomm_is_busy(lcomm_comm *comm);

/* lcomm_destroy() waits for all ranks. Who may not wait frees in two steps, both local:
 * lcomm_retire() when the last operation of this rank is over; nothing may be called with the
 * communicator after it but lcomm_release(), which frees it and may only be called when all
 * ranks have retired theirs and said so to each other in some other way. Until then
 * what peers still read stays. With an operation in flight it fails for all ranks, as in
 * lcomm_destroy(). NULL ok; a forked child does nothing. */
LCOMM_API void lcomm_retire(lcomm_comm *comm);
LCOMM_API void lcomm_release(lcomm_comm *comm);

/* The value of one of the environment variables that libcomm reads, its own or a
 * launcher's (`libcomm-info --env`); NULL when it is unset, empty, or none of them. Any
 * thread. */
LCOMM_API const char *lcomm_setting(const char *variable);

/* Warn about variables LCOMM_* that libcomm does not know, with the nearest name that it knows.
 * The first communicator of a process does so on rank 0; this is for libraries that may make
 * none. Says nothing but the first time in a process. Any thread. */
LCOMM_API void lcomm_settings_warn_unknown(void);

#ifdef __cplusplus
}
#endif

#endif
