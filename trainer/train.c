/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <libcomm_mpi.h>

#include "trainer/train_report.h"
#include "trainer/train_save.h"

/* Train a network on many ranks. Every rank has the same weights and works on its own samples,
 * which are images or windows of text:
 *
 *   training_set_up   load samples, make the model, give all ranks the same weights,
 *                     register the gradients
 *   run_epochs        for each epoch: shuffle, train_steps, compare weights, test
 *   training_step     forward, loss, backward while gradients travel, optimiser
 *   main              MPI, options, communicator, exit code
 *
 * Functions return 0, or -1 with a failure in `why`, on all ranks alike: what
 * one rank does alone is followed by an exchange that tells the others. */

/* OpenBLAS has no header of its own everywhere; cblas.h does not name it. */
void openblas_set_num_threads(int threads);

/* ---------------------------------------------------------------- one epoch */

/* Each --log-every steps the ranks exchange their losses. Mean over the ranks; fails on all ranks
 * if it is not finite. */
static int share_loss(training *self, uint64_t step, double *loss, failure *why) {
  if (peers_sum_real(&self->ranks, loss, why)) {
    return -1;
  }
  *loss /= self->ranks.size;
  if (isfinite(*loss)) {
    return 0;
  }
  return failure_set_common(why, EXIT_TRAINING,
                            "the loss is not a number any more (epoch %d, seen after step %llu): "
                            "the training diverged; try a lower --lr than %g",
                            self->epoch, (unsigned long long)step, (double)self->chosen->rate);
}

/* Where in the whole run: rates follow the samples, also on another number of ranks. */
static uint64_t step_of_run(const training *self) {
  return (uint64_t)(self->epoch - 1) * self->steps_per_epoch + self->step_of_epoch;
}

static bool is_time_to_save(const training *self) {
  const options *chosen = self->chosen;
  bool ended = self->step_of_epoch == self->steps_per_epoch;
  if (!chosen->save) {
    return false;
  }
  if (chosen->save_every == 0) {
    return ended;
  }
  return self->step % chosen->save_every == 0 || (ended && self->epoch == chosen->epochs);
}

static int train_steps(training *self, progress *shown, double *loss, failure *why) {
  *loss = self->step_of_epoch > 0 ? self->loss_sum / (double)self->step_of_epoch : 0.0;
  while (self->step_of_epoch < self->steps_per_epoch) {
    double now = 0.0;
    float rate = schedule_rate(&self->rates, step_of_run(self));
    if (training_step(self, rate, &now, why)) {
      return -1;
    }
    uint64_t done = self->step_of_epoch;
    progress_show(shown, done, now);
    *loss = self->loss_sum / (double)done;
    if (done % self->chosen->log_every == 0 || done == self->steps_per_epoch) {
      if (share_loss(self, done, loss, why)) {
        return -1;
      }
      log_step(self, *loss, rate, progress_speed(shown, done));
      plot_loss(self->plot, self->step, done, *loss);
    }
    if (is_time_to_save(self) && save_checkpoint(self, why)) {
      return -1;
    }
  }
  return 0;
}

static int train_epoch(training *self, results *made, failure *why) {
  task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
  progress shown = progress_begin(self);
  traffic before, after;
  self->overlap = (overlap){0};
  if (traffic_read(self->comm, &before, why)) {
    return -1;
  }
  int failed = train_steps(self, &shown, &made->loss, why);
  progress_end(&shown);
  if (failed || traffic_read(self->comm, &after, why)) {
    return -1;
  }
  made->trained_s = progress_now_s() - shown.began_s;
  made->samples = (self->step_of_epoch - shown.first) * (uint64_t)samples_per_step(self);
  made->samples_per_s = (double)made->samples / made->trained_s;
  made->moved = traffic_since(&after, &before);
  made->moved.communication_us = (uint64_t)(1e6 * self->overlap.communication_s);
  made->moved.exposed_us = (uint64_t)(1e6 * self->overlap.exposed_s);
  if (traffic_sum(&self->ranks, &made->moved, why)) {
    return -1;
  }
  made->epoch = self->epoch;
  made->steps = self->step;
  return 0;
}

static int finish_epoch(training *self, double began_s, results *made, failure *why) {
  size_t count = self->net.weight_count;
  if (replicas_compare(&self->ranks, training_weights(self), count, self->epoch,
                       &made->weights_hash, why)) {
    return -1;
  }
  if (training_test(self, made, why) || stop_signal_check_now(self->comm, why)) {
    return -1;
  }
  made->seconds = progress_now_s() - began_s;
  return 0;
}

