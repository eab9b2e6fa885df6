/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_REPORT_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_REPORT_H

/* The report of an experiment: report.html, report.md and results.csv in its folder. */

#include <stdio.h>

#include "tools/experiment/experiment_answer.h"
#include "tools/experiment/experiment_picture.h"

/* Write all three, and the answer on the screen. Without any result nothing is written. false with
 * a sentence when a file cannot be written. */
bool experiment_report_write(const experiment *of, FILE *screen, char *error);

/* What the three files are made of. */
typedef struct experiment_report {
  const experiment *of;
  experiment_groups groups;
  experiment_answer answer;
  experiment_pictures pictures;
  char *drawn[EXPERIMENT_PICTURES_MAX]; /* of each picture; NULL: gnuplot is not there */
  size_t good, failed, missing;         /* runs */
} experiment_report;

void experiment_report_html(const experiment_report *of, FILE *file);
void experiment_report_markdown(const experiment_report *of, FILE *file);
void experiment_report_csv(const experiment_report *of, FILE *file);

/* The machines, or the commits, of the results: each once, with "; " between them. Returns how
 * many. */
size_t experiment_report_machines(const experiment *of, char *text, size_t size);
size_t experiment_report_commits(const experiment *of, char *text, size_t size);

/* The row at *at: its cells (at most `most`), cut at the tabs, and whether it shows a loss; moves
 * on to the next. Returns the number of cells, 0 at the end. Changes the text. */
size_t experiment_report_row(char **at, char *cells[], size_t most, bool *is_loss);

#endif
