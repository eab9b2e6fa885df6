/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_H
#define LIBCOMM_H

/* libcomm: exact collectives inside a node, compressed ones between nodes.
 *
 *   1. Make a communicator, collectively: lcomm_create_mpi() (libcomm_mpi.h),
 *      lcomm_create_env() without MPI, or lcomm_create() with your own bootstrap.
 *   2. Either call collectives on plain buffers (lcomm_allreduce, ...), or
 *      register your gradients once (libcomm_tensors.h), report each one when
 *      backward has made it (lcomm_tensor_ready) and wait for all of them at
 *      the end of the step (lcomm_tensors_wait).
 *   3. lcomm_destroy().
 *
 * What is compressed, and how, is said by one policy string (see POLICY).
 * The default is exact.
 *
 * CONVENTIONS
 *   count   is a number of elements, size a number of bytes.
 *   Errors  Every function that can fail returns lcomm_status: LCOMM_OK or a
 *           negative code. Outputs are written on success only. The sentence
 *           that says who, what, why and what to do is lcomm_last_error().
 *           Bad arguments never crash and never touch a buffer.
 *           A pointer that must not be NULL, and the handle of a tensor or
 *           residual of another communicator, also of one that was destroyed, are
 *           ARGUMENT.
 *   Sticky  Once an operation failed on a communicator, peers are told, and
 *           every later call on it returns the same error on all ranks.
 *           lcomm_destroy() is then the only useful call. That is so also when
 *           one rank alone finds no memory for a collective. No call waits
 *           longer than the time-out (LCOMM_TIMEOUT_S) without progress, and
 *           up to a second more to find out with the others whose fault it is:
 *           all ranks report the same one, which names the rank that is dead,
 *           stopped or late, or the link or host that is down. A rank that has
 *           not been inside libcomm for half the time-out, and has no progress
 *           thread, cannot be told from a stopped one.
 *   Equal   Collectives must be called by all ranks of a communicator in the
 *           same order with the same count, dtype, operation and root. A
 *           difference is detected and named on every rank
 *           (LCOMM_ERR_MISMATCH); it does not hang.
 *   Bits    After a successful all-reduce or broadcast all ranks hold
 *           bit-identical results, with every codec. The same calls with the
 *           same inputs on the same number of ranks and nodes give the same
 *           bits every run, whatever the processor and the thread's
 *           floating-point environment.
 *   Memory  Buffers are memory of the host or of a device; those of sums and of tensors are aligned
 *           to their element. Buffers of one call do not overlap, unless they
 *           are in place as the call says. The library never owns a caller's
 *           buffer. After the first operation of a shape nothing is
 *           allocated on the data path, as long as the shapes of plain calls
 *           fit into LCOMM_RUN_CACHE. lcomm_memory_alloc() gives memory that
 *           is the fastest inside a host.
 *   Threads One communicator is used by one thread at a time, except for
 *           lcomm_tensor_ready(), lcomm_last_error(), lcomm_abort() and the
 *           functions that take no communicator, which may be called from any
 *           thread at any time. Different communicators are independent as
 *           far as the MPI library's thread level allows: with
 *           MPI_THREAD_SINGLE or FUNNELED all communicators belong to the
 *           main thread, with SERIALIZED one thread at a time is inside
 *           libcomm or MPI. Who waits in libcomm lets MPI move messages of
 *           the program, as who waits in MPI does.
 *   Fork    A communicator belongs to the process that made it. In a child of
 *           fork() every call on it, lcomm_destroy() too, returns
 *           LCOMM_ERR_STATE and touches nothing: no peer, file or memory that
 *           is shared. lcomm_last_error() in the child says so. A child may
 *           make communicators of its own.
 *
 * POLICY
 *   A policy is words of the form key=value separated by white space, e.g.
 *       net=topk:0.01+ef  min=64K  exempt=*.bias,*norm*  warmup=100
 *   net=CODEC     codec on links between nodes          (default none)
 *   net[PATTERN[,PATTERN...]]=CODEC  another codec between nodes for what a
 *                 pattern fits, e.g. net[*.bias,*norm*]=bf16 net[embed*]=int8
 *                 net[size<=64K]=bf16 net=topk:0.01+ef. Of all patterns, in the
 *                 order in which they stand, the first one that fits counts; what
 *                 none fits has the codec of net=, wherever that stands. A pattern
 *                 is GLOB, a name of tensors and residuals, or a RULE of match=, or
 *                 both: embed*&size>=1M; in a rule the name may also stand as
 *                 name=GLOB. Plain calls have no name, so only * fits them, and
 *                 patterns without one. Tensors, and residuals with a name, that a
 *                 pattern fits have its codec however small they are (min= is
 *                 about the others); plain calls, and residuals without a name,
 *                 below min= stay exact, and match= says which are the
 *                 policy's at all. exempt= comes before all patterns. Tensors of
 *                 different codecs never share a bucket. ? stands for a
 *                 character of a name that has a meaning here: < > = & , or
 *                 white space. At most 32 patterns
 *   node=CODEC    codec on links inside a node, without +ef and not topk
 *                                                       (default none)
 *   min=SIZE      smaller operations and tensors stay exact, but for tensors
 *                 that a pattern of net[...] fits; bytes, K, M, G are powers
 *                 of 1024                               (default 64K)
 *   exempt=GLOB[,GLOB...]  tensors, and residuals, whose name matches stay exact
 *   warmup=STEPS  tensor steps that stay exact at first; with a residual its own
 *                 calls are counted                     (default 0)
 *   ramp=DENSITY@STEPS[,DENSITY@STEPS...]  after the warm-up, top-k keeps
 *                 this share for so many tensor steps, then the next one, and
 *                 at last that of net; up to 8 stages, needs top-k in net or in
 *                 a pattern, and is for all of them
 *   momentum=M    momentum correction with momentum factor masking (Deep
 *                 Gradient Compression, Lin et al. 2018), 0 < M < 1. The
 *                 library keeps the momentum, the optimiser's own must be 0;
 *                 float64 sums cannot be tensors then. Needs topk with +ef in net
 *                 or in a pattern; no dense codec may have +ef then
 *                                                       (default none)
 *   clip=NORM[:tensor|:global]  scale each rank's own gradient down to an L2 norm
 *                 of at most NORM / sqrt(ranks) before it is accumulated: each
 *                 tensor by itself, or (global) all tensors of a step by one
 *                 factor, so that no bucket starts before the last of them is
 *                 ready. Tensors that stay exact are clipped alike, integers
 *                 are not, and so is what is sent with a residual that has a
 *                 name, each call by itself. NaN and Inf do not count in a norm
 *                 and stay what they are. 0 < NORM <= 1e9; needs a codec with
 *                 +ef in net or in a pattern; global needs tensors on the host
 *                                                       (default none)
 *   undo=on|off   the last step of tensors, and the last call with each
 *                 residual, can be undone (lcomm_tensors_discard,
 *                 lcomm_residual_discard); error feedback and momentum take
 *                 twice the memory then                 (default off)
 *   nonfinite=report|discard  what becomes of a step of tensors, or an
 *                 all-reduce with a residual, whose results hold NaN or Inf:
 *                 they are counted, or it is undone as well, on all ranks
 *                 alike; the results stay as they are, so the program skips its
 *                 optimiser's step (lcomm_tensors_not_finite). discard implies
 *                 undo=on                               (default report)
 *   scope=tensor|bucket  top-k picks its share in every tensor, or over the
 *                 whole bucket                          (default tensor)
 *   bucket=SIZE   tensors are fused into buckets of at most this size, 4K or
 *                 more; a larger tensor is a bucket alone (default 25M)
 *   algo=auto|ring|direct|gather|doubling|halving  exchange between the peers
 *                 of a plan; ring, doubling and halving are for exact float32
 *                 and integers without +zstd only, direct takes their place
 *                 elsewhere                             (default auto)
 *   check=none|xxhash  checksum every wire message      (default none)
 *   match=RULE[,RULE...]  plain calls that no rule fits stay exact. A rule is
 *                 TERM[&TERM...], all of which must hold:
 *                   size>=SIZE, size<=SIZE, size=SIZE  bytes of all elements, as
 *                               for min=: of one rank's part where there are parts
 *                   count>=N, count<=N, count=N        elements
 *                   ranks>=N, ranks<=N, ranks=N        of the communicator
 *                   dtype=NAME  float32, ...; without it float32, float16, bfloat16
 *                   op=sum|avg|min|max; without it sum and avg
 *                   call=allreduce|reduce-scatter|allgather|broadcast; without
 *                               it the first two
 *                   comm=GLOB   name of the communicator (lcomm_name_set)
 *                 At most 16 rules                      (default: all)
 *   step=CALLS    plain calls with error feedback that make up a training step
 *                 on one communicator, for interposers, which have to find out which
 *                 buffer is which, 1 to 4096            (default: found out)
 *
 *   guard=STEPS[,limit=ERROR][,residual=NORMS][,report]  every so many steps a sample of each
 *                 compressed tensor is summed exactly as well, see GUARD in
 *                 libcomm_tensors.h; what is beyond a limit goes to a milder codec,
 *                 with `report` only told. guard=report is guard=100,report
 *                                                 (default off; limit=0.5, residual=100)
 *
 *   CODEC is NAME[:OPTION[,OPTION...]][+ef|-ef][+zstd], e.g. bf16,
 *   fp8e4m3:block=32,stochastic or topk:0.01,values=int8+ef+zstd
 *     none        float32 as it is
 *     fp16        scale=block (a power of two shared by each block) or
 *                 scale=2^N (of all values, -24 <= N <= 24), else unscaled
 *     bf16
 *     fp8e4m3, fp8e5m2  block=32|64|128 (default 128): values that share a
 *                 scale; stochastic: round so, not to the nearest
 *     int8, int4  block=32|128 (default 128 for int8, 32 for int4)
 *     topk        first DENSITY, the share of values that is kept, with
 *                 0 < DENSITY <= 1, or k=N, that many values of each tensor
 *                 (or of each bucket, see scope), 1 <= N < 2^32; then
 *                 values=bf16|int8 (default bf16)
 *     auto[:CLASS]  on net only: the codec by which a call is predicted to take the
 *                 least time, exact where none pays. CLASS says which errors
 *                 are allowed: lossless (the default: none and none+zstd),
 *                 bf16, int8, or topk (topk:0.01+ef); each allows what those
 *                 before it do. What links between nodes and codecs cost is
 *                 measured when the communicator is made (some 50 ms; links
 *                 not where LCOMM_TOPO_FILE says it), by rank 0 for all.
 *                 After steps 4, 16, 64 and every 256th of tensors it is
 *                 compared with the time that their sums took: the figures
 *                 are corrected where that differs by half, and what hides
 *                 behind the program's computation is not compressed further.
 *                 Takes neither options nor endings. lcomm_plan_print() tells
 *                 the predicted times.
 *   +ef is error feedback, for every codec but none: what a step did not send
 *   is remembered and added to the next. It needs an identity that lasts, so
 *   it acts on tensors and on calls with a residual (lcomm_allreduce_ef,
 *   lcomm_reduce_scatter_ef) only: plain calls under a +ef policy stay exact. Top-k
 *   acts on reduce-scatters with a residual only. int4 has it on net unless
 * -ef takes it away. +zstd compresses the payloads once more, without loss. Codecs act on sums
 * (all-reduce, reduce-scatter). All-gather and broadcast are always exact.
 *
 * ENVIRONMENT: `libcomm-info --env` prints the table.
 */

