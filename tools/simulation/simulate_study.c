/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/topo/topo_file.h"
#include "tools/common/tool_progress.h"
#include "tools/simulation/simulate_lowrank.h"

static const double PAYS = 1.01;

/* ---------------------------------------------------------------- one case */

/* What plans under net=auto are chosen by. */
static void tell_costs(const simulate_settings *settings, const simulate_speeds *speeds,
                       bool named_link, lcomm_topo *topo) {
  const simulate_link *net = &settings->links[LCOMM_LINK_NET];
  if (named_link) {
    topo->cost[LCOMM_LINK_NET] =
        (lcomm_link_cost){.latency_us = simulate_seconds(net->latency) * 1e6,
                          .bandwidth_gb_s = net->bytes_per_s / 1e9};
  }
  for (int i = 1; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_spec choice = lcomm_auto_candidate(i);
    simulate_speed speed =
        choice.rank > 0 ? simulate_lowrank_speed_of(speeds) : simulate_speeds_of(speeds, &choice);
    topo->codec_cost[i] =
        (lcomm_codec_cost){.encode_gb_s = speed.encode_gb_s, .decode_gb_s = speed.decode_gb_s};
  }
}

static void describe(const simulate_world *world, simulate_case *it) {
  uint32_t largest = 0;
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    largest = world->buckets[i].count > world->buckets[largest].count ? i : largest;
  }
  const simulate_program *program = simulate_world_program(world, largest, 0);
  snprintf(it->codec, sizeof it->codec, "%s", program->codec);
  snprintf(it->reason, sizeof it->reason, "%s", program->reason);
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    it->buckets += world->buckets[i].sum != SIMULATE_SUM_SECOND;
  }
}

static bool simulate_traced(const simulate_study *study, const simulate_world *world,
                            const simulate_settings *settings, simulate_case *it) {
  simulate_timeline *timeline = study->options->trace ? malloc(sizeof *timeline) : NULL;
  bool good = timeline || !study->options->trace;
  if (timeline) {
    good = simulate_timeline_begin(timeline, study->options->trace, world->topo, world->ranks,
                                   it->why);
  }
  bool begun = good;
  good = good &&
         simulate_engine_run(world, &study->workload, settings, timeline, &it->result, it->why);
  if (timeline && begun) {
    char why[SIMULATE_WHY_MAX];
    bool whole = simulate_timeline_end(timeline, why);
    if (good && !whole) {
      memcpy(it->why, why, sizeof why);
    }
    good = good && whole;
  }
  free(timeline);
  return good;
}

/* What the step takes besides computing is the same with late ranks. */
static bool simulate_late_ranks(const simulate_study *study, const simulate_world *world,
                                const lcomm_policy *policy, simulate_case *it) {
  const simulate_options *o = study->options;
  simulate_late_case of = {.ranks = it->ranks,
                           .apart = world->roles.apart,
                           .compute_s = it->result.compute_s,
                           .exchange_s = it->result.step_s - it->result.compute_s,
                           .wire_s = it->result.wire_s,
                           .policy = policy->quorum,
                           .late = o->late,
                           .late_count = o->late_count};
  return simulate_late_run(&of, &it->late, it->late_why);
}

static bool simulate_one(const simulate_study *study, lcomm_topo *topo, simulate_case *it) {
  const simulate_options *o = study->options;
  simulate_settings settings = simulate_options_settings(o, it->link, topo);
  simulate_world world;
  lcomm_policy policy;
  lcomm_why error;
  if (lcomm_policy_parse(o->policies[it->policy], &policy, &error) != LCOMM_OK) {
    snprintf(it->why, sizeof it->why, "%s", error.text);
    return false;
  }
  tell_costs(&settings, &study->speeds, it->link < o->link_count, topo);
  simulate_world_request request = {.topo = topo,
                                    .policy = &policy,
                                    .workload = &study->workload,
                                    .speeds = &study->speeds,
                                    .cached = &study->cached,
                                    .dtype = o->dtype,
                                    .calls = o->calls,
                                    .symmetry =
                                        o->one_machine ? SIMULATE_SYMMETRY_OFF : o->symmetry};
  if (!simulate_world_make(&request, &world, it->why)) {
    return false;
  }
  describe(&world, it);
  bool good = simulate_traced(study, &world, &settings, it);
  it->late_done = good && o->late_count > 0 && simulate_late_ranks(study, &world, &policy, it);
  simulate_world_free(&world);
  return good;
}

/* --------------------------------------------------------------- all cases */

static bool find_topology(const simulate_options *o, int nodes, lcomm_topo *topo, char *why) {
  lcomm_why error;
  if (!o->topology) {
    return simulate_world_pose(nodes, o->ranks, topo, why) == LCOMM_OK;
  }
  if (lcomm_topo_file_load(o->topology, topo, &error) != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "%.500s", error.text);
    return false;
  }
  if (topo->size > SIMULATE_RANKS_MAX) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s has more than %d ranks", o->topology,
             SIMULATE_RANKS_MAX);
    lcomm_topo_free(topo);
    return false;
  }
  return true;
}

