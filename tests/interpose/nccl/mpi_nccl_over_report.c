/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Over an NCCL, LCOMM_INTERPOSE=report: NCCL makes all calls, and the table says what libcomm would
 * have made of them. */

#include "libcomm/interpose/interpose_report.h"
#include "tests/interpose/nccl/nccl_over_world.h"

static void nothing_changes_and_the_table_says_what_would(void) {
  static char text[1 << 16];
  lcomm_interpose_report_about about = {.report_only = true,
                                        .ranks = mpi_size,
                                        .nodes = mpi_size,
                                        .host = "here",
                                        .policy = "net=int8 min=1K",
                                        .library = "libcomm-nccl",
                                        .other = "NCCL"};
  world it = begin_over("net=int8 min=1K");
  (void)sums_below();
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int i = 0; i < 3; i++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  }
  require(sums_below() == 3, "libcomm has made one");
  (void)lcomm_interpose_report_print(&about, text, sizeof(text));
  require(strstr(text, mpi_size > 1 ? "would be libcomm's" : "would be left to NCCL: a communic") &&
              strstr(text, "all calls were NCCL's"),
          "the table is:\n%s", text);
  lcomm_interpose_report_clear();
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(nothing_changes_and_the_table_says_what_would),
    PROPERTY(the_device_comes_to_an_end),
};

static int report_main(int *argc, char ***argv, const mpi_property *all, int count) {
  setenv("LCOMM_INTERPOSE", "report", 1);
  return over_main(argc, argv, all, count);
}

RUN_PROPERTIES(report_main, properties)
