/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_REPORT_CELL_H
#define LCOMM_INTERPOSE_MPI_REPORT_CELL_H

/* The cells of the report's tables. */

#include "libcomm/interpose/mpi/report_class.h"

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
  LCOMM_INTERPOSE_COLUMNS_OF_MPI, /* those of calls that are libcomm's go on */
  LCOMM_INTERPOSE_COLUMN_SENT = LCOMM_INTERPOSE_COLUMNS_OF_MPI,
  LCOMM_INTERPOSE_COLUMN_EXACT,
  LCOMM_INTERPOSE_COLUMN_RATIO,
  LCOMM_INTERPOSE_COLUMNS
} lcomm_interpose_column;

const char *lcomm_interpose_column_title(lcomm_interpose_column column);

/* Texts are to the left, numbers to the right. */
bool lcomm_interpose_column_is_text(lcomm_interpose_column column);

/* Both return `text`. */
const char *lcomm_interpose_cell(const lcomm_interpose_class *class, lcomm_interpose_column column,
                                 char text[LCOMM_INTERPOSE_CELL_MAX]);
const char *lcomm_interpose_bytes_text(uint64_t bytes, char text[LCOMM_INTERPOSE_CELL_MAX]);

#endif
