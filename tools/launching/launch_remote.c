/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_remote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/env.h"

extern char **environ;

/* $1: the folder; then the program. setsid lets a signal to the rank reach what it has started as
 * well. */
static const char shell[] =
    "while IFS= read -r line && [ -n \"$line\" ]; do export \"$line\"; done; exec 3<&0; "
    "cd \"$1\" || exit 127; shift; "
    "setsid \"$@\" </dev/null 3<&- & rank=$!; "
    "{ while read -r number; do kill \"-$number\" -$rank; done; kill -9 -$rank; } "
    "<&3 >/dev/null 2>&1 & watcher=$!; exec 3<&- </dev/null; "
    "wait $rank; status=$?; kill -9 -$rank 2>/dev/null; "
    "kill $watcher 2>/dev/null; exit $status";

/* ------------------------------------------------------------------ the words */

static void put_quoted(FILE *to, const char *word) {
  fputs(" '", to);
  for (; *word; word++) {
    if (*word == '\'') {
      fputs("'\\''", to);
    } else {
      fputc(*word, to);
    }
  }
  fputc('\'', to);
}

/* One word: ssh hands it to the user's shell, whichever that is. */
static char *make_line(char *const *program) {
  char *line = NULL, *folder = getcwd(NULL, 0);
  size_t size = 0;
  FILE *to = folder ? open_memstream(&line, &size) : NULL;
  if (!to) {
    free(folder);
    return NULL;
  }
  fputs("exec sh -c", to);
  put_quoted(to, shell);
  put_quoted(to, "rank");
  put_quoted(to, folder);
  for (; *program; program++) {
    put_quoted(to, *program);
  }
  free(folder);
  return fclose(to) == 0 ? line : NULL;
}

/* How to reach the host may be several words, such as "ssh -p 2222". */
static char **split_agent(size_t more) {
  const char *agent = lcomm_env_get(LCOMM_ENV_LAUNCH_SSH);
  char *text = strdup(agent ? agent : "ssh"), *rest = NULL;
  char **words = text ? calloc(strlen(text) + more + 1, sizeof *words) : NULL;
  size_t count = 0;
  for (char *word = words ? strtok_r(text, " ", &rest) : NULL; word;
       word = strtok_r(NULL, " ", &rest)) {
    words[count++] = strdup(word);
  }
  free(text);
  return words;
}

char **launch_remote_command(const char *host, char *const *program) {
  char **words = split_agent(2);
  size_t count = 0;
  while (words && words[count]) {
    count++;
  }
  if (!words) {
    return NULL;
  }
  words[count] = strdup(host);
  words[count + 1] = words[count] ? make_line(program) : NULL;
  if (!words[count + 1]) {
    launch_remote_free(words);
    return NULL;
  }
  return words;
}

void launch_remote_free(char **words) {
  for (size_t i = 0; words && words[i]; i++) {
    free(words[i]);
  }
  free(words);
}

/* ------------------------------------------------------------ the environment */

static bool begins_with(const char *text, const char *begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

/* A value of several lines stays here. */
static bool travels(const char *entry) {
  static const char *const names[] = {"LCOMM_",
                                      "RANK=",
                                      "WORLD_SIZE=",
                                      "LOCAL_RANK=",
                                      "LOCAL_WORLD_SIZE=",
                                      "MASTER_ADDR=",
                                      "MASTER_PORT=",
                                      "OMP_NUM_THREADS=",
                                      "OPENBLAS_NUM_THREADS="};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (begins_with(entry, names[i])) {
      return !begins_with(entry, "LCOMM_LAUNCH_") && !strchr(entry, '\n');
    }
  }
  return false;
}

int launch_remote_send_environment(int to) {
  FILE *lines = fdopen(dup(to), "w");
  if (!lines) {
    return -1;
  }
  for (char **entry = environ; *entry; entry++) {
    if (travels(*entry)) {
      fprintf(lines, "%s\n", *entry);
    }
  }
  fputc('\n', lines);
  return fclose(lines) == 0 ? 0 : -1;
}
