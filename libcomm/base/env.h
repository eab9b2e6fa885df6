/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_ENV_H
#define LCOMM_BASE_ENV_H

/* Every environment variable libcomm reads, in two tables: the only place that
 * calls getenv, and the source of `libcomm-info --env`. The first: its own.
 * X(id, variable, default shown to people, help) */
#define LCOMM_ENV_LIST(X)                                                                          \
  X(LCOMM_ENV_POLICY, "LCOMM_POLICY", "net=none", "policy when the program sets none")             \
  X(LCOMM_ENV_NODES, "LCOMM_NODES", "real hosts", "pose as this many nodes, ranks split evenly")   \
  X(LCOMM_ENV_HOSTID, "LCOMM_HOSTID", "this host", "identity of this rank's host, any text")       \
  X(LCOMM_ENV_RACK, "LCOMM_RACK", "none",                                                          \
    "name of the rack of this rank's host, on all ranks or on none: long sums then go inside "     \
    "nodes, inside racks (rack= of the policy), and once for each rack between them (net=)")       \
  X(LCOMM_ENV_TOPO_FILE, "LCOMM_TOPO_FILE", "none",                                                \
    "file with what the links cost, as `libcomm-info --measure` prints it: plans predict times "   \
    "by it; the same on all ranks. Its lines about racks serve where no rank has LCOMM_RACK")      \
  X(LCOMM_ENV_TRANSPORT, "LCOMM_TRANSPORT", "auto",                                                \
    "what carries the bytes: some of shm,ucx,mpi; the first that reaches a peer is taken")         \
  X(LCOMM_ENV_UCX_NET_DEVICES, "LCOMM_UCX_NET_DEVICES", "those that lead to all hosts",            \
    "network devices for UCX, such as eth0 or mlx5_0:1, separated by commas")                      \
  X(LCOMM_ENV_RAILS, "LCOMM_RAILS", "auto",                                                        \
    "TCP over several network cards: auto, each rank uses one of the fastest that lead to all "    \
    "hosts, in turn; 1, all ranks use the first; all, UCX has all and chooses; or names such as "  \
    "eth0,eth1, which are shared out. Without effect beside LCOMM_UCX_NET_DEVICES and InfiniBand") \
  X(LCOMM_ENV_UCX_TLS, "LCOMM_UCX_TLS", "^shm,self,cuda,rocm",                                     \
    "transports for UCX, such as tcp or rc; so with all its settings: LCOMM_UCX_X is what "        \
    "UCX_X is to MPI, and UCX_X does not count")                                                   \
  X(LCOMM_ENV_PROGRESS, "LCOMM_PROGRESS", "auto",                                                  \
    "calls; thread: a thread of the library moves operations while the program computes; auto: "   \
    "such a thread, from the first call that does not block, where each rank has 2 processors")    \
  X(LCOMM_ENV_RUN_CACHE, "LCOMM_RUN_CACHE", "256M",                                                \
    "memory for plain calls of different shapes, of each communicator: the shape not used for "    \
    "longest is forgotten first and costs a start when it comes again; smallest of all ranks")     \
  X(LCOMM_ENV_TIMEOUT_S, "LCOMM_TIMEOUT_S", "300",                                                 \
    "seconds without progress until an error, above 0 and below 1e9")                              \
  X(LCOMM_ENV_ISA, "LCOMM_ISA", "the fastest",                                                     \
    "kernels to use: scalar, avx2 or avx512; the results are the same")                            \
  X(LCOMM_ENV_CUDA, "LCOMM_CUDA", "auto",                                                          \
    "auto: CUDA devices are used where there are any; off: none is")                               \
  X(LCOMM_ENV_CUDA_IPC, "LCOMM_CUDA_IPC", "auto",                                                  \
    "auto: devices of a host read each other's memory where they can; off: through the host")      \
  X(LCOMM_ENV_LOG, "LCOMM_LOG", "warnings",                                                        \
    "what is said on standard error: none, error, warn, info, debug or trace, each with those "    \
    "before it; unset: warnings, but no errors, since calls return them. info: version, and "      \
    "transport and interface to each peer, for bug reports; debug: plans; trace: operations")      \
  X(LCOMM_ENV_LOG_FILE, "LCOMM_LOG_FILE", "standard error",                                        \
    "file that this is appended to; %r in its name: the rank, %h: the host, %p: the process")      \
  X(LCOMM_ENV_CAPTURE, "LCOMM_CAPTURE", "none",                                                    \
    "folder for the gradients of some steps, as this rank saw them")                               \
  X(LCOMM_ENV_CAPTURE_STEPS, "LCOMM_CAPTURE_STEPS", "0,10,100,1000",                               \
    "which steps LCOMM_CAPTURE is for, counted from 0")                                            \
  X(LCOMM_ENV_TRACE, "LCOMM_TRACE", "none",                                                        \
    "file for this rank's timeline, for Perfetto; %d: the rank, else it is added")                 \
  X(LCOMM_ENV_TRACE_STEPS, "LCOMM_TRACE_STEPS", "all",                                             \
    "steps LCOMM_TRACE is for, counted from 0, such as 100-120, 7 or 1000-; of a communicator "    \
    "without tensors each call is a step")                                                         \
  X(LCOMM_ENV_STATS, "LCOMM_STATS", "none",                                                        \
    "exit: a table of operations, bytes and times at the end, of rank 0; exit:all: of all")        \
  X(LCOMM_ENV_TOKEN, "LCOMM_TOKEN", "the launcher's job id",                                       \
    "secret of the job, for the meeting of lcomm_create_env: keeps other jobs and strangers "      \
    "out, but travels unencrypted, so not those who read the wire")                                \
  X(LCOMM_ENV_PORT, "LCOMM_PORT", "MASTER_PORT, else 29600",                                       \
    "TCP port of that meeting at rank 0; under torchrun, which uses MASTER_PORT itself, the "      \
    "next one")                                                                                    \
  X(LCOMM_ENV_ELASTIC, "LCOMM_ELASTIC", "off",                                                     \
    "on: communicators of lcomm_create_env go on without a rank that is lost (lcomm_shrink); "     \
    "each "                                                                                        \
    "rank listens at a TCP port for that, and nothing travels over MPI")                           \
  X(LCOMM_ENV_JOIN, "LCOMM_JOIN", "off",                                                           \
    "on: lcomm_create_env joins an elastic job that is under way, at MASTER_ADDR (host,host,...: " \
    "the first at which its rank 0 is), and needs no rank (lcomm_join)")                           \
  X(LCOMM_ENV_INTERPOSE, "LCOMM_INTERPOSE", "on",                                                  \
    "the preloaded libcomm-mpi.so, or libcomm-nccl.so: on, where LCOMM_POLICY is set; require: "   \
    "the same, and where the program would run on plain MPI, MPI_Init fails, or "                  \
    "ncclCommInitRank; "                                                                           \
    "blocking: as on, but calls of MPI that do not block are MPI's, whose thread level stays as "  \
    "asked; off: plain MPI or NCCL (LCOMM_NCCL=alone: exact sums); report: likewise, and at the "  \
    "end what "                                                                                    \
    "would have been compressed and saved")                                                        \
  X(LCOMM_ENV_INTERPOSE_CONTROL, "LCOMM_INTERPOSE_CONTROL", "none",                                \
    "file that libcomm-mpi.so and libcomm-nccl.so look into while the program runs: on, off, or "  \
    "policy WORDS")                                                                                \
  X(LCOMM_ENV_NCCL, "LCOMM_NCCL", "over, else alone",                                              \
    "the preloaded libcomm-nccl.so: over hands calls to the NCCL below, but for sums that "        \
    "LCOMM_POLICY chooses; alone: libcomm makes those that it can, and refuses others; unset: "    \
    "alone where no NCCL is found")                                                                \
  X(LCOMM_ENV_NCCL_LIBRARY, "LCOMM_NCCL_LIBRARY", "found as the loader would",                     \
    "file of the NCCL that the preloaded libcomm-nccl.so hands its calls to")                      \
  X(LCOMM_ENV_NCCL_VERSION, "LCOMM_NCCL_VERSION", "that of the NCCL below",                        \
    "version that ncclGetVersion of libcomm-nccl.so tells, such as 2.28.9")                        \
  X(LCOMM_ENV_LAUNCH_SSH, "LCOMM_LAUNCH_SSH", "ssh",                                               \
    "what launch starts ranks on other hosts by: words before the host's name and a command")      \
  X(LCOMM_ENV_DATA, "LCOMM_DATA", "./data", "folder with data sets, for the trainer")

