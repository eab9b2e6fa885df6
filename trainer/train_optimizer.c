/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/train_name.h"

static const char *const names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_LARS] = "lars", [OPTIMIZER_LAMB] = "lamb", [OPTIMIZER_ONEBIT_ADAM] = "onebit-adam",
};

const char *optimizer_name(optimizer_kind kind) {
  return names[kind];
}

optimizer_kind optimizer_find(const char *name) {
  return (optimizer_kind)name_find(names, OPTIMIZER_COUNT, name);
}

bool optimizer_has_second(optimizer_kind kind) {
  return kind == OPTIMIZER_ADAM || kind == OPTIMIZER_ADAMW || kind == OPTIMIZER_LAMB ||
         kind == OPTIMIZER_ONEBIT_ADAM;
}

bool optimizer_decays(optimizer_kind kind) {
  return kind == OPTIMIZER_ADAMW || kind == OPTIMIZER_LARS || kind == OPTIMIZER_LAMB ||
         kind == OPTIMIZER_ONEBIT_ADAM;
}

size_t optimizer_bytes(const optimizer *self) {
  return (self->second ? 2 : 1) * self->count * sizeof(float);
}

/* -------------------------------------------------------------------- memory */

int optimizer_create(optimizer_kind kind, size_t count, float momentum, optimizer *made) {
  return optimizer_create_on(backend_cpu(), kind, count, momentum, made);
}

int optimizer_create_on(const backend *on, optimizer_kind kind, size_t count, float momentum,
                        optimizer *made) {
  memset(made, 0, sizeof *made);
  made->on = on;
  made->kind = kind;
  made->count = count;
  made->momentum = momentum;
  made->first_remains = 1.0;
  made->second_remains = 1.0;
  made->first = on->get(count * sizeof(float) + 1);
  if (optimizer_has_second(kind)) {
    made->second = on->get(count * sizeof(float) + 1);
  }
  const optimizer_part whole = {0, count, true};
  if (made->first && (made->second || !optimizer_has_second(kind)) &&
      optimizer_divide(made, &whole, 1, 0.0f) == 0) {
    return 0;
  }
  optimizer_destroy(made);
  return -1;
}

static void free_sums(optimizer *self) {
  if (self->sums_there && self->sums_there != self->sums) {
    self->on->free(self->sums_there);
  }
  free(self->sums);
}

void optimizer_destroy(optimizer *self) {
  if (self->on) {
    self->on->free(self->first);
    self->on->free(self->second);
    free_sums(self);
  }
  free(self->parts);
  free(self->trusts);
  free(self->pieces);
  memset(self, 0, sizeof *self);
}

size_t optimizer_blocks(size_t count) {
  return (count + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK;
}

/* What `kept` held becomes a copy of these bytes. Returns 0, or -1 without memory. */
static int replace(void **kept, const void *bytes, size_t size) {
  void *copy = malloc(size + 1);
  if (!copy) {
    return -1;
  }
  memcpy(copy, bytes, size);
  free(*kept);
  *kept = copy;
  return 0;
}

int optimizer_take(optimizer *self, const optimizer_piece *pieces, int piece_count,
                   optimizer_share *share, void *context) {
  void *kept = self->pieces;
  if (replace(&kept, pieces, (size_t)piece_count * sizeof *pieces)) {
    return -1;
  }
  self->pieces = kept;
  self->piece_count = piece_count;
  self->share = share;
  self->context = context;
  return 0;
}

static int take_all(optimizer *self) {
  optimizer_piece *pieces = calloc((size_t)self->part_count, sizeof *pieces);
  size_t block = 0;
  for (int i = 0; pieces && i < self->part_count; i++) {
    const optimizer_part *part = &self->parts[i];
    pieces[i] = (optimizer_piece){i, part->offset, part->count, block};
    block += optimizer_blocks(part->count);
  }
  int result = pieces ? optimizer_take(self, pieces, self->part_count, NULL, NULL) : -1;
  free(pieces);
  return result;
}

int optimizer_divide(optimizer *self, const optimizer_part *parts, int part_count, float decay) {
  size_t blocks = 0;
  for (int i = 0; i < part_count; i++) {
    blocks += optimizer_blocks(parts[i].count);
  }
  void *kept = self->parts;
  float *trusts = calloc((size_t)part_count + 1, sizeof *trusts);
  double *sums = calloc(2 * blocks + 1, sizeof *sums);
  double *there = self->on->is_host ? sums : self->on->get((2 * blocks + 1) * sizeof *there);
  if (!trusts || !sums || !there || replace(&kept, parts, (size_t)part_count * sizeof *parts)) {
    free(trusts);
    free(sums);
    if (there != sums) {
      self->on->free(there);
    }
    return -1;
  }
  free(self->trusts);
  free_sums(self);
  self->parts = kept;
  self->part_count = part_count;
  self->trusts = trusts;
  self->sums = sums;
  self->sums_there = there;
  self->block_count = blocks;
  self->decay = decay;
  return take_all(self);
}