#include <stdint.h>

#include "libcomm_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LCOMM_VERSION_MAJOR 0
#define LCOMM_VERSION_MINOR 1
#define LCOMM_VERSION_PATCH 0

/* Version of the library that is loaded, as major*10000 + minor*100 + patch. */
LCOMM_API int lcomm_version(void);

/* ---------------------------------------------------------------- errors */

/* The last error of `comm`: one sentence that names this rank and its host,
 * the operation, the peer, the cause and a remedy; "" if there was none.
 * comm NULL: the last error of the calling thread outside any communicator,
 * such as a failed lcomm_create(). The text is valid until the next error on
 * the same communicator (or thread) and until lcomm_destroy(). Any thread. */
typedef struct lcomm_comm lcomm_comm;
LCOMM_API const char *lcomm_last_error(const lcomm_comm *comm);

/* What the library says besides the errors it returns. By default warnings go to standard
 * error: what a run goes on without. LCOMM_LOG names the last of these levels that is
 * said, LCOMM_LOG_FILE a file for it. */
typedef enum lcomm_log_level {
  LCOMM_LOG_NONE = 0,
  LCOMM_LOG_ERROR = 1, /* the sentences of lcomm_last_error(), as they are written */
  LCOMM_LOG_WARN = 2,  /* what a run goes on without */
  LCOMM_LOG_INFO = 3,  /* version, policy, transport and interface to each peer */
  LCOMM_LOG_DEBUG = 4, /* plans */
  LCOMM_LOG_TRACE = 5  /* operations, as they begin */
} lcomm_log_level;

