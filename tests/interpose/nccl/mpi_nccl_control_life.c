/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* libcomm makes NCCL's calls: communicators whose policy was replaced while they lived. */

#include "tests/interpose/nccl/nccl_control_sums.h"
#include "tests/interpose/nccl/nccl_many.h"

/* ------------------------------------------------------------ parts and ends */

/* A part begins with LCOMM_POLICY, and asks for the words itself. */
static void parts_begin_with_the_variable(void) {
  say(exact);
  world it = begin(lossy);
  (void)all_are(&it, true);
  ncclComm_t whole = it.comm, part = NULL;
  say("on");
  fine(ncclCommSplit(whole, 0, mpi_rank, &part, NULL));
  it.comm = part;
  (void)all_are(&it, false);
  fine(ncclCommDestroy(part));
  part = NULL;
  it.comm = whole;
  (void)all_are(&it, false);
  say(exact);
  (void)all_are(&it, true);
  fine(ncclCommSplit(whole, 0, mpi_rank, &part, NULL));
  it.comm = part;
  (void)all_are(&it, true);
  fine(ncclCommDestroy(part));
  it.comm = whole;
  end(&it);
}

static void who_does_not_wait_is_told_the_same(void) {
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 0};
  ncclResult_t state = ncclInProgress;
  say("on");
  world it = begin(lossy);
  fine(ncclCommDestroy(it.comm));
  ncclUniqueId id = share_id();
  require(ncclCommInitRankConfig(&it.comm, mpi_size, id, mpi_rank, &config) == ncclInProgress,
          "it blocks");
  while (state == ncclInProgress) {
    fine(ncclCommGetAsyncError(it.comm, &state));
    usleep(100);
  }
  fine(state);
  (void)all_are(&it, false);
  say("off");
  (void)all_are(&it, true);
  fine(ncclCommGetAsyncError(it.comm, &state));
  fine(state);
  end(&it);
}

/* ------------------------------------------------------------------ memory */

typedef struct changing {
  world it;
  int round;
} changing;

/* So many looks at the file, with one sum in flight at a time. */
static void make_short_sums(const world *it, int looks) {
  enum { SHORT = 600 };
  for (int i = 0; i < looks * SUMS_BETWEEN_LOOKS; i++) {
    fine(ncclAllReduce(it->from, it->to, SHORT, ncclFloat32, ncclSum, it->comm, it->stream));
    check(device->stream.finish(it->stream));
  }
}

/* A policy that was never there before, so that none is taken again. It leaves a residual, which is
 * flushed, and goes before the next one comes, as the exact one before does. */
static void change(void *context) {
  changing *mine = context;
  char words[80];
  snprintf(words, sizeof(words), "policy net=int8+ef min=%d", 1 + mine->round++);
  say(words);
  make_short_sums(&mine->it, 1);
  say("off");
  make_short_sums(&mine->it, 3);
}

/* A communicator that stays has some 1 MiB of the heap, and each round makes two. A sum that begins
 * just before the last one is over on the host gets 80 KiB once. */
static void many_changes_leave_nothing(void) {
  setenv("NCCL_COMMUNICATORS", "40", 0); /* as many changes */
  say("on");
  changing mine = {.it = begin(lossy)};
  leave_at_most(256 << 10, change, &mine);
  end(&mine.it);
}

/* ------------------------------------------------------------- given up */

static void a_revoked_one_makes_no_sums(void) {
  ncclResult_t error = ncclSuccess;
  say(exact);
  world it = begin(lossy);
  (void)all_are(&it, true);
  MPI_Barrier(MPI_COMM_WORLD);
  fine(ncclCommRevoke(it.comm, 0));
  for (int i = 0; i < 2 * SUMS_BETWEEN_LOOKS; i++) {
    require(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream) ==
                ncclRemoteError,
            "a sum is made");
  }
  fine(ncclCommGetAsyncError(it.comm, &error));
  require(error == ncclRemoteError, "the error is %d", (int)error);
  (void)ncclCommDestroy(it.comm);
  it.comm = NULL;
  end(&it);
}

/* In a sum, then in the poll before one. */
static void an_abort_of_one_unblocks_all(void) {
  for (int sums = 3; sums <= SUMS_BETWEEN_LOOKS; sums += SUMS_BETWEEN_LOOKS - 3) {
    say(exact);
    world it = begin(lossy);
    for (int i = 0; i < sums; i++) {
      (void)sum(&it, true);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpi_rank > 0) {
      ncclResult_t error =
          ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream);
      while (error == ncclSuccess) {
        fine(ncclCommGetAsyncError(it.comm, &error));
        usleep(1000);
      }
      require(error == ncclRemoteError, "the error is %d", (int)error);
      check(device->stream.finish(it.stream));
    }
    fine(ncclCommAbort(it.comm));
    it.comm = NULL;
    end(&it);
  }
}

static const mpi_property properties[] = {
    PROPERTY(parts_begin_with_the_variable), PROPERTY(who_does_not_wait_is_told_the_same),
    PROPERTY(many_changes_leave_nothing),    PROPERTY(a_revoked_one_makes_no_sums),
    PROPERTY(an_abort_of_one_unblocks_all),  PROPERTY(the_file_is_removed),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(control_main, properties)
