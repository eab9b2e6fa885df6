/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SHARD_H
#define TRAINER_TRAIN_SHARD_H

#include <libcomm.h>
#include <libcomm_interpose.h>

#include "trainer/train_peers.h"
#include "trainer/train_shard_plan.h"

/* Sharded data parallel (ZeRO, Rajbhandari et al., 2020): each rank receives the averages of its
 * part of the gradients only, steps that part of the weights, and gives it to the others.
 *
 *   shard_ready()         a bucket of gradients leaves as soon as backward has made it:
 *                         reduce-scatter, through the policy's codec
 *   shard_wait()          this rank's part of the averages is in `gradients`
 *   optimizer_step()      on that part
 *   shard_gather()        all-gather of the weights, in their own type
 *
 * optimizer   what the optimiser remembers is sharded (stage 1)
 * gradients   so are the gradients: of all but the last bucket only four are kept, in turn, mostly
 *             two weights and their biases; before backward writes to two of them it waits until
 *             these have left (stage 2)
 *
 * Of a device a bucket leaves when the device has made it; train_shard_calls.h says who waits. */

enum { SHARD_TURN = 4, SHARD_PLACES }; /* those in turn, and one of the last bucket */

typedef struct shard {
  shard_kind kind;
  lcomm_comm *comm;
  model *net;
  const backend *on; /* whose memory all vectors are */
  shard_plan plan;
  float *gradients;             /* [plan.count] averages */
  float *bucket;                /* [plan.largest], see shard_gather_values() */
  float *places[SHARD_PLACES];  /* of gradients: stage 2 */
  uint16_t *wire[SHARD_PLACES]; /* 16 bits: a bucket on its way; in stage 1 wire[0] is all */
  uint16_t *received;           /* 16 bits: [plan.count] averages */
  lcomm_residual *residuals[MODEL_PARAMETERS_MAX]; /* of the buckets, if the policy compresses */
  lcomm_request requests[MODEL_PARAMETERS_MAX];
  bool streams;        /* calls are put into the stream beside the work */
  float scale;         /* of the loss, in this step */
  int sent;            /* buckets of this step */
  int left;            /* of these, whose places are free again */
  lcomm_status status; /* of this step: the first that is not LCOMM_OK */
} shard;

/* Local: who has what, and memory. Returns 0, or -1 without memory. */
int shard_create(shard *made, shard_kind kind, lcomm_comm *comm, model *net);
void shard_destroy(shard *self);

/* Once, after that. Returns 0, or -1 with `why`; then the other ranks end, too. */
int shard_register(shard *self, bool compresses, failure *why);

/* Before backward, with the scale of the loss. */
void shard_begin(shard *self, float scale);

/* A model_ready: `context` is the shard. */
void shard_ready(void *context, int first, int count);

/* Returns the status of the whole step. `spoilt` says whether averages of any rank hold NaN or Inf;
 * then what the step left in residuals is undone if `discards`. Collective. */
lcomm_status shard_wait(shard *self, bool discards, bool *spoilt);

/* The model's weights become those of all ranks, of which each has stepped own[plan.count].
 * Collective. */
lcomm_status shard_gather(shard *self, const float *own);

/* self->bucket becomes bucket `number` of a vector of which each rank has own[plan.count], or the
 * other way round. shard_gather_values() is collective. */
lcomm_status shard_gather_values(shard *self, int number, const float *own);
void shard_take_values(const shard *self, int number, float *own);

/* An optimizer_share: `context` is the shard, whose status tells of a failure. Collective. */
void shard_share_sums(void *context, double *sums, size_t count);

/* Bytes for gradients of this rank. */
size_t shard_gradient_bytes(const shard *self);

#endif
