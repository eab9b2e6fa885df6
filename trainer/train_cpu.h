/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_CPU_H
#define TRAINER_TRAIN_CPU_H

#include "trainer/train_backend.h"

/* The loops of the back end of processors, by file; train_backend.h says what each does. */

/* ------------------------------------------------------------ train_cpu_values.c */

void cpu_fill_rows(const float *row, float *out, int rows, int columns);
void cpu_sum_rows(const float *in, float *sum, int rows, int columns);
void cpu_add(const float *a, const float *b, float *out, size_t count);
void cpu_accumulate(float *sum, const float *more, size_t count);
void cpu_mean(float *values, const float *sum, float share, size_t count);
void cpu_scale(float *values, float factor, size_t count);
bool cpu_finite(const float *values, size_t count);
void cpu_relu(const float *in, float *out, size_t count);
void cpu_relu_back(const float *out, const float *out_delta, float *in_delta, size_t count);
void cpu_gelu(const float *in, float *out, size_t count);
void cpu_gelu_back(const float *in, const float *out_delta, float *in_delta, size_t count);

/* ----------------------------------------------------------- train_cpu_columns.c */

void cpu_gather_columns(const float *in, image_part part, float *columns);
void cpu_add_columns(float *columns, image_part part, float *in_delta);
void cpu_fill_channels(const float *values, image_part part, float *out);
void cpu_sum_channels(const float *in, float *sums, int channels, size_t width);

/* ------------------------------------------------------------ train_cpu_images.c */

void cpu_pool(const float *in, float *out, size_t planes, layer_shape from, layer_shape to);
void cpu_pool_back(const float *in, const float *out, const float *out_delta, float *in_delta,
                   size_t planes, layer_shape from, layer_shape to);
void cpu_average(const float *in, float *out, layer_shape shape, int batch);
void cpu_average_back(const float *out_delta, float *in_delta, layer_shape shape, int batch);
void cpu_flatten(const float *in, float *out, layer_shape shape, int batch);
void cpu_flatten_back(const float *out_delta, float *in_delta, layer_shape shape, int batch);

/* -------------------------------------------------------------- train_cpu_norm.c */

void cpu_batch_norm(const float *in, const float *weight, const float *bias, float *statistics,
                    float *out, int channels, size_t count);
void cpu_batch_norm_infer(const float *in, const float *weight, const float *bias,
                          const float *statistics, float *out, int channels, size_t count);
void cpu_batch_norm_back(const float *in, const float *weight, const float *out_delta,
                         float *weight_gradient, float *bias_gradient, float *in_delta,
                         int channels, size_t count);
void cpu_layer_norm(const float *in, const float *weight, const float *bias, float *out, int rows,
                    int channels);
void cpu_layer_norm_back(const float *in, const float *weight, const float *out_delta,
                         float *weight_gradient, float *bias_gradient, float *in_delta, int rows,
                         int channels);

/* -------------------------------------------------------------- train_cpu_text.c */

void cpu_embed(const float *bytes, const float *weight, float *out, int rows, int channels);
void cpu_embed_back(const float *bytes, const float *out_delta, float *weight_gradient, int rows,
                    int channels);
void cpu_softmax(float *scores, int positions, int count);
void cpu_softmax_back(const float *p, float *delta, float scale, int positions, int count);

/* -------------------------------------------------------------- train_cpu_step.c */

void cpu_step_sgd(const weight_span *of);
void cpu_step_adam(const weight_span *of);
void cpu_step_adamw(const weight_span *of);
void cpu_step_lars(const weight_span *of);
void cpu_step_lamb(const weight_span *of);
void cpu_step_frozen(const weight_span *of);
void cpu_lamb_moments(const weight_span *of);
void cpu_squares(const float *values, size_t count, double *sums);
void cpu_lamb_squares(const weight_span *of, double *sums);

#endif
