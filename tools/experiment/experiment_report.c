/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_report.h"

#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/experiment/experiment_folder.h"
#include "tools/experiment/experiment_simulation.h"

size_t experiment_report_row(char **at, char *cells[], size_t most, bool *is_loss) {
  size_t count = 0;
  char *line = *at;
  if (*line == '\0') {
    return 0;
  }
  *at = line + strcspn(line, "\n");
  if (**at == '\n') {
    *(*at)++ = '\0';
  }
  *is_loss = line[0] == '!';
  line += *is_loss;
  while (count < most) {
    cells[count++] = line;
    line += strcspn(line, "\t");
    if (*line == '\0') {
      break;
    }
    *line++ = '\0';
  }
  return count;
}

typedef const char *member_reader(const experiment_result *of);

static const char *machine_of(const experiment_result *of) {
  return of->machine;
}

static const char *commit_of(const experiment_result *of) {
  return of->commit;
}

static size_t list_once(const experiment *of, member_reader *member, char *text, size_t size) {
  size_t used = 0, count = 0;
  text[0] = '\0';
  for (size_t i = 0; i < of->count; i++) {
    const char *now = member(&of->results[i]);
    bool had = now[0] == '\0';
    for (size_t before = 0; before < i && !had; before++) {
      had = strcmp(member(&of->results[before]), now) == 0;
    }
    if (!had && used < size) {
      used += (size_t)snprintf(text + used, size - used, "%s%s", count > 0 ? "; " : "", now);
      count++;
    }
  }
  return count;
}

size_t experiment_report_machines(const experiment *of, char *text, size_t size) {
  return list_once(of, machine_of, text, size);
}

size_t experiment_report_commits(const experiment *of, char *text, size_t size) {
  return list_once(of, commit_of, text, size);
}

/* -------------------------------------------------------------------- writing */

typedef void report_writer(const experiment_report *of, FILE *file);

static bool write_file(const experiment_report *of, const char *name, report_writer *write,
                       char *error) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (memory) {
    write(of, memory);
  }
  bool good = memory && fclose(memory) == 0;
  if (!good) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "no memory for %s", name);
  }
  good = good && experiment_folder_write(of->of->options->out, name, text, size, error);
  free(text);
  return good;
}

/* Those of an earlier report, whose numbers may have been others. */
static void remove_pictures(const char *folder) {
  char pattern[EXPERIMENT_PATH_MAX + 32];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/p[0-9][0-9]_*", folder);
  bool any = glob(pattern, 0, NULL, &found) == 0;
  for (size_t i = 0; any && i < found.gl_pathc; i++) {
    unlink(found.gl_pathv[i]);
  }
  globfree(&found);
}

static void draw(experiment_report *of) {
  char folder[EXPERIMENT_PATH_MAX + 16];
  snprintf(folder, sizeof folder, "%s/pictures", of->of->options->out);
  remove_pictures(folder);
  signal(SIGPIPE, SIG_IGN); /* gnuplot need not be there */
  for (size_t i = 0; i < of->pictures.count; i++) {
    of->drawn[i] = experiment_picture_draw(&of->pictures.list[i], folder);
  }
}

static void simulate(experiment_report *of) {
  char folder[EXPERIMENT_PATH_MAX + 16];
  snprintf(folder, sizeof folder, "%s/simulated", of->of->options->out);
  experiment_groups_simulate(&of->groups, folder);
}

static void say(const experiment_report *of, FILE *screen) {
  fputc('\n', screen);
  for (size_t i = 0; i < EXPERIMENT_SENTENCES; i++) {
    if (of->answer.sentences[i][0] != '\0') {
      fprintf(screen, "%s\n", of->answer.sentences[i]);
    }
  }
  fprintf(screen, "\n%zu runs have results, %zu failed, %zu have not run\n%s/report.html\n",
          of->good, of->failed, of->missing, of->of->options->out);
}

static void count_states(experiment_report *of) {
  for (size_t i = 0; i < of->of->count; i++) {
    experiment_state state = of->of->results[i].state;
    of->good += state == EXPERIMENT_GOOD;
    of->failed += state == EXPERIMENT_FAILED;
    of->missing += state == EXPERIMENT_MISSING;
  }
}

bool experiment_report_write(const experiment *of, FILE *screen, char *error) {
  static experiment_report report;
  memset(&report, 0, sizeof report);
  report.of = of;
  count_states(&report);
  if (report.good + report.failed == 0) {
    fprintf(screen, "there are no results yet\n");
    return true;
  }
  if (!experiment_groups_make(of, &report.groups)) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "no memory for the report");
    return false;
  }
  simulate(&report);
  experiment_answer_make(&report.groups, &report.answer);
  experiment_pictures_make(&report.groups, &report.pictures);
  draw(&report);
  bool good = write_file(&report, "results.csv", experiment_report_csv, error) &&
              write_file(&report, "report.md", experiment_report_markdown, error) &&
              write_file(&report, "report.html", experiment_report_html, error);
  if (good) {
    say(&report, screen);
  }
  for (size_t i = 0; i < report.pictures.count; i++) {
    free(report.drawn[i]);
  }
  experiment_pictures_free(&report.pictures);
  experiment_groups_free(&report.groups);
  return good;
}