/* context: as given to lcomm_log_set. sentence: without an end of line; valid during the call.
 * Called by any thread that is inside the library, by several at once too. It must not call
 * libcomm. */
typedef void (*lcomm_log_function)(void *context, lcomm_log_level level, const char *sentence);

/* From now on sentences up to `level` go to `function`, whatever LCOMM_LOG says, and nothing
 * to standard error or LCOMM_LOG_FILE. NULL: as before. A call that another thread is in may
 * still end in the old function. Any thread. Errors: ARGUMENT for a level that does not exist. */
LCOMM_API lcomm_status lcomm_log_set(lcomm_log_level level, lcomm_log_function function,
                                     void *context);

/* --------------------------------------------------------- communicators */

/* How the ranks find each other when MPI does not do it. `allgather` is
 * called a few times inside lcomm_create() and never again: it copies `size`
 * bytes from `send` of every rank into `recv` (world_size * size bytes, in
 * rank order) and returns 0, or non-zero on failure. It is collective. */
typedef struct lcomm_bootstrap {
  int rank;       /* 0 .. world_size-1 */
  int world_size; /* number of ranks, at least 1 */
  void *context;  /* handed to allgather, owned by the caller */
  int (*allgather)(void *context, const void *send, void *recv, size_t size);
} lcomm_bootstrap;

