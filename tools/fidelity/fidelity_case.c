/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_case.h"

#include <stdio.h>

static const char *const optimizer_names[] = {[OPTIMIZER_SGD] = "sgd", [OPTIMIZER_ADAM] = "adam"};

const char *fidelity_optimizer_name(optimizer_kind kind) {
  return optimizer_names[kind];
}

size_t fidelity_case_count(const fidelity_grid *grid) {
  return grid->model_count * grid->optimizer_count * grid->world_count * grid->preset_count;
}

fidelity_case fidelity_case_at(const fidelity_grid *grid, size_t number) {
  fidelity_case made = {.training = &grid->training};
  made.preset = &grid->presets[number % grid->preset_count];
  made.overflow = number % grid->preset_count % 2 == 1 ? grid->overflow : 0.0;
  number /= grid->preset_count;
  made.world = grid->worlds[number % grid->world_count];
  number /= grid->world_count;
  made.optimizer = grid->optimizers[number % grid->optimizer_count];
  made.model = grid->models[number / grid->optimizer_count];
  return made;
}

fidelity_cell fidelity_cell_at(const fidelity_grid *grid, size_t number) {
  return (fidelity_cell){.of = fidelity_case_at(grid, number / grid->seeds),
                         .seed = grid->first_seed + number % grid->seeds};
}

void fidelity_cell_name(const fidelity_cell *cell, char name[FIDELITY_KEY_MAX]) {
  const fidelity_case *of = &cell->of;
  snprintf(name, FIDELITY_KEY_MAX, "%s %s %dx%d %s seed %llu", of->model,
           fidelity_optimizer_name(of->optimizer), of->world.nodes, of->world.ranks,
           of->preset->name, (unsigned long long)cell->seed);
}

void fidelity_cell_key(const fidelity_cell *cell, char key[FIDELITY_KEY_MAX]) {
  const fidelity_case *of = &cell->of;
  const fidelity_training *training = of->training;
  int length = snprintf(
      key, FIDELITY_KEY_MAX,
      "%s %s %g momentum %g; %d nodes of %d; %u images (%016llx) %d times by %d; seed %llu; %s",
      of->model, fidelity_optimizer_name(of->optimizer), (double)training->rates[of->optimizer],
      (double)training->momentum, of->world.nodes, of->world.ranks, training->images,
      (unsigned long long)training->data_hash, training->epochs, training->batch,
      (unsigned long long)cell->seed, of->preset->policy);
  if (of->overflow > 0.0 && length > 0 && length < FIDELITY_KEY_MAX) {
    snprintf(key + length, FIDELITY_KEY_MAX - (size_t)length, "; one step times %g with Inf",
             of->overflow);
  }
}
