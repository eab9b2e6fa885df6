/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_json.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/engine/tape_count.h"
#include "libcomm/plan/cost.h"
#include "libcomm/transport/transport.h"
#include "tools/common/tool_origin.h"
#include "tools/info/info_matrix.h"
#include "tools/info/info_speeds.h"

/* ------------------------------------------------------------------ build */

static void put_version(tool_json *json, cJSON *root) {
  char text[32];
  snprintf(text, sizeof(text), "%d.%d.%d", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  tool_json_text(json, root, "version", text);
}

static void put_build(tool_json *json, cJSON *root) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  cJSON *build = tool_json_object(json, root, "build");
  tool_json_text(json, build, "compiler", __VERSION__);
  tool_json_text(json, build, "mpi", mpi);
  const char *ucx = lcomm_ucx_version();
  if (ucx) {
    tool_json_text(json, build, "ucx", ucx);
  } else {
    tool_json_null(json, build, "ucx");
  }
}

static void put_parts(tool_json *json, cJSON *root) {
  cJSON *transports = tool_json_array(json, root, "transports");
  for (int i = 0; lcomm_transport_list[i]; i++) {
    cJSON *it = tool_json_object(json, transports, NULL);
    tool_json_text(json, it, "name", lcomm_transport_list[i]->name);
    tool_json_text(json, it, "summary", lcomm_transport_list[i]->summary);
  }
  cJSON *codecs = tool_json_array(json, root, "codecs");
  for (int i = 0; lcomm_codec_list[i]; i++) {
    lcomm_format format = lcomm_format_of(lcomm_codec_list[i]);
    cJSON *it = tool_json_object(json, codecs, NULL);
    tool_json_text(json, it, "name", lcomm_codec_list[i]->name);
    tool_json_number(json, it, "bits_per_value", lcomm_format_bits(&format));
    tool_json_text(json, it, "summary", lcomm_codec_list[i]->summary);
  }
}

static void put_kernels(tool_json *json, cJSON *root) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *used = isa ? lcomm_kernels_by_name(isa, NULL) : lcomm_kernels_best();
  cJSON *kernels = tool_json_array(json, root, "kernels");
  for (int i = 0; lcomm_kernels_list[i]; i++) {
    const lcomm_kernels *table = lcomm_kernels_list[i], *next = lcomm_kernels_list[i + 1];
    bool versions = next && strcmp(next->name, table->name) == 0;
    if (versions && lcomm_kernels_runs(next)) {
      continue; /* a better version of the same table */
    }
    cJSON *it = tool_json_object(json, kernels, NULL);
    tool_json_text(json, it, "name", table->name);
    tool_json_flag(json, it, "runs", lcomm_kernels_runs(table));
    tool_json_flag(json, it, "in_use", table == used);
    i += versions;
  }
}

static void put_environment(tool_json *json, cJSON *root) {
  cJSON *environment = tool_json_array(json, root, "environment");
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    const char *value = lcomm_env_get((lcomm_env)i);
    if (value) {
      cJSON *it = tool_json_object(json, environment, NULL);
      tool_json_text(json, it, "variable", lcomm_env_table[i].variable);
      tool_json_text(json, it, "value", i == LCOMM_ENV_TOKEN ? "set" : value);
    }
  }
}

/* --------------------------------------------------------------- topology */

static void put_topology(tool_json *json, cJSON *root, const lcomm_topo *topo) {
  cJSON *it = tool_json_object(json, root, "topology");
  tool_json_number(json, it, "ranks", topo->size);
  tool_json_number(json, it, "nodes", topo->nodes);
  size_t length = lcomm_topo_print(topo, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    lcomm_topo_print(topo, text, length + 1);
  }
  tool_json_text(json, it, "text", text);
  free(text);
  cJSON *links = tool_json_object(json, it, "links");
  for (int i = LCOMM_LINK_SELF + 1; i < LCOMM_LINK_COUNT; i++) {
    cJSON *link = tool_json_object(json, links, lcomm_link_name((lcomm_link)i));
    tool_json_number(json, link, "latency_us", topo->cost[i].latency_us);
    tool_json_number(json, link, "bandwidth_gb_s", topo->cost[i].bandwidth_gb_s);
    tool_json_flag(json, link, "measured", !topo->cost[i].assumed);
  }
}

