/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_VALUES_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_VALUES_H

/* Readers of the values of an experiment file: false when the text is none. `member` points to the
 * member of experiment_file or experiment_workload that has this type. */

#include "tools/experiment/experiment_file.h"

bool experiment_read_text(const char *text, void *member);        /* char[EXPERIMENT_TEXT_MAX] */
bool experiment_read_name(const char *text, void *member);        /* char[EXPERIMENT_NAME_MAX] */
bool experiment_read_seed(const char *text, void *member);        /* uint64_t */
bool experiment_read_seconds(const char *text, void *member);     /* double */
bool experiment_read_share(const char *text, void *member);       /* double */
bool experiment_read_where(const char *text, void *member);       /* experiment_where */
bool experiment_read_policies(const char *text, void *member);    /* experiment_words */
bool experiment_read_rates(const char *text, void *member);       /* experiment_words */
bool experiment_read_names(const char *text, void *member);       /* experiment_words */
bool experiment_read_delays(const char *text, void *member);      /* experiment_numbers */
bool experiment_read_seeds(const char *text, void *member);       /* experiment_numbers */
bool experiment_read_worlds(const char *text, void *member);      /* world_count, worlds */
bool experiment_read_repetitions(const char *text, void *member); /* int */

/* Cut blanks off both ends of a line or a word. Returns where it begins. */
char *experiment_trim(char *text);

#endif