/* Who moves running operations forward. */
typedef enum lcomm_progress_mode {
  LCOMM_PROGRESS_DEFAULT = 0, /* LCOMM_PROGRESS, else auto */
  LCOMM_PROGRESS_CALLS = 1,   /* the program's calls into libcomm */
  LCOMM_PROGRESS_THREAD = 2,  /* a thread of the library as well. Buckets start and move while
                                 the program computes. Messages over MPI need
                                 MPI_THREAD_MULTIPLE then; other transports need nothing. */
  LCOMM_PROGRESS_AUTO = 3     /* a thread on machines with two processors or more for each rank,
                                 by affinity and control-group quota, and where MPI allows it if
                                 it is needed; else calls. It is started by the first call that
                                 does not block, or tensor, so calls that block pay nothing for it,
                                 and streams never wait for it. LCOMM_LOG=info says which. */
} lcomm_progress_mode;

/* Options of a communicator. Begin with LCOMM_CONFIG_INIT; what is left at
 * its default is taken from the environment, then from the table's default. */
typedef struct lcomm_config {
  size_t struct_size;    /* sizeof(lcomm_config), set by LCOMM_CONFIG_INIT */
  const char *policy;    /* policy string, copied; NULL: LCOMM_POLICY, else exact */
  double timeout_s;      /* longest wait without progress: above 0, below 1e9; 0: LCOMM_TIMEOUT_S */
  int nodes;             /* pose as this many nodes; 0: LCOMM_NODES, else real hosts */
  const char *transport; /* "auto" or names such as "shm,mpi"; NULL: LCOMM_TRANSPORT, else auto */
  lcomm_progress_mode progress; /* who moves running operations */
} lcomm_config;

