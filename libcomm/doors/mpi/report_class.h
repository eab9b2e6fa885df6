/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_REPORT_CLASS_H
#define LCOMM_DOORS_MPI_REPORT_CLASS_H

/* Between the parts of the report: report.c counts, report_text.c writes the table. */

#include "libcomm/doors/mpi/report.h"

enum { LCOMM_DOOR_CLASSES_MAX = 256, LCOMM_DOOR_NAME_MAX = 64 };

/* Calls that are alike. Begins as zeros and one call. */
typedef struct lcomm_door_class {
  const char *function, *op, *why; /* constants; function NULL: of many kinds */
  char type[LCOMM_DOOR_NAME_MAX], comm[LCOMM_DOOR_NAME_MAX];
  int ranks, nodes; /* 0: not known, or not the same in all calls */
  bool chosen;      /* libcomm's, of `count_min` elements each */
  lcomm_choice choice;
  uint64_t count_min, count_max;
  uint64_t calls;
  uint64_t size_bytes, sent_bytes, exact_bytes; /* of all calls */
  uint64_t call_sent_bytes, call_exact_bytes;   /* of the first call */
} lcomm_door_class;

/* The table of these classes, which are sorted. As lcomm_door_report_print(). */
size_t lcomm_door_report_format(const lcomm_door_report_about *about, lcomm_door_class **classes,
                                unsigned count, char *text, size_t size);

#endif
