/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <libcomm_mpi.h>

#include "trainer/train_report.h"

/* Train a network on many ranks. Every rank has the same weights and works on its own samples,
 * which are images or windows of text:
 *
 *   set_up        load samples, make the model, give all ranks the same weights,
 *                 register the gradients
 *   run_epochs    for each epoch: shuffle, train_steps, compare weights, test
 *   train_step    forward, loss, backward while gradients travel, optimiser
 *   main          MPI, options, communicator, exit code
 *
 * Functions return 0, or -1 with a failure in `why`, on all ranks alike: what
 * one rank does alone is followed by an exchange that tells the others. */

/* Every so many steps the ranks exchange their losses; a loss that is not
 * finite ends the run on all of them. */
enum { CHECK_STEPS = 50 };

/* Longer than any policy may be. */
enum { POLICY_SIZE = 2048 };

/* OpenBLAS has no header of its own everywhere; cblas.h does not name it. */
void openblas_set_num_threads(int threads);

/* ------------------------------------------------------------------- set-up */

static int no_memory(failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "no memory to train; use fewer ranks on this machine, or a "
                     "smaller --batch");
}

static int plan_steps(training *self, failure *why) {
  self->steps_per_epoch = self->task.train_count / (uint64_t)samples_per_step(self);
  if (self->steps_per_epoch > 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP,
                     "%u %s are too few for one step of %d ranks with %d each; use a smaller "
                     "--batch or fewer ranks",
                     self->task.train_count, task_samples(&self->task), self->ranks.size,
                     self->chosen->batch);
}

/* This rank loads its samples and makes its model, without the others. */
static int prepare(training *self, failure *why) {
  const options *chosen = self->chosen;
  task *learnt = &self->task;
  if (task_load(model_context(chosen->model), chosen->data, chosen->seed, learnt, why)) {
    return -1;
  }
  if (chosen->images > 0) {
    task_limit(learnt, chosen->images);
  }
  if (plan_steps(self, why)) {
    return -1;
  }
  if (model_create(chosen->model, learnt->sample, learnt->classes, chosen->batch, &self->net)) {
    return no_memory(why);
  }
  bool kept = policy_keeps_momentum(lcomm_policy_string(self->comm));
  if (optimizer_create(chosen->optimizer, self->net.weight_count, kept ? 0.0f : chosen->momentum,
                       &self->optimizer)) {
    return no_memory(why);
  }
  self->order = malloc(learnt->train_count * sizeof *self->order);
  self->labels = malloc((size_t)chosen->batch * (size_t)learnt->labels);
  return self->order && self->labels ? 0 : no_memory(why);
}

/* All ranks must have the same samples. */
static int compare_data(training *self, failure *why) {
  uint64_t mine = task_hash(&self->task);
  const uint64_t *hashes = peers_gather(&self->ranks, &mine, 1, why);
  if (!hashes) {
    return -1;
  }
  for (int rank = 1; rank < self->ranks.size; rank++) {
    if (hashes[rank] != hashes[0]) {
      return failure_set(why, EXIT_SETUP,
                         "rank %d has other %s than rank 0 (this rank %d uses %s); give all ranks "
                         "the same --data",
                         rank, task_samples(&self->task), self->ranks.rank,
                         task_where(&self->task));
    }
  }
  return 0;
}

/* Rank 0 draws the weights, the others receive them. */
static int share_weights(training *self, failure *why) {
  if (self->ranks.rank == 0) {
    model_draw_weights(&self->net, self->chosen->seed);
  }
  lcomm_status status =
      lcomm_broadcast(self->comm, self->net.weights, self->net.weight_count, LCOMM_FLOAT32, 0);
  return peers_check(self->comm, status, "the broadcast of the first weights", why);
}

/* What a step that is skipped leaves in error feedback would be sent in the steps that follow, so
 * libcomm discards it. */
static int complete_policy(training *self, failure *why) {
  char policy[POLICY_SIZE];
  const char *given = lcomm_policy_string(self->comm);
  if (!policy_keeps_residuals(given) || policy_discards(given)) {
    return 0;
  }
  snprintf(policy, sizeof policy, "%s nonfinite=discard", given);
  return peers_check(self->comm, lcomm_policy_set(self->comm, policy), "completing the policy",
                     why);
}