#define LCOMM_CONFIG_INIT                                                                          \
  { sizeof(lcomm_config), NULL, 0.0, 0, NULL, LCOMM_PROGRESS_DEFAULT }

/* Make a communicator. Collective over the ranks of `bootstrap`.
 * Ranks of one host talk through shared memory, others through UCX, or over
 * MPI where it has been initialised by the caller in every rank and the program is linked
 * with libcomm-with-mpi (libcomm_mpi.h).
 * File descriptors: the first communicator of a process raises the soft limit of
 * open files to the hard one (`ulimit -Hn`), once, for the whole process and what
 * it starts; a program that relies on select() lowers it again. With shared memory
 * a communicator holds 3 and one for each other rank of its host, and the process
 * one more for each of these processes. UCX must find some 30 free, and 2 for each
 * rank. Where a rank has too few, no communicator is made.
 * bootstrap     not kept after the call; its context must live until the return
 * config   may be NULL for all defaults; not kept
 * comm     receives the communicator, owned by the caller: lcomm_destroy()
 * Errors, the same one on all ranks: ARGUMENT (a bad bootstrap or config),
 * POLICY (with the position in the string), MISMATCH (library or wire version
 * or policy differ between ranks; both values are named), ARGUMENT (a number
 * of nodes that leaves a node without ranks), TRANSPORT, SYSTEM (too few file
 * descriptors; the rank, and the `ulimit -n` it needs, are named), MEMORY. */
LCOMM_API lcomm_status lcomm_create(const lcomm_bootstrap *bootstrap, const lcomm_config *config,
                                    lcomm_comm **comm);

/* Make a communicator without MPI and without a bootstrap of your own: the
 * ranks meet at a TCP store that rank 0 opens. Where they are is told by the
 * variables that launchers set:
 *   rank, world size  RANK and WORLD_SIZE, else those of mpirun
 *                     (OMPI_COMM_WORLD_RANK, ...), PMI (PMI_RANK, ...) or srun
 *                     (SLURM_PROCID, SLURM_NTASKS)
 *   the store         MASTER_ADDR and MASTER_PORT; MASTER_ADDR may be missing
 *                     when all ranks are on one host, which they are taken to be
 *                     where the launcher does not say otherwise. LCOMM_PORT overrides
 *                     MASTER_PORT; under torchrun, which listens there
 *                     itself, the port after it is taken; default 29600
 *   LCOMM_TOKEN       a secret of the job: who connects to the store without it
 *                     is refused. It travels unencrypted, and protects the store
 *                     alone: not the connections that carry data. Those of UCX
 *                     are refused to other hosts by their addresses while a
 *                     communicator is made, and to all afterwards; users of the
 *                     job's hosts, and who can forge addresses or change packets,
 *                     are kept out by a private network or a firewall only
 * LOCAL_RANK is not needed: who shares a host is found out. A process without any of
 * these variables is a world of one.
 * All waits last up to the time-out (LCOMM_TIMEOUT_S): ranks may start one after the
 * other, and a rank 0 that is stopped meanwhile is waited for. Strangers, with
 * however many connections, keep no rank out. Rank 0 takes one more file
 * descriptor for each rank while they meet.
 * config, comm: as lcomm_create()
 * Errors: as lcomm_create(), ARGUMENT for a variable that is missing or no
 * number, TIMEOUT (the ranks that did not come are named), TRANSPORT. */
