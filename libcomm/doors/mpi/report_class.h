/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_REPORT_CLASS_H
#define LCOMM_DOORS_MPI_REPORT_CLASS_H

/* Between the parts of the report: report.c counts, report_text.c writes the table. */

#include "libcomm/doors/mpi/report.h"

enum {
  LCOMM_DOOR_CLASSES_MAX = 256,
  LCOMM_DOOR_NAME_MAX = 64,
  LCOMM_DOOR_POLICIES_MAX = 8, /* told apart; what comes later counts as the last one */
  LCOMM_DOOR_POLICY_TEXT_MAX = 512
};

/* Those that were in force, in the order in which they were seen; the first is that of the
 * start. */
typedef struct lcomm_door_policies {
  char text[LCOMM_DOOR_POLICIES_MAX][LCOMM_DOOR_POLICY_TEXT_MAX];
  unsigned count;
} lcomm_door_policies;

/* Calls that are alike. Begins as zeros and one call. */
typedef struct lcomm_door_class {
  const char *function, *op, *why; /* constants; function NULL: of many kinds */
  char type[LCOMM_DOOR_NAME_MAX], comm[LCOMM_DOOR_NAME_MAX], members[LCOMM_DOOR_NAME_MAX];
  unsigned policy;  /* of those that are chosen: index */
  int ranks, nodes; /* 0: not known, or not the same in all calls */
  bool chosen;      /* libcomm's, of `count_min` elements each */
  lcomm_selection choice;
  uint64_t count_min, count_max;
  uint64_t calls;
  uint64_t size_bytes, sent_bytes, exact_bytes; /* of all calls */
  uint64_t call_sent_bytes, call_exact_bytes;   /* of the first call */
} lcomm_door_class;

/* The table of these classes, which are sorted. As lcomm_door_report_print(). */
size_t lcomm_door_report_format(const lcomm_door_report_about *about,
                                const lcomm_door_policies *policies, lcomm_door_class **classes,
                                unsigned count, char *text, size_t size);

#endif
