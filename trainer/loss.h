/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_LOSS_H
#define TRAINER_LOSS_H

#include <stdint.h>

/* Softmax cross-entropy of a mini-batch, logits [image][class].
 * Returns the sum over the images, not finite if a logit is not. delta, unless
 * NULL, receives the gradient of the mean over the images. */
double loss_cross_entropy(const float *logits, const uint8_t *labels, int batch, int classes,
                          float *delta);

/* How many images have their largest logit at their label. */
int loss_count_correct(const float *logits, const uint8_t *labels, int batch, int classes);

#endif
