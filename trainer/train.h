/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_H
#define TRAINER_TRAIN_H

#include "trainer/train_deal.h"
#include "trainer/train_gradients.h"
#include "trainer/train_late.h"
#include "trainer/train_model.h"
#include "trainer/train_optimizer.h"
#include "trainer/train_options.h"
#include "trainer/train_overlap.h"
#include "trainer/train_peers.h"
#include "trainer/train_pipeline.h"
#include "trainer/train_plot.h"
#include "trainer/train_precision.h"
#include "trainer/train_shard.h"
#include "trainer/train_task.h"

enum { TRAIN_PATH_SIZE = 1024 };

/* What an epoch had come to when it was over. */
typedef struct epoch_end {
  uint64_t steps, used;
  double loss_sum;
} epoch_end;

/* The step in hand. */
typedef struct step_now {
  float rate;
  double loss; /* mean of this rank's samples */
} step_now;

/* Everything one rank needs to train. train.c owns it, reports read it. */
typedef struct training {
  const options *chosen;
  lcomm_comm *comm;   /* of the ranks that train */
  lcomm_comm *served; /* with servers: of these ranks and the servers, see train_servers.h */
  peers ranks;
  task task;
  model net;
  optimizer optimizer;
  schedule rates;
  float *host;         /* [net.weight_count] for training_look(); NULL: the host sees all */
  float *master;       /* [optimizer.count] float32 weights that are stepped: those of a precision
                        * of 16 bits, or of this rank's shard; NULL: net.weights are */
  gradients gradients; /* unless they are sharded: */
  shard shard;
  loss_scale scale;
  bool discards;   /* the policy has error feedback, whose residual knows the scale of the loss */
  late_steps late; /* of this rank */
  pipeline pipe;   /* the stages, where the model is shared out */
  overlap overlap; /* of communication with backward, in this epoch */
  struct run_log *log; /* of rank 0, if asked for; else NULL */
  run_plot *plot;      /* likewise */
  uint32_t *order;     /* [task.train_count] of the training samples, in this epoch */
  uint8_t *labels;     /* [deal.room][task.labels] of the mini-batch */
  float *statistics;   /* [ranks][net.statistics_count] */
  float *sum;          /* of gradients that are accumulated: [weight_count], of sharded ones
                        * [shard.plan.count]; NULL: none are */
  deal deal;           /* of the samples to the ranks */
  step_now now;
  uint64_t steps_per_epoch;      /* of this one; those that are done, and those that are left */
  uint64_t step_of_epoch;        /* steps of the epoch that are done */
  double loss_sum;               /* of the losses of this rank in these */
  int epoch;                     /* that runs, from 1 */
  epoch_end ended;               /* the one before it */
  uint64_t reported_step;        /* at which an epoch was reported last */
  bool changes;                  /* ranks leave or join before the next step */
  bool too_few;                  /* ranks are left for the run to go on */
  bool has_left;                 /* in order; the others go on */
  uint64_t step;                 /* steps that are done since the start of the run */
  uint64_t skipped;              /* of these: their averages held NaN or Inf */
  uint64_t saved_step;           /* of the last checkpoint; UINT64_MAX: none */
  uint64_t joined_step;          /* after which ranks joined last; UINT64_MAX: never */
  char resumed[TRAIN_PATH_SIZE]; /* the checkpoint that the run began with, or "" */
} training;

static inline bool is_sharded(const training *of) {
  return of->chosen->shard != SHARD_NONE;
}

static inline bool is_pipelined(const training *of) {
  return of->chosen->pipeline > 1;
}

/* How many ranks have the same weights, and the number of this one among them; they are all ranks,
 * or those of a stage. And their communicator, after the set-up. */
static inline int replicas_of(const training *of) {
  return of->ranks.size / of->chosen->pipeline;
}
static inline int replica_of(const training *of) {
  return of->ranks.rank % replicas_of(of);
}
static inline lcomm_comm *replicas_comm(const training *of) {
  return of->pipe.replicas ? of->pipe.replicas : of->comm;
}

/* The communicator of the whole job, which has its policy; and that of the gradients. */
static inline lcomm_comm *whole_comm(const training *of) {
  return of->served ? of->served : of->comm;
}
static inline lcomm_comm *gradients_comm(const training *of) {
  return of->served ? of->served : replicas_comm(of);
}

