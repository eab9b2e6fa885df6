/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_REPORT_CLASS_H
#define LCOMM_INTERPOSE_MPI_REPORT_CLASS_H

/* Between the parts of the report: report.c counts, report_text.c writes the table. */

#include "libcomm/interpose/mpi/report.h"

enum {
  LCOMM_INTERPOSE_CLASSES_MAX = 256,
  LCOMM_INTERPOSE_NAME_MAX = 64,
  LCOMM_INTERPOSE_POLICIES_MAX = 8, /* told apart; what comes later counts as the last one */
  LCOMM_INTERPOSE_POLICY_TEXT_MAX = 512
};

/* Those that were in force, in the order in which they were seen; the first is that of the
 * start. */
typedef struct lcomm_interpose_policies {
  char text[LCOMM_INTERPOSE_POLICIES_MAX][LCOMM_INTERPOSE_POLICY_TEXT_MAX];
  unsigned count;
} lcomm_interpose_policies;

/* Calls that are alike. Begins as zeros and one call. */
typedef struct lcomm_interpose_class {
  const char *function, *op, *why; /* constants; function NULL: of many kinds */
  char type[LCOMM_INTERPOSE_NAME_MAX], comm[LCOMM_INTERPOSE_NAME_MAX],
      members[LCOMM_INTERPOSE_NAME_MAX];
  unsigned policy;  /* of those that are chosen: index */
  int ranks, nodes; /* 0: not known, or not the same in all calls */
  bool chosen;      /* libcomm's, of `count_min` elements each */
  lcomm_selection choice;
  uint64_t count_min, count_max;
  uint64_t calls;
  uint64_t size_bytes, sent_bytes, exact_bytes; /* of all calls */
  uint64_t call_sent_bytes, call_exact_bytes;   /* of the first call */
} lcomm_interpose_class;

/* The table of these classes, which are sorted. As lcomm_interpose_report_print(). */
size_t lcomm_interpose_report_format(const lcomm_interpose_report_about *about,
                                     const lcomm_interpose_policies *policies,
                                     lcomm_interpose_class **classes, unsigned count, char *text,
                                     size_t size);

#endif