LCOMM_API lcomm_status lcomm_create_env(const lcomm_config *config, lcomm_comm **comm);

/* Make communicators over parts of one. Collective over `comm`: ranks that give
 * the same color come together, ordered by key, then by rank in `comm`. A
 * negative color takes no part and receives NULL.
 * config   as lcomm_create(), but what is left at its default is as in `comm`:
 *          policy, time-out, transports, progress, and whether ranks pose as
 *          nodes. NULL: all of it. The policy may differ between colors
 * part     receives the new communicator, owned by the caller. It is
 *          independent of `comm`, which may be destroyed before it
 * Errors: as lcomm_create(), and the sticky error of `comm`. */
LCOMM_API lcomm_status lcomm_split(lcomm_comm *comm, int color, int key, const lcomm_config *config,
                                   lcomm_comm **part);

/* Free the communicator, its tensors and their error-feedback state.
 * Collective unless an error occurred. Operations that were started must have
 * been waited for; if they were not, this is an abort. NULL is allowed.
 * Buffers of operations that failed may be read by a slow peer until the
 * process ends MPI; they are never written after this call returns.
 * A rank that another communicator of this process has given up, dead or silent
 * for the time-out, is not waited for again: the error then says so.
 * Returns LCOMM_OK, or the communicator's sticky error; the sentence is then
 * lcomm_last_error(NULL). */
LCOMM_API lcomm_status lcomm_destroy(lcomm_comm *comm);

/* Give up: fail every operation in flight here and on all peers with
 * LCOMM_ERR_ABORTED and `reason` (one sentence, copied, may be NULL). Peers
 * learn of it the next time they test or wait. Returns at once. Any thread;
 * the thread that drives the communicator tells the peers at its next call. */
LCOMM_API lcomm_status lcomm_abort(lcomm_comm *comm, const char *reason);

/* Rank of the caller, number of ranks, and where they are. -1 for NULL.
 * node: index of this rank's node, nodes: how many there are, local_rank:
 * index inside the node, in rank order. */
LCOMM_API int lcomm_rank(const lcomm_comm *comm);
LCOMM_API int lcomm_size(const lcomm_comm *comm);
LCOMM_API int lcomm_node(const lcomm_comm *comm);
LCOMM_API int lcomm_nodes(const lcomm_comm *comm);
LCOMM_API int lcomm_local_rank(const lcomm_comm *comm);

/* The policy in force, in canonical form. Valid until lcomm_policy_set() or
 * lcomm_destroy(). */
LCOMM_API const char *lcomm_policy_string(const lcomm_comm *comm);

/* Another policy from here on, for all later calls and steps. Collective; between the steps,
 * when all operations are over and were waited for. It takes about as long as the first step.
 * policy   as in lcomm_config, equal on all ranks; "" is the exact one
 * Plans and buckets are made anew. What tensors remember:
 *   residual  kept where the new policy has error feedback for the tensor, as
 *             lcomm_tensor_freeze says; else it is paid out: added to the result of the
 *             tensor's next step, and until then lcomm_tensor_residual() shows it on rank 0
 *   momentum  kept where the new policy has momentum=, with its factor; else dropped
 *   steps     counted on: warmup= and ramp= of the new policy count from the first step of the
 *             communicator
 * Residuals of calls (libcomm_interpose.h) are kept where every rank keeps the same elements as
 * before; the next call with another one is exact and pays all that it holds.
 * A policy that a rank cannot take or that differs between ranks changes nothing: all ranks
 * return the same error and sentence, and go on with the policy before.
 * Not while another thread reports tensors ready, or asks lcomm_policy_query().
 * Errors: POLICY (with the position), ARGUMENT (NULL; momentum= and a float64 tensor), STATE
 * (during a step; an operation is in flight or was not waited for), MISMATCH (both policies are
 * named); MEMORY and those of lcomm_allreduce, sticky. */
