/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_PIPELINE_H
#define TRAINER_TRAIN_PIPELINE_H

#include <libcomm.h>

#include "trainer/train_gradients.h"
#include "trainer/train_model.h"
#include "trainer/train_peers.h"

/* Pipeline parallelism (--pipeline S): the blocks of a transformer are shared out over S stages,
 * and each stage is on N / S of N ranks, its replicas, which average its gradients. Rank r has
 * stage r / (N / S), as in Megatron-LM: neighbours, which launchers put on one node, have the same
 * stage and exchange gradients; activations, mostly fewer bytes, go between nodes.
 *
 *   replicas       communicator of a stage: rank i is its replica i
 *   stages         communicator of a pipeline: rank s is stage s, all of them replica i
 *
 * A step has the batches of --accumulate, and the schedule 1F1B (PipeDream-Flush; Narayanan et al.,
 * 2021): S - 1 - s forwards, then one forward and one backward in turn, then the backwards that are
 * left. Stage s keeps the activations of at most S - s batches. Of 2 stages and 4 batches:
 *
 *   stage 0   F0 F1 .. B0 F2 .. B1 F3 .. B2 .. B3
 *   stage 1   .. F0 B0 F1 B1 .. F2 B2 .. F3 B3
 *
 * Activations and their gradients are messages of float32, which pipe= of the policy encodes
 * between nodes. First and last stage both have the weights of embedding and head, the same bits:
 * their averages are exchanged as whole numbers of 32 bits, which no policy touches, and added, so
 * that both step them alike. */

enum { PIPELINE_MAX = 16 }; /* stages */

/* A send that may be in flight. */
typedef struct pipeline_send {
  lcomm_request request;
  bool flies;
} pipeline_send;

/* What is known of each stage at the end of an epoch, of all steps since the start of the run. */
typedef struct pipeline_figures {
  uint64_t weights[PIPELINE_MAX]; /* how many, from the beginning */
  uint64_t hashes[PIPELINE_MAX];  /* of them, after the last epoch */
  double waits_s[PIPELINE_MAX];   /* for other stages in steps, mean of the replicas */
  double trained_s;               /* all of the steps, on rank 0 */
  uint64_t sent_bytes;            /* between stages, with headers */
  uint64_t exact_bytes;           /* the same messages, had they been exact */
} pipeline_figures;

/* What this rank has sent to other stages. */
typedef struct pipeline_sum {
  uint64_t sent_bytes, exact_bytes;
} pipeline_sum;

typedef struct pipeline {
  lcomm_comm *replicas, *stages; /* NULL: there is no pipeline */
  model *net;                    /* of this stage */
  int last;                      /* stage */
  size_t between;                /* values of a sample between this stage and the one before */
  size_t behind;                 /* and the one after */
  float *back[2];                /* gradients that are sent, [batch][between] */
  pipeline_send back_sent[2];
  pipeline_send sent[PIPELINE_MAX]; /* activations of the batches that are kept */
  lcomm_request awaited;            /* the gradient of the next backward */
  const model_parameter *tied;      /* of the first and last stage, else NULL */
  float *other;                     /* gradient of it from the other one */
  double waited_s, trained_s;       /* in steps; all of them */
  pipeline_sum tested;              /* of what was sent: not in steps but in tests */
  pipeline_figures figures;
} pipeline;

/* The part of the model that this rank has, in a pipeline of so many stages whose steps have so
 * many batches. */
model_part pipeline_part(int stages, const peers *ranks, int batches);

/* Is there a rank for each stage, and as many for all? Returns 0, or -1 with `why`. */
int pipeline_check(int stages, int ranks, failure *why);

/* Meet the other stages, and the replicas of this one, with the policy of all ranks. `net` stays
 * the caller's. Collective; returns 0, or -1 with `why` on all ranks. */
int pipeline_connect(pipeline *made, peers *ranks, model *net, failure *why);

/* Destroy the communicators; the memory, after that. Also of a pipeline that is none. */
lcomm_status pipeline_disconnect(pipeline *self);
void pipeline_free(pipeline *self);

/* Before a forward of `batch` samples, whose activations are kept at `number`: those of the batch
 * before it there have left. The input is received, unless this is the first stage. */
lcomm_status pipeline_receive(pipeline *self, int number, int batch);

/* The activations of this batch go to the next stage. They stay as they are until the next
 * pipeline_receive() of the same number. */
lcomm_status pipeline_send_on(pipeline *self, int number, int batch);

/* The gradient of what was sent on, to model_logits_delta(): expected, and there. */
lcomm_status pipeline_expect(pipeline *self, int batch);
lcomm_status pipeline_await(pipeline *self);

/* The gradient of the input, in model_input_delta(), goes to the stage before. */
lcomm_status pipeline_send_back(pipeline *self, int number, int batch);

/* All messages of a step have arrived. */
lcomm_status pipeline_finish(pipeline *self);

/* The gradient of the weights that both ends have becomes the sum of both. */
lcomm_status pipeline_add_tied(pipeline *self);

pipeline_sum pipeline_sent(const pipeline *self);

/* Compare the weights of the replicas of each stage, and those that both ends have; fill in the
 * figures. *hash is of all stages. Collective over all ranks. */
int pipeline_compare(pipeline *self, peers *ranks, int epoch, uint64_t *hash, failure *why);

/* Share of a step in which a stage has nothing to do, where all batches take equally long and
 * messages no time: (S - 1) / (batches + S - 1). */
double pipeline_bubble(int stages, int batches);

#endif
