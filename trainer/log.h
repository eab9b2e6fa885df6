/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_LOG_H
#define TRAINER_LOG_H

#include <stdio.h>

#include "trainer/results.h"
#include "trainer/session.h"

/* The log that programs read: one JSON object per line. "event" says which (config, step,
 * epoch, final; stopped by a signal; failed), "time" when. Steps count from the start of the
 * run, those that are done. On rank 0 only; a log that was not asked
 * for is NULL, and all functions accept it. */
typedef struct run_log run_log;

/* Returns 0 and the log, or -1 if the file cannot be written. */
int log_open(const char *path, run_log **made, failure *why);

void log_config(run_log *log, const session *of);
void log_epoch(run_log *log, const results *epoch);
void log_final(run_log *log, const results *run);
/* The mean loss of the epoch so far, over all ranks. */
void log_step(run_log *log, const session *of, double loss, float rate);
void log_failed(run_log *log, const session *of, const failure *what);

/* Returns -1 if something could not be written. */
int log_close(run_log *log, failure *why);

#endif
