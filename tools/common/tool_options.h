/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_OPTIONS_H
#define LCOMM_TOOLS_COMMON_TOOL_OPTIONS_H

/* The command line of a program, read by a table of its options: a letter, a name, and the
 * member of the program's struct of options that it sets, or a function that reads its value.
 * Every program has --version and --help, which end the reading at once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOOL_ERROR_MAX = 1024 }; /* bytes of an error sentence with its final 0 */

typedef enum tool_parse { TOOL_RUN, TOOL_HELP, TOOL_VERSION, TOOL_USAGE } tool_parse;

typedef struct tool_command_line {
  int argc;
  char **argv;   /* parsing changes its order */
  void *options; /* the program's struct */
  char *error;   /* TOOL_ERROR_MAX bytes; after TOOL_USAGE one sentence */

  /* After parsing: the words that belong to no option. */
  char *const *operands;
  size_t operand_count;
} tool_command_line;

/* Reads a value (NULL: none was given). false: it is unusable; where no sentence was written into
 * line->error, one that names option and value is. */
typedef bool tool_reader(tool_command_line *line, const char *value);

/* Made by the macros below. */
typedef struct tool_option {
  char letter; /* '\0': none */
  const char *name;
  enum { TOOL_SETS_FLAG, TOOL_SETS_TEXT, TOOL_SETS_WHOLE, TOOL_SETS_INT, TOOL_READS } kind;
  enum { TOOL_NO_VALUE, TOOL_NEEDS_VALUE, TOOL_MAY_HAVE_VALUE } value;
  size_t member; /* its offset */
  bool flag;
  uint64_t least, most;
  tool_reader *read;
} tool_option;

/* `offset` is that of a member of the program's struct of options. A flag becomes true or false; a
 * text (const char *) points into argv, a name is a text that is not empty; a whole number
 * (uint64_t or int) lies between two bounds. */
#define TOOL_FLAG(letter, name, offset, flag)                                                      \
  { letter, name, TOOL_SETS_FLAG, TOOL_NO_VALUE, offset, flag, 0, 0, NULL }
#define TOOL_TEXT(letter, name, offset)                                                            \
  { letter, name, TOOL_SETS_TEXT, TOOL_NEEDS_VALUE, offset, false, 0, 0, NULL }
#define TOOL_NAME(letter, name, offset)                                                            \
  { letter, name, TOOL_SETS_TEXT, TOOL_NEEDS_VALUE, offset, false, 1, 0, NULL }
#define TOOL_WHOLE(letter, name, offset, least, most)                                              \
  { letter, name, TOOL_SETS_WHOLE, TOOL_NEEDS_VALUE, offset, false, least, most, NULL }
#define TOOL_INT(letter, name, offset, least, most)                                                \
  { letter, name, TOOL_SETS_INT, TOOL_NEEDS_VALUE, offset, false, least, most, NULL }
#define TOOL_READ(letter, name, read)                                                              \
  { letter, name, TOOL_READS, TOOL_NEEDS_VALUE, 0, false, 0, 0, read }
#define TOOL_MAY_READ(letter, name, read)                                                          \
  { letter, name, TOOL_READS, TOOL_MAY_HAVE_VALUE, 0, false, 0, 0, read }

/* Read line->argv with `known`, which ends with {0}. Changes getopt's globals. */
tool_parse tool_options_parse(tool_command_line *line, const tool_option *known);

/* Write the sentence; returns false. */
__attribute__((format(printf, 2, 3))) bool tool_refuse(tool_command_line *line, const char *format,
                                                       ...);

/* For programs without operands: false with a sentence when there is one. */
bool tool_refuse_operands(tool_command_line *line);

/* tool_options_parse() for those. */
tool_parse tool_options_parse_alone(tool_command_line *line, const tool_option *known);

/* For a reader: the word behind what has been read, or NULL; take it. */
const char *tool_next_word(const tool_command_line *line);
void tool_take_word(tool_command_line *line);

/* What every `parse` but TOOL_RUN asks for: help and version on standard output, the sentence on
 * standard error. Returns the exit status, 0 or 2. */
int tool_answer(const char *program, tool_parse parse, void (*help)(void), const char *error);

/* Answer --version, on standard output. */
void tool_print_version(const char *program);

#endif
