/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/loop.h"

#include <math.h>
#include <string.h>

#include "trainer/evaluate.h"
#include "trainer/loss.h"
#include "trainer/progress.h"
#include "trainer/random.h"
#include "trainer/replicas.h"
#include "trainer/report.h"
#include "trainer/stop_signal.h"

/* Ranks tell each other their losses so often; a loss that is not a number
 * ends the run on all ranks at the next such step. */
enum { CHECK_STEPS = 50 };

/* Streams of random numbers: images and layers use the small ones. */
#define ORDER_STREAM ((uint64_t)1 << 40)

/* What backward needs to hand gradients over while it runs. */
typedef struct handover {
  session *of;
  lcomm_status status; /* the first that was not good */
} handover;

static void keep_first(handover *self, lcomm_status status) {
  if (self->status == LCOMM_OK) {
    self->status = status;
  }
}

static void hand_over(void *context, int first, int count) {
  handover *self = context;
  for (int i = first; i < first + count; i++) {
    keep_first(self, lcomm_tensor_ready(self->of->comm, self->of->tensors[i]));
  }
  keep_first(self, lcomm_progress(self->of->comm));
}

/* The images of a step are the same whatever the number of ranks they are
 * spread over, as long as ranks x batch is. */
static const uint32_t *images_of_step(const session *of, uint64_t step) {
  uint64_t slice = step * (uint64_t)of->ranks.size + (uint64_t)of->ranks.rank;
  return of->order + slice * (uint64_t)of->chosen->batch;
}

/* On all ranks alike. */
static int check_stop(const stop_signal *asked, failure *why) {
  if (asked->agreed == 0) {
    return 0;
  }
  return failure_set_common(why, EXIT_SIGNAL + asked->agreed,
                            "stopped after a step by a signal: %s", strsignal(asked->agreed));
}

/* Between epochs, where no step asks. */
static int check_stop_now(session *of, failure *why) {
  stop_signal stop = {0};
  lcomm_status status = stop_signal_ask(of->comm, &stop);
  status = status == LCOMM_OK ? stop_signal_wait(of->comm, &stop) : status;
  return peers_check(of->comm, status, "asking for a signal", why) ? -1 : check_stop(&stop, why);
}

static int train_step(session *of, uint64_t step_of_epoch, float rate, double *loss, failure *why) {
  int batch = of->chosen->batch;
  dataset_batch(&of->data, &of->data.train, images_of_step(of, step_of_epoch), batch,
                model_input(&of->net), of->labels);
  const float *logits = model_forward(&of->net, batch);
  *loss =
      loss_cross_entropy(logits, of->labels, batch, DATASET_CLASSES, model_logits_delta(&of->net)) /
      batch;
  stop_signal stop = {0};
  handover gradients = {of, stop_signal_ask(of->comm, &stop)};
  model_backward(&of->net, batch, hand_over, &gradients);
  keep_first(&gradients, lcomm_tensors_wait(of->comm));
  keep_first(&gradients, stop_signal_wait(of->comm, &stop));
  if (peers_check(of->comm, gradients.status, "averaging the gradients", why)) {
    return -1;
  }
  optimizer_step(&of->optimizer, of->net.weights, of->net.gradients, rate);
  return check_stop(&stop, why);
}

/* Mean of a loss over the ranks; fails on all ranks if it is not finite. */
static int share_loss(session *of, int epoch, uint64_t step, double *loss, failure *why) {
  if (peers_sum_real(&of->ranks, loss, why)) {
    return -1;
  }
  *loss /= of->ranks.size;
  if (isfinite(*loss)) {
    return 0;
  }
  return failure_set_common(why, EXIT_TRAINING,
                            "the loss is not a number any more (epoch %d, seen after step %llu): "
                            "the training diverged; try a lower --lr than %g",
                            epoch, (unsigned long long)step, (double)of->chosen->rate);
}

