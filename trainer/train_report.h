/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_REPORT_H
#define TRAINER_TRAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trainer/train.h"

/* What people and programs read of a run; rank 0 alone writes it. */

/* What one epoch, or the whole run, has come to; the same on all ranks. */
typedef struct results {
  int epoch;        /* 1 for the first; of a run, the last */
  uint64_t steps;   /* since the start of the run */
  uint64_t samples; /* trained on, of all ranks together */
  double trained_s;
  double loss;           /* mean over the training samples of the epoch */
  double accuracy;       /* on the test samples, 0..1 */
  double test_loss;      /* their mean */
  double samples_per_s;  /* of training, all ranks together */
  double seconds;        /* with the test */
  traffic moved;         /* by training, all ranks together */
  uint64_t weights_hash; /* the same on all ranks, or the run has failed */
} results;

/* ------------------------------------------------------- screen, for people */

/* What is trained on what, by whom, and what the policy does. */
void report_start(const training *of);

/* The ranks have changed, and the training goes on. */
typedef struct change {
  int before;           /* ranks that there were */
  int lost;             /* of these, gone; */
  int left;             /* and that left in order */
  int joined;           /* newcomers */
  int told;             /* of these, where the run stands */
  bool finished;        /* the step that was broken off was finished; else it is made again */
  double lost_residual; /* share of what error feedback remembered, from 0 to 1, */
  double lost_norm;     /* and its norm, as lcomm_shrunk has it */
  double seconds;       /* from the failure on, until all were agreed */
  uint64_t weights_hash;
} change;

/* A line that says so. */
void report_change(const training *of, const change *what);

/* One line of the table. */
void report_epoch(const training *of, const results *epoch);

/* Bits that the model needs for a byte of held-out text. */
double results_bits(const results *of);

/* The figure of the test that is shown, and what it is: accuracy in percent, or bits per byte. */
double results_figure(const training *of, const results *what);
const char *results_figure_name(bool text);

/* Share of the time for communication that hid behind backward, over all ranks. */
double results_hidden(const results *of);

/* What this rank holds, in bytes. */
typedef struct memory_use {
  uint64_t weights;   /* in use, and those that are stepped */
  uint64_t gradients; /* and sums of them */
  uint64_t optimizer; /* what it remembers */
  uint64_t batch;     /* activations */
  uint64_t libcomm;   /* slots and vectors of its plans */
  uint64_t process;   /* all of the process, at its height */
} memory_use;

memory_use memory_now(const training *of);

/* Rank 0's, in a line. */
void report_memory(const training *of, const char *label);

/* How the run ended. */
void report_end(const training *of, const results *run);

/* Of a pipeline: its stages, at the beginning; what they sent each other, how long they waited, and
 * their weights, in the end. Nothing without one. */
void report_stages(const training *of);
void report_pipeline(const training *of);

/* Weights of the model, also where stages share them out. */
uint64_t report_weights(const training *of);

/* Share of the training that a stage waited for the others, mean of its replicas. */
double report_waits(const training *of, int stage);

/* What the model has learnt to write; nothing of a task of images, nor where no rank has all of the
 * model. All ranks make the same, so
 * that none waits for another. */
void report_sample(training *of);

/* How far an epoch is: a bar on a terminal, else a plain line now and then. */
typedef struct progress {
  const training *of;
  bool live; /* a bar */
  double began_s;
  uint64_t first; /* step that it began with */
  double shown_s;
  double loss; /* of recent steps of this rank */
} progress;

progress progress_begin(const training *of);

/* `step` steps of the epoch are done, the last one with this loss. */
void progress_show(progress *self, uint64_t step, double loss);

/* Samples per second of all ranks, after `step` steps of the epoch. */
double progress_speed(const progress *self, uint64_t step);

/* Take the bar away. */
void progress_end(progress *self);

/* --------------------------------------------- the policy in words, for people */

/* What a policy does to the gradients of a model: a few lines, each begun with
 * `indent`. `policy` is in canonical form (lcomm_policy_string), `codecs` are those of
 * the model's parameters (gradients_codecs). Cuts what does not fit. */
void policy_words(const char *policy, int nodes, const model *net, const policy_codec *codecs,
                  const char *indent, char *text, size_t size);

/* Likewise what it does to the messages between the stages of a pipeline; and to the gradients of a
 * stage whose ranks are on one node. */
void policy_stage_words(const char *policy, bool one_node, const char *indent, char *text,
                        size_t size);

/* net=auto: what it chooses for a bucket of the model's gradients now, and why: two lines, begun
 * with `first` and `indent`, or none where it does not act. Local call. */
void report_auto(const training *of, const char *first, const char *indent);

/* The same of a plan as lcomm_plan_print writes it; only the second line begins with `indent`. */
void report_auto_words(const char *plan, const char *indent, char *text, size_t size);
bool report_auto_acts(const char *policy, int nodes);

/* Does momentum travel after the warm-up (adam=), and is it that of the trainer's Adam? */
bool policy_sends_momentum(const char *policy);
bool policy_has_other_beta(const char *policy);

/* Does the policy keep the momentum (momentum correction)? The optimiser must
 * not have one of its own then. */
bool policy_keeps_momentum(const char *policy);

/* Is anything lossy, between nodes or inside one? */
bool policy_compresses(const char *policy);

/* Does a codec between nodes have error feedback? Are steps discarded whose averages are not
 * finite? */
bool policy_keeps_residuals(const char *policy);
bool policy_discards(const char *policy);

/* Do steps not wait for all ranks (quorum=)? Do servers average gradients (algo=servers)? */
bool policy_has_quorum(const char *policy);
bool policy_has_servers(const char *policy);

/* Do steps go on without their own averages (stale=)? */
bool policy_is_stale(const char *policy);

/* -------------------------------------------------------- log, for programs
 * One JSON object per line. "event" says which (config, step, guard, epoch, saved, resumed,
 * changed, final; stopped by a signal; failed), "time" when. Steps count from the start of the
 * run, those that are done. All functions accept a log that is NULL. */

typedef struct run_log run_log;

/* A run that goes on adds to its log. Returns 0 and the log, NULL without one asked for, or -1 if
 * the file cannot be written. */
int log_open(const options *chosen, run_log **made, failure *why);

/* The same for a rank that has become rank 0 meanwhile, which adds to it. */
int log_go_on(const options *chosen, run_log **made, failure *why);

void log_config(const training *of);
/* A member "origin" of the first record: version, commit, machine, hosts, rate, and the transports
 * and network devices that messages travel by; null where it is not known. */
void put_origin(FILE *file, const training *of);
/* `event` is "epoch" or "final". */
void log_results(const training *of, const char *event, const results *what);
/* The mean loss of the epoch so far, over all ranks. */
void log_step(const training *of, double loss, float rate, double samples_per_s);
/* What the guard of the policy has found of a tensor in the step that ends; a
 * lcomm_guard_function, whose context is the training. */
void log_guard(void *training_to_log, const lcomm_guard_figures *found);
/* `event` is "saved" or "resumed". */
void log_checkpoint(const training *of, const char *event, const char *path);
/* A member "pipeline" of the records "config", "epoch" and "final", where there is one: "stages";
 * of the steps since the start of the run "sent_bytes" and "exact_bytes" of messages between
 * stages, and "waited", the share of the training that each stage waited for the others; "bubble",
 * what the schedule leaves idle. "config" names no tensors then. */
void put_pipeline(FILE *file, const training *of);
void log_change(const training *of, const change *what);
void log_failed(const training *of, const failure *what);

/* Returns -1 if something could not be written. */
int log_close(run_log *log, failure *why);

#endif