LCOMM_API lcomm_status lcomm_policy_set(lcomm_comm *comm, const char *policy);

/* ----------------------------------------------------------- collectives */

typedef enum lcomm_op {
  LCOMM_SUM = 0, /* sum over the ranks; integers wrap around */
  LCOMM_AVG = 1, /* sum divided by the number of ranks; integers towards zero. The sum is made
                    first and may overflow where the average would not: 4 ranks with 2e38 get
                    Inf. lcomm_allreduce_scaled() with SUM and before = 1/ranks divides first. */
  LCOMM_MIN = 2, /* smallest; a NaN wins over numbers; always exact */
  LCOMM_MAX = 3  /* largest; a NaN wins over numbers; always exact */
} lcomm_op;

/* A running operation. Lives with the caller, is opaque, needs no
 * initialisation and no clean-up. It must stay at its address until
 * lcomm_wait() or lcomm_test() has said that the operation is over. */
typedef struct lcomm_request {
  void *internal;
  int32_t state;
  int32_t status;
  uint64_t not_finite;
} lcomm_request;

/* All-reduce: receive[i] = sum (or average) over ranks of send[i].
 * send     `count` elements of `dtype`, read until completion
 * receive  `count` elements of `dtype`, written; equal to `send` for in
 *          place, otherwise it must not overlap it
 * count    any number, 0 included; buffers may be NULL when it is 0
 * Sums are made in float32: of the ranks of a node in rank order, then of the
 * nodes; long exact ones between more than two nodes go around a ring, in its
 * order. The order depends on count, type, policy and ranks only. float16 and bfloat16 buffers
 * travel and return in their own type. float64, int32, int64, int8 and uint8
 * are summed in their own type and are never compressed; sums of n-bit integers wrap around
 * modulo 2^n, and an average divides what is left then.
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

/* Barrier: returns when all ranks have entered it. */
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
 * them sees the result. With a progress thread that was asked for (LCOMM_PROGRESS=thread,
 * not auto) they return at once and the stream waits; without one, or on a device whose streams
 * cannot wait for numbers, they return when the result is there. So does the first call of a shape,
 * and one on a stream of the greatest priority. What fails after an early return lets the stream go
 * on, with a result that means nothing, and is returned by the next call on the communicator. Other
 * arguments and errors as those of the calls without a stream; ARGUMENT for buffers on the host,
 * and for a stream that is being captured into a graph: the host takes part in the call. The
 * time-out counts from when the rank's own device has come to the call.
 *
 * While streams wait, the program must do nothing that waits for the whole device,
 * because that would keep libcomm from it: free or make device or pinned memory, make
 * streams, or launch a kernel of its own for the first time (for the last,
 * CUDA_MODULE_LOADING=EAGER helps). A program that cannot promise that leaves the
 * progress thread out. */
LCOMM_API lcomm_status lcomm_allreduce_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                 uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                                 void *stream);
LCOMM_API lcomm_status lcomm_reduce_scatter_on_stream(lcomm_comm *comm, const void *send,
                                                      void *receive, uint64_t receive_count,
                                                      lcomm_dtype dtype, lcomm_op op, void *stream);
LCOMM_API lcomm_status lcomm_allgather_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                 uint64_t send_count, lcomm_dtype dtype,
                                                 void *stream);
LCOMM_API lcomm_status lcomm_alltoall_on_stream(lcomm_comm *comm, const void *send, void *receive,
                                                uint64_t count, lcomm_dtype dtype, void *stream);
LCOMM_API lcomm_status lcomm_broadcast_on_stream(lcomm_comm *comm, void *buffer, uint64_t count,
                                                 lcomm_dtype dtype, int root, void *stream);

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

/* ------------------------------------------------------------ statistics */

/* Link classes, from near to far. X(name, text). Between nodes lies net; inside a
 * node it depends on the devices that are current when the communicator is made:
 * one device is same-device, two that read and write each other are nvlink or
 * pcie, and all else is shm. nvlink lies between nodes too, where these are in one
 * NVLink domain. */
