/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Over an NCCL, for a program that must not run uncompressed; and the table at its end. */

#include "libcomm/interpose/interpose_report.h"
#include "tests/interpose/nccl/nccl_over_world.h"

static void what_libcomm_cannot_serve_is_not_made(void) {
  ncclComm_t comm = NULL;
  ncclResult_t state = ncclInProgress;
  lcomm_nccl_place place;
  ncclConfig_t config = {.size = sizeof(config), .magic = NCCL_CONFIG_MAGIC, .blocking = 0};
  world it = begin_over(lossy);
  ncclUniqueId id = share_id(), another = share_id();
  require(lcomm_nccl_place_take(&id, &place), "an id has no place");
  refused(ncclCommInitRank(&comm, mpi_size, id, mpi_rank), ncclInvalidUsage,
          "LCOMM_INTERPOSE=require");
  require(comm == NULL, "it is made all the same");
  require(lcomm_nccl_place_take(&another, &place), "an id has no place");
  require(ncclCommInitRankConfig(&comm, mpi_size, another, mpi_rank, &config) == ncclInProgress,
          "it blocks");
  while (state == ncclInProgress) {
    require(ncclCommGetAsyncError(comm, &state) == ncclSuccess, "it cannot be asked");
    usleep(100);
  }
  refused(state, ncclInvalidUsage, "LCOMM_INTERPOSE=require");
  fine(ncclCommAbort(comm));
  put_floats(it.from, mpi_rank, SUM_COUNT);
  (void)sums_below();
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
  (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, false);
  require(sums_below() == 0, "NCCL has made it");
  end(&it);
}

/* Whose sums they were, with their reasons. */
static void the_table_says_what_became_of_sums(void) {
  static char text[1 << 16];
  lcomm_interpose_report_about about = {.ranks = mpi_size,
                                        .nodes = mpi_size,
                                        .host = "here",
                                        .policy = lossy,
                                        .library = "libcomm-nccl",
                                        .other = "NCCL"};
  world it = begin_over(lossy);
  lcomm_interpose_report_clear();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclAvg, it.comm, it.stream));
  fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclInt32, ncclMax, it.comm, it.stream));
  fine(ncclReduceScatter(it.from, it.to, 3, ncclFloat32, ncclSum, it.comm, it.stream));
  (void)lcomm_interpose_report_print(&about, text, sizeof(text));
  static const char *const words[] = {"libcomm-nccl: what became",
                                      "ncclAllReduce",
                                      " float32 ",
                                      " avg ",
                                      " lossy\n",
                                      "left to NCCL: a type or an operation",
                                      " int32 ",
                                      "left to NCCL: ",
                                      "ncclReduceScatter"};
  for (size_t i = 0; i < sizeof(words) / sizeof *words; i++) {
    require(strstr(text, words[i]) != NULL, "there is no '%s' in:\n%s", words[i], text);
  }
  check(device->stream.finish(it.stream));
  lcomm_interpose_report_clear();
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(what_libcomm_cannot_serve_is_not_made),
    PROPERTY(the_table_says_what_became_of_sums),
    PROPERTY(the_device_comes_to_an_end),
};

static int required_main(int *argc, char ***argv, const mpi_property *all, int count) {
  setenv("LCOMM_INTERPOSE", "require", 1);
  setenv("LCOMM_STATS", "exit", 1);
  return over_main(argc, argv, all, count);
}

RUN_PROPERTIES(required_main, properties)
