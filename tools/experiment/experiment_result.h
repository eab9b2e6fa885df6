/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_RESULT_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_RESULT_H

/* What a run came to, as its folder has it. */

#include "tools/experiment/experiment_matrix.h"

enum { EXPERIMENT_EPOCHS_MAX = 64, EXPERIMENT_ROWS_MAX = 64, EXPERIMENT_WHY_MAX = 256 };

/* Of a training, after an epoch. */
typedef struct experiment_epoch {
  double seconds;    /* of training since the start, without tests */
  double accuracy;   /* 0 to 1 */
  double loss;       /* of the epoch */
  double sent_bytes; /* between nodes since the start, of all ranks */
} experiment_epoch;

/* Of a collective: a size. */
typedef struct experiment_row {
  double size, median_s, busbw_gb_s, net_bytes;
} experiment_row;

typedef enum experiment_state {
  EXPERIMENT_MISSING, /* it has not run */
  EXPERIMENT_GOOD,
  EXPERIMENT_FAILED
} experiment_state;

typedef struct experiment_result {
  experiment_state state;
  char why[EXPERIMENT_WHY_MAX]; /* FAILED: a sentence */
  double wall_s;                /* of the command, with its start */
  double interface_bytes;       /* all hosts sent; 0: not counted */
  char machine[EXPERIMENT_TEXT_MAX], host[64], commit[64], date[32];
  char transport[64], interface[256];

  size_t epoch_count; /* 0: it was no training */
  experiment_epoch epochs[EXPERIMENT_EPOCHS_MAX];
  double steps, step_s;                         /* mean time of a step */
  double encode_s, decode_s, wait_s, compute_s; /* of it; compute: what is left */
  double wire_s;                                /* of it with messages in flight, whatever else
                                                   went on; summed over operations */

  size_t row_count;
  experiment_row rows[EXPERIMENT_ROWS_MAX];
} experiment_result;

/* Read lines of JSON, or a document of a perf tool, into `made`; what is none of them is left out.
 * false: there was nothing that it knows. Every byte may be foreign. */
bool experiment_result_parse(char *text, experiment_result *made);

/* The folder of a case; MISSING where it has none, or that of another command. */
void experiment_result_read(const char *folder, const char *command, experiment_result *made);

/* Seconds of training until the accuracy was reached; 0: it never was. Between two epochs it is
 * taken to grow evenly. */
double experiment_result_time_to(const experiment_result *of, double accuracy);

/* Seconds of an epoch, on average. 0: no training. */
double experiment_result_epoch_s(const experiment_result *of);

#endif
