/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_CASE_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_CASE_H

/* What is trained: a grid of models, optimisers, worlds, presets and seeds. A case is one place of
 * the grid without its seed, a cell one with it. Cells have numbers 0 .. count-1, the seed fastest,
 * then the preset. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_optimizer.h"

enum {
  FIDELITY_NAME_MAX = 24, /* bytes of a name with its final 0 */
  FIDELITY_POLICY_MAX = 512,
  FIDELITY_KEY_MAX = 768,
  FIDELITY_MODELS_MAX = 4,
  FIDELITY_OPTIMIZERS_MAX = 2,
  FIDELITY_WORLDS_MAX = 8,
  FIDELITY_PRESETS_MAX = 48,
  FIDELITY_SEEDS_MAX = 64,
  FIDELITY_WORKERS_MAX = 64
};

/* A policy with a name of letters, digits and :.,_+- that tables and pictures show. */
typedef struct fidelity_preset {
  char name[FIDELITY_NAME_MAX];
  char policy[FIDELITY_POLICY_MAX];
} fidelity_preset;

/* Workers that pose as nodes. */
typedef struct fidelity_place {
  int nodes, ranks; /* ranks of each node */
} fidelity_place;

static inline int fidelity_workers(fidelity_place place) {
  return place.nodes * place.ranks;
}

/* How long and how fast it is trained; the same in all cells. */
typedef struct fidelity_training {
  int batch;       /* samples of a step, of all workers together: images, or windows of text */
  uint32_t images; /* the first so many of the data */
  int epochs;
  float rates[FIDELITY_OPTIMIZERS_MAX]; /* highest learning rate, by optimizer_kind */
  float momentum;                       /* of SGD, by the optimiser unless the policy keeps it */
  uint64_t data_hash;                   /* of the data */
} fidelity_training;

typedef struct fidelity_grid {
  char models[FIDELITY_MODELS_MAX][FIDELITY_NAME_MAX];
  size_t model_count;
  optimizer_kind optimizers[FIDELITY_OPTIMIZERS_MAX];
  size_t optimizer_count;
  fidelity_place worlds[FIDELITY_WORLDS_MAX];
  size_t world_count;
  fidelity_preset presets[FIDELITY_PRESETS_MAX]; /* the first one is the reference */
  size_t preset_count;
  uint64_t first_seed, seeds; /* so many from the first on */
  /* Factor of a step that is lost, see fidelity_overflow.h: every second preset has one. 0: none */
  double overflow;
  fidelity_training training;
} fidelity_grid;

/* Views of a grid. */
typedef struct fidelity_case {
  const char *model;
  optimizer_kind optimizer;
  fidelity_place world;
  const fidelity_preset *preset;
  const fidelity_training *training;
  double overflow; /* as in the grid, 0 where this preset has no such step */
} fidelity_case;

typedef struct fidelity_cell {
  fidelity_case of;
  uint64_t seed;
} fidelity_cell;

size_t fidelity_case_count(const fidelity_grid *grid);
fidelity_case fidelity_case_at(const fidelity_grid *grid, size_t number);

static inline size_t fidelity_cell_count(const fidelity_grid *grid) {
  return fidelity_case_count(grid) * grid->seeds;
}

fidelity_cell fidelity_cell_at(const fidelity_grid *grid, size_t number);

const char *fidelity_optimizer_name(optimizer_kind kind);

/* "cnn sgd 4x1 int8 seed 3" */
void fidelity_cell_name(const fidelity_cell *cell, char name[FIDELITY_KEY_MAX]);

/* All that the result of a cell depends on, on one line: cells with equal keys have equal
 * results. The preset is in it by its policy, not by its name. */
void fidelity_cell_key(const fidelity_cell *cell, char key[FIDELITY_KEY_MAX]);

#endif
