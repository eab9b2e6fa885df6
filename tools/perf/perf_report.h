/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_REPORT_H
#define LCOMM_TOOLS_PERF_PERF_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "tools/perf/perf_options.h"
#include "tools/perf/perf_summary.h"

/* The average bus bandwidth of one backend. */
typedef struct lcomm_perf_average {
  const char *label;
  double sum_gb_s;
  int rows;
} lcomm_perf_average;

/* Where the run is. */
typedef struct lcomm_perf_site {
  int ranks;
  int nodes;
  int hosts;
  char transports[64];  /* that messages travel by, as "shm,ucx" */
  char interfaces[256]; /* network devices they travel over, as "eth0,lo" */
} lcomm_perf_site;

typedef struct lcomm_perf_report {
  const lcomm_perf_options *options;
  lcomm_perf_site site;
  FILE *table;
  FILE *json; /* NULL: none */
  FILE *csv;  /* NULL: none */
  int rows;
  uint64_t wrong;
  lcomm_perf_average averages[LCOMM_PERF_POLICIES_MAX + 1];
  int average_count;
} lcomm_perf_report;

/* All of these are for rank 0. Begin and end return NULL, or a sentence about a file that cannot be
 * written. argv is what the program was called with. */
const char *lcomm_perf_report_begin(lcomm_perf_report *report, const lcomm_perf_options *options,
                                    const lcomm_perf_site *site, FILE *table, int argc,
                                    char **argv);
void lcomm_perf_report_row(lcomm_perf_report *report, const lcomm_perf_row *row);
const char *lcomm_perf_report_end(lcomm_perf_report *report);

/* What follows is shared by the table and the files. Bandwidths in GB/s;
 * the ratio is that of bytes had they been exact to bytes sent. */
double lcomm_perf_algbw(const lcomm_perf_row *row);
double lcomm_perf_busbw(const lcomm_perf_row *row, int ranks);
double lcomm_perf_ratio(const lcomm_perf_row *row);
const char *lcomm_perf_progress_name(lcomm_progress_mode mode);
const char *lcomm_perf_redop(const lcomm_perf_row *row);

void lcomm_perf_table_begin(const lcomm_perf_report *report);
void lcomm_perf_table_row(const lcomm_perf_report *report, const lcomm_perf_row *row);
void lcomm_perf_table_end(const lcomm_perf_report *report);

void lcomm_perf_json_begin(const lcomm_perf_report *report, int argc, char **argv);
void lcomm_perf_json_row(const lcomm_perf_report *report, const lcomm_perf_row *row);
void lcomm_perf_json_end(const lcomm_perf_report *report);

void lcomm_perf_csv_begin(const lcomm_perf_report *report);
void lcomm_perf_csv_row(const lcomm_perf_report *report, const lcomm_perf_row *row);

#endif
