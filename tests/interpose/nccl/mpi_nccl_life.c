/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Communicators of NCCL that are made of others, that a program does not wait for, that are shrunk,
 * revoked and aborted. */

#include "tests/interpose/nccl/nccl_many.h"
#include "tests/interpose/nccl/nccl_values.h"

static double one(int rank, size_t place) {
  (void)rank;
  (void)place;
  return 1;
}

static double ranks_of(int ranks, size_t place) {
  (void)place;
  return (double)ranks;
}

/* A sum over it is that of its ranks. */
static void require_works(program *it, ncclComm_t comm, int ranks) {
  int count = -1;
  fine(ncclCommCount(comm, &count));
  require(count == ranks, "%d ranks, not %d", count, ranks);
  fill_values(it->from, &value_types[2], one, 0, 0, 100);
  fine(ncclAllReduce(it->from, it->to, 100, ncclInt32, ncclSum, comm, it->stream));
  holds_values("sum", it->to, &value_types[2], ranks_of, ranks, 0, 100, it->stream);
}

static ncclConfig_t config_that_waits(int waits) {
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = waits};
  return config;
}

/* ------------------------------------------------------- not waited for */

static ncclResult_t wait_for(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    fine(ncclCommGetAsyncError(comm, &state));
    usleep(1000);
  }
  return state;
}

static void who_does_not_wait_asks(void) {
  program it = begin_with_stream();
  ncclConfig_t config = config_that_waits(0);
  ncclComm_t comm = NULL, part = NULL;
  ncclUniqueId id = share_id();
  ncclResult_t result = ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &config);
  require(result == ncclInProgress && comm, "init is %d", (int)result);
  require(wait_for(comm) == ncclSuccess, "%s", ncclGetLastError(comm));
  require_works(&it, comm, mpi_size);
  result = ncclCommSplit(comm, 0, 0, &part, NULL); /* as its parent */
  require(result == ncclInProgress && part, "split is %d", (int)result);
  require(wait_for(part) == ncclSuccess, "%s", ncclGetLastError(part));
  require_works(&it, part, mpi_size);
  fine(ncclCommDestroy(part));
  fine(ncclCommDestroy(comm));
  comm = NULL;
  id = share_id();
  fine(ncclGroupStart());
  fine(ncclCommInitRankConfig(&comm, mpi_size, id, mpi_rank, &config));
  require(ncclGroupEnd() == ncclInProgress && comm, "a group ends at once");
  require(wait_for(comm) == ncclSuccess, "%s", ncclGetLastError(comm));
  fine(ncclCommFinalize(comm));
  fine(ncclCommDestroy(comm));
  end_program(&it);
}

/* Its other ranks never come. */
static void what_is_still_made_can_be_aborted(void) {
  ncclConfig_t config = config_that_waits(0);
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  int count = -1;
  fine(ncclGetUniqueId(&id));
  require(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress, "not in progress");
  refused(ncclCommCount(comm, &count), ncclInvalidArgument, "still being made");
  fine(ncclCommAbort(comm));
}

/* ------------------------------------------------------------- of others */

static void groups_hold_several_inits_and_splits(void) {
  program it = begin_with_stream();
  ncclComm_t comms[3] = {NULL}, parts[3] = {NULL};
  ncclUniqueId ids[3] = {share_id(), share_id(), share_id()};
  fine(ncclGroupStart());
  for (int i = 0; i < 3; i++) {
    int n = (i + mpi_rank) % 3; /* in another order on each rank */
    fine(ncclCommInitRank(&comms[n], mpi_size, ids[n], mpi_rank));
  }
  fine(ncclGroupEnd());
  fine(ncclGroupStart());
  fine(ncclCommSplit(comms[0], 0, mpi_rank, &parts[0], NULL));
  fine(ncclCommSplit(comms[0], mpi_rank % 2, 0, &parts[1], NULL));
  fine(ncclGroupEnd());
  fine(ncclGroupStart());
  fine(ncclCommSplit(comms[1], mpi_rank == 0 ? -1 : 4, 0, &parts[2], NULL));
  fine(ncclGroupEnd());
  require_works(&it, parts[0], mpi_size);
  require_works(&it, parts[1], (mpi_size + 1 - mpi_rank % 2) / 2);
  require((parts[2] == NULL) == (mpi_rank == 0), "who takes no part has a communicator");
  if (parts[2]) {
    require_works(&it, parts[2], mpi_size - 1);
  }
  for (int i = 0; i < 3; i++) {
    fine(ncclCommDestroy(parts[i]));
    fine(ncclCommDestroy(comms[i]));
  }
  end_program(&it);
}

static void a_communicator_is_shrunk(void) {
  program it = begin_with_stream();
  ncclComm_t rest = NULL;
  int without = mpi_size - 1;
  if (mpi_size > 1 && mpi_rank == without) {
    refused(ncclCommShrink(it.comm, &without, 1, &rest, NULL, 0), ncclInvalidUsage, "excluded");
  } else if (mpi_size > 1) {
    fine(ncclCommShrink(it.comm, &without, 1, &rest, NULL, 0));
    require_works(&it, rest, mpi_size - 1);
    fine(ncclCommDestroy(rest));
  }
  require_works(&it, it.comm, mpi_size);
  end_program(&it);
}

