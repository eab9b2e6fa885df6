/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_CUDA_TRAIN_CUDA_TABLE_CUH
#define TRAINER_CUDA_TRAIN_CUDA_TABLE_CUH

/* The functions of the back end, by file; trainer/train_backend.h says what each does. */

#include "trainer/train_backend.h"

/* --------------------------------------------------------- train_cuda_product.cu */

void train_cuda_multiply(const product *of);

/* ------------------------------------------------------------ train_cuda_values.cu */

void train_cuda_fill_rows(const float *row, float *out, int rows, int columns);
void train_cuda_sum_rows(const float *in, float *sum, int rows, int columns);
void train_cuda_add(const float *a, const float *b, float *out, size_t count);
void train_cuda_accumulate(float *sum, const float *more, size_t count);
void train_cuda_mean(float *values, const float *sum, float share, size_t count);
void train_cuda_scale(float *values, float factor, size_t count);
void train_cuda_relu(const float *in, float *out, size_t count);
void train_cuda_relu_back(const float *out, const float *out_delta, float *in_delta, size_t count);
void train_cuda_gelu(const float *in, float *out, size_t count);
void train_cuda_gelu_back(const float *in, const float *out_delta, float *in_delta, size_t count);
void train_cuda_round(precision_kind kind, float *values, size_t count);
void train_cuda_encode(precision_kind kind, const float *values, float factor, uint16_t *codes,
                       size_t count);
void train_cuda_decode(precision_kind kind, const uint16_t *codes, float factor, float *values,
                       size_t count);

/* ----------------------------------------------------------- train_cuda_columns.cu */

void train_cuda_gather_columns(const float *in, image_part part, float *columns);
void train_cuda_add_columns(float *columns, image_part part, float *in_delta);
void train_cuda_fill_channels(const float *values, image_part part, float *out);
void train_cuda_sum_channels(const float *in, float *sums, int channels, size_t width);

/* ------------------------------------------------------------ train_cuda_images.cu */

void train_cuda_pool(const float *in, float *out, size_t planes, layer_shape from, layer_shape to);
void train_cuda_pool_back(const float *in, const float *out, const float *out_delta,
                          float *in_delta, size_t planes, layer_shape from, layer_shape to);
void train_cuda_average(const float *in, float *out, layer_shape shape, int batch);
void train_cuda_average_back(const float *out_delta, float *in_delta, layer_shape shape, int batch);
void train_cuda_flatten(const float *in, float *out, layer_shape shape, int batch);
void train_cuda_flatten_back(const float *out_delta, float *in_delta, layer_shape shape, int batch);

/* -------------------------------------------------------------- train_cuda_norm.cu */

void train_cuda_batch_norm(const float *in, const float *weight, const float *bias,
                           float *statistics, float *out, int channels, size_t count);
void train_cuda_batch_norm_infer(const float *in, const float *weight, const float *bias,
                                 const float *statistics, float *out, int channels, size_t count);
void train_cuda_batch_norm_back(const float *in, const float *weight, const float *out_delta,
                                float *weight_gradient, float *bias_gradient, float *in_delta,
                                int channels, size_t count);
void train_cuda_layer_norm(const float *in, const float *weight, const float *bias, float *out,
                           int rows, int channels);
void train_cuda_layer_norm_back(const float *in, const float *weight, const float *out_delta,
                                float *weight_gradient, float *bias_gradient, float *in_delta,
                                int rows, int channels);

/* -------------------------------------------------------------- train_cuda_text.cu */

void train_cuda_embed(const float *bytes, const float *weight, float *out, int rows, int channels);
void train_cuda_embed_back(const float *bytes, const float *out_delta, float *weight_gradient,
                           int rows, int channels);
void train_cuda_softmax(float *scores, int positions, int count);
void train_cuda_softmax_back(const float *p, float *delta, float scale, int positions, int count);

/* -------------------------------------------------------------- train_cuda_step.cu */

void train_cuda_step_sgd(const weight_span *of);
void train_cuda_step_adam(const weight_span *of);
void train_cuda_step_adamw(const weight_span *of);
void train_cuda_step_lars(const weight_span *of);
void train_cuda_step_lamb(const weight_span *of);
void train_cuda_lamb_moments(const weight_span *of);
void train_cuda_squares(const float *values, size_t count, double *sums);
void train_cuda_lamb_squares(const weight_span *of, double *sums);

/* ------------------------------------------------------------ train_cuda_loss.cu */

double train_cuda_loss(const float *logits, const uint8_t *labels, int rows, int classes,
                       float *delta);
int train_cuda_correct(const float *logits, const uint8_t *labels, int rows, int classes);

/* --------------------------------------------------------- train_cuda_backend.cu */

void train_cuda_write(void *memory, const void *host, size_t size);
void train_cuda_read(void *host, const void *memory, size_t size);
void train_cuda_clear(void *memory, size_t size);

#endif
