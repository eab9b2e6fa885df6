/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/include/libcomm.h"
#include "tools/common/tool_units.h"

enum { OPTIONS_MAX = 64, LETTERS_MAX = 3 * OPTIONS_MAX, SPELLED_MAX = 64, EXIT_USAGE = 2 };

/* What getopt returns: these, or FIRST + the number of an option in the table. */
enum { HELP = 256, VERSION, FIRST };

/* The table as getopt wants it. */
typedef struct getopt_table {
  struct option names[OPTIONS_MAX + 3];
  char letters[LETTERS_MAX];
} getopt_table;

static void add_letter(getopt_table *table, const tool_option *option) {
  char text[4] = {option->letter, '\0'};
  if (option->letter == '\0') {
    return;
  }
  strcat(text, option->value == TOOL_NO_VALUE      ? ""
               : option->value == TOOL_NEEDS_VALUE ? ":"
                                                   : "::");
  strcat(table->letters, text);
}

/* --version and --help are added. */
static void translate(const tool_option *known, getopt_table *table) {
  static const int arguments[] = {[TOOL_NO_VALUE] = no_argument,
                                  [TOOL_NEEDS_VALUE] = required_argument,
                                  [TOOL_MAY_HAVE_VALUE] = optional_argument};
  size_t n = 0;
  memset(table, 0, sizeof *table);
  strcpy(table->letters, ":h");
  for (; known[n].name && n < OPTIONS_MAX; n++) {
    table->names[n] =
        (struct option){known[n].name, arguments[known[n].value], NULL, FIRST + (int)n};
    add_letter(table, &known[n]);
  }
  table->names[n] = (struct option){"version", no_argument, NULL, VERSION};
  table->names[n + 1] = (struct option){"help", no_argument, NULL, HELP};
}

bool tool_refuse(tool_command_line *line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line->error, TOOL_ERROR_MAX, format, arguments);
  va_end(arguments);
  return false;
}

/* An unknown letter may stand among others in one word. */
static bool refuse_form(tool_command_line *line, int trouble) {
  const char *word = line->argv[optind - 1];
  if (trouble == ':') {
    return tool_refuse(line, "a value is missing after '%s'", word);
  }
  if (optopt >= HELP) {
    return tool_refuse(line, "the option takes no value: '%s'", word);
  }
  if (optopt > 0) {
    return tool_refuse(line, "there is no option '-%c'", optopt);
  }
  return tool_refuse(line, "there is no option '%s'", word);
}

/* "-n (--iters)", "--json". Returns text. */
static const char *spelled(const tool_option *option, char text[SPELLED_MAX]) {
  if (option->letter != '\0') {
    snprintf(text, SPELLED_MAX, "-%c (--%s)", option->letter, option->name);
  } else {
    snprintf(text, SPELLED_MAX, "--%s", option->name);
  }
  return text;
}

static bool refuse_value(tool_command_line *line, const tool_option *option, const char *value) {
  char text[SPELLED_MAX];
  return tool_refuse(line, "'%s' is no usable value for %s", value ? value : "",
                     spelled(option, text));
}

static bool set_whole(tool_command_line *line, const tool_option *option, const char *value) {
  uint64_t number = 0;
  char *member = (char *)line->options + option->member;
  if (!tool_units_read_whole(value, option->least, option->most, &number)) {
    char text[SPELLED_MAX];
    return tool_refuse(line, "'%s' is no whole number from %llu to %llu, as %s needs one", value,
                       (unsigned long long)option->least, (unsigned long long)option->most,
                       spelled(option, text));
  }
  if (option->kind == TOOL_SETS_INT) {
    *(int *)(void *)member = (int)number;
  } else {
    *(uint64_t *)(void *)member = number;
  }
  return true;
}

static bool read_by(tool_command_line *line, const tool_option *option, const char *value) {
  int before = optind;
  if (option->read(line, value)) {
    return true;
  }
  if (line->error[0] != '\0') {
    return false;
  }
  return refuse_value(line, option, optind == before ? value : line->argv[optind - 1]);
}

static bool apply(tool_command_line *line, const tool_option *option, const char *value) {
  char *member = (char *)line->options + option->member;
  switch (option->kind) {
  case TOOL_SETS_FLAG:
    *(bool *)member = option->flag;
    return true;
  case TOOL_SETS_TEXT:
    *(const char **)(void *)member = value;
    return strlen(value) >= option->least || refuse_value(line, option, value);
  case TOOL_SETS_WHOLE:
  case TOOL_SETS_INT:
    return set_whole(line, option, value);
  default: /* TOOL_READS */
    return read_by(line, option, value);
  }
}

static const tool_option *find(const tool_option *known, int returned) {
  if (returned >= FIRST) {
    return &known[returned - FIRST];
  }
  while (known->letter != returned) {
    known++;
  }
  return known;
}

tool_parse tool_options_parse(tool_command_line *line, const tool_option *known) {
  getopt_table table;
  translate(known, &table);
  line->error[0] = '\0';
  opterr = 0; /* one sentence of ours */
  optind = 0; /* from the start, whoever called before */
  for (int c; (c = getopt_long(line->argc, line->argv, table.letters, table.names, NULL)) != -1;) {
    if (c == 'h' || c == HELP) {
      return TOOL_HELP;
    }
    if (c == VERSION) {
      return TOOL_VERSION;
    }
    if (c == '?' || c == ':') {
      refuse_form(line, c);
      return TOOL_USAGE;
    }
    if (!apply(line, find(known, c), optarg)) {
      return TOOL_USAGE;
    }
  }
  line->operands = line->argv + optind;
  line->operand_count = (size_t)(line->argc - optind);
  return TOOL_RUN;
}

bool tool_refuse_operands(tool_command_line *line) {
  return line->operand_count == 0 ||
         tool_refuse(line, "unexpected argument '%s'", line->operands[0]);
}

tool_parse tool_options_parse_alone(tool_command_line *line, const tool_option *known) {
  tool_parse parse = tool_options_parse(line, known);
  return parse == TOOL_RUN && !tool_refuse_operands(line) ? TOOL_USAGE : parse;
}

const char *tool_next_word(const tool_command_line *line) {
  return optind < line->argc ? line->argv[optind] : NULL;
}

void tool_take_word(tool_command_line *line) {
  optind += tool_next_word(line) != NULL;
}

int tool_answer(const char *program, tool_parse parse, void (*help)(void), const char *error) {
  if (parse == TOOL_HELP) {
    help();
  } else if (parse == TOOL_VERSION) {
    tool_print_version(program);
  } else {
    fprintf(stderr, "%s: %s; see %s --help\n", program, error, program);
    return EXIT_USAGE;
  }
  return 0;
}

void tool_print_version(const char *program) {
  printf("%s (libcomm) %d.%d.%d\n", program, LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
         LCOMM_VERSION_PATCH);
}