/* ------------------------------------------------------------------ plans */

static void put_codecs(tool_json *json, cJSON *object, const lcomm_plan *plan) {
  static const char *const keys[LCOMM_STAGE_COUNT] = {"node", "net", "result", "rack"};
  char name[64];
  cJSON *codecs = tool_json_object(json, object, "codecs");
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    tool_json_text(json, codecs, keys[i],
                   lcomm_codec_spec_format(&plan->stages[i], name, sizeof(name)));
  }
}

static void put_links(tool_json *json, cJSON *object, const lcomm_plan *plan,
                      const lcomm_topo *topo) {
  lcomm_plan_traffic traffic;
  lcomm_plan_count(plan, topo, &traffic);
  cJSON *links = tool_json_object(json, object, "links");
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (traffic.messages[i] > 0) {
      cJSON *link = tool_json_object(json, links, lcomm_link_name((lcomm_link)i));
      tool_json_number(json, link, "messages", (double)traffic.messages[i]);
      tool_json_number(json, link, "bytes", (double)traffic.bytes[i]);
    }
  }
}

static void put_time(tool_json *json, cJSON *object, const lcomm_plan *plan,
                     const lcomm_topo *topo) {
  lcomm_codec_speeds speeds = info_codec_speeds(plan);
  lcomm_plan_time time = lcomm_plan_time_by(plan, topo, &speeds);
  cJSON *it = tool_json_object(json, object, "predicted");
  tool_json_number(json, it, "total_us", time.total_us);
  tool_json_number(json, it, "codecs_us", time.codec_us);
  tool_json_number(json, it, "messages_us", time.message_us);
  tool_json_number(json, it, "latency_us", time.latency_us);
  cJSON *links = tool_json_object(json, it, "links_us");
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (time.link_us[i] > 0) {
      tool_json_number(json, links, lcomm_link_name((lcomm_link)i), time.link_us[i]);
    }
  }
  tool_json_flag(json, it, "links_measured", !time.assumed);
}

static void put_calls_of(tool_json *json, cJSON *object, const char *name,
                         const lcomm_tape_calls *calls) {
  cJSON *it = tool_json_object(json, object, name);
  tool_json_number(json, it, "launches", (double)calls->launches);
  tool_json_number(json, it, "copies", (double)calls->copies);
  tool_json_number(json, it, "numbers", (double)calls->numbers);
  tool_json_number(json, it, "events", (double)calls->events);
}

/* What an operation costs its caller on a device, where that is counted. */
static void put_calls(tool_json *json, cJSON *plan, const lcomm_tape_case *it) {
  lcomm_tape_calls calls, captured;
  if (!it->topo->all_have_devices || it->topo->size < 2 ||
      lcomm_tape_count(it, &calls) != LCOMM_OK ||
      lcomm_tape_count_captured(it, &captured) != LCOMM_OK) {
    return;
  }
  put_calls_of(json, plan, "cuda_calls", &calls);
  put_calls_of(json, plan, "cuda_calls_in_a_graph", &captured);
  tool_json_number(json, plan, "payloads_on_peers", (double)calls.stay);
  tool_json_number(json, plan, "gates_in_a_graph", (double)captured.gates);
}

static void put_plan(tool_json *json, cJSON *plans, const lcomm_plan *plan,
                     const lcomm_tape_case *of) {
  const lcomm_topo *topo = of->topo;
  char hash[24];
  cJSON *it = tool_json_object(json, plans, NULL);
  tool_json_text(json, it, "collective", lcomm_collective_name(plan->collective));
  tool_json_number(json, it, "count", (double)plan->count);
  tool_json_text(json, it, "type", lcomm_dtype_name(plan->dtype));
  tool_json_number(json, it, "rank", plan->schedule.rank);
  snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)plan->hash);
  tool_json_text(json, it, "hash", hash);
  tool_json_text(json, it, "algorithm",
                 topo->size > 1 ? lcomm_exchange_name(plan->shape.exchange) : "none");
  tool_json_flag(json, it, "hierarchical", plan->shape.hierarchical);
  tool_json_number(json, it, "chunks", plan->shape.chunks);
  tool_json_flag(json, it, "leaders", plan->shape.leaders);
  tool_json_flag(json, it, "by_racks", plan->shape.by_racks);
  put_codecs(json, it, plan);
  put_links(json, it, plan, topo);
  put_time(json, it, plan, topo);
  put_calls(json, it, of);
  tool_json_text(json, it, "because", plan->reason);
}