/* `why` may already hold a failure of this rank, which is then shared. */
static int set_up(training *self, failure *why) {
  if (peers_create(self->comm, &self->ranks)) {
    no_memory(why);
    lcomm_abort(self->comm, why->text);
    return -1;
  }
  if (why->exit_code == 0) {
    prepare(self, why);
  }
  if (peers_agree(&self->ranks, why) || complete_policy(self, why) || compare_data(self, why) ||
      share_weights(self, why)) {
    return -1;
  }
  lcomm_status status = lcomm_guard_set(self->comm, log_guard, self);
  if (peers_check(self->comm, status, "asking for the guard's figures", why)) {
    return -1;
  }
  return gradients_register(&self->gradients, self->comm, &self->net, why);
}

static void tear_down(training *self) {
  free(self->order);
  free(self->labels);
  optimizer_destroy(&self->optimizer);
  model_destroy(&self->net);
  task_free(&self->task);
  peers_destroy(&self->ranks);
}

/* ----------------------------------------------------------------- one step */

/* The part of the order that this rank works on. The samples of a step are the same
 * whatever the number of ranks they are spread over, as long as ranks x batch is. */
static const uint32_t *samples_of_step(const training *self, uint64_t step) {
  uint64_t slice = step * (uint64_t)self->ranks.size + (uint64_t)self->ranks.rank;
  return self->order + slice * (uint64_t)self->chosen->batch;
}

/* Of images, B = batch; of text T positions stand in the place of each image:
 *
 *   images [B][28][28]        -> forward  -> logits [B][10] -> loss
 *   gradients [weight_count]  <- backward <- logits_delta [B][10]
 *
 * Each tensor of gradients leaves as soon as backward has made it. After the
 * wait the gradients are averages of all ranks, so all ranks make the same step,
 * or skip the same one: libcomm has discarded it then, see complete_policy(). */
static int train_step(training *self, uint64_t step_of_epoch, float rate, double *loss,
                      failure *why) {
  model *net = &self->net;
  const task *learnt = &self->task;
  int batch = self->chosen->batch, rows = batch * learnt->labels;
  task_train_batch(learnt, samples_of_step(self, step_of_epoch), batch, model_input(net),
                   self->labels);
  const float *logits = model_forward(net, batch);
  *loss = loss_cross_entropy(logits, self->labels, rows, learnt->classes, model_logits_delta(net)) /
          rows;

  stop_signal stop = {0};
  lcomm_status status = stop_signal_ask(self->comm, &stop);
  gradients_begin(&self->gradients);
  model_backward(net, batch, gradients_ready, &self->gradients);
  status = first_error(status, gradients_wait(&self->gradients));
  status = first_error(status, stop_signal_wait(self->comm, &stop));
  if (peers_check(self->comm, status, "averaging the gradients", why)) {
    return -1;
  }

  if (lcomm_tensors_not_finite(self->comm) > 0) {
    self->skipped++; /* the averages hold NaN or Inf, the same on all ranks */
  } else {
    optimizer_step(&self->optimizer, net->weights, net->gradients, rate);
  }
  return stop_signal_check(&stop, why);
}

/* ----------------------------------------------------------------- one test */

/* Sums over test samples. */
typedef struct verdict {
  uint64_t correct;
  double loss;
} verdict;

static void test_batch(training *self, uint32_t first, int batch, verdict *sums) {
  const task *learnt = &self->task;
  int rows = batch * learnt->labels;
  task_test_batch(learnt, first, batch, model_input(&self->net), self->labels);
  const float *logits = model_forward(&self->net, batch);
  sums->correct += (uint64_t)loss_count_correct(logits, self->labels, rows, learnt->classes);
  sums->loss += loss_cross_entropy(logits, self->labels, rows, learnt->classes, NULL);
}

static uint32_t begin_of_part(const training *self, int rank) {
  return (uint32_t)((uint64_t)self->task.test_count * (uint64_t)rank / (uint64_t)self->ranks.size);
}

/* Accuracy and mean loss on the test samples. Every rank looks at its part of them, until it notes
 * a signal: then the figures mean nothing, and the caller has to ask whether to stop. */
static int evaluate(training *self, results *made, failure *why) {
  verdict sums = {0};
  uint32_t end = begin_of_part(self, self->ranks.rank + 1);
  uint32_t batch = (uint32_t)self->chosen->batch;
  for (uint32_t first = begin_of_part(self, self->ranks.rank); first < end && !stop_signal_noted();
       first += batch) {
    test_batch(self, first, (int)(end - first < batch ? end - first : batch), &sums);
  }
  if (peers_sum(&self->ranks, &sums.correct, 1, why) ||
      peers_sum_real(&self->ranks, &sums.loss, why)) {
    return -1;
  }
  double rows = (double)self->task.test_count * self->task.labels;
  made->accuracy = (double)sums.correct / rows;
  made->test_loss = sums.loss / rows;
  return 0;
}

