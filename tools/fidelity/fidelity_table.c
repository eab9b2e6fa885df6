/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_table.h"

#include "tools/common/tool_output.h"
#include "tools/common/tool_table.h"
#include "tools/common/tool_units.h"

static const char *const columns[] = {
    "model",           "optimizer", "nodes x\nranks", "preset", "seeds",  "accuracy\n%", "+-",
    "points\nto fp32", "+-",        "verdict",        "a step", "in all", "ratio",       NULL};

static tool_colour colour_of(fidelity_verdict verdict) {
  switch (verdict) {
  case FIDELITY_WITHIN:
    return TOOL_COLOUR_GOOD;
  case FIDELITY_BELOW:
    return TOOL_COLOUR_BAD;
  case FIDELITY_UNKNOWN:
    return TOOL_COLOUR_DIM;
  }
  return TOOL_COLOUR_NONE;
}

/* Which case it is. */
static void put_case(const fidelity_summary *row, tool_table *table) {
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", row->of.model);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", fidelity_optimizer_name(row->of.optimizer));
  tool_table_put(table, TOOL_COLOUR_NONE, "%dx%d", row->of.world.nodes, row->of.world.ranks);
  tool_table_put(table, TOOL_COLOUR_BOLD, "%s", row->of.preset->name);
  tool_table_put(table, TOOL_COLOUR_NONE, "%zu", row->accuracy.count);
}

/* One that was not trained is said to be so. */
static void put_nothing(const fidelity_summary *row, tool_table *table) {
  put_case(row, table);
  for (size_t i = 5; columns[i]; i++) {
    bool is_verdict = i == 9;
    tool_table_put(table, TOOL_COLOUR_DIM, "%s", is_verdict ? "not run" : "-");
  }
}

static void put_row(const fidelity_summary *row, tool_table *table) {
  char bytes[TOOL_UNITS_TEXT_MAX];
  put_case(row, table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", row->accuracy.mean);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", row->accuracy.deviation);
  tool_table_put(table, TOOL_COLOUR_NONE, row->difference.count > 0 ? "%+.2f" : "-",
                 row->difference.mean);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", row->difference.deviation);
  tool_table_put(table, colour_of(row->verdict), "%s", fidelity_verdict_text(row->verdict));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s",
                 tool_units_bytes((uint64_t)row->bytes_per_step, bytes));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_bytes((uint64_t)row->bytes, bytes));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1f", row->ratio);
}

bool fidelity_table_print(const fidelity_summary *all, size_t count, bool colours, FILE *file) {
  tool_table table = {.columns = columns, .sides = "LLLLRRRRRLRRR"};
  for (size_t i = 0; i < count; i++) {
    if (all[i].accuracy.count > 0) {
      put_row(&all[i], &table);
    } else {
      put_nothing(&all[i], &table);
    }
  }
  return tool_table_print(&table, file, colours);
}

void fidelity_table_csv(const fidelity_summary *all, size_t count, FILE *file) {
  fputs("model,optimizer,nodes,ranks,preset,policy,seeds,accuracy,deviation,difference,"
        "difference_deviation,reference_deviation,verdict,steps,bytes_per_step,bytes,ratio\n",
        file);
  for (size_t i = 0; i < count; i++) {
    const fidelity_summary *row = &all[i];
    if (row->accuracy.count == 0) {
      continue;
    }
    fprintf(file, "%s,%s,%d,%d,", row->of.model, fidelity_optimizer_name(row->of.optimizer),
            row->of.world.nodes, row->of.world.ranks);
    tool_put_quoted(row->of.preset->name, file);
    fputc(',', file);
    tool_put_quoted(row->of.preset->policy, file);
    fprintf(file, ",%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%s,%.0f,%.1f,%.0f,%.2f\n", row->accuracy.count,
            row->accuracy.mean, row->accuracy.deviation, row->difference.mean,
            row->difference.deviation, row->reference_deviation,
            fidelity_verdict_text(row->verdict), row->steps, row->bytes_per_step, row->bytes,
            row->ratio);
  }
}