/* One rank is gone in the middle of a sum; the others go on without it. */
static void the_rest_goes_on_after_an_error(void) {
  program it = begin_with_stream();
  ncclComm_t rest = NULL;
  int without = 0;
  if (mpi_rank == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    fine(ncclCommAbort(it.comm));
  } else {
    ncclResult_t result =
        ncclAllReduce(it.from, it.to, 1000, ncclInt32, ncclSum, it.comm, it.stream);
    fine(result);
    MPI_Barrier(MPI_COMM_WORLD);
    fine(ncclCommShrink(it.comm, &without, 1, &rest, NULL, 1));
    cuda(cudaStreamSynchronize(it.stream));
    fine(ncclCommAbort(it.comm));
    require_works(&it, rest, mpi_size - 1);
    fine(ncclCommDestroy(rest));
  }
  it.comm = NULL;
  end_program(&it);
}

static void a_revoked_one_makes_no_calls(void) {
  program it = begin_with_stream();
  ncclResult_t error = ncclSuccess;
  require_works(&it, it.comm, mpi_size);
  MPI_Barrier(MPI_COMM_WORLD);
  fine(ncclCommRevoke(it.comm, 0));
  require(ncclAllReduce(it.from, it.to, 1, ncclInt32, ncclSum, it.comm, it.stream) ==
              ncclRemoteError,
          "a call is made");
  fine(ncclCommGetAsyncError(it.comm, &error));
  require(error == ncclRemoteError, "the error is %d", (int)error);
  (void)ncclCommDestroy(it.comm);
  it.comm = NULL;
  end_program(&it);
}

/* ------------------------------------------------------------------ aborted */

/* A receive that nobody sends to, in a stream; sends that nobody receives. */
static void an_abort_lets_streams_go_that_wait_for_messages(void) {
  program it = begin_with_stream();
  int peer = (mpi_rank + 1) % mpi_size;
  fine(ncclRecv(it.to, 5000, ncclInt32, peer, it.comm, it.stream));
  cuda(cudaMemsetAsync(it.to, 1, 16, it.stream));
  require(cudaStreamQuery(it.stream) == cudaErrorNotReady, "the stream waits for nobody");
  MPI_Barrier(MPI_COMM_WORLD);
  fine(ncclCommAbort(it.comm));
  cuda(cudaStreamSynchronize(it.stream));
  it.comm = make("net=none");
  fine(ncclSend(it.from, VALUES_MAX / 4, ncclInt32, peer, it.comm, it.stream));
  cuda(cudaStreamSynchronize(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  fine(ncclCommAbort(it.comm));
  it.comm = NULL;
  end_program(&it);
}

/* ------------------------------------------------------------------ memory */

static void memory_is_given_and_viewed(void) {
  program it = begin_with_stream();
  void *memory = NULL, *handle = NULL;
  ncclWindow_t window = NULL;
  int told = -1, mine = -2;
  fine(ncclMemAlloc(&memory, 4000));
  cuda(cudaGetDevice(&mine));
  fine(ncclCommCuDevice(it.comm, &told));
  require(told == mine, "device %d, not %d", told, mine);
  fine(ncclCommRegister(it.comm, memory, 4000, &handle));
  fill_values(memory, &value_types[2], one, 0, 0, 1000);
  fine(ncclAllReduce(memory, memory, 1000, ncclInt32, ncclSum, it.comm, it.stream));
  holds_values("sum", memory, &value_types[2], ranks_of, mpi_size, 0, 1000, it.stream);
  fine(ncclCommDeregister(it.comm, handle));
  refused(ncclCommWindowRegister(it.comm, memory, 4000, &window, 0), ncclInvalidUsage,
          "ncclCommWindowRegister: ");
  refused(ncclDevCommCreate(it.comm, NULL, NULL), ncclInvalidUsage, "ncclDevCommCreate: ");
  fine(ncclMemFree(memory));
  fine(ncclMemFree(NULL));
  refused(ncclMemAlloc(NULL, 4), ncclInvalidArgument, "NULL");
  end_program(&it);
}

/* ------------------------------------------------------------- made and freed */

static void make_and_free(void *context) {
  program *it = context;
  int peer = mpi_size - 1 - mpi_rank;
  ncclComm_t comm = make("net=none");
  require_works(it, comm, mpi_size);
  fine(ncclGroupStart());
  fine(ncclSend(it->from, 100, ncclInt32, peer, comm, it->stream));
  fine(ncclRecv(it->to, 100, ncclInt32, peer, comm, it->stream));
  fine(ncclGroupEnd());
  cuda(cudaStreamSynchronize(it->stream));
  fine(ncclCommDestroy(comm));
}

static void many_leave_nothing(void) {
  program it = begin_with_stream();
  leave_nothing(make_and_free, &it);
  end_program(&it);
}

static const mpi_property properties[] = {
    PROPERTY(who_does_not_wait_asks),
    PROPERTY(groups_hold_several_inits_and_splits),
    PROPERTY(a_communicator_is_shrunk),
    PROPERTY(memory_is_given_and_viewed),
    PROPERTY(many_leave_nothing),
    PROPERTY(what_is_still_made_can_be_aborted),
    PROPERTY(the_rest_goes_on_after_an_error),
    PROPERTY(a_revoked_one_makes_no_calls),
    PROPERTY(an_abort_lets_streams_go_that_wait_for_messages),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(alone_main, properties)
