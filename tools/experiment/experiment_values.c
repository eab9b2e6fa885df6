/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_units.h"

#define SECONDS_MAX 86400.0
enum { SEED_MAX = 1 << 30, HOSTS_MAX = 64, RANKS_MAX = 999, REPETITIONS_MAX = 100 };

bool experiment_read_text(const char *text, void *member) {
  for (const char *c = text; *c != '\0'; c++) {
    if ((unsigned char)*c < ' ' || *c == 0x7f) {
      return false;
    }
  }
  return snprintf(member, EXPERIMENT_TEXT_MAX, "%s", text) < EXPERIMENT_TEXT_MAX;
}

static bool is_name(const char *text) {
  size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
  return length > 0 && text[length] == '\0';
}

bool experiment_read_name(const char *text, void *member) {
  return is_name(text) && snprintf(member, EXPERIMENT_NAME_MAX, "%s", text) < EXPERIMENT_NAME_MAX;
}

bool experiment_read_seed(const char *text, void *member) {
  return tool_units_read_whole(text, 0, UINT64_MAX, member);
}

/* A number, and the unit behind it. */
static bool read_quantity(const char *text, double *number, const char **unit) {
  char *end = NULL;
  *number = isdigit((unsigned char)text[0]) ? strtod(text, &end) : -1.0;
  *unit = end ? end : "";
  return *number >= 0.0 && *number <= 1e9;
}

static bool read_time(const char *text, double *seconds) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}};
  const char *unit;
  double number;
  if (!read_quantity(text, &number, &unit)) {
    return false;
  }
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(unit, units[i].name) == 0) {
      *seconds = number * units[i].seconds;
      return true;
    }
  }
  return false;
}

bool experiment_read_seconds(const char *text, void *member) {
  double seconds = 0.0;
  bool good = read_time(text, &seconds) && seconds >= 0.1 && seconds <= SECONDS_MAX;
  *(double *)member = seconds;
  return good;
}

bool experiment_read_share(const char *text, void *member) {
  const char *unit;
  double number;
  if (!read_quantity(text, &number, &unit) || (unit[0] != '\0' && strcmp(unit, "%") != 0)) {
    return false;
  }
  number = unit[0] == '%' ? number / 100.0 : number;
  *(double *)member = number;
  return number > 0.0 && number <= 1.0;
}

bool experiment_read_where(const char *text, void *member) {
  for (int i = EXPERIMENT_CLUSTER; i <= EXPERIMENT_SLURM; i++) {
    if (strcmp(text, experiment_where_name((experiment_where)i)) == 0) {
      *(experiment_where *)member = (experiment_where)i;
      return true;
    }
  }
  return false;
}

/* -------------------------------------------------------------------- lists */

typedef bool word_reader(char *word, void *list, size_t place);

char *experiment_trim(char *text) {
  text += strspn(text, " \t\r");
  size_t length = strlen(text);
  while (length > 0 && strchr(" \t\r", text[length - 1])) {
    text[--length] = '\0';
  }
  return text;
}

/* Each word of a list; *count of them. */
static bool read_list(const char *text, char between, word_reader *read, void *list,
                      size_t *count) {
  char word[EXPERIMENT_WORD_MAX];
  for (*count = 0; *count < EXPERIMENT_LIST_MAX;) {
    const char *end = strchr(text, between);
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (length >= sizeof word) {
      return false;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    if (!read(experiment_trim(word), list, *count)) {
      return false;
    }
    ++*count;
    if (!end) {
      return true;
    }
    text = end + 1;
  }
  return false;
}

static bool add_word(const char *word, experiment_words *list, size_t place) {
  for (size_t i = 0; i < place; i++) {
    if (strcmp(list->words[i], word) == 0) {
      return false;
    }
  }
  snprintf(list->words[place], EXPERIMENT_WORD_MAX, "%s", word);
  return true;
}

/* "exact" is the policy that compresses nothing. */
static bool read_policy(char *word, void *list, size_t place) {
  for (const char *c = word; *c != '\0'; c++) {
    if (!isprint((unsigned char)*c)) {
      return false;
    }
  }
  return word[0] != '\0' && add_word(strcmp(word, "exact") == 0 ? "" : word, list, place);
}

static bool read_rate(char *word, void *list, size_t place) {
  double bytes_per_s;
  size_t digits = strspn(word, "0123456789.");
  const char *unit = word + digits;
  bool good = digits > 0 && (strcmp(unit, "bit") == 0 || strcmp(unit, "kbit") == 0 ||
                             strcmp(unit, "mbit") == 0 || strcmp(unit, "gbit") == 0);
  return good && tool_units_read_bandwidth(word, &bytes_per_s) && add_word(word, list, place);
}

static bool read_one_name(char *word, void *list, size_t place) {
  return is_name(word) && strlen(word) < EXPERIMENT_NAME_MAX && add_word(word, list, place);
}

bool experiment_read_policies(const char *text, void *member) {
  return read_list(text, '|', read_policy, member, &((experiment_words *)member)->count);
}

bool experiment_read_rates(const char *text, void *member) {
  return read_list(text, ',', read_rate, member, &((experiment_words *)member)->count);
}

bool experiment_read_names(const char *text, void *member) {
  return read_list(text, ',', read_one_name, member, &((experiment_words *)member)->count);
}

/* The next of them, if it is another than those before it. */
static bool add_number(double number, experiment_numbers *list, size_t place) {
  for (size_t i = 0; i < place; i++) {
    if (!(list->numbers[i] < number || list->numbers[i] > number)) {
      return false;
    }
  }
  list->numbers[place] = number;
  return true;
}

static bool read_delay(char *word, void *list, size_t place) {
  double seconds = 0.0;
  return read_time(word, &seconds) && seconds <= 10.0 && add_number(1e3 * seconds, list, place);
}

static bool read_one_seed(char *word, void *list, size_t place) {
  uint64_t seed = 0;
  return tool_units_read_whole(word, 0, SEED_MAX, &seed) && add_number((double)seed, list, place);
}

bool experiment_read_delays(const char *text, void *member) {
  return read_list(text, ',', read_delay, member, &((experiment_numbers *)member)->count);
}

bool experiment_read_seeds(const char *text, void *member) {
  return read_list(text, ',', read_one_seed, member, &((experiment_numbers *)member)->count);
}

static bool read_world(char *word, void *list, size_t place) {
  experiment_workload *run = list;
  uint64_t hosts = 0, ranks = 0;
  char *by = strchr(word, 'x');
  if (!by) {
    return false;
  }
  *by = '\0';
  if (!tool_units_read_whole(word, 1, HOSTS_MAX, &hosts) ||
      !tool_units_read_whole(by + 1, 1, RANKS_MAX, &ranks)) {
    return false;
  }
  for (size_t i = 0; i < place; i++) {
    if (run->worlds[i].hosts == (int)hosts && run->worlds[i].ranks == (int)ranks) {
      return false;
    }
  }
  run->worlds[place] = (experiment_world){(int)hosts, (int)ranks};
  return true;
}

bool experiment_read_worlds(const char *text, void *member) {
  experiment_workload *run =
      (experiment_workload *)((char *)member - offsetof(experiment_workload, world_count));
  return read_list(text, ',', read_world, run, &run->world_count);
}

bool experiment_read_repetitions(const char *text, void *member) {
  uint64_t times = 0;
  bool good = tool_units_read_whole(text, 1, REPETITIONS_MAX, &times);
  *(int *)member = (int)times;
  return good;
}
