/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_H
#define LIBCOMM_H

/* libcomm: exact collectives inside a node, compressed ones between nodes.
 *
 *   1. Make a communicator, collectively: lcomm_create_mpi() (libcomm_mpi.h),
 *      lcomm_create_env() without MPI, or lcomm_create() with your own bootstrap.
 *   2. Either call collectives on plain buffers (libcomm_collectives.h), or
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
 *   Errors  Every function that can fail returns lcomm_status: LCOMM_OK or a negative code.
 *           Outputs are written on success only. The sentence that says who, what, why and what
 *           to do is lcomm_last_error(). Bad arguments never crash and never touch a buffer. A
 *           pointer that must not be NULL, and the handle of a tensor or residual of another
 *           communicator, also of one that was destroyed, are ARGUMENT.
 *   Sticky  Once an operation failed on a communicator, peers are told, and every later call on
 *           it returns the same error on all ranks. lcomm_destroy() is then the only useful
 *           call, and, where a rank was lost, lcomm_shrink() (libcomm_elastic.h). That is so
 *           also when one rank alone finds no memory for a collective. No call
 *           waits longer than the time-out (LCOMM_TIMEOUT_S) without progress, and up to a
 *           second more to find out with the others whose fault it is: all ranks report the same
 *           one, which names the rank that is dead, stopped or late, or the link or host that is
 *           down. A rank that has not been inside libcomm for half the time-out, and has no
 *           progress thread, cannot be told from a stopped one.
 *   Equal   Collectives must be called by all ranks of a communicator in the same order with the
 *           same count, dtype, operation and root. A difference is detected and named on every
 *           rank (LCOMM_ERR_MISMATCH); it does not hang.
 *   Bits    After a successful all-reduce or broadcast all ranks hold bit-identical results,
 *           with every codec. The same calls with the same inputs on the same number of ranks
 *           and nodes give the same bits every run, whatever the processor and the thread's
 *           floating-point environment.
 *   Memory  Buffers are memory of the host or of a device; those of sums and of tensors are
 *           aligned to their element. Buffers of one call do not overlap, unless they are in
 *           place as the call says. The library never owns a caller's buffer. After the first
 *           operation of a shape, or as many as are in flight at a time, nothing is allocated on
 *           the data path, as long as the shapes of plain calls fit into LCOMM_RUN_CACHE.
 *           lcomm_memory_alloc() gives memory that is the fastest inside a host.
 *   Threads One communicator is used by one thread at a time, except for lcomm_tensor_ready(),
 *           lcomm_last_error(), lcomm_abort() and the functions that take no communicator, which
 *           may be called from any thread at any time. Different communicators are independent
 *           as far as the MPI library's thread level allows: with MPI_THREAD_SINGLE or FUNNELED
 *           all communicators belong to the main thread, with SERIALIZED one thread at a time is
 *           inside libcomm or MPI. Who waits in libcomm lets MPI move messages of the program,
 *           as who waits in MPI does.
 *   Fork    A communicator belongs to the process that made it. In a child of fork() every call
 *           on it, lcomm_destroy() too, returns LCOMM_ERR_STATE and touches nothing: no peer,
 *           file or memory that is shared. lcomm_last_error() in the child says so. A child may
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
 *   rack=CODEC    codec between nodes of one rack, of sums on which a codec of net
 *                 acts; where that has +ef, so has this, without saying so. Casts,
 *                 fp8 and int8, with +zstd. Racks are known where all ranks name
 *                 theirs by LCOMM_RACK, or LCOMM_TOPO_FILE does. All-reduces and
 *                 tensors then go inside nodes, inside racks, and between them
 *                 once for each rack, with the codec of net; not short ones, top-k
 *                 and net=auto, nor where a rack has a single node or more than
 *                 twice the nodes of another     (default none: exact)
 *   pipe=CODEC    codec of messages between two ranks of different nodes
 *                 (libcomm_pairs.h); those inside a node are exact. Not topk, sign,
 *                 int2, lowrank and auto: nothing makes up for what they leave out.
 *                 +ef is for the messages of a channel (lcomm_channel_create); int4
 *                 has it only if it is said             (default none)
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
 *                 or in a pattern; no dense codec may have +ef then, nor lowrank be there
 *                                                       (default none)
 *   adam=onebit[,beta1=BETA][,refresh=STEPS]  compressed momentum, for tensors
 *                 (1-bit Adam, Tang et al. 2021): after the warm-up what
 *                 travels is the momentum, and tensors receive its average
 *                 instead of that of the gradients; which of the two a step
 *                 has brought, lcomm_tensors_momentum() says. The optimiser
 *                 is Adam with a variance that is frozen while momentum
 *                 arrives, and the same BETA, 0 < BETA < 1 (0.9). refresh: after
 *                 STEPS steps of momentum one brings exact gradients again, so
 *                 that the variance can be refreshed, then after twice as many,
 *                 and so on (none). float64 sums cannot be tensors then. Needs
 *                 warmup= and a dense codec with +ef in net or in a pattern,
 *                 and no topk or lowrank; e.g. net=sign adam=onebit warmup=1000
 *                                                       (default none)
 *   clip=NORM[:tensor|:global]  scale each rank's own gradient down to an L2 norm
 *                 of at most NORM / sqrt(ranks) before it is accumulated: each
 *                 tensor by itself, or (global) all tensors of a step by one
 *                 factor, so that no bucket starts before the last of them is
 *                 ready. Tensors that stay exact are clipped alike, integers
 *                 are not, and so is what is sent with a residual that has a
 *                 name, each call by itself. NaN and Inf do not count in a norm
 *                 and stay what they are. 0 < NORM <= 1e9; needs a codec with
 *                 +ef in net or in a pattern
 *                                                       (default none)
 *   undo=on|off   the last step of tensors, and the last call with each
 *                 residual, can be undone (lcomm_tensors_discard,
 *                 lcomm_residual_discard); error feedback and momentum take
 *                 twice the memory then. LCOMM_ELASTIC=on implies it
 *                                                       (default off)
 *   nonfinite=report|discard  what becomes of a step of tensors, or a call
 *                 with a residual (a reduce-scatter: if it blocks), whose results
 *                 hold NaN or Inf: they are counted, or it is undone as well, on
 *                 all ranks alike; the results stay as they are, so the program
 *                 skips its optimiser's step (lcomm_tensors_not_finite). discard
 *                 implies undo=on                       (default report)
 *   scope=tensor|bucket  top-k picks its share in every tensor, or over the
 *                 whole bucket                          (default tensor)
 *   bucket=SIZE   tensors are fused into buckets of at most this size, 4K or
 *                 more; a larger tensor is a bucket alone (default 25M)
 *   algo=auto|ring|direct|gather|doubling|halving|servers  exchange between the
 *                 peers of a plan; ring, doubling and halving are for exact float32
 *                 and integers without +zstd only, direct takes their place
 *                 elsewhere. servers: tensors are summed by the ranks of servers=,
 *                 all else as by auto                   (default auto)
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
 *   quorum=K, quorum=N%  sums of tensors, and all-reduces with a residual
 *                 (libcomm_residuals.h), do not wait for the slowest: each rank
 *                 owns a piece of a bucket, and sums what K ranks, or N percent of
 *                 all, have sent and what comes LATE ms after that. LCOMM_AVG divides
 *                 by the number that it used, LCOMM_SUM is the sum of those. Results
 *                 are the same on all ranks. A rank that was late keeps what it sent
 *                 and sends it with its next gradients, so nothing is lost; up to 16
 *                 steps later, then the others wait for it. All tensors keep what
 *                 their codec leaves out, with +ef or without. lcomm_behind() says
 *                 that a rank had better skip steps, lcomm_lateness_get() who is
 *                 late; rank 0 logs who was in 50 sums in a row. For float32,
 *                 float16 and bfloat16 tensors; what is on a device comes to the host
 *                 through pinned memory, in calls of the program. Plain calls and
 *                 reduce-scatters wait for all ranks. Ranks of a node add up exactly, and
 *                 send other nodes one sum. There is a progress thread more. Not with
 *                 warmup=, ramp=, momentum=, adam=, undo=, guard=, node=, rack=, net=auto,
 *                 lowrank, +zstd and LCOMM_ELASTIC, and lcomm_policy_set() does not
 *                 change it               (default: all ranks)
 *   stale=N[:drop]  steps do not wait for their results: a rank goes on for up to N steps
 *                 (1 to 7) without the newest ones, so that ranks that pause now and then do not
 *                 hold up the others. lcomm_tensors_wait() waits LATE ms for the result of its
 *                 step; lcomm_tensors_next() hands out what is there, in order of the steps, each
 *                 result once on every rank, so replicas differ by what is under way alone.
 *                 lcomm_tensors_sync() hands out all and compares the ranks. A gradient that was
 *                 computed without the results of AGE steps is multiplied with 1/(1+AGE), a
 *                 smaller learning rate: steps by old gradients have to be shorter. Of what
 *                 was multiplied nothing is lost. A rank that is slow in
 *                 every step sets the pace of all, N steps later. With :drop a rank that is more
 *                 than N steps behind more than half of the ranks is not waited for: it keeps what
 *                 it sent, sends it later, and lcomm_behind() says how many steps it had better
 *                 skip. Owners of pieces, types, codecs, and what it does not go with are as for
 *                 quorum=; nor does it go with that. It is for tensors of the host, and not for
 *                 calls with a residual, which wait for all ranks
 *                                                       (default: each step waits for its result)
 *   late=MS       how long a quorum waits for the others, or with stale= a step for its result, 0
 *                 to 3600000 ms                         (default 10)
 *   servers=R[@SHARE],..., servers=nodes:N[@SHARE],...  with algo=servers: these ranks,
 *                 or all ranks of these nodes, are parameter servers
 *                 (libcomm_servers.h): they own all tensors in pieces, and bring no
 *                 gradients; the others are workers. SHARE, 1 to 1000, is how many bytes
 *                 a server has beside the others, so give a faster link more
 *                 (default 1). A step is of all workers, or with quorum= of so many of
 *                 them, as there; with stale=N[:drop] workers go on without the newest
 *                 results. For the tensors of the host, and not with the words, that quorum=
 *                 names; lcomm_policy_set() does not change it. At most 64
 *                                                       (default: no servers)
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
 *     int2, sign  two bits and one bit of a value, block=32|64|128 (default 128); for
 *                 tensors and calls with a residual, whose sums make up for the error
 *     topk        first DENSITY, the share of values that is kept, with
 *                 0 < DENSITY <= 1, or k=N, that many values of each tensor
 *                 (or of each bucket, see scope), 1 <= N < 2^32; then
 *                 values=bf16|int8 (default bf16)
 *     lowrank     on net only: first RANK, 1 <= RANK <= 64, then values=none|bf16|int8, by
 *                 which the factors travel (default none), e.g. lowrank:4. For tensors with
 *                 a shape, each a matrix (lcomm_tensor_add_shaped); all else is exact. Always
 *                 has error feedback, and no other ending
 *     auto[:CLASS]  on net only: the codec, the algorithm and the number of chunks by
 *                 which a call is predicted to take the least time, exact where
 *                 none pays. CLASS says which errors
 *                 are allowed: lossless (the default: none and none+zstd),
 *                 bf16, int8, int4, int2, sign (these three with error
 *                 feedback), lowrank (lowrank:4, for matrices), or topk
 *                 (topk:0.01+ef); each allows what those
 *                 before it do. What links between nodes and codecs cost is
 *                 measured when the communicator is made (some 50 ms; links
 *                 not where LCOMM_TOPO_FILE says it), by rank 0 for all.
 *                 After steps 4, 16, 64 and every 256th of tensors it is
 *                 compared with the time that their sums took: the figures
 *                 are corrected where that differs by half, and what hides
 *                 behind the program's computation is not compressed further.
 *                 So it is after as many calls of one shape, plain or with a
 *                 residual, at a call that blocks; calls have figures of their
 *                 own. Ranks must then make blocking calls where others do, not
 *                 calls that return at once.
 *                 Takes neither options nor endings. lcomm_plan_print() tells
 *                 the predicted times and why.
 *   PRESETS, each the whole value of net=, stand for words that were found to go
 *   together; lcomm_policy_string() says them one by one. A word that the policy gives
 *   itself counts instead of the preset's, and its patterns come before those of the
 *   preset. All have net[size>=4K&size<=64K]=int8. What they cost in accuracy:
 *   tools/bench/RESULTS.md
 *     int4:safe   net=int4:block=128+ef+zstd, about 7 to 14 times fewer bytes
 *     topk:safe   net=topk:0.25,values=int8+ef+zstd, about 11 times fewer; for SGD,
 *                 not for Adam
 *     topk:fast   net=topk:0.08,values=int8+ef+zstd ramp=0.25@150, over 20 times
 *                 fewer in runs of a thousand steps and more; likewise, and it can
 *                 lose some tenths of a point
 *   +ef is error feedback, for every codec but none: what a step did not send
 *   is remembered and added to the next. It needs an identity that lasts, so
 *   it acts on tensors and on calls with a residual (lcomm_allreduce_ef,
 *   lcomm_reduce_scatter_ef) only: plain calls under a +ef policy stay exact. Top-k
 *   acts on reduce-scatters with a residual only. int4, int2 and sign have it on
 *   net unless -ef takes it away. +zstd compresses the payloads once more, without loss. Codecs act
 * on sums (all-reduce, reduce-scatter), and that of pipe= on messages between two ranks. All-gather
 * and broadcast are always exact.
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
                                 does not block, or tensor, so calls that block pay nothing for it.
                                 LCOMM_LOG=info says which. */
} lcomm_progress_mode;

