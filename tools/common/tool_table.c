/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_LINES = 2 };

static const char *const codes[] = {[TOOL_COLOUR_NONE] = "",
                                    [TOOL_COLOUR_BOLD] = "\033[1m",
                                    [TOOL_COLOUR_GOOD] = "\033[32m",
                                    [TOOL_COLOUR_BAD] = "\033[31m",
                                    [TOOL_COLOUR_DIM] = "\033[2m"};

static size_t column_count(const tool_table *table) {
  size_t columns = 0;
  while (table->columns[columns] && columns < TOOL_TABLE_COLUMNS_MAX) {
    columns++;
  }
  return columns;
}

void tool_table_row(tool_table *table) {
  size_t columns = column_count(table);
  tool_table_cell *grown =
      realloc(table->cells, (table->rows + 1) * columns * sizeof *table->cells);
  table->filled = 0;
  if (!grown) {
    table->broken = true;
    return;
  }
  table->cells = grown;
  memset(grown + table->rows * columns, 0, columns * sizeof *grown);
  table->rows++;
}

/* UTF-8 stays as it is: names may have it. */
static void make_printable(char *text) {
  for (; *text != '\0'; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) {
      *text = '?';
    }
  }
}

void tool_table_put(tool_table *table, tool_colour colour, const char *format, ...) {
  size_t columns = column_count(table);
  if (table->broken || table->rows == 0 || table->filled == columns) {
    return;
  }
  tool_table_cell *cell = &table->cells[(table->rows - 1) * columns + table->filled++];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cell->text, sizeof cell->text, format, arguments);
  va_end(arguments);
  make_printable(cell->text);
  cell->colour = colour;
}

/* Columns on a terminal: bytes of UTF-8 but those that continue a character. */
static size_t width_of(const char *text, size_t length) {
  size_t width = 0;
  for (size_t i = 0; i < length; i++) {
    width += ((unsigned char)text[i] & 0xc0) != 0x80;
  }
  return width;
}

/* Line 0 or 1 of a column's name. */
static const char *head_line(const char *name, size_t line, size_t *length) {
  size_t first = strcspn(name, "\n");
  const char *second = name[first] == '\n' ? name + first + 1 : name + first;
  *length = line == 0 ? first : strlen(second);
  return line == 0 ? name : second;
}

static void put_text(FILE *file, const char *text, size_t length, size_t width, char side,
                     const char *code) {
  size_t own = width_of(text, length);
  int pad = own < width ? (int)(width - own) : 0;
  if (length == 0) {
    code = "";
  }
  if (side == 'R') {
    fprintf(file, "%*s", pad, "");
  }
  fprintf(file, "%s%.*s%s", code, (int)length, text, *code != '\0' ? "\033[0m" : "");
  if (side != 'R') {
    fprintf(file, "%*s", pad, "");
  }
}

static size_t column_width(const tool_table *table, size_t column, size_t columns) {
  size_t width = 0, length;
  for (size_t line = 0; line < HEAD_LINES; line++) {
    const char *text = head_line(table->columns[column], line, &length);
    size_t own = width_of(text, length);
    width = own > width ? own : width;
  }
  for (size_t row = 0; row < table->rows; row++) {
    const char *text = table->cells[row * columns + column].text;
    size_t own = width_of(text, strlen(text));
    width = own > width ? own : width;
  }
  return width;
}

static bool has_second_line(const tool_table *table, size_t columns) {
  for (size_t column = 0; column < columns; column++) {
    if (strchr(table->columns[column], '\n')) {
      return true;
    }
  }
  return false;
}

static void print_head(const tool_table *table, const size_t *widths, size_t columns, FILE *file,
                       bool colours) {
  size_t lines = has_second_line(table, columns) ? HEAD_LINES : 1, length;
  for (size_t line = 0; line < lines; line++) {
    for (size_t column = 0; column < columns; column++) {
      const char *text = head_line(table->columns[column], line, &length);
      bool last = column + 1 == columns && table->sides[column] != 'R';
      fputs(column > 0 ? "  " : "", file);
      put_text(file, text, length, last ? 0 : widths[column], table->sides[column],
               codes[colours ? TOOL_COLOUR_BOLD : TOOL_COLOUR_NONE]);
    }
    fputc('\n', file);
  }
}

bool tool_table_print(tool_table *table, FILE *file, bool colours) {
  size_t columns = column_count(table), widths[TOOL_TABLE_COLUMNS_MAX];
  for (size_t column = 0; column < columns; column++) {
    widths[column] = column_width(table, column, columns);
  }
  print_head(table, widths, columns, file, colours);
  for (size_t row = 0; row < table->rows; row++) {
    for (size_t column = 0; column < columns; column++) {
      const tool_table_cell *cell = &table->cells[row * columns + column];
      bool last = column + 1 == columns && table->sides[column] != 'R';
      fputs(column > 0 ? "  " : "", file);
      put_text(file, cell->text, strlen(cell->text), last ? 0 : widths[column],
               table->sides[column], codes[colours ? cell->colour : TOOL_COLOUR_NONE]);
    }
    fputc('\n', file);
  }
  free(table->cells);
  table->cells = NULL;
  table->rows = 0;
  return !table->broken;
}

bool tool_table_colours(FILE *file) {
  const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
  if (refused && *refused != '\0') {
    return false;
  }
  if (!terminal || strcmp(terminal, "dumb") == 0) {
    return false;
  }
  return isatty(fileno(file)) == 1;
}

void tool_table_say(FILE *file, bool colours, tool_colour colour, const char *text) {
  const char *code = codes[colours ? colour : TOOL_COLOUR_NONE];
  fprintf(file, "%s%s%s\n", code, text, *code != '\0' ? "\033[0m" : "");
}
