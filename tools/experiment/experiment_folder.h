/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_FOLDER_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_FOLDER_H

/* The folder of a run: run.json (what it was and how it ended; written last, whole or not at all),
 * results.jsonl (what the program wrote), out and err (what it printed), bytes.json (what each
 * emulated host sent). */

#include "tools/experiment/experiment_process.h"
#include "tools/experiment/experiment_programs.h"
#include "tools/experiment/experiment_result.h"

/* A file of a folder as text, or NULL. To be freed. */
char *experiment_folder_text(const char *folder, const char *name);

/* What the program wrote: results.jsonl, else its standard output. To be freed. */
char *experiment_folder_results(const char *folder);

/* Make it, with all above it, and empty it of the files of an earlier run. false with a
 * sentence. */
bool experiment_folder_begin(const char *folder, char *error);

/* Make it and take it for this process, until it ends. false with a sentence, also when another
 * process has it. */
bool experiment_folder_lock(const char *folder, char *error);

/* Judge how the run ended by its end and its files, and write run.json. false with a sentence when
 * that cannot be written. `made` is as experiment_result_read() would have it. */
bool experiment_folder_end(const char *folder, const experiment_case *of, const char *command,
                           const experiment_outcome *outcome, double limit_s,
                           experiment_result *made, char *error);

/* A file of several lines, whole or not at all: written under another name first. */
bool experiment_folder_write(const char *folder, const char *name, const char *text, size_t size,
                             char *error);

#endif