/* All communicators of this rank; returns how many there are. With servers there are no stages. */
enum { TRAINING_COMMS = 3 };
static inline int training_comms(const training *of, lcomm_comm *all[TRAINING_COMMS]) {
  bool staged = of->pipe.replicas && of->pipe.stages;
  all[0] = of->comm;
  all[1] = of->served ? of->served : of->pipe.replicas;
  all[2] = of->pipe.stages;
  return staged ? TRAINING_COMMS : of->served ? 2 : 1;
}

/* All ranks together. */
static inline int samples_per_step(const training *of) {
  return deal_samples(&of->deal);
}

/* Load samples, make the model, give all ranks the same weights. `why` may already hold a failure
 * of this rank, which is then shared. Collective; returns 0, or -1 with `why` on all ranks. */
int training_set_up(training *self, failure *why);
void training_tear_down(training *self);

/* Parts of that. Load the samples; make the model and what goes with it, by the deal; room for what
 * all ranks remember, and for sums where batches are accumulated, which may be more when ranks have
 * changed (-1 without memory); give the gradients to libcomm. */
int training_load(training *self, failure *why);
int training_allocate(training *self, failure *why);
int training_make_room(training *self);
int training_register(training *self, failure *why);

/* The steps of the run, when so many ranks have the same weights. Returns 0, or -1 with `why`. */
int training_plan(training *self, int ranks, failure *why);

/* The learning rate over so many steps. */
schedule training_rates(const options *chosen, uint64_t steps);

/* The epoch is over, the next one begins. */
void training_next_epoch(training *self);

/* The next step of the epoch at a learning rate; *loss is the mean of this rank's samples. Returns
 * 0, or -1 with `why`, on all ranks; a signal is a failure after the step. */
int training_step(training *self, float rate, double *loss, failure *why);

/* The averages of the step in hand are there: what follows, until it counts as done. Returns 0, or
 * -1 with `why`, on all ranks. */
int training_finish_step(training *self, bool spoilt, failure *why);

/* Parts of a step: the samples of this rank in a batch of it; mean loss of a batch whose labels are
 * there, and the gradient of its logits; model_ready functions, whose context is the training: sum
 * up the gradients, or, of the last batch or the only one, send the mean of them. */
const uint32_t *training_samples(const training *self, int number);
double training_loss(training *self, const element *logits);
model_ready training_keep_gradients, training_send_gradients;

/* The step of a pipeline, up to the averages, and the loss of all ranks together. */
int pipeline_step(training *self, bool *spoilt, failure *why);

/* After a failure of a pipeline, or with servers: where a communicator has failed, ranks that wait
 * in another one are told. */
void training_give_up(training *self, const failure *why);

/* After gradients_wait() or shard_wait(): step the weights, or skip the step if `spoilt`. */
int training_update(training *self, float rate, bool spoilt, failure *why);

/* The weights of the model follow from those that are stepped: rounded, of all ranks. Collective.
 */
int training_publish(training *self, failure *why);

/* The scale of the loss changed. Between two steps. */
int training_scale(training *self, failure *why);

/* Make room for the weights that are stepped, unless the model has them. Returns 0, or -1 without
 * memory. Begin with weights[net.weight_count] of the host. */
int master_create(training *self);
void master_begin(training *self, const float *weights);

/* self->statistics becomes what the layers of all ranks remember. Collective. */
int statistics_gather(training *self, failure *why);

/* The model's statistics become the mean of all[ranks][net.statistics_count], which is spoilt. */
void statistics_take_mean(training *self, float *all, int ranks);

/* `count` values of the back end for the host to read, until the next call. */
const float *training_look(training *self, const float *values, size_t count);

/* Likewise the weights of the model. */
const float *training_weights(training *self);

/* The epoch, from where it stands; then the weights are compared and tested. Collective. */
struct results;
int training_epoch(training *self, struct results *made, failure *why);
int training_finish_epoch(training *self, struct results *made, failure *why);

/* Sums over test samples; those of a batch whose labels are there are added. A pipeline's test of
 * samples first .. end - 1, whose sums its last stage has. */
typedef struct verdict {
  uint64_t correct;
  double loss;
} verdict;
void training_judge(const training *self, const element *logits, int batch, verdict *sums);
int pipeline_test(training *self, uint32_t first, uint32_t end, verdict *sums, failure *why);

/* Accuracy and loss on the test samples, of all ranks together. Collective. */
int training_test(training *self, struct results *made, failure *why);

#endif
