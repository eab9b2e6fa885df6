/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_REPORT_CELL_H
#define LCOMM_DOORS_MPI_REPORT_CELL_H

/* The cells of the report's tables. */

#include "libcomm/doors/mpi/report_class.h"

enum { LCOMM_DOOR_CELL_MAX = 64 };

typedef enum lcomm_door_column {
  LCOMM_DOOR_COLUMN_CALL,
  LCOMM_DOOR_COLUMN_TYPE,
  LCOMM_DOOR_COLUMN_OP,
  LCOMM_DOOR_COLUMN_COMM,
  LCOMM_DOOR_COLUMN_RANKS,
  LCOMM_DOOR_COLUMN_MEMBERS,
  LCOMM_DOOR_COLUMN_ELEMENTS,
  LCOMM_DOOR_COLUMN_CALLS,
  LCOMM_DOOR_COLUMN_DATA,
  LCOMM_DOOR_COLUMNS_OF_MPI, /* those of calls that are libcomm's go on */
  LCOMM_DOOR_COLUMN_SENT = LCOMM_DOOR_COLUMNS_OF_MPI,
  LCOMM_DOOR_COLUMN_EXACT,
  LCOMM_DOOR_COLUMN_RATIO,
  LCOMM_DOOR_COLUMNS
} lcomm_door_column;

const char *lcomm_door_column_title(lcomm_door_column column);

/* Texts are to the left, numbers to the right. */
bool lcomm_door_column_is_text(lcomm_door_column column);

/* Both return `text`. */
const char *lcomm_door_cell(const lcomm_door_class *class, lcomm_door_column column,
                            char text[LCOMM_DOOR_CELL_MAX]);
const char *lcomm_door_bytes_text(uint64_t bytes, char text[LCOMM_DOOR_CELL_MAX]);

#endif
