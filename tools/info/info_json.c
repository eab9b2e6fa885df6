/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_json.h"

#include <cjson/cJSON.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/plan/cost.h"
#include "libcomm/transport/transport.h"
#include "tools/info/info_speeds.h"

/* cJSON takes NULL where it could not make something: what has no memory is missing, and the
 * whole is not printed. */

static void put_text(cJSON *object, const char *key, const char *text) {
  cJSON_AddStringToObject(object, key, text ? text : "");
}

static cJSON *append(cJSON *array) {
  cJSON *made = cJSON_CreateObject();
  cJSON_AddItemToArray(array, made);
  return made;
}

/* ------------------------------------------------------------------ build */

static void put_version(cJSON *root) {
  char text[32];
  snprintf(text, sizeof(text), "%d.%d.%d", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  put_text(root, "version", text);
}

static void put_build(cJSON *root) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  cJSON *build = cJSON_AddObjectToObject(root, "build");
  put_text(build, "compiler", __VERSION__);
  put_text(build, "mpi", mpi);
  const char *ucx = lcomm_ucx_version();
  if (ucx) {
    put_text(build, "ucx", ucx);
  } else {
    cJSON_AddNullToObject(build, "ucx");
  }
}

static void put_parts(cJSON *root) {
  cJSON *transports = cJSON_AddArrayToObject(root, "transports");
  for (int i = 0; lcomm_transport_list[i]; i++) {
    cJSON *it = append(transports);
    put_text(it, "name", lcomm_transport_list[i]->name);
    put_text(it, "summary", lcomm_transport_list[i]->summary);
  }
  cJSON *codecs = cJSON_AddArrayToObject(root, "codecs");
  for (int i = 0; lcomm_codec_list[i]; i++) {
    lcomm_format format = lcomm_format_of(lcomm_codec_list[i]);
    cJSON *it = append(codecs);
    put_text(it, "name", lcomm_codec_list[i]->name);
    cJSON_AddNumberToObject(it, "bits_per_value", lcomm_format_bits(&format));
    put_text(it, "summary", lcomm_codec_list[i]->summary);
  }
}

static void put_kernels(cJSON *root) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *used = isa ? lcomm_kernels_by_name(isa, NULL) : lcomm_kernels_best();
  cJSON *kernels = cJSON_AddArrayToObject(root, "kernels");
  for (int i = 0; lcomm_kernels_list[i]; i++) {
    const lcomm_kernels *table = lcomm_kernels_list[i], *next = lcomm_kernels_list[i + 1];
    bool versions = next && strcmp(next->name, table->name) == 0;
    if (versions && lcomm_kernels_runs(next)) {
      continue; /* a better version of the same table */
    }
    cJSON *it = append(kernels);
    put_text(it, "name", table->name);
    cJSON_AddBoolToObject(it, "runs", lcomm_kernels_runs(table));
    cJSON_AddBoolToObject(it, "in_use", table == used);
    i += versions;
  }
}

static void put_environment(cJSON *root) {
  cJSON *environment = cJSON_AddArrayToObject(root, "environment");
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    const char *value = lcomm_env_get((lcomm_env)i);
    if (value) {
      cJSON *it = append(environment);
      put_text(it, "variable", lcomm_env_table[i].variable);
      put_text(it, "value", i == LCOMM_ENV_TOKEN ? "set" : value);
    }
  }
}

/* --------------------------------------------------------------- topology */

static void put_topology(cJSON *root, const lcomm_topo *topo) {
  cJSON *it = cJSON_AddObjectToObject(root, "topology");
  cJSON_AddNumberToObject(it, "ranks", topo->size);
  cJSON_AddNumberToObject(it, "nodes", topo->nodes);
  size_t length = lcomm_topo_print(topo, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    lcomm_topo_print(topo, text, length + 1);
  }
  put_text(it, "text", text);
  free(text);
  cJSON *links = cJSON_AddObjectToObject(it, "links");
  for (int i = LCOMM_LINK_SELF + 1; i < LCOMM_LINK_COUNT; i++) {
    cJSON *link = cJSON_AddObjectToObject(links, lcomm_link_name((lcomm_link)i));
    cJSON_AddNumberToObject(link, "latency_us", topo->cost[i].latency_us);
    cJSON_AddNumberToObject(link, "bandwidth_gb_s", topo->cost[i].bandwidth_gb_s);
    cJSON_AddBoolToObject(link, "measured", !topo->cost[i].assumed);
  }
}

