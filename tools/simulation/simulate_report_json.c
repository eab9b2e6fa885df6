/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_json.h"
#include "tools/common/tool_origin.h"
#include "tools/simulation/simulate_report.h"

static void put_head(tool_json *json, const simulate_study *study, int argc, char **argv) {
  tool_json_text(json, json->root, "tool", "simulate");
  tool_origin_put_here(json, json->root);
  cJSON *command = tool_json_array(json, json->root, "command");
  for (int i = 0; i < argc; i++) {
    tool_json_text(json, command, NULL, argv[i]);
  }
  tool_json_text(json, json->root, "workload", study->workload.source);
  tool_json_number(json, json->root, "parameters", (double)study->workload.parameters);
  tool_json_number(json, json->root, "tensors", (double)study->workload.count);
  tool_json_text(json, json->root, "speeds", study->speeds.source);
}

static void put_result(tool_json *json, cJSON *it, const simulate_study *study, size_t index) {
  const simulate_case *one = &study->cases[index];
  const simulate_result *result = &one->result;
  tool_json_text(json, it, "codec", one->codec);
  tool_json_text(json, it, "because", one->reason);
  tool_json_number(json, it, "buckets", one->buckets);
  tool_json_number(json, it, "step_s", result->step_s);
  tool_json_number(json, it, "compute_s", result->compute_s);
  tool_json_number(json, it, "communication_s", result->communication_s);
  tool_json_number(json, it, "hidden", result->hidden);
  tool_json_number(json, it, "busy", result->busy);
  tool_json_number(json, it, "card_bytes", result->card_bytes);
  tool_json_number(json, it, "card_messages", result->card_messages);
  tool_json_number(json, it, "node_bytes", result->node_bytes);
  tool_json_number(json, it, "rank_messages", result->rank_messages);
  tool_json_number(json, it, "wire_s", result->wire_s);
  tool_json_number(json, it, "memory_bytes", (double)result->memory_bytes);
  tool_json_number(json, it, "times", simulate_study_times(study, index));
  tool_json_number(json, it, "events", (double)result->events);
  tool_json_number(json, it, "simulated_ranks", result->simulated_ranks);
}

static void put_late(tool_json *json, cJSON *it, const simulate_study *study, size_t index) {
  const simulate_late_result *late = &study->cases[index].late;
  cJSON *of = tool_json_object(json, it, "late");
  tool_json_number(json, of, "step_s", late->step_s);
  tool_json_number(json, of, "computed", late->computed);
  tool_json_number(json, of, "used", late->used);
  tool_json_number(json, of, "age", late->age);
  tool_json_number(json, of, "age_most", (double)late->age_most);
  tool_json_number(json, of, "times", simulate_study_late_times(study, index));
}

static void put_case(tool_json *json, cJSON *array, const simulate_study *study, size_t index) {
  const simulate_case *one = &study->cases[index];
  cJSON *it = tool_json_object(json, array, NULL);
  tool_json_text(json, it, "link", simulate_study_link(study->options, one->link));
  tool_json_number(json, it, "nodes", one->nodes);
  tool_json_number(json, it, "ranks", one->ranks);
  tool_json_text(json, it, "policy", study->options->policies[one->policy]);
  tool_json_flag(json, it, "simulated", one->done);
  if (one->late_done) {
    put_late(json, it, study, index);
  }
  if (one->done) {
    put_result(json, it, study, index);
  } else {
    tool_json_text(json, it, "why", one->why);
  }
}

bool simulate_report_json(const simulate_study *study, int argc, char **argv, FILE *file) {
  tool_json json = tool_json_begin();
  put_head(&json, study, argc, argv);
  cJSON *cases = tool_json_array(&json, json.root, "results");
  for (size_t i = 0; i < study->count; i++) {
    put_case(&json, cases, study, i);
  }
  cJSON *verdicts = tool_json_array(&json, json.root, "verdicts");
  const simulate_options *o = study->options;
  for (size_t link = 0; link == 0 || link < o->link_count; link++) {
    for (size_t policy = 1; policy < o->policy_count; policy++) {
      char text[SIMULATE_VERDICT_MAX];
      cJSON *it = tool_json_object(&json, verdicts, NULL);
      tool_json_text(&json, it, "link", simulate_study_link(o, link));
      tool_json_text(&json, it, "policy", o->policies[policy]);
      tool_json_text(&json, it, "pays", simulate_study_verdict(study, link, policy, text));
    }
  }
  return tool_json_end(&json, file);
}