typedef enum lcomm_env {
#define LCOMM_ENV_ENUM(id, variable, standard, help) id,
  LCOMM_ENV_LIST(LCOMM_ENV_ENUM)
#undef LCOMM_ENV_ENUM
      LCOMM_ENV_COUNT
} lcomm_env;

typedef struct lcomm_env_entry {
  const char *variable, *standard, *help;
} lcomm_env_entry;

extern const lcomm_env_entry lcomm_env_table[LCOMM_ENV_COUNT];

/* The variable's value, NULL when it is unset or empty. */
const char *lcomm_env_get(lcomm_env variable);

/* What launchers say, for lcomm_create_env. X(id, variable, who sets it, help) */
#define LCOMM_LAUNCHER_LIST(X)                                                                     \
  X(LCOMM_LAUNCHER_RANK, "RANK", "torchrun", "rank of this process, comes first")                  \
  X(LCOMM_LAUNCHER_WORLD_SIZE, "WORLD_SIZE", "torchrun", "number of ranks")                        \
  X(LCOMM_LAUNCHER_LOCAL_WORLD_SIZE, "LOCAL_WORLD_SIZE", "torchrun", "ranks on this host")         \
  X(LCOMM_LAUNCHER_RUN_ID, "TORCHELASTIC_RUN_ID", "torchrun", "job id")                            \
  X(LCOMM_LAUNCHER_AGENT_STORE, "TORCHELASTIC_USE_AGENT_STORE", "torchrun",                        \
    "True: torchrun itself listens at MASTER_PORT")                                                \
  X(LCOMM_LAUNCHER_MASTER_ADDR, "MASTER_ADDR", "torchrun, or you",                                 \
    "name or address of rank 0's host; not needed when all ranks are on one host")                 \
  X(LCOMM_LAUNCHER_MASTER_PORT, "MASTER_PORT", "torchrun, or you", "see LCOMM_PORT")               \
  X(LCOMM_LAUNCHER_OMPI_RANK, "OMPI_COMM_WORLD_RANK", "mpirun (Open MPI)", "rank")                 \
  X(LCOMM_LAUNCHER_OMPI_SIZE, "OMPI_COMM_WORLD_SIZE", "mpirun (Open MPI)", "number of ranks")      \
  X(LCOMM_LAUNCHER_OMPI_LOCAL_SIZE, "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun (Open MPI)",             \
    "ranks on this host")                                                                          \
  X(LCOMM_LAUNCHER_PMIX_NAMESPACE, "PMIX_NAMESPACE", "mpirun (Open MPI), srun --mpi=pmix",         \
    "job id")                                                                                      \
  X(LCOMM_LAUNCHER_PMI_RANK, "PMI_RANK", "mpiexec (MPICH, Intel MPI)", "rank")                     \
  X(LCOMM_LAUNCHER_PMI_SIZE, "PMI_SIZE", "mpiexec (MPICH, Intel MPI)", "number of ranks")          \
  X(LCOMM_LAUNCHER_PMI_LOCAL_SIZE, "MPI_LOCALNRANKS", "mpiexec (MPICH, Intel MPI)",                \
    "ranks on this host")                                                                          \
  X(LCOMM_LAUNCHER_PMI_JOBID, "PMI_JOBID", "mpiexec, srun --mpi=pmi2", "job id")                   \
  X(LCOMM_LAUNCHER_SLURM_PROCID, "SLURM_PROCID", "srun", "rank")                                   \
  X(LCOMM_LAUNCHER_SLURM_NTASKS, "SLURM_NTASKS", "srun", "number of ranks")                        \
  X(LCOMM_LAUNCHER_SLURM_STEP_NODES, "SLURM_STEP_NUM_NODES", "srun", "hosts of the job step")      \
  X(LCOMM_LAUNCHER_SLURM_JOB_ID, "SLURM_JOB_ID", "srun", "job id, with ...")                       \
  X(LCOMM_LAUNCHER_SLURM_STEP_ID, "SLURM_STEP_ID", "srun", "... the job step")

typedef enum lcomm_launcher {
#define LCOMM_LAUNCHER_ENUM(id, variable, standard, help) id,
  LCOMM_LAUNCHER_LIST(LCOMM_LAUNCHER_ENUM)
#undef LCOMM_LAUNCHER_ENUM
      LCOMM_LAUNCHER_COUNT
} lcomm_launcher;

/* standard: who sets it. */
extern const lcomm_env_entry lcomm_launcher_table[LCOMM_LAUNCHER_COUNT];

const char *lcomm_launcher_get(lcomm_launcher variable);

#endif
