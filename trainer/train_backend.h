/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_BACKEND_H
#define TRAINER_TRAIN_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_precision.h"

/* What layers and optimisers compute with: memory, matrix products, and the loops over values. A
 * back end is a table of functions, one for processors and one for a CUDA device.
 *
 * Unless it is said, vectors are the back end's memory, and functions return before the work is
 * done: it is done in the order of the calls. What fails is kept until finish() tells it; what is
 * computed after that means nothing. A process uses one device. */

#ifdef __cplusplus
extern "C" {
#endif

/* Of one image, or of a window of text. */
typedef struct layer_shape {
  int channels;
  int height;
  int width;
} layer_shape;

static inline size_t layer_shape_count(layer_shape shape) {
  return (size_t)shape.channels * (size_t)shape.height * (size_t)shape.width;
}

/* Rows of values, `step` values apart; of several matrices each begins `next` values after the one
 * before. */
typedef struct matrix {
  const float *values;
  int step;
  bool transposed;
  size_t next;
} matrix;

/* out[rows][columns] = scale * a * b + keep * out, with a[rows][depth], b[depth][columns] once
 * those that are to be transposed are; `count` times. With keep = 0 what is in `out` does not
 * matter. */
typedef struct product {
  int rows, columns, depth;
  matrix a, b;
  float *out;
  int step;
  size_t next;
  float scale, keep;
  int count;
} product;

/* Images first .. first + images - 1 of activations [channel][batch][height][width]. */
typedef struct image_part {
  layer_shape shape;
  int batch, first, images;
} image_part;

/* Weights that are stepped alike: those of one parameter, or a rank's part of it. Adam's factors
 * are what its young means lack, see train_optimizer.h for the formulas. */
typedef struct weight_span {
  size_t count;
  float *weights;
  const float *gradients;
  float *first, *second;
  float rate, momentum, decay, trust;
  float first_factor, second_factor;
} weight_span;

/* Norms are sums over blocks of so many weights. */
enum { OPTIMIZER_BLOCK = 1024, OPTIMIZER_KINDS = 5 };

typedef struct backend {
  const char *name;
  bool is_host;      /* programs may read and write its memory */
  int heads_at_once; /* of attention */

  /* Memory, zeros at first; NULL: there is no more. Of gradients, which libcomm sends. */
  void *(*get)(size_t size);
  void *(*get_sent)(size_t size);
  void (*free)(void *memory);
  void (*free_sent)(void *memory);
  void (*write)(void *memory, const void *host, size_t size); /* `host` is read before it returns */
  void (*read)(void *host, const void *memory, size_t size);  /* waits */
  void (*copy)(void *to, const void *from, size_t size);
  void (*clear)(void *memory, size_t size);
  /* Wait for all that was asked for. Returns NULL, or a sentence about what failed first. */
  const char *(*finish)(void);
  void *(*stream)(void); /* that the work is in, a cudaStream_t; NULL for a host */

  void (*multiply)(const product *of);

  /* Matrices [rows][columns]: each row becomes `row`; the sum of the rows. */
  void (*fill_rows)(const float *row, float *out, int rows, int columns);
  void (*sum_rows)(const float *in, float *sum, int rows, int columns);

  /* Of any shape. add: out = a + b; accumulate: sum += more; mean: values = share * (values + sum).
   */
  void (*add)(const float *a, const float *b, float *out, size_t count);
  void (*accumulate)(float *sum, const float *more, size_t count);
  void (*mean)(float *values, const float *sum, float share, size_t count);
  void (*scale)(float *values, float factor, size_t count);
  void (*relu)(const float *in, float *out, size_t count);
  void (*relu_back)(const float *out, const float *out_delta, float *in_delta, size_t count);
  void (*gelu)(const float *in, float *out, size_t count);
  void (*gelu_back)(const float *in, const float *out_delta, float *in_delta, size_t count);

  /* As precision_round(), precision_encode() and precision_decode(). */
  void (*round)(precision_kind kind, float *values, size_t count);
  void (*encode)(precision_kind kind, const float *values, float factor, uint16_t *codes,
                 size_t count);
  void (*decode)(precision_kind kind, const uint16_t *codes, float factor, float *values,
                 size_t count);

  /* Images; `planes` are of all channels and images. Convolutions have columns
   * [channels*9][images][height][width]: the image moved by each of the nine taps of a window, 0
   * outside. add_columns is the transpose, added; it may spoil the columns. fill_channels writes
   * one value, or 0 if `values` is NULL, for the images of a part; sum_channels sums over `width`
   * values of each channel. */
  void (*gather_columns)(const float *in, image_part part, float *columns);
  void (*add_columns)(float *columns, image_part part, float *in_delta);
  void (*fill_channels)(const float *values, image_part part, float *out);
  void (*sum_channels)(const float *in, float *sums, int channels, size_t width);
  void (*pool)(const float *in, float *out, size_t planes, layer_shape from, layer_shape to);
  void (*pool_back)(const float *in, const float *out, const float *out_delta, float *in_delta,
                    size_t planes, layer_shape from, layer_shape to);
  void (*average)(const float *in, float *out, layer_shape shape, int batch);
  void (*average_back)(const float *out_delta, float *in_delta, layer_shape shape, int batch);
  void (*flatten)(const float *in, float *out, layer_shape shape, int batch);
  void (*flatten_back)(const float *out_delta, float *in_delta, layer_shape shape, int batch);

  /* Batch norm of channels of `count` values; see train_model_norm.c. in_delta may be NULL. */
  void (*batch_norm)(const float *in, const float *weight, const float *bias, float *statistics,
                     float *out, int channels, size_t count);
  void (*batch_norm_infer)(const float *in, const float *weight, const float *bias,
                           const float *statistics, float *out, int channels, size_t count);
  void (*batch_norm_back)(const float *in, const float *weight, const float *out_delta,
                          float *weight_gradient, float *bias_gradient, float *in_delta,
                          int channels, size_t count);

  /* Text; see train_model_text.c and train_model_attention.c. embed_back adds to the gradient.
   * softmax: of `count` matrices [positions][positions], row i has i + 1 scores, which become
   * probabilities; the others become 0. softmax_back: S_delta in the place of P_delta. */
  void (*embed)(const float *bytes, const float *weight, float *out, int rows, int channels);
  void (*embed_back)(const float *bytes, const float *out_delta, float *weight_gradient, int rows,
                     int channels);
  void (*layer_norm)(const float *in, const float *weight, const float *bias, float *out, int rows,
                     int channels);
  void (*layer_norm_back)(const float *in, const float *weight, const float *out_delta,
                          float *weight_gradient, float *bias_gradient, float *in_delta, int rows,
                          int channels);
  void (*softmax)(float *scores, int positions, int count);
  void (*softmax_back)(const float *p, float *delta, float scale, int positions, int count);

  /* As loss_cross_entropy() and loss_count_correct(); labels are on the host. Both wait. */
  double (*loss)(const float *logits, const uint8_t *labels, int rows, int classes, float *delta);
  int (*correct)(const float *logits, const uint8_t *labels, int rows, int classes);

  /* One step, by optimizer_kind. The moments of lamb are made by lamb_moments before. squares and
   * lamb_squares: of each block of values, or of lamb's directions, the sum of squares. All with
   * the same bits whatever the back end. */
  void (*step[OPTIMIZER_KINDS])(const weight_span *of);
  void (*lamb_moments)(const weight_span *of);
  void (*squares)(const float *values, size_t count, double *sums);
  void (*lamb_squares)(const weight_span *of, double *sums);
} backend;

/* The processor that runs this. */
const backend *backend_cpu(void);

#ifdef __cplusplus
}
#endif

#endif