/* ---------------------------------------------------------------- one epoch */

/* Mean of a loss over the ranks; fails on all ranks if it is not finite. */
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

static int train_steps(training *self, progress *shown, double *loss, failure *why) {
  uint64_t steps = self->steps_per_epoch;
  uint64_t all = (uint64_t)self->chosen->epochs * steps;
  double sum = 0.0;
  for (uint64_t step = 0; step < steps; step++) {
    double now = 0.0;
    float rate = optimizer_rate(self->chosen->rate, self->step, all);
    if (train_step(self, step, rate, &now, why)) {
      return -1;
    }
    self->step++;
    sum += now;
    progress_show(shown, step + 1, now);
    *loss = sum / (double)(step + 1);
    if ((step + 1) % CHECK_STEPS != 0 && step + 1 != steps) {
      continue;
    }
    if (share_loss(self, step + 1, loss, why)) {
      return -1;
    }
    log_step(self, *loss, rate);
  }
  return 0;
}

static int train_epoch(training *self, results *made, failure *why) {
  task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
  progress shown = progress_begin(self);
  traffic before, after;
  if (traffic_read(self->comm, &before, why)) {
    return -1;
  }
  int failed = train_steps(self, &shown, &made->loss, why);
  progress_end(&shown);
  if (failed || traffic_read(self->comm, &after, why)) {
    return -1;
  }
  double trained_s = progress_now_s() - shown.began_s;
  made->samples_per_s = (double)self->steps_per_epoch * samples_per_step(self) / trained_s;
  made->moved = traffic_since(&after, &before);
  if (traffic_sum(&self->ranks, &made->moved, why)) {
    return -1;
  }
  made->epoch = self->epoch;
  made->steps = self->step;
  return 0;
}

static int finish_epoch(training *self, double began_s, results *made, failure *why) {
  if (replicas_compare(&self->ranks, self->net.weights, self->net.weight_count, self->epoch,
                       &made->weights_hash, why)) {
    return -1;
  }
  if (evaluate(self, made, why) || stop_signal_check_now(self->comm, why)) {
    return -1;
  }
  made->seconds = progress_now_s() - began_s;
  return 0;
}

/* ------------------------------------------------------------------ the run */

/* The last epoch stands for the run, but bytes and seconds add up. */
static void add_epoch(results *run, const results *epoch) {
  results sum = *epoch;
  traffic_add(&sum.moved, &run->moved);
  sum.seconds += run->seconds;
  *run = sum;
}

static int run_epochs(training *self, results *run, failure *why) {
  double trained_s = 0.0;
  for (int epoch = 1; epoch <= self->chosen->epochs; epoch++) {
    results now = {0};
    double began_s = progress_now_s();
    self->epoch = epoch;
    if (train_epoch(self, &now, why) || finish_epoch(self, began_s, &now, why)) {
      return -1;
    }
    report_epoch(self, &now);
    log_results(self, "epoch", &now);
    add_epoch(run, &now);
    trained_s += 1.0 / now.samples_per_s;
  }
  run->samples_per_s = self->chosen->epochs / trained_s;
  return 0;
}

static int train(training *self, failure *why) {
  results run = {0};
  if (set_up(self, why)) {
    return -1;
  }
  report_start(self);
  log_config(self);
  if (run_epochs(self, &run, why)) {
    log_failed(self, why);
    return -1;
  }
  report_end(self, &run);
  log_results(self, "final", &run);
  report_sample(self);
  return 0;
}

/* The log belongs to rank 0; if it cannot be opened, set_up() makes all ranks
 * stop. */
static int train_with_log(training *self, failure *why) {
  if (lcomm_rank(self->comm) == 0) {
    log_open(self->chosen->log, &self->log, why);
  }
  int result = train(self, why);
  return log_close(self->log, why) ? -1 : result;
}

/* --------------------------------------------------------------------- main */

/* Returns what became of the communicator. The buffers of the gradients live
 * until it is destroyed. */
static lcomm_status train_with_comm(const options *chosen, int rank, failure *why) {
  training self = {.chosen = chosen};
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &self.comm);
  if (status != LCOMM_OK) {
    why->exit_code = EXIT_SETUP;
    fprintf(stderr, "train: %s\n", lcomm_last_error(NULL)); /* it names the rank */
    return status;
  }
  if (train_with_log(&self, why)) {
    failure_print(rank, why);
  }
  status = lcomm_destroy(self.comm);
  tear_down(&self);
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
