/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* libcomm makes NCCL's calls, LCOMM_INTERPOSE=report: all sums are exact, and the table is about
 * the policies that the control file names. */

#include "libcomm/interpose/interpose_report.h"
#include "tests/interpose/nccl/nccl_control_sums.h"

static void the_table_is_about_the_policy_in_force(void) {
  static const char *const says[] = {"on", "policy net=topk:0.05+ef min=1K", "policy net=nonsense",
                                     "off", "on"};
  static const char *const words[] = {"all sums were exact", " lossy, policy 1\n",
                                      " lossy+ef, policy 2\n",
                                      "switched off by LCOMM_INTERPOSE_CONTROL", NULL};
  static char text[1 << 16];
  lcomm_interpose_report_about about = {.report_only = true,
                                        .ranks = mpi_size,
                                        .nodes = mpi_size,
                                        .host = "here",
                                        .policy = lossy,
                                        .library = "libcomm-nccl"};
  say("on");
  world it = begin(lossy);
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    say(says[i]);
    (void)all_are(&it, true);
  }
  (void)lcomm_interpose_report_print(&about, text, sizeof(text));
  for (const char *const *word = words; *word; word++) {
    require(strstr(text, *word) != NULL, "there is no '%s' in:\n%s", *word, text);
  }
  end(&it);
  lcomm_interpose_report_clear();
}

static const mpi_property properties[] = {
    PROPERTY(the_table_is_about_the_policy_in_force),
    PROPERTY(the_file_is_removed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

static int report_main(int *argc, char ***argv, const mpi_property *all, int count) {
  setenv("LCOMM_INTERPOSE", "report", 1);
  return control_main(argc, argv, all, count);
}

RUN_PROPERTIES(report_main, properties)
