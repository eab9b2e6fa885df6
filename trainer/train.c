/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libcomm_mpi.h>

#include "trainer/train_clock.h"
#include "trainer/train_elastic.h"
#include "trainer/train_report.h"
#include "trainer/train_save.h"
#include "trainer/train_servers.h"

/* Train a network on many ranks. Every rank has the same weights and works on its own samples,
 * which are images or windows of text:
 *
 *   training_set_up   load samples, make the model, give all ranks the same weights,
 *                     register the gradients
 *   run_epochs        for each epoch: training_epoch (shuffle, steps), then weights are
 *                     compared and tested
 *   training_step     forward, loss, backward while gradients travel, optimiser
 *   elastic_go_on     after ranks were lost: the others go on where they stood
 *   main              MPI, options, communicator, exit code
 *
 * Functions return 0, or -1 with a failure in `why`, on all ranks alike: what
 * one rank does alone is followed by an exchange that tells the others. */

/* OpenBLAS has no header of its own everywhere; cblas.h does not name it. */
void openblas_set_num_threads(int threads);

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

/* Once, also where ranks have yet to come to the end that others have reported already. */
static void report_results(training *self, const results *now) {
  if (self->reported_step == self->step) {
    return;
  }
  report_epoch(self, now);
  log_results(self, "epoch", now);
  plot_test(self->plot, self->step, results_figure(self, now));
  self->reported_step = self->step;
}

/* From where the training stands. */
static int run_epochs(training *self, results *run, failure *why) {
  while (self->epoch <= self->chosen->epochs) {
    results now = {0};
    double began_s = now_s();
    if (training_epoch(self, &now, why) || training_finish_epoch(self, &now, why)) {
      return -1;
    }
    now.seconds = now_s() - began_s;
    report_results(self, &now);
    add_epoch(run, &now);
    training_next_epoch(self);
  }
  self->epoch = self->chosen->epochs;
  return 0;
}

static int run_to_the_end(training *self, results *run, failure *why) {
  while (run_epochs(self, run, why)) {
    if (elastic_go_on(self, why)) {
      return -1;
    }
  }
  return 0;
}

/* A run that a signal ends, or a lack of ranks, is saved, if it is to be saved at all. */
static void save_stopped(training *self, failure *why) {
  failure saving = {0};
  if ((why->exit_code <= EXIT_SIGNAL && !self->too_few) || !self->chosen->save) {
    return;
  }
  size_t used = strlen(why->text);
  bool saved = save_checkpoint(self, &saving) == 0;
  snprintf(why->text + used, sizeof why->text - used, "; %s %s",
           saved ? "saved in" : "it could not be saved:", saved ? self->chosen->save : saving.text);
}

/* A newcomer that cannot go on ends at once: the others lose it and go on, and are not to be told
 * to end, nor waited for. */
static int begin(training *self, failure *why) {
  if (!elastic_is_newcomer(self->comm)) {
    return training_set_up(self, why);
  }
  if (elastic_join(self, why)) {
    failure_print(lcomm_rank(self->comm), why);
    fflush(NULL);
    _exit(why->exit_code);
  }
  return 0;
}

static int train(training *self, failure *why) {
  results run = {0};
  if (begin(self, why)) {
    return -1;
  }
  report_start(self);
  log_config(self);
  if (self->resumed[0]) {
    log_checkpoint(self, "resumed", self->resumed);
  }
  if (run_to_the_end(self, &run, why)) {
    if (self->has_left) {
      return 0;
    }
    save_stopped(self, why);
    log_failed(self, why);
    return -1;
  }
  late_report(self);
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

static training training_of(const options *chosen) {
  return (training){
      .chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX, .joined_step = UINT64_MAX};
}

/* There is a communicator; `why` may hold a failure of this rank. The buffers of the gradients live
 * until the communicator is destroyed. Returns what became of it. */
static lcomm_status train_and_tear_down(training *self, failure *why) {
  servers_part(self, why); /* a failure is shared by what follows */
  if ((lcomm_is_server(self->served) ? servers_serve : train_with_records)(self, why)) {
    failure_print(lcomm_rank(self->comm), why);
    training_give_up(self, why);
  }
  lcomm_status status = pipeline_disconnect(&self->pipe);
  status = first_error(lcomm_destroy(self->served), status); /* servers go home */
  status = first_error(lcomm_destroy(self->comm), status);
  training_tear_down(self);
  return status;
}

static void say_asked(const options *chosen) {
  if (chosen->version) {
    printf("train (libcomm) %d.%d.%d\n", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  } else {
    fputs(options_help(), stdout);
  }
}

/* Ranks of mpirun. Returns what became of the communicator. */
static lcomm_status train_by_mpi(const options *chosen, failure *why) {
  training self = training_of(chosen);
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &self.comm);
  if (status != LCOMM_OK) {
    why->exit_code = EXIT_SETUP;
    fprintf(stderr, "train: %s\n", lcomm_last_error(NULL)); /* it names the rank */
    return status;
  }
  return train_and_tear_down(&self, why);
}

/* After these a peer may be gone for ever, and MPI_Finalize() would wait for
 * it. */
static int peer_is_lost(lcomm_status status) {
  return status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT;
}

/* `why` may hold what is wrong with the command line. */
static void run_under_mpi(int argc, char **argv, const options *chosen, failure *why) {
  int level = 0, rank = 0;
  lcomm_status status = LCOMM_OK;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (why->exit_code) {
    failure_print(rank, why);
  } else if (!chosen->help && !chosen->version) {
    status = train_by_mpi(chosen, why);
  } else if (rank == 0) {
    say_asked(chosen);
  }
  fflush(NULL);
  if (peer_is_lost(status)) {
    MPI_Abort(MPI_COMM_WORLD, EXIT_SETUP);
  }
  MPI_Finalize();
}

/* Samples are loaded first: ranks that are there wait for a newcomer from when it has joined. */
static void run_elastic(const options *chosen, failure *why) {
  training self = training_of(chosen);
  leave_signal_watch();
  if (training_load(&self, why) && elastic_joins()) {
    failure_print(0, why);
  } else if (elastic_create(chosen, &self.comm, why)) {
    failure_print(self.comm ? lcomm_rank(self.comm) : 0, why);
    lcomm_destroy(self.comm);
  } else {
    train_and_tear_down(&self, why);
  }
  fflush(NULL);
}

int main(int argc, char **argv) {
  options chosen;
  failure why = {0};
  stop_signal_watch();
  openblas_set_num_threads(1); /* the ranks are the parallelism */
  bool runs = options_parse(argc, argv, &chosen, &why) == 0 && !chosen.help && !chosen.version;
  if (runs && is_elastic(&chosen) && elastic_check_launcher(&why) == 0) {
    run_elastic(&chosen, &why);
  } else {
    run_under_mpi(argc, argv, &chosen, &why);
  }
  return why.exit_code;
}