/* Calls on buffers of devices may start a thread in any mode, see "buffers of devices" in
 * libcomm_collectives.h. */

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
 * bootstrap  not kept after the call; its context must live until the return
 * config     may be NULL for all defaults; not kept
 * comm       receives the communicator, owned by the caller: lcomm_destroy()
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
 *   momentum  kept where the new policy has momentum=, with its factor; else dropped. After the
 *             first step adam= must stay as it is
 *   steps     counted on: warmup= and ramp= of the new policy count from the first step of the
 *             communicator
 *   guard     forgotten: a tensor that went to a milder codec begins with that of the new policy.
 *             Without this call it comes back by itself, after 10 good checks in a row
 * Residuals of calls (libcomm_residuals.h) are kept where every rank keeps the same elements as
 * before; the next call with another one is exact and pays all that it holds.
 * A policy that a rank cannot take or that differs between ranks changes nothing: all ranks
 * return the same error and sentence, and go on with the policy before.
 * Not while another thread reports tensors ready, or asks lcomm_policy_query().
 * Errors: POLICY (with the position), ARGUMENT (NULL; momentum= or adam= and a float64 tensor),
 * STATE (during a step; an operation is in flight or was not waited for; another adam=, quorum=,
 * stale= or servers=), MISMATCH (both policies are named); MEMORY and those of lcomm_allreduce,
 * sticky. */
LCOMM_API lcomm_status lcomm_policy_set(lcomm_comm *comm, const char *policy);

#ifdef __cplusplus
}
#endif

#include "libcomm_collectives.h" /* collectives, buffers of devices, memory */
#include "libcomm_elastic.h"     /* going on without ranks that were lost */
#include "libcomm_pairs.h"       /* messages between two ranks */
#include "libcomm_servers.h"     /* parameter servers */
#include "libcomm_stats.h"       /* counters and plans */
#include "libcomm_tensors.h"     /* named gradients, and saving what they remember */

#endif
