/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_ANSWER_H
#define LCOMM_TOOLS_EXPERIMENT_EXPERIMENT_ANSWER_H

/* What an experiment says, in three sentences: what pays where links are slowest, from which rate
 * on it pays no more, and what it costs in accuracy. */

#include "tools/experiment/experiment_group.h"

enum { EXPERIMENT_SENTENCES = 3, EXPERIMENT_SENTENCE_MAX = 600 };

typedef struct experiment_answer {
  char sentences[EXPERIMENT_SENTENCES][EXPERIMENT_SENTENCE_MAX]; /* "": nothing to say */
} experiment_answer;

void experiment_answer_make(const experiment_groups *of, experiment_answer *made);

/* Where the speed-up of `policy` in the place of `of` goes through 1, between two measured rates,
 * as bits per second, by a line between them over the logarithm of the rate; 0: nowhere. */
double experiment_break_even(const experiment_groups *all, const experiment_group *of,
                             const char *policy);

/* "620 Mbit/s". Returns text. */
const char *experiment_show_rate(double bits_per_s, char *text, size_t size);

#endif