#define LCOMM_LINK_LIST(X)                                                                         \
  X(LCOMM_LINK_SELF, "self")                                                                       \
  X(LCOMM_LINK_SAME_DEVICE, "same-device")                                                         \
  X(LCOMM_LINK_NVLINK, "nvlink")                                                                   \
  X(LCOMM_LINK_PCIE, "pcie")                                                                       \
  X(LCOMM_LINK_SHM, "shm")                                                                         \
  X(LCOMM_LINK_NET, "net")

typedef enum lcomm_link {
#define LCOMM_LINK_ENUM(name, text) name,
  LCOMM_LINK_LIST(LCOMM_LINK_ENUM)
#undef LCOMM_LINK_ENUM
      LCOMM_LINK_COUNT
} lcomm_link;

LCOMM_API const char *lcomm_link_name(lcomm_link link);

typedef struct lcomm_stats {
  uint64_t operations;                       /* finished, tensors' buckets included */
  uint64_t sent_bytes[LCOMM_LINK_COUNT];     /* sent by this rank, headers included */
  uint64_t received_bytes[LCOMM_LINK_COUNT]; /* received by this rank, headers included */
  uint64_t exact_bytes[LCOMM_LINK_COUNT];    /* sent, had the same messages been exact; the
                                                ratio to sent_bytes is the compression of the
                                                messages, whose number depends on the plan */
  uint64_t not_finite;                       /* NaN and Inf in the results of tensors, and of
                                                plain sums that went through a lossy codec */
  uint64_t sent_messages[LCOMM_LINK_COUNT];  /* a header with its payload is one */
  uint64_t memory_bytes;                     /* of slots and vectors of all plans, now */
  double encode_s;                           /* time in encoders */
  double decode_s;                           /* ... in decoders and sums */
  double wire_s;                             /* ... with a message of an operation in flight,
                                                summed over the operations */
  double wait_s;                             /* ... with nothing to do but wait */
  uint64_t missed_wakeups;                   /* sleeps that ran to their limit while a message
                                                was complete; 0 unless a transport is at fault */
  uint64_t flow_waits;                       /* operations that waited until a peer had caught up:
                                                where a rank only sends to a peer, as the root of
                                                a broadcast does, it is at most 64 operations or
                                                4 MiB and one operation ahead of it */
  uint64_t run_hits;                         /* plain calls of a shape that was kept, */
  uint64_t run_misses;                       /* and of one that had to be made, LCOMM_RUN_CACHE */
  uint64_t discarded;                        /* steps of tensors, and calls with a residual, that
                                                were undone */
  /* guard= of the policy; of the last check the worst of all tensors, see lcomm_guard_figures */
  uint64_t guard_checks; /* steps that were checked */
  uint64_t guard_beyond; /* tensors found beyond a limit, each check counted */
  uint64_t guard_waited; /* entries of top-k found waiting, over all checks */
  double guard_error, guard_cosine, guard_residual;
} lcomm_stats;

/* Counters of this rank since creation or the last reset. Not collective. */
LCOMM_API lcomm_status lcomm_stats_get(const lcomm_comm *comm, lcomm_stats *stats);
LCOMM_API lcomm_status lcomm_stats_reset(lcomm_comm *comm);

/* Print in words the plan an all-reduce of this shape would follow and why:
 * algorithm, codec per link class, chunks, messages and bytes. tensor: 1 for
 * a bucket of tensors or a call with a residual, without a name (see lcomm_tensor_codec), 0 for a
 * plain call. Writes at most `size` bytes
 * with the terminating zero; cuts what does not fit. Local call. Errors: ARGUMENT, MEMORY. */
LCOMM_API lcomm_status lcomm_plan_print(lcomm_comm *comm, uint64_t count, lcomm_dtype dtype,
                                        int tensor, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#include "libcomm_tensors.h" /* named gradients, and saving what they remember */

#endif
