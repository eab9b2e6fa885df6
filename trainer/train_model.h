/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_MODEL_H
#define TRAINER_TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/train_layer.h"
#include "trainer/train_precision.h"

/* A model is a chain of layers from images or text to logits; between two of them a path may skip
 * some layers (add_layer). */

/* -------------------------------------------------------------------- loss */

/* Softmax cross-entropy of a mini-batch, logits [rows][class]. A row is an image, or a position of
 * a window of text. Returns the sum over the rows, not finite if a logit is not. delta, unless
 * NULL, receives the gradient of the mean over the rows, [rows][class]. */
double loss_cross_entropy(const float *logits, const uint8_t *labels, int rows, int classes,
                          float *delta);

/* How many rows have their largest logit at their label. */
int loss_count_correct(const float *logits, const uint8_t *labels, int rows, int classes);

/* ------------------------------------------------------------------- model */

enum { MODEL_LAYERS_MAX = 128, MODEL_PARAMETERS_MAX = 160, MODEL_NAME_SIZE = 48 };

/* A tensor of parameters: a part of the model's weights, and of its gradients. */
typedef struct model_parameter {
  char name[MODEL_NAME_SIZE]; /* "conv1.weight" */
  size_t offset;
  size_t count;
  size_t rows; /* of a matrix, row by row; 0: a gain or a bias */
  int layer;   /* whose it is */
  bool bias;   /* of the two that a layer has */
} model_parameter;

/* The part of a model that a rank has, where a pipeline shares out its blocks, and of how many
 * mini-batches it keeps the activations at once. The first of `stages` has the embedding, too, the
 * last one the head. */
typedef struct model_part {
  int stage, stages, kept;
} model_part;

#define MODEL_WHOLE ((model_part){.stages = 1, .kept = 1})

/* All weights lie in one vector and all gradients in another of the same
 * layout, in the order in which backward makes them. */
typedef struct model {
  model_part part;
  const backend *on;        /* whose memory all vectors but `input` are */
  precision_kind precision; /* of elements: what is not stored so is rounded to it */
  layer layers[MODEL_LAYERS_MAX];
  int layer_count;
  model_parameter parameters[MODEL_PARAMETERS_MAX];
  int parameter_count;
  size_t weight_count; /* over all parameters */
  int batch_max;
  element *weights; /* [weight_count] */
  size_t statistics_count;
  float *statistics;                          /* [statistics_count] that layers remember, of this
                                               * rank's samples */
  float *gradients;                           /* [weight_count], of lcomm_memory_alloc():
                                               * ranks of a host read them where they are; NULL: see
                                               * model_gradients_elsewhere() */
  float *input;                               /* of the host, see model_input() */
  element *activations[MODEL_LAYERS_MAX + 1]; /* [i] is the input of layer i, [0] of the model */
  element *(*kept)[MODEL_LAYERS_MAX + 1];     /* [part.kept] of these; see model_turn_to() */
  element *deltas[2];                         /* gradients of activations, in turn */
  element *skip_delta;                        /* of the path that skips layers */
  element *scratch;                           /* of all layers */
} model;

/* Called by model_backward() when parameters[first .. first+count-1] are done. */
typedef void model_ready(void *context, int first, int count);

/* Text such as "cnn, mlp", and one model in words; NULL if there is none. */
const char *model_names(void);
const char *model_describe(const char *name);

/* How many bytes of text the model reads at once; 0: it reads images. */
int model_context(const char *name);

/* How many blocks a pipeline can share out; 0: none, or an unknown name. */
int model_blocks(const char *name);

/* Chain the layers of a model, without memory. False for an unknown name, or an input that is none
 * of it. */
bool model_chain(const char *name, layer_shape input, int classes, model *made);

/* The input of a text model is {1, context, 1}. Returns 0, or -1 without memory, for an unknown
 * name or an input that is none of it; then nothing is kept. The weights are zero. */
int model_create(const char *name, layer_shape input, int classes, int batch_max, model *made);

/* The same elsewhere than on the processor. */
int model_create_on(const backend *on, const char *name, layer_shape input, int classes,
                    int batch_max, model *made);

/* A part of it. A stage that is not the first takes activations, [B][T][C], in the place of bytes:
 * in model_input(). Of one that is not the last, logits are activations. -1 also where there are
 * fewer blocks than stages. */
int model_create_part(const backend *on, const char *name, layer_shape input, int classes,
                      int batch_max, model_part part, model *made);

/* Of a model that is chained, only the layers of this part are left. False where there are fewer
 * blocks than stages. */
bool model_cut(model *self, int blocks, model_part part);

/* Input, forward and backward are from now on those of mini-batch `number` of those whose
 * activations are kept; at first of number 0. */
void model_turn_to(model *self, int number);
void model_destroy(model *self);

/* Gradients are no longer kept in one vector: before backward comes to parameters[first ..
 * first+count-1] the caller says where theirs are to be. */
void model_gradients_elsewhere(model *self);
void model_gradients_at(model *self, int first, int count, float *place);

/* Bytes of what a batch needs: activations and their gradients. */
size_t model_activation_bytes(const model *self);

/* The first weights[weight_count], on the host, from the seed: uniform; biases are zero. */
void model_draw(const model *self, uint64_t seed, float *weights);

/* The model begins with them. Returns 0, or -1 without memory. */
int model_draw_weights(model *self, uint64_t seed);

/* What layers remember is that of no samples: means of 0, variances of 1. */
void model_begin_statistics(model *self);

/* A step of zeros: what a device does when something is first used, such as loading kernels, is
 * done then. Gradients mean nothing afterwards. */
void model_rehearse(model *self);

/* Where the caller puts the images or windows: up to batch_max of them, in memory of the host. */
float *model_input(model *self);

/* Logits [B][class], of text [B][T][class], of what is in model_input(). */
const element *model_forward(model *self, int batch);

/* The same of samples that are not trained on. */
const element *model_infer(model *self, int batch);

/* Where the caller puts the gradient of the logits before model_backward(). */
element *model_logits_delta(model *self);

/* After it, of a stage that is not the first: the gradient of what was in model_input(). */
element *model_input_delta(model *self);

/* Fill the gradients, after model_forward() with the same batch. */
void model_backward(model *self, int batch, model_ready *ready, void *context);

#endif
