/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* libcomm-info: what this build can do, where its ranks are, and which plan
 * an all-reduce would follow, with the reason. Under mpirun it shows the real
 * ranks, and what their links cost; with --ranks or --topology a machine that is
 * not there. The parts are in info/. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/engine/tape_count.h"
#include "libcomm/plan/milder.h"
#include "libcomm/plan/pipe.h"
#include "libcomm/plan/plan.h"
#include "tools/info/info_build.h"
#include "tools/info/info_json.h"
#include "tools/info/info_matrix.h"
#include "tools/info/info_measure.h"
#include "tools/info/info_options.h"
#include "tools/info/info_ranks.h"
#include "tools/info/info_speeds.h"
#include "tools/info/info_topology.h"

/* ----------------------------------------------------------------- plans */

lcomm_plan_request info_request_of(const info_options *o, size_t size) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = o->sizes[size] / lcomm_dtype_size(o->dtype),
                              .dtype = o->dtype,
                              .error_feedback = o->tensor};
}

static int print_traffic(const info_options *o, const lcomm_policy *policy,
                         const lcomm_topo *topo) {
  for (size_t i = 0; i < o->size_count; i++) {
    lcomm_why why;
    char text[8192];
    lcomm_plan_request request = info_request_of(o, i);
    if (lcomm_plan_traffic_print(&request, policy, topo, text, sizeof(text), &why) != LCOMM_OK) {
      return info_complain("no plan:", why.text);
    }
    fputs(text, stdout);
  }
  return 0;
}

lcomm_plan *info_plan_of(const info_options *o, size_t size, const lcomm_policy *policy,
                         const lcomm_topo *topo, lcomm_why *why) {
  lcomm_plan *plan = NULL;
  lcomm_plan_request request = info_request_of(o, size);
  bool made = lcomm_plan_create(&request, policy, topo, o->rank, &plan, why) == LCOMM_OK;
  return made ? plan : NULL;
}

static void print_calls_of(const char *where, const lcomm_tape_calls *calls) {
  printf("  %s  %llu calls of CUDA: %llu launches, %llu copies, %llu of numbers, %llu of events\n",
         where, (unsigned long long)lcomm_tape_calls_all(calls),
         (unsigned long long)calls->launches, (unsigned long long)calls->copies,
         (unsigned long long)calls->numbers, (unsigned long long)calls->events);
}

/* What an operation costs its caller on a device. */
static void print_calls(const lcomm_tape_case *it) {
  lcomm_tape_calls calls, captured;
  if (lcomm_tape_count(it, &calls) != LCOMM_OK ||
      lcomm_tape_count_captured(it, &captured) != LCOMM_OK) {
    printf("  on devices  no memory to count calls of CUDA\n");
    return;
  }
  print_calls_of("on devices", &calls);
  print_calls_of("in a graph", &captured);
  if (calls.stay > 0) {
    printf("  on peers    %llu payloads are read where peers have made them, %llu of them by gates "
           "in a graph\n",
           (unsigned long long)calls.stay, (unsigned long long)captured.gates);
  }
}

static int print_plans(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  for (size_t i = 0; i < o->size_count; i++) {
    lcomm_why why;
    char text[4096];
    lcomm_plan *plan = info_plan_of(o, i, policy, topo, &why);
    if (!plan) {
      return info_complain("no plan:", why.text);
    }
    lcomm_codec_speeds speeds = info_codec_speeds(plan);
    lcomm_plan_describe_timed(plan, topo, &speeds, text, sizeof(text));
    printf("%s%s", i > 0 || !o->only_plan ? "\n" : "", text);
    if (topo->all_have_devices && topo->size > 1) {
      const lcomm_tape_case it = {info_request_of(o, i), policy, topo, o->rank};
      print_calls(&it);
    }
    lcomm_plan_destroy(plan);
  }
  return 0;
}

/* --------------------------------------------------------------- screens */

static int print_topology(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo,
                          const char *rails) {
  if (!o->topology_file && o->ranks == 0) {
    info_print_machine();
    fputs(rails ? rails : "", stdout);
  }
  info_print_ranks(topo);
  info_print_links(topo);
  return o->topology_file ? print_traffic(o, policy, topo) : 0;
}

static void print_variable(const lcomm_env_entry *entry, const char *value) {
  printf("  %-30s %-34s %s%s%s%s\n", entry->variable, entry->standard, entry->help,
         value ? " [now: " : "", value ? value : "", value ? "]" : "");
}

static void print_env(void) {
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    const char *value = lcomm_env_get((lcomm_env)i);
    bool secret = value && i == LCOMM_ENV_TOKEN;
    print_variable(&lcomm_env_table[i], secret ? "set" : value);
  }
  printf("\nof launchers, for lcomm_create_env\n");
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    print_variable(&lcomm_launcher_table[i], lcomm_launcher_get((lcomm_launcher)i));
  }
}

