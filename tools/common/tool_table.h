/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_TABLE_H
#define LCOMM_TOOLS_COMMON_TOOL_TABLE_H

/* Tables for a terminal: columns as wide as their widest cell, numbers to the
 * right, colours only where they are wanted. Fill with lcomm_table_row() and
 * lcomm_table_put(), then print once. When memory ends, rows are left out and
 * print returns false. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { LCOMM_TABLE_COLUMNS_MAX = 20, LCOMM_TABLE_CELL_MAX = 192 };

typedef enum lcomm_colour {
  LCOMM_COLOUR_NONE,
  LCOMM_COLOUR_BOLD,
  LCOMM_COLOUR_GOOD,
  LCOMM_COLOUR_BAD,
  LCOMM_COLOUR_DIM
} lcomm_colour;

typedef struct lcomm_table_cell {
  char text[LCOMM_TABLE_CELL_MAX];
  lcomm_colour colour;
} lcomm_table_cell;

/* Zeros, but for the columns: names, and L or R for each, such as "LRR". */
typedef struct lcomm_table {
  const char *const *columns; /* ended by NULL; "bits\nlimit" takes two lines */
  const char *sides;
  lcomm_table_cell *cells;
  size_t rows, filled; /* cells of the last row */
  bool broken;
} lcomm_table;

/* Begin a row; cells that are not put stay empty. */
void lcomm_table_row(lcomm_table *table);

/* The next cell of the row; more than there are columns are dropped. Bytes
 * that are no printable text become '?'. */
__attribute__((format(printf, 3, 4))) void lcomm_table_put(lcomm_table *table, lcomm_colour colour,
                                                           const char *format, ...);

/* Print what was filled in, free it. */
bool lcomm_table_print(lcomm_table *table, FILE *file, bool colours);

/* Are colours wanted? Only by a terminal, and not when NO_COLOR is set and not
 * empty (no-color.org) or TERM is "dumb". */
bool lcomm_table_colours(FILE *file);

/* `text` in this colour, for lines outside of tables. */
void lcomm_table_say(FILE *file, bool colours, lcomm_colour colour, const char *text);

#endif
