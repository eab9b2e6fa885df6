/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_OPTIONS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_OPTIONS_H

/* The command line of simulate. */

#include "tools/common/tool_options.h"
#include "tools/simulation/simulate_engine.h"
#include "tools/simulation/simulate_late.h"
#include "tools/simulation/simulate_links.h"

enum { SIMULATE_POLICIES_MAX = 8, SIMULATE_SWEEP_MAX = 32, SIMULATE_LINKS_MAX = 8 };

typedef struct simulate_named_link {
  char name[SIMULATE_LINK_NAME_MAX];
  simulate_link link;
} simulate_named_link;

typedef struct simulate_options {
  int nodes[SIMULATE_SWEEP_MAX];
  size_t node_count;
  int ranks;            /* of each node */
  const char *topology; /* file instead of both; NULL: none */
  const char *policies[SIMULATE_POLICIES_MAX];
  size_t policy_count;
  simulate_named_link links[SIMULATE_LINKS_MAX]; /* between nodes */
  size_t link_count;
  simulate_named_link server_link;      /* of servers; name empty: as the others */
  simulate_named_link inside;           /* name empty: as the topology says */
  double latency_s, message_s, byte_ns; /* negative: as the link has it */
  uint64_t burst_size, cache_size;
  int cards, processors, steps;
  bool one_machine, fills, calls, json, list_links;
  uint64_t parameters, tensor_size;
  double compute_s;
  uint64_t tokens; /* with tflops: instead of compute_s */
  double tflops;
  const char *workload, *computation, *speeds, *trace; /* files; NULL: none */
  double launch_us;
  lcomm_dtype dtype;
  simulate_symmetry symmetry;
  simulate_lateness late[SIMULATE_LATE_MAX];
  size_t late_count;
} simulate_options;

/* After TOOL_USAGE a sentence is in `error` (TOOL_ERROR_MAX bytes). */
tool_parse simulate_options_parse(int argc, char **argv, simulate_options *made, char *error);
void simulate_options_help(void);

/* --link, --server-link and --inside: parts of simulate_options_parse. */
bool simulate_options_read_links(tool_command_line *line, const char *value);
bool simulate_options_read_server_link(tool_command_line *line, const char *value);
bool simulate_options_read_inside(tool_command_line *line, const char *value);

/* --late, and whether it fits the rest: parts of simulate_options_parse. */
bool simulate_options_read_late(tool_command_line *line, const char *value);
bool simulate_options_check_late(tool_command_line *line, const simulate_options *o);

/* The settings of a simulation over one of the links, in a topology. */
simulate_settings simulate_options_settings(const simulate_options *options, size_t link,
                                            const lcomm_topo *topo);

#endif
