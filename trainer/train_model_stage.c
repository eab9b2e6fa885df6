/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdio.h>
#include <string.h>

#include "trainer/train_model.h"

/* A transformer is cut between blocks, where one activation goes from layer to layer and no path
 * skips the cut. */

static int find_block(const model *self, int block) {
  char name[LAYER_NAME_SIZE];
  snprintf(name, sizeof name, "block%d.norm1", block);
  int at = 0;
  while (at < self->layer_count && strcmp(self->layers[at].name, name) != 0) {
    at++;
  }
  return at;
}

/* The first layer of a stage. */
static int stage_begin(const model *self, int blocks, int stage, int stages) {
  return stage == 0 ? 0 : find_block(self, blocks * stage / stages);
}

bool model_cut(model *self, int blocks, model_part part) {
  if (part.stages == 1) {
    return true;
  }
  if (blocks < part.stages) {
    return false;
  }
  layer embedding = self->layers[0];
  int first = stage_begin(self, blocks, part.stage, part.stages);
  int end = stage_begin(self, blocks, part.stage + 1, part.stages);
  self->layer_count = end - first;
  memmove(self->layers, self->layers + first, (size_t)self->layer_count * sizeof *self->layers);
  if (part.stage == 0) {
    embedding_stands_alone(&self->layers[0]);
  }
  if (part.stage == part.stages - 1) {
    head_stands_alone(&self->layers[self->layer_count - 1], &embedding);
  }
  return true;
}
