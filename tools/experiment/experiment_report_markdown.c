/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdlib.h>
#include <string.h>

#include "tools/experiment/experiment_report.h"

enum { CELLS = 12 };

static void put_cell(const char *text, FILE *file) {
  fputs(" ", file);
  for (; *text != '\0'; text++) {
    fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, file);
  }
  fputs(" |", file);
}

static void put_table(const char *table, FILE *file) {
  char *copy = strdup(table), *at = copy, *cells[CELLS];
  bool loss = false, first = true;
  for (size_t count; copy && (count = experiment_report_row(&at, cells, CELLS, &loss)) > 0;) {
    fputc('|', file);
    for (size_t i = 0; i < count; i++) {
      put_cell(cells[i], file);
    }
    fputs(loss ? " **lost**\n" : "\n", file);
    for (size_t i = 0; first && i < count; i++) {
      fputs(i == 0 ? "|---|" : "---:|", file);
    }
    fputs(first ? "\n" : "", file);
    first = false;
  }
  fputc('\n', file);
  free(copy);
}

static void put_failures(const experiment_report *of, FILE *file) {
  if (of->failed == 0) {
    return;
  }
  fputs("## Runs that failed\n\n| run | why |\n|---|---|\n", file);
  for (size_t i = 0; i < of->of->count; i++) {
    if (of->of->results[i].state == EXPERIMENT_FAILED) {
      fputc('|', file);
      put_cell(of->of->cases[i].name, file);
      put_cell(of->of->results[i].why, file);
      fputc('\n', file);
    }
  }
  fputc('\n', file);
}

void experiment_report_markdown(const experiment_report *of, FILE *file) {
  char text[4096];
  fprintf(file, "# %s\n\n", of->of->file.title[0] ? of->of->file.title : of->of->options->file);
  for (size_t i = 0; i < EXPERIMENT_SENTENCES; i++) {
    fprintf(file, "%s ", of->answer.sentences[i]);
  }
  fprintf(file, "\n\n%zu runs have results, %zu failed, %zu have not run. ", of->good, of->failed,
          of->missing);
  size_t machines = experiment_report_machines(of->of, text, sizeof text);
  fprintf(file, "%s: %s. ", machines > 1 ? "**Machines are mixed**" : "Machine", text);
  experiment_report_commits(of->of, text, sizeof text);
  fprintf(file, "Commit %s. Made by `libcomm-experiment %s`.\n\n", text, of->of->options->file);
  for (size_t i = 0; i < of->pictures.count; i++) {
    const experiment_picture *it = &of->pictures.list[i];
    fprintf(file, "## %s\n\n", it->title);
    if (of->drawn[i]) {
      fprintf(file, "![%s](pictures/%s.svg)\n\nMade by `gnuplot pictures/%s.gp`.\n\n", it->title,
              it->name, it->name);
    }
    put_table(it->table, file);
  }
  put_failures(of, file);
}