/* ------------------------------------------------------------------ plans */

static void put_codecs(cJSON *object, const lcomm_plan *plan) {
  static const char *const keys[LCOMM_STAGE_COUNT] = {"node", "net", "result"};
  char name[64];
  cJSON *codecs = cJSON_AddObjectToObject(object, "codecs");
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    put_text(codecs, keys[i], lcomm_codec_choice_format(&plan->stages[i], name, sizeof(name)));
  }
}

static void put_links(cJSON *object, const lcomm_plan *plan, const lcomm_topo *topo) {
  lcomm_plan_traffic traffic;
  lcomm_plan_count(plan, topo, &traffic);
  cJSON *links = cJSON_AddObjectToObject(object, "links");
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (traffic.messages[i] > 0) {
      cJSON *link = cJSON_AddObjectToObject(links, lcomm_link_name((lcomm_link)i));
      cJSON_AddNumberToObject(link, "messages", (double)traffic.messages[i]);
      cJSON_AddNumberToObject(link, "bytes", (double)traffic.bytes[i]);
    }
  }
}

static void put_time(cJSON *object, const lcomm_plan *plan, const lcomm_topo *topo) {
  lcomm_codec_speeds speeds = info_codec_speeds(plan);
  lcomm_plan_time time = lcomm_plan_predict(plan, topo, &speeds);
  cJSON *it = cJSON_AddObjectToObject(object, "predicted");
  cJSON_AddNumberToObject(it, "total_us", time.total_us);
  cJSON_AddNumberToObject(it, "codecs_us", time.codec_us);
  cJSON_AddNumberToObject(it, "latency_us", time.latency_us);
  cJSON *links = cJSON_AddObjectToObject(it, "links_us");
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (time.link_us[i] > 0) {
      cJSON_AddNumberToObject(links, lcomm_link_name((lcomm_link)i), time.link_us[i]);
    }
  }
  cJSON_AddBoolToObject(it, "links_measured", !time.assumed);
}

static void put_plan(cJSON *plans, const lcomm_plan *plan, const lcomm_topo *topo) {
  char hash[24];
  cJSON *it = append(plans);
  put_text(it, "collective", lcomm_collective_name(plan->collective));
  cJSON_AddNumberToObject(it, "count", (double)plan->count);
  put_text(it, "type", lcomm_dtype_name(plan->dtype));
  cJSON_AddNumberToObject(it, "rank", plan->schedule.rank);
  snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)plan->hash);
  put_text(it, "hash", hash);
  put_text(it, "algorithm", topo->size > 1 ? lcomm_exchange_name(plan->shape.exchange) : "none");
  cJSON_AddBoolToObject(it, "hierarchical", plan->shape.hierarchical);
  cJSON_AddNumberToObject(it, "chunks", plan->shape.chunks);
  put_codecs(it, plan);
  put_links(it, plan, topo);
  put_time(it, plan, topo);
  put_text(it, "because", plan->reason);
}

/* -------------------------------------------------------------------- all */

static int print(cJSON *root) {
  char *text = cJSON_Print(root);
  cJSON_Delete(root);
  if (!text) {
    return info_complain("no memory for", "--json");
  }
  puts(text);
  cJSON_free(text);
  return 0;
}

int info_print_json(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  char policy_text[LCOMM_POLICY_MAX], why[256];
  cJSON *root = cJSON_CreateObject();
  put_version(root);
  if (!o->only_plan) {
    put_build(root);
    put_parts(root);
    put_kernels(root);
  }
  put_topology(root, topo);
  lcomm_policy_format(policy, policy_text);
  put_text(root, "policy", policy_text);
  cJSON *plans = cJSON_AddArrayToObject(root, "plans");
  for (int i = 0; i < o->size_count; i++) {
    lcomm_plan *plan = info_plan_of(o, i, policy, topo, why, sizeof(why));
    if (!plan) {
      cJSON_Delete(root);
      return info_complain("no plan:", why);
    }
    put_plan(plans, plan, topo);
    lcomm_plan_destroy(plan);
  }
  if (!o->only_plan) {
    put_environment(root);
  }
  return print(root);
}
