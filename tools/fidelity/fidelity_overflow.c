/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_overflow.h"

#include <math.h>
#include <string.h>

#include "tools/common/tool_table.h"

/* Points that a training with such a step may be away from one without. */
static const double allowed_points = 0.3;

/* --------------------------------------------------------------- the grid */

bool fidelity_overflow_add(fidelity_grid *grid) {
  static const char mark[] = "+inf";
  if (2 * grid->preset_count > FIDELITY_PRESETS_MAX) {
    return false;
  }
  for (size_t i = grid->preset_count; i-- > 0;) {
    fidelity_preset plain = grid->presets[i], spoilt = plain;
    size_t length = strlen(plain.name), most = sizeof spoilt.name - sizeof mark;
    memcpy(spoilt.name + (length < most ? length : most), mark, sizeof mark);
    grid->presets[2 * i] = plain;
    grid->presets[2 * i + 1] = spoilt;
  }
  grid->preset_count *= 2;
  return true;
}

/* --------------------------------------------------------------- the step */

bool fidelity_overflow_is_due(const fidelity_case *of, uint64_t number, uint64_t steps) {
  return of->overflow > 0.0 && number == steps / 2;
}

void fidelity_overflow_spoil(fidelity_world *world, double factor) {
  for (int rank = 0; rank < world->size; rank++) {
    float *values = world->workers[rank].values;
    for (size_t i = 0; i < world->count; i++) {
      values[i] *= (float)factor;
    }
  }
  world->workers[0].values[world->count / 2] = INFINITY;
}

bool fidelity_overflow_is_lost(const fidelity_world *world) {
  return lcomm_tensors_not_finite(world->workers[0].comm) > 0;
}

/* -------------------------------------------------------------- the table */

static const char *const columns[] = {
    "model",       "optimizer",        "nodes x\nranks",     "preset", "seeds",
    "accuracy\n%", "with one\nInf, %", "difference\npoints", "+-",     "verdict",
    NULL};

typedef struct pair {
  fidelity_spread clean, spoilt, difference;
} pair;

/* Over the seeds of which both trainings are there. */
static pair compare(const fidelity_grid *grid, size_t number, const fidelity_store *store) {
  double clean[FIDELITY_SEEDS_MAX], spoilt[FIDELITY_SEEDS_MAX], apart[FIDELITY_SEEDS_MAX];
  size_t count = 0;
  for (uint64_t i = 0; i < grid->seeds; i++) {
    fidelity_cell without = fidelity_cell_at(grid, (number - 1) * grid->seeds + i);
    fidelity_cell with = fidelity_cell_at(grid, number * grid->seeds + i);
    const fidelity_outcome *one = fidelity_store_find(store, &without);
    const fidelity_outcome *other = fidelity_store_find(store, &with);
    if (one && other) {
      clean[count] = 100.0 * one->accuracy;
      spoilt[count] = 100.0 * other->accuracy;
      apart[count] = spoilt[count] - clean[count];
      count++;
    }
  }
  return (pair){fidelity_spread_of(clean, count), fidelity_spread_of(spoilt, count),
                fidelity_spread_of(apart, count)};
}

static void put_row(const fidelity_case *of, const pair *it, tool_table *table) {
  bool within = fabs(it->difference.mean) <= allowed_points;
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", of->model);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", fidelity_optimizer_name(of->optimizer));
  tool_table_put(table, TOOL_COLOUR_NONE, "%dx%d", of->world.nodes, of->world.ranks);
  tool_table_put(table, TOOL_COLOUR_BOLD, "%s", of->preset->name);
  tool_table_put(table, TOOL_COLOUR_NONE, "%zu", it->clean.count);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", it->clean.mean);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", it->spoilt.mean);
  tool_table_put(table, TOOL_COLOUR_NONE, "%+.2f", it->difference.mean);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", it->difference.deviation);
  tool_table_put(table, within ? TOOL_COLOUR_GOOD : TOOL_COLOUR_BAD, "%s",
                 within ? "recovers" : "does not");
}

bool fidelity_overflow_print(const fidelity_grid *grid, const fidelity_store *store, bool colours,
                             FILE *file) {
  tool_table table = {.columns = columns, .sides = "LLLLRRRRRL"};
  size_t rows = 0;
  for (size_t i = 0; i < fidelity_case_count(grid); i++) {
    fidelity_case of = fidelity_case_at(grid, i);
    pair it = of.overflow > 0.0 ? compare(grid, i, store) : (pair){{0}, {0}, {0}};
    if (it.clean.count > 0) {
      put_row(&of, &it, &table);
      rows++;
    }
  }
  return rows == 0 || tool_table_print(&table, file, colours);
}
