/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* libcomm makes NCCL's calls, LCOMM_INTERPOSE=report: all sums are exact, and the table says what
 * the policy would have made of them. */

#include "libcomm/interpose/interpose_report.h"
#include "tests/interpose/nccl/nccl_float_sums.h"

static void sums_are(const char *policy, const char *const *words) {
  static char text[1 << 16];
  lcomm_interpose_report_about about = {.report_only = true,
                                        .ranks = mpi_size,
                                        .nodes = mpi_size,
                                        .host = "here",
                                        .policy = policy,
                                        .library = "libcomm-nccl"};
  world it = begin(policy);
  put_floats(it.from, mpi_rank, SUM_COUNT);
  for (int i = 0; i < 12; i++) {
    fine(ncclAllReduce(it.from, it.to, SUM_COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
    (void)holds_sum(it.stream, it.to, 0, SUM_COUNT, mpi_size, true);
  }
  (void)lcomm_interpose_report_print(&about, text, sizeof(text));
  for (; *words; words++) {
    require(strstr(text, *words) != NULL, "there is no '%s' in:\n%s", *words, text);
  }
  end(&it);
  lcomm_interpose_report_clear();
}

static void nothing_is_compressed_and_the_table_says_what_would(void) {
  static const char *const several[] = {"what would become",
                                        "all sums were exact",
                                        "the policy would choose",
                                        " lossy\n",
                                        "Between nodes this rank would send",
                                        " saved",
                                        NULL};
  static const char *const one[] = {"all sums were exact", "would stay exact: ", NULL};
  sums_are("net=int8 min=1K", mpi_size > 1 ? several : one);
}

static void it_tells_error_feedback_too(void) {
  static const char *const words[] = {" lossy+ef\n", "would stay exact: error feedback waits",
                                      NULL};
  sums_are("net=topk:0.05+ef min=1K", words);
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_compressed_and_the_table_says_what_would),
    PROPERTY_OF(2, it_tells_error_feedback_too),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

static int report_main(int *argc, char ***argv, const mpi_property *all, int count) {
  setenv("LCOMM_INTERPOSE", "report", 1);
  return alone_main(argc, argv, all, count);
}

RUN_PROPERTIES(report_main, properties)
