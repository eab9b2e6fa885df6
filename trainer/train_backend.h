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

/* What layers compute with: activations, their gradients, weights and scratch. Of a back end that
 * stores 16 bits (`stored`) these are its own: then only the address means something here, and
 * element_at() moves along. What is `float` is float32 on all: gradients of weights, statistics,
 * and what optimisers need. */
typedef float element;

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
  const element *values;
  int step;
  bool transposed;
  size_t next;
} matrix;

/* out[rows][columns] = scale * a * b + keep * out, with a[rows][depth], b[depth][columns] once
 * those that are to be transposed are; `count` times. With keep = 0 what is in `out` does not
 * matter. A product is of elements, or of float32 where it is `wide`: the gradient of weights. */
typedef struct product {
  int rows, columns, depth;
  matrix a, b;
  element *out;
  bool wide;
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
enum { OPTIMIZER_BLOCK = 1024, OPTIMIZER_KINDS = 6 };

enum { BACKEND_MARKS = 8 };

typedef struct backend {
  const char *name;
  bool is_host;          /* programs may read and write its memory */
  int heads_at_once;     /* of attention */
  precision_kind stored; /* what an element is */
  size_t element_size;

  /* Memory, zeros at first; NULL: there is no more. Of gradients, which libcomm sends. */
  void *(*get)(size_t size);
  void *(*get_sent)(size_t size);
  void (*free)(void *memory);
  void (*free_sent)(void *memory);
  void (*write)(void *memory, const void *host, size_t size); /* `host` is read before it returns */
  void (*read)(void *host, const void *memory, size_t size);  /* waits */
  void (*copy)(void *to, const void *from, size_t size);
  void (*clear)(void *memory, size_t size);
  /* The same of elements, which are float32 on the host. store: `host` is read before it returns;
   * load waits. */
  void (*store)(element *values, const float *host, size_t count);
  void (*load)(float *host, const element *values, size_t count);
  /* Wait for all that was asked for. Returns NULL, or a sentence about what failed first. */
  const char *(*finish)(void);
  void *(*stream)(void); /* that the work is in, a cudaStream_t; NULL for a host */
  /* Another stream, for what goes on beside the work, after all that was asked for so far; NULL for
   * a host. mark: what is in it now gets a number, modulo BACKEND_MARKS. await: what is asked for
   * from here on comes after that. */
  void *(*beside)(void);
  void (*mark)(int number);
  void (*await)(int number);

  void (*multiply)(const product *of);

  /* Matrices [rows][columns]: each row becomes `row`; the sum of the rows. */
  void (*fill_rows)(const element *row, element *out, int rows, int columns);
  void (*sum_rows)(const element *in, float *sum, int rows, int columns);

  /* Of any shape. add: out = a + b; accumulate: sum += more; mean: values = share * (values + sum).
   */
  void (*add)(const element *a, const element *b, element *out, size_t count);
  void (*accumulate)(float *sum, const float *more, size_t count);
  void (*mean)(float *values, const float *sum, float share, size_t count);
  void (*scale)(float *values, float factor, size_t count);
  bool (*finite)(const float *values, size_t count); /* no Inf and no NaN; waits */
  void (*relu)(const element *in, element *out, size_t count);
  void (*relu_back)(const element *out, const element *out_delta, element *in_delta, size_t count);
  void (*gelu)(const element *in, element *out, size_t count);
  void (*gelu_back)(const element *in, const element *out_delta, element *in_delta, size_t count);

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
  void (*gather_columns)(const element *in, image_part part, element *columns);
  void (*add_columns)(element *columns, image_part part, element *in_delta);
  void (*fill_channels)(const element *values, image_part part, element *out);
  void (*sum_channels)(const element *in, float *sums, int channels, size_t width);
  void (*pool)(const element *in, element *out, size_t planes, layer_shape from, layer_shape to);
  void (*pool_back)(const element *in, const element *out, const element *out_delta,
                    element *in_delta, size_t planes, layer_shape from, layer_shape to);
  void (*average)(const element *in, element *out, layer_shape shape, int batch);
  void (*average_back)(const element *out_delta, element *in_delta, layer_shape shape, int batch);
  void (*flatten)(const element *in, element *out, layer_shape shape, int batch);
  void (*flatten_back)(const element *out_delta, element *in_delta, layer_shape shape, int batch);

  /* Batch norm of channels of `count` values; see train_model_norm.c. in_delta may be NULL. */
  void (*batch_norm)(const element *in, const element *weight, const element *bias,
                     float *statistics, element *out, int channels, size_t count);
  void (*batch_norm_infer)(const element *in, const element *weight, const element *bias,
                           const float *statistics, element *out, int channels, size_t count);
  void (*batch_norm_back)(const element *in, const element *weight, const element *out_delta,
                          float *weight_gradient, float *bias_gradient, element *in_delta,
                          int channels, size_t count);

  /* Text; see train_model_text.c and train_model_attention.c. embed_back adds to the gradient.
   * softmax: of `count` matrices [positions][positions], row i has i + 1 scores, which become
   * probabilities; the others become 0. softmax_back: S_delta in the place of P_delta. */
  void (*embed)(const element *bytes, const element *weight, element *out, int rows, int channels);
  void (*embed_back)(const element *bytes, const element *out_delta, float *weight_gradient,
                     int rows, int channels);
  void (*layer_norm)(const element *in, const element *weight, const element *bias, element *out,
                     int rows, int channels);
  void (*layer_norm_back)(const element *in, const element *weight, const element *out_delta,
                          float *weight_gradient, float *bias_gradient, element *in_delta, int rows,
                          int channels);
  void (*softmax)(element *scores, int positions, int count);
  void (*softmax_back)(const element *p, element *delta, float scale, int positions, int count);

  /* As loss_cross_entropy(), with the gradient multiplied by `scale` before it is rounded, and
   * loss_count_correct(); labels are on the host. Both wait. */
  double (*loss)(const element *logits, const uint8_t *labels, int rows, int classes, float scale,
                 element *delta);
  int (*correct)(const element *logits, const uint8_t *labels, int rows, int classes);

  /* One step, by optimizer_kind. The moments of lamb are made by lamb_moments before. squares and
   * lamb_squares: of each block of values, or of lamb's directions, the sum of squares. All with
   * the same bits whatever the back end. */
  void (*step[OPTIMIZER_KINDS])(const weight_span *of);
  /* A step of onebit-adam with the average of the momentum in the place of the gradients. */
  void (*step_frozen)(const weight_span *of);
  void (*lamb_moments)(const weight_span *of);
  void (*squares)(const float *values, size_t count, double *sums);
  void (*lamb_squares)(const weight_span *of, double *sums);
} backend;

/* The element that is `count` after the first. */
static inline element *element_at(const backend *on, const element *first, size_t count) {
  return (element *)((char *)first + count * on->element_size);
}

/* The processor that runs this. */
const backend *backend_cpu(void);

#ifdef __cplusplus
}
#endif

#endif
