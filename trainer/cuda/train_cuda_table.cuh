/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_CUDA_TRAIN_CUDA_TABLE_CUH
#define TRAINER_CUDA_TRAIN_CUDA_TABLE_CUH

/* The functions of the back end, by file; trainer/train_backend.h says what each does. */

#include "trainer/train_backend.h"

/* --------------------------------------------------------- train_cuda_product.cu */

void train_cuda_multiply(const product *of);

/* ------------------------------------------------------------ train_cuda_values.cu */

void train_cuda_fill_rows(const element *row, element *out, int rows, int columns);
void train_cuda_sum_rows(const element *in, float *sum, int rows, int columns);
void train_cuda_add(const element *a, const element *b, element *out, size_t count);
void train_cuda_accumulate(float *sum, const float *more, size_t count);
void train_cuda_mean(float *values, const float *sum, float share, size_t count);
void train_cuda_scale(float *values, float factor, size_t count);
bool train_cuda_finite(const float *values, size_t count);
void train_cuda_relu(const element *in, element *out, size_t count);
void train_cuda_relu_back(const element *out, const element *out_delta, element *in_delta,
                          size_t count);
void train_cuda_gelu(const element *in, element *out, size_t count);
void train_cuda_gelu_back(const element *in, const element *out_delta, element *in_delta,
                          size_t count);

/* ------------------------------------------------------------- train_cuda_short.cu */

void train_cuda_round(precision_kind kind, float *values, size_t count);
void train_cuda_encode(precision_kind kind, const float *values, float factor, uint16_t *codes,
                       size_t count);
void train_cuda_decode(precision_kind kind, const uint16_t *codes, float factor, float *values,
                       size_t count);
void train_cuda_store(element *values, const float *host, size_t count);
void train_cuda_load(float *host, const element *values, size_t count);

/* ----------------------------------------------------------- train_cuda_columns.cu */

void train_cuda_gather_columns(const element *in, image_part part, element *columns);
void train_cuda_add_columns(element *columns, image_part part, element *in_delta);
void train_cuda_fill_channels(const element *values, image_part part, element *out);
void train_cuda_sum_channels(const element *in, float *sums, int channels, size_t width);

/* ------------------------------------------------------------ train_cuda_images.cu */

void train_cuda_pool(const element *in, element *out, size_t planes, layer_shape from,
                     layer_shape to);
void train_cuda_pool_back(const element *in, const element *out, const element *out_delta,
                          element *in_delta, size_t planes, layer_shape from, layer_shape to);
void train_cuda_average(const element *in, element *out, layer_shape shape, int batch);
void train_cuda_average_back(const element *out_delta, element *in_delta, layer_shape shape,
                             int batch);
void train_cuda_flatten(const element *in, element *out, layer_shape shape, int batch);
void train_cuda_flatten_back(const element *out_delta, element *in_delta, layer_shape shape,
                             int batch);

/* -------------------------------------------------------------- train_cuda_norm.cu */

void train_cuda_batch_norm(const element *in, const element *weight, const element *bias,
                           float *statistics, element *out, int channels, size_t count);
void train_cuda_batch_norm_infer(const element *in, const element *weight, const element *bias,
                                 const float *statistics, element *out, int channels, size_t count);
void train_cuda_batch_norm_back(const element *in, const element *weight, const element *out_delta,
                                float *weight_gradient, float *bias_gradient, element *in_delta,
                                int channels, size_t count);
void train_cuda_layer_norm(const element *in, const element *weight, const element *bias,
                           element *out, int rows, int channels);
void train_cuda_layer_norm_back(const element *in, const element *weight, const element *out_delta,
                                float *weight_gradient, float *bias_gradient, element *in_delta,
                                int rows, int channels);

/* -------------------------------------------------------------- train_cuda_text.cu */

void train_cuda_embed(const element *bytes, const element *weight, element *out, int rows,
                      int channels);
void train_cuda_embed_back(const element *bytes, const element *out_delta, float *weight_gradient,
                           int rows, int channels);
void train_cuda_softmax(element *scores, int positions, int count);
void train_cuda_softmax_back(const element *p, element *delta, float scale, int positions,
                             int count);

/* -------------------------------------------------------------- train_cuda_step.cu */

void train_cuda_step_sgd(const weight_span *of);
void train_cuda_step_adam(const weight_span *of);
void train_cuda_step_adamw(const weight_span *of);
void train_cuda_step_lars(const weight_span *of);
void train_cuda_step_lamb(const weight_span *of);
void train_cuda_step_frozen(const weight_span *of);
void train_cuda_lamb_moments(const weight_span *of);
void train_cuda_squares(const float *values, size_t count, double *sums);
void train_cuda_lamb_squares(const weight_span *of, double *sums);

/* ------------------------------------------------------------ train_cuda_loss.cu */

double train_cuda_loss(const element *logits, const uint8_t *labels, int rows, int classes,
                       float scale, element *delta);
int train_cuda_correct(const element *logits, const uint8_t *labels, int rows, int classes);

/* --------------------------------------------------------- train_cuda_backend.cu */

void train_cuda_write(void *memory, const void *host, size_t size);
void train_cuda_read(void *host, const void *memory, size_t size);
void train_cuda_clear(void *memory, size_t size);

#endif