/* ------------------------------------------------------------------ the run */

/* The last epoch stands for the run, but bytes, samples and seconds add up. */
static void add_epoch(results *run, const results *epoch) {
  results sum = *epoch;
  traffic_add(&sum.moved, &run->moved);
  sum.seconds += run->seconds;
  sum.samples += run->samples;
  sum.trained_s += run->trained_s;
  sum.samples_per_s = (double)sum.samples / sum.trained_s;
  *run = sum;
}

static int run_epochs(training *self, results *run, failure *why) {
  for (; self->epoch <= self->chosen->epochs; self->epoch++) {
    results now = {0};
    double began_s = progress_now_s();
    if (train_epoch(self, &now, why) || finish_epoch(self, began_s, &now, why)) {
      return -1;
    }
    report_epoch(self, &now);
    log_results(self, "epoch", &now);
    plot_test(self->plot, self->step, results_figure(self, &now));
    add_epoch(run, &now);
    self->step_of_epoch = 0;
    self->loss_sum = 0.0;
  }
  self->epoch = self->chosen->epochs;
  return 0;
}

/* A run that a signal ends is saved, if it is to be saved at all. */
static void save_stopped(training *self, failure *why) {
  failure saving = {0};
  if (why->exit_code <= EXIT_SIGNAL || !self->chosen->save) {
    return;
  }
  size_t used = strlen(why->text);
  bool saved = save_checkpoint(self, &saving) == 0;
  snprintf(why->text + used, sizeof why->text - used, "; %s %s",
           saved ? "saved in" : "it could not be saved:", saved ? self->chosen->save : saving.text);
}

static int train(training *self, failure *why) {
  results run = {0};
  if (training_set_up(self, why)) {
    return -1;
  }
  report_start(self);
  log_config(self);
  if (self->resumed[0]) {
    log_checkpoint(self, "resumed", self->resumed);
  }
  if (run_epochs(self, &run, why)) {
    save_stopped(self, why);
    log_failed(self, why);
    return -1;
  }
  report_end(self, &run);
  log_results(self, "final", &run);
  report_sample(self);
  return 0;
}

/* Log and plot belong to rank 0; if they cannot be opened, training_set_up() makes all ranks
 * stop. */
static int train_with_records(training *self, failure *why) {
  const options *chosen = self->chosen;
  if (lcomm_rank(self->comm) == 0 && log_open(chosen, &self->log, why) == 0) {
    plot_open(chosen->plot, results_figure_name(model_context(chosen->model) > 0), &self->plot,
              why);
  }
  int result = train(self, why);
  failure closing = {0};
  if (log_close(self->log, &closing) | plot_close(self->plot, &closing)) {
    *why = result ? *why : closing; /* the first failure is the one to tell */
    return -1;
  }
  return result;
}

/* --------------------------------------------------------------------- main */

/* Returns what became of the communicator. The buffers of the gradients live
 * until it is destroyed. */
static lcomm_status train_with_comm(const options *chosen, int rank, failure *why) {
  training self = {.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &self.comm);
  if (status != LCOMM_OK) {
    why->exit_code = EXIT_SETUP;
    fprintf(stderr, "train: %s\n", lcomm_last_error(NULL)); /* it names the rank */
    return status;
  }
  if (train_with_records(&self, why)) {
    failure_print(rank, why);
  }
  status = lcomm_destroy(self.comm);
  training_tear_down(&self);
  return status;
}

/* After these a peer may be gone for ever, and MPI_Finalize() would wait for
 * it. */
static int peer_is_lost(lcomm_status status) {
  return status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT;
}

static void say_asked(const options *chosen) {
  if (chosen->version) {
    printf("train (libcomm) %d.%d.%d\n", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  } else {
    fputs(options_help(), stdout);
  }
}

int main(int argc, char **argv) {
  int level = 0, rank = 0;
  stop_signal_watch();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  openblas_set_num_threads(1); /* the ranks are the parallelism */
  options chosen;
  failure why = {0};
  lcomm_status status = LCOMM_OK;
  if (options_parse(argc, argv, &chosen, &why)) {
    failure_print(rank, &why);
  } else if (!chosen.help && !chosen.version) {
    status = train_with_comm(&chosen, rank, &why);
  } else if (rank == 0) {
    say_asked(&chosen);
  }
  fflush(NULL);
  if (peer_is_lost(status)) {
    MPI_Abort(MPI_COMM_WORLD, EXIT_SETUP);
  }
  MPI_Finalize();
  return why.exit_code;
}