const char *simulate_study_link(const simulate_options *options, size_t link) {
  return link < options->link_count ? options->links[link].name : "topology";
}

static void say(const simulate_study *study, const simulate_case *it,
                const tool_progress *progress) {
  char what[128];
  snprintf(what, sizeof what, "%.32s, %d nodes, %.60s",
           simulate_study_link(study->options, it->link), it->nodes,
           study->options->policies[it->policy]);
  tool_progress_next(progress, what);
}

static bool run_nodes(simulate_study *study, size_t link, int nodes, tool_progress *progress,
                      char *why) {
  lcomm_topo topo;
  if (!find_topology(study->options, nodes, &topo, why)) {
    return false;
  }
  for (size_t policy = 0; policy < study->options->policy_count; policy++) {
    simulate_case *it = &study->cases[study->count++];
    *it = (simulate_case){.link = link, .policy = policy, .nodes = topo.nodes, .ranks = topo.size};
    say(study, it, progress);
    it->done = simulate_one(study, &topo, it);
    tool_progress_add(progress, 1);
  }
  lcomm_topo_free(&topo);
  return true;
}

static bool run_all(simulate_study *study, char *why) {
  const simulate_options *o = study->options;
  size_t links = o->link_count > 0 ? o->link_count : 1, worlds = o->topology ? 1 : o->node_count;
  size_t most = links * worlds * o->policy_count;
  study->cases = calloc(most, sizeof *study->cases);
  if (!study->cases) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %zu cases", most);
    return false;
  }
  tool_progress progress = tool_progress_begin(most);
  bool good = true;
  for (size_t link = 0; good && link < links; link++) {
    for (size_t i = 0; good && i < worlds; i++) {
      good = run_nodes(study, link, o->nodes[i], &progress, why);
    }
  }
  tool_progress_end(&progress);
  return good;
}

static bool read_workload(const simulate_options *o, simulate_workload *workload, char *why) {
  if (o->workload) {
    return simulate_workload_read(o->workload, workload, why);
  }
  if (o->computation) {
    return simulate_workload_read_trace(o->computation, workload, why);
  }
  uint64_t count = o->tensor_size / lcomm_dtype_size(o->dtype);
  if (!simulate_workload_formula(o->parameters, count, o->compute_s, workload)) {
    snprintf(why, SIMULATE_WHY_MAX, "%llu parameters in tensors of %llu bytes are more than %d",
             (unsigned long long)o->parameters, (unsigned long long)o->tensor_size,
             SIMULATE_TENSORS_MAX);
    return false;
  }
  return true;
}

static bool find_speeds(const simulate_options *o, simulate_place place, simulate_speeds *speeds,
                        char *why) {
  *speeds = simulate_speeds_built_in(place);
  speeds->launch_us = o->launch_us;
  return !o->speeds || simulate_speeds_read(o->speeds, place, speeds, why);
}

bool simulate_study_run(const simulate_options *options, simulate_study *study, char *why) {
  *study = (simulate_study){.options = options};
  if (!find_speeds(options, SIMULATE_IN_MEMORY, &study->speeds, why) ||
      !find_speeds(options, SIMULATE_IN_CACHE, &study->cached, why)) {
    return false;
  }
  if (!read_workload(options, &study->workload, why)) {
    return false;
  }
  if (!run_all(study, why)) {
    simulate_study_free(study);
    return false;
  }
  return true;
}

void simulate_study_free(simulate_study *study) {
  simulate_workload_free(&study->workload);
  free(study->cases);
  study->cases = NULL;
  study->count = 0;
}

/* --------------------------------------------------------------- judgement */

double simulate_study_times(const simulate_study *study, size_t index) {
  const simulate_case *it = &study->cases[index], *first = it - it->policy;
  bool known = it->done && first->done && it->result.step_s > 0;
  return known ? first->result.step_s / it->result.step_s : 0;
}

double simulate_study_late_times(const simulate_study *study, size_t index) {
  const simulate_case *it = &study->cases[index], *first = it - it->policy;
  bool known = it->late_done && first->late_done && it->late.step_s > 0;
  return known ? first->late.step_s / it->late.step_s : 0;
}

const char *simulate_study_verdict(const simulate_study *study, size_t link, size_t policy,
                                   char text[SIMULATE_VERDICT_MAX]) {
  size_t pays = 0, all = 0, used = 0;
  char list[SIMULATE_VERDICT_MAX - 64] = "";
  for (size_t i = 0; i < study->count; i++) {
    const simulate_case *it = &study->cases[i];
    if (it->link != link || it->policy != policy || !it->done) {
      continue;
    }
    all++;
    if (simulate_study_times(study, i) >= PAYS) {
      pays++;
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used > 0 ? ", " : "",
                               it->nodes);
      used = used < sizeof list ? used : sizeof list - 1;
    }
  }
  if (pays == 0 || pays == all) {
    snprintf(text, SIMULATE_VERDICT_MAX, "%s", pays == 0 ? "nowhere" : "everywhere");
  } else {
    snprintf(text, SIMULATE_VERDICT_MAX, "with %s nodes", list);
  }
  return text;
}