/* ------------------------------------------------------------------ matrix */

static void put_rating(tool_json *json, cJSON *object, const lcomm_lowrank_rating *rating) {
  char name[64];
  lcomm_codec_spec whole = lcomm_auto_candidate(rating->candidate);
  cJSON *it = tool_json_object(json, object, "choice");
  tool_json_flag(json, it, "low_rank", rating->taken);
  tool_json_number(json, it, "low_rank_us", rating->us);
  tool_json_number(json, it, "products_us", rating->product_us);
  tool_json_number(json, it, "one_sum_us", rating->whole_us);
  tool_json_text(json, it, "one_sum_codec", lcomm_codec_spec_format(&whole, name, sizeof name));
}

static void put_matrix(tool_json *json, const info_options *o, const info_matrix *matrix) {
  cJSON *it = tool_json_object(json, json->root, "matrix");
  tool_json_number(json, it, "rows", (double)o->rows);
  tool_json_number(json, it, "columns", (double)o->columns);
  tool_json_text(json, it, "codec", matrix->codec);
  if (matrix->rated) {
    put_rating(json, it, &matrix->rating);
  }
  tool_json_number(json, it, "bytes_between_nodes", (double)matrix->bytes);
  tool_json_number(json, it, "exact_bytes_between_nodes", (double)matrix->exact_bytes);
}

/* And the plans of its sums. */
static int put_matrix_plans(tool_json *json, const info_options *o, const lcomm_policy *policy,
                            const lcomm_topo *topo) {
  info_matrix matrix;
  int result = info_matrix_make(o, policy, topo, &matrix);
  if (result == 0) {
    put_matrix(json, o, &matrix);
    cJSON *plans = tool_json_array(json, json->root, "plans");
    for (int i = 0; i < matrix.sums; i++) {
      const lcomm_tape_case of = {matrix.requests[i], policy, topo, o->rank};
      put_plan(json, plans, matrix.plans[i], &of);
    }
  }
  info_matrix_free(&matrix);
  return result;
}

/* -------------------------------------------------------------------- all */

static int put_plans(tool_json *json, const info_options *o, const lcomm_policy *policy,
                     const lcomm_topo *topo) {
  lcomm_why why;
  cJSON *plans = tool_json_array(json, json->root, "plans");
  for (size_t i = 0; i < o->size_count; i++) {
    lcomm_plan *plan = info_plan_of(o, i, policy, topo, &why);
    if (!plan) {
      return info_complain("no plan:", why.text);
    }
    const lcomm_tape_case of = {info_request_of(o, i), policy, topo, o->rank};
    put_plan(json, plans, plan, &of);
    lcomm_plan_destroy(plan);
  }
  return 0;
}

int info_print_json(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  char policy_text[LCOMM_POLICY_MAX];
  tool_json json = tool_json_begin();
  put_version(&json, json.root);
  tool_origin_put_here(&json, json.root);
  if (!o->only_plan) {
    put_build(&json, json.root);
    put_parts(&json, json.root);
    put_kernels(&json, json.root);
  }
  put_topology(&json, json.root, topo);
  lcomm_policy_format(policy, policy_text);
  tool_json_text(&json, json.root, "policy", policy_text);
  int result =
      o->rows > 0 ? put_matrix_plans(&json, o, policy, topo) : put_plans(&json, o, policy, topo);
  if (result != 0) {
    tool_json_drop(&json);
    return result;
  }
  if (!o->only_plan) {
    put_environment(&json, json.root);
  }
  return tool_json_end(&json, stdout) ? 0 : info_complain("no memory for", "--json");
}
