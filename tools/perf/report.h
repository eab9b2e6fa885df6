/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_REPORT_H
#define LCOMM_TOOLS_PERF_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "libcomm.h"
#include "tools/perf/options.h"

/* One line of the table: one size under one policy, over all ranks. Bytes are
 * of one run. */
typedef struct perf_row {
  uint64_t count;
  const char *label; /* policy, "exact" or "MPI_Allreduce" */
  double min_s;
  double median_s;
  double max_s;
  double sent_bytes[LCOMM_LINK_COUNT];
  double exact_bytes[LCOMM_LINK_COUNT];
  double interface_bytes;
  double interface_packets;
  int is_libcomm; /* sent and exact bytes are known */
  int is_checked;
  double error;
  uint64_t wrong;
} perf_row;

typedef struct perf_report {
  const perf_options *options;
  int ranks;
  int nodes;
  FILE *json; /* NULL: none */
  int rows;
} perf_report;

/* All of these are for rank 0. Begin returns 0 if the JSON file cannot be
 * made; end returns 0 if it could not be written. */
int perf_report_begin(perf_report *report, const perf_options *options, int ranks, int nodes);
void perf_report_row(perf_report *report, const perf_row *row);
int perf_report_end(perf_report *report);

#endif