static int train_steps(session *of, int epoch, progress *shown, run_log *log, double *loss,
                       failure *why) {
  uint64_t steps = of->steps_per_epoch;
  uint64_t before = (uint64_t)(epoch - 1) * steps;
  uint64_t all = (uint64_t)of->chosen->epochs * steps;
  double sum = 0.0;
  for (uint64_t step = 0; step < steps; step++) {
    double now = 0.0;
    float rate = optimizer_rate(of->chosen->rate, before + step, all);
    if (train_step(of, step, rate, &now, why)) {
      return -1;
    }
    of->step = before + step + 1;
    sum += now;
    progress_show(shown, step + 1, now);
    *loss = sum / (double)(step + 1);
    bool check = (step + 1) % CHECK_STEPS == 0 || step + 1 == steps;
    if (!check) {
      continue;
    }
    if (share_loss(of, epoch, step + 1, loss, why)) {
      return -1;
    }
    log_step(log, of, *loss, rate);
  }
  return 0;
}

static int train_epoch(session *of, int epoch, run_log *log, results *made, failure *why) {
  of->epoch = epoch;
  int together = of->ranks.size * of->chosen->batch;
  random_stream random = random_begin(of->chosen->seed, ORDER_STREAM + (uint64_t)epoch);
  random_permutation(&random, of->order, of->data.train.count);
  progress shown =
      progress_begin(of->ranks.rank, epoch, of->chosen->epochs, of->steps_per_epoch, together);
  traffic before, after;
  if (traffic_read(of->comm, &before, why)) {
    return -1;
  }
  int failed = train_steps(of, epoch, &shown, log, &made->loss, why);
  progress_end(&shown);
  if (failed || traffic_read(of->comm, &after, why)) {
    return -1;
  }
  double trained_s = progress_now_s() - shown.began_s;
  made->samples_per_s = (double)of->steps_per_epoch * together / trained_s;
  made->moved = traffic_since(&after, &before);
  if (traffic_sum(&of->ranks, &made->moved, why)) {
    return -1;
  }
  made->epoch = epoch;
  made->steps = (uint64_t)epoch * of->steps_per_epoch;
  return 0;
}

static int finish_epoch(session *of, int epoch, double began_s, results *made, failure *why) {
  if (replicas_compare(&of->ranks, &of->net, epoch, &made->weights_hash, why)) {
    return -1;
  }
  if (evaluate(of, &made->accuracy, why) || check_stop_now(of, why)) {
    return -1;
  }
  made->seconds = progress_now_s() - began_s;
  return 0;
}

static void add_epoch(results *run, const results *epoch) {
  traffic_add(&run->moved, &epoch->moved);
  run->epoch = epoch->epoch;
  run->steps = epoch->steps;
  run->loss = epoch->loss;
  run->accuracy = epoch->accuracy;
  run->weights_hash = epoch->weights_hash;
}

static int run_epochs(session *of, run_log *log, results *run, failure *why) {
  double trained_s = 0.0;
  for (int epoch = 1; epoch <= of->chosen->epochs; epoch++) {
    results now = {0};
    double began_s = progress_now_s();
    if (train_epoch(of, epoch, log, &now, why) || finish_epoch(of, epoch, began_s, &now, why)) {
      return -1;
    }
    if (of->ranks.rank == 0) {
      report_epoch(of, &now);
    }
    log_epoch(log, &now);
    add_epoch(run, &now);
    run->seconds += now.seconds;
    trained_s += 1.0 / now.samples_per_s;
  }
  run->samples_per_s = of->chosen->epochs / trained_s;
  return 0;
}

int loop_run(session *of, run_log *log, failure *why) {
  results run = {0};
  if (of->ranks.rank == 0) {
    report_start(of);
  }
  log_config(log, of);
  if (run_epochs(of, log, &run, why)) {
    log_failed(log, of, why);
    return -1;
  }
  if (of->ranks.rank == 0) {
    report_end(of, &run);
  }
  log_final(log, &run);
  return 0;
}