/* Supposed ranks have no processors. */
static void print_progress(const info_options *o, uint64_t share) {
  if (!o->topology_file && o->ranks == 0) {
    info_print_progress(share, info_ranks());
  }
}

/* Is it the codec of an earlier pattern, or of net=? */
static bool is_told(const lcomm_policy *policy, unsigned index) {
  unsigned i = 0;
  while (!lcomm_codec_spec_equal(lcomm_policy_net_codec(policy, i),
                                 lcomm_policy_net_codec(policy, index))) {
    i++;
  }
  return i < index;
}

static void print_ladders(const lcomm_policy *policy, int nodes) {
  char ladder[256];
  unsigned count = nodes > 1 ? lcomm_policy_net_count(policy) : 1;
  for (unsigned i = 0; i < count; i++) {
    const lcomm_codec_spec *net = lcomm_policy_net_codec(policy, i);
    if (!is_told(policy, i)) {
      printf("%s%s", i > 0 ? "\n             or " : "",
             lcomm_milder_text(lcomm_farthest_codec(net, &policy->node, nodes),
                               policy->momentum > 0, ladder, sizeof(ladder)));
    }
  }
}

/* What a tensor may travel by. */
static void print_guard(const lcomm_policy *policy, const lcomm_topo *topo) {
  if (policy->guard.steps == 0) {
    return;
  }
  printf("guard        every %llu steps; %s", (unsigned long long)policy->guard.steps,
         policy->guard.report ? "it only reports" : "beyond a limit one codec milder: ");
  if (!policy->guard.report) {
    print_ladders(policy, topo->nodes);
  }
  printf("\n");
}

static void print_messages(const lcomm_policy *policy, const lcomm_topo *topo) {
  char text[LCOMM_PIPE_TEXT_MAX];
  if (lcomm_pipe_describe(policy, topo, text, sizeof(text))[0]) {
    printf("messages     between two ranks: %s\n", text);
  }
}

static int print_screen(const info_options *o, const lcomm_policy *policy, const lcomm_topo *topo,
                        uint64_t share) {
  char policy_text[LCOMM_POLICY_MAX];
  info_print_build();
  printf("\ntopology     %d rank%s on %d node%s\n", topo->size, topo->size == 1 ? "" : "s",
         topo->nodes, topo->nodes == 1 ? "" : "s");
  info_print_ranks(topo);
  lcomm_policy_format(policy, policy_text);
  printf("\npolicy       %s\n", policy_text);
  print_guard(policy, topo);
  print_messages(policy, topo);
  int result = print_plans(o, policy, topo);
  print_progress(o, share);
  printf("\nenvironment\n");
  print_env();
  return result;
}

static int print_all(const info_options *o) {
  lcomm_why error;
  lcomm_topo topo = {0};
  lcomm_policy policy;
  const char *wanted = o->policy ? o->policy : lcomm_env_get(LCOMM_ENV_POLICY);
  int rank = info_rank();
  uint64_t share = info_processors_share();
  char *rails = o->only_topology && !o->topology_file && o->ranks == 0 ? info_rails() : NULL;
  lcomm_status status = info_topology_find(o, &topo, &error);
  topo.all_have_devices |= o->device;
  if (status == LCOMM_OK) {
    status = lcomm_policy_parse(wanted, &policy, &error);
  }
  if (status == LCOMM_OK && o->rank >= topo.size) {
    status = lcomm_why_set(&error, LCOMM_ERR_ARGUMENT, "there is no rank %d among %d", o->rank,
                           topo.size);
  }
  if (status == LCOMM_OK && rank == 0 && lcomm_policy_is_automatic(&policy)) {
    info_codec_costs(&topo);
  }
  int result = 0;
  if (status != LCOMM_OK) {
    result = INFO_BAD_INPUT;
    fprintf(stderr, "libcomm-info: %s\n", error.text);
  } else if (rank == 0 && o->json) {
    result = info_print_json(o, &policy, &topo);
  } else if (rank == 0 && o->rows > 0) {
    result = info_print_matrix(o, &policy, &topo);
  } else if (rank == 0 && o->only_topology) {
    result = print_topology(o, &policy, &topo, rails);
  } else if (rank == 0 && o->only_plan) {
    result = print_plans(o, &policy, &topo);
  } else if (rank == 0) {
    result = print_screen(o, &policy, &topo, share);
  }
  free(rails);
  lcomm_topo_free(&topo);
  return result;
}

int main(int argc, char **argv) {
  info_options o = {.dtype = LCOMM_FLOAT32};
  int verdict = info_parse_options(argc, argv, &o);
  if (verdict != 0) {
    return verdict < 0 ? 0 : verdict;
  }
  if (o.only_env) {
    print_env();
    return 0;
  }
  info_ranks_begin(&argc, &argv);
  verdict = o.measure ? info_print_measured(&o) : print_all(&o);
  info_ranks_end();
  return verdict;
}
