/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SAMPLE_H
#define TRAINER_TRAIN_SAMPLE_H

#include "trainer/train_model.h"

/* Let a text model with windows of `context` bytes write on after a line feed, byte by byte, each
 * drawn by its probability at a temperature of 0.8, until text[size] is full or `limit_s` seconds
 * have passed. Returns the number of bytes. They depend on the weights and the seed. */
size_t sample_text(model *net, int context, uint64_t seed, double limit_s, char *text, size_t size);

#endif
