/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_REPORT_CLASS_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_REPORT_CLASS_H

/* Shared by the files of the report: interpose_report.c counts calls by class,
 * interpose_report_text.c writes the tables, interpose_report_cell.c their cells. */

#include "libcomm/interpose/mpi/interpose_report.h"

enum {
  LCOMM_INTERPOSE_CLASSES_MAX = 256,
  LCOMM_INTERPOSE_NAME_MAX = 64,
  LCOMM_INTERPOSE_POLICIES_MAX = 8, /* further ones count as the last */
  LCOMM_INTERPOSE_POLICY_TEXT_MAX = 512
};

/* The policies that were in force, in the order of their first call; the first is that of the
 * start. */
typedef struct lcomm_interpose_policies {
  char text[LCOMM_INTERPOSE_POLICIES_MAX][LCOMM_INTERPOSE_POLICY_TEXT_MAX];
  unsigned count;
} lcomm_interpose_policies;

/* A class of calls. */
typedef struct lcomm_interpose_class {
  const char *function, *op, *why; /* constants; function NULL: of many kinds */
  char type[LCOMM_INTERPOSE_NAME_MAX], comm[LCOMM_INTERPOSE_NAME_MAX],
      members[LCOMM_INTERPOSE_NAME_MAX];
  unsigned policy;  /* index, of a chosen class */
  int ranks, nodes; /* 0: not known, or not the same in all calls */
  bool chosen;      /* libcomm's, of `count_min` elements each */
  lcomm_selection choice;
  uint64_t count_min, count_max;
  uint64_t calls;
  uint64_t size_bytes, sent_bytes, exact_bytes; /* of all calls */
  uint64_t call_sent_bytes, call_exact_bytes;   /* of the first call */
} lcomm_interpose_class;

/* Sort the classes and write their tables, as lcomm_interpose_report_print(). */
size_t lcomm_interpose_report_format(const lcomm_interpose_report_about *about,
                                     const lcomm_interpose_policies *policies,
                                     lcomm_interpose_class **classes, unsigned count, char *text,
                                     size_t size);

/* -------------------------------------------------- interpose_report_cell.c */

enum { LCOMM_INTERPOSE_CELL_MAX = 64 };

typedef enum lcomm_interpose_column {
  LCOMM_INTERPOSE_COLUMN_CALL,
  LCOMM_INTERPOSE_COLUMN_TYPE,
  LCOMM_INTERPOSE_COLUMN_OP,
  LCOMM_INTERPOSE_COLUMN_COMM,
  LCOMM_INTERPOSE_COLUMN_RANKS,
  LCOMM_INTERPOSE_COLUMN_MEMBERS,
  LCOMM_INTERPOSE_COLUMN_ELEMENTS,
  LCOMM_INTERPOSE_COLUMN_CALLS,
  LCOMM_INTERPOSE_COLUMN_DATA,
  LCOMM_INTERPOSE_COLUMNS_OF_MPI, /* libcomm's calls have these, too */
  LCOMM_INTERPOSE_COLUMN_SENT = LCOMM_INTERPOSE_COLUMNS_OF_MPI,
  LCOMM_INTERPOSE_COLUMN_EXACT,
  LCOMM_INTERPOSE_COLUMN_RATIO,
  LCOMM_INTERPOSE_COLUMNS
} lcomm_interpose_column;

const char *lcomm_interpose_column_title(lcomm_interpose_column column);

/* Texts are aligned left, numbers right. */
bool lcomm_interpose_column_is_text(lcomm_interpose_column column);

/* Both return `text`. */
const char *lcomm_interpose_cell(const lcomm_interpose_class *class, lcomm_interpose_column column,
                                 char text[LCOMM_INTERPOSE_CELL_MAX]);
const char *lcomm_interpose_bytes_text(uint64_t bytes, char text[LCOMM_INTERPOSE_CELL_MAX]);

#endif
