/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_TABLE_H
#define LCOMM_TOOLS_COMMON_TOOL_TABLE_H

/* Tables for a terminal: columns as wide as their widest cell, numbers to the
 * right, colours only where they are wanted. Fill with tool_table_row() and
 * tool_table_put(), then print once. When memory ends, rows are left out and
 * print returns false. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TOOL_TABLE_COLUMNS_MAX = 20, TOOL_TABLE_CELL_MAX = 192 };

typedef enum tool_colour {
  TOOL_COLOUR_NONE,
  TOOL_COLOUR_BOLD,
  TOOL_COLOUR_GOOD,
  TOOL_COLOUR_BAD,
  TOOL_COLOUR_DIM
} tool_colour;

typedef struct tool_table_cell {
  char text[TOOL_TABLE_CELL_MAX];
  tool_colour colour;
} tool_table_cell;

/* Zeros, but for the columns: names, and L or R for each, such as "LRR". */
typedef struct tool_table {
  const char *const *columns; /* ended by NULL; "bits\nlimit" takes two lines */
  const char *sides;
  tool_table_cell *cells;
  size_t rows, filled; /* cells of the last row */
  bool broken;
} tool_table;

/* Begin a row; cells that are not put stay empty. */
void tool_table_row(tool_table *table);

/* The next cell of the row; more than there are columns are dropped. Bytes
 * that are no printable text become '?'. */
__attribute__((format(printf, 3, 4))) void tool_table_put(tool_table *table, tool_colour colour,
                                                          const char *format, ...);

/* Print what was filled in, free it. */
bool tool_table_print(tool_table *table, FILE *file, bool colours);

/* Are colours wanted? Only by a terminal, and not when NO_COLOR is set and not
 * empty (no-color.org) or TERM is "dumb". */
bool tool_table_colours(FILE *file);

/* `text` in this colour, for lines outside of tables. */
void tool_table_say(FILE *file, bool colours, tool_colour colour, const char *text);

#endif
