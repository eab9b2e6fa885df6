/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_report.h"

#include "tools/common/tool_table.h"
#include "tools/common/tool_units.h"

static const char *const columns[] = {"link",
                                      "nodes",
                                      "ranks",
                                      "policy",
                                      "between\nnodes",
                                      "step",
                                      "compute",
                                      "communi-\ncation",
                                      "hidden\n(%)",
                                      "sent by\na card",
                                      "messages\nof a card",
                                      "wire",
                                      "memory\nof a rank",
                                      "times",
                                      NULL};

static const char *policy_name(const char *policy) {
  return policy[0] != '\0' ? policy : "exact";
}

static void put_seconds(tool_table *table, double seconds) {
  char text[TOOL_UNITS_TEXT_MAX];
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(seconds, text));
}

static void put_bytes(tool_table *table, double bytes) {
  char text[TOOL_UNITS_TEXT_MAX];
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_bytes((uint64_t)bytes, text));
}

static void put_times(tool_table *table, double times) {
  tool_colour colour = times >= 1.01  ? TOOL_COLOUR_GOOD
                       : times < 0.99 ? TOOL_COLOUR_BAD
                                      : TOOL_COLOUR_NONE;
  if (times > 0) {
    tool_table_put(table, colour, "%.2f", times);
  } else {
    tool_table_put(table, TOOL_COLOUR_NONE, "-");
  }
}

static void put_case(tool_table *table, const simulate_study *study, size_t index) {
  const simulate_case *it = &study->cases[index];
  const simulate_result *result = &it->result;
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", simulate_study_link(study->options, it->link));
  tool_table_put(table, TOOL_COLOUR_NONE, "%d", it->nodes);
  tool_table_put(table, TOOL_COLOUR_NONE, "%d", it->ranks);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", policy_name(study->options->policies[it->policy]));
  if (!it->done) {
    return;
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", it->codec);
  put_seconds(table, result->step_s);
  put_seconds(table, result->compute_s);
  put_seconds(table, result->communication_s);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1f", 100 * result->hidden);
  put_bytes(table, result->card_bytes);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.0f", result->card_messages);
  put_seconds(table, result->wire_s);
  put_bytes(table, (double)result->memory_bytes);
  put_times(table, simulate_study_times(study, index));
}

/* ------------------------------------------------------------ late ranks */

static const char *const late_columns[] = {
    "link",          "nodes",     "ranks",     "policy", "step",  "step, with\nlate ranks",
    "computed\n(%)", "used\n(%)", "mean\nage", "most",   "times", NULL};

static void put_late(tool_table *table, const simulate_study *study, size_t index) {
  const simulate_case *it = &study->cases[index];
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", simulate_study_link(study->options, it->link));
  tool_table_put(table, TOOL_COLOUR_NONE, "%d", it->nodes);
  tool_table_put(table, TOOL_COLOUR_NONE, "%d", it->ranks);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", policy_name(study->options->policies[it->policy]));
  if (!it->late_done) {
    return;
  }
  put_seconds(table, it->result.step_s);
  put_seconds(table, it->late.step_s);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1f", 100 * it->late.computed);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1f", 100 * it->late.used);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", it->late.age);
  tool_table_put(table, TOOL_COLOUR_NONE, "%d", (int)it->late.age_most);
  put_times(table, simulate_study_late_times(study, index));
}

static bool print_late(const simulate_study *study, FILE *file, bool colours) {
  tool_table table = {.columns = late_columns, .sides = "LRRLRRRRRRR"};
  if (study->options->late_count == 0) {
    return true;
  }
  fprintf(file, "with late ranks, over %d steps\n", SIMULATE_LATE_STEPS);
  for (size_t i = 0; i < study->count; i++) {
    put_late(&table, study, i);
  }
  bool good = tool_table_print(&table, file, colours);
  for (size_t i = 0; i < study->count; i++) {
    const simulate_case *it = &study->cases[i];
    if (it->done && !it->late_done) {
      fprintf(file, "not simulated with late ranks: %s: %s\n",
              policy_name(study->options->policies[it->policy]), it->late_why);
    }
  }
  return good;
}

static void print_verdicts(const simulate_study *study, FILE *file) {
  const simulate_options *o = study->options;
  size_t links = o->link_count > 0 ? o->link_count : 1;
  for (size_t link = 0; link < links; link++) {
    for (size_t policy = 1; policy < o->policy_count; policy++) {
      char text[SIMULATE_VERDICT_MAX];
      fprintf(file, "over %s %s is faster than %s %s\n", simulate_study_link(o, link),
              policy_name(o->policies[policy]), policy_name(o->policies[0]),
              simulate_study_verdict(study, link, policy, text));
    }
  }
}

static void print_failures(const simulate_study *study, FILE *file) {
  for (size_t i = 0; i < study->count; i++) {
    const simulate_case *it = &study->cases[i];
    if (!it->done) {
      fprintf(file, "not simulated: %s, %d nodes, %s: %s\n",
              simulate_study_link(study->options, it->link), it->nodes,
              policy_name(study->options->policies[it->policy]), it->why);
    }
  }
}

bool simulate_report_print(const simulate_study *study, FILE *file, bool colours) {
  tool_table table = {.columns = columns, .sides = "LRRLLRRRRRRRRR"};
  bool assumed = false;
  fprintf(file, "%s; codecs: %s\n", study->workload.source, study->speeds.source);
  for (size_t i = 0; i < study->count; i++) {
    put_case(&table, study, i);
  }
  bool good = tool_table_print(&table, file, colours);
  for (size_t i = 0; i < study->speeds.count; i++) {
    assumed |= study->speeds.codec[i].assumed;
  }
  print_verdicts(study, file);
  good = print_late(study, file, colours) && good;
  print_failures(study, file);
  if (assumed) {
    fputs("speeds of top-k's sums, int4, int2, sign, fp8e5m2, low rank and the lossless stage are "
          "assumed where --speeds has none\n",
          file);
  }
  return good && !ferror(file);
}
