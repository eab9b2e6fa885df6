/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_cache.h"
#include "tools/common/tool_units.h"
#include "tools/simulation/simulate_text.h"

/* ---------------------------------------------------------------- numbers */

static bool read_latency(tool_command_line *line, const char *value) {
  return simulate_text_time(value, &((simulate_options *)line->options)->latency_s);
}

static bool read_message(tool_command_line *line, const char *value) {
  return simulate_text_time(value, &((simulate_options *)line->options)->message_s);
}

static bool read_compute(tool_command_line *line, const char *value) {
  return simulate_text_time(value, &((simulate_options *)line->options)->compute_s);
}

static bool read_launch(tool_command_line *line, const char *value) {
  double seconds = 0;
  bool good = simulate_text_time(value, &seconds);
  ((simulate_options *)line->options)->launch_us = seconds * 1e6;
  return good;
}

static bool read_byte_ns(tool_command_line *line, const char *value) {
  double *ns = &((simulate_options *)line->options)->byte_ns;
  return tool_units_read_number(value, -1e-300, ns) && *ns <= 1e6;
}

static bool read_tflops(tool_command_line *line, const char *value) {
  return tool_units_read_number(value, 0, &((simulate_options *)line->options)->tflops);
}

static bool read_parameters(tool_command_line *line, const char *value) {
  return simulate_text_count(value, (double)SIMULATE_PARAMETERS_MAX,
                             &((simulate_options *)line->options)->parameters);
}

static bool read_tokens(tool_command_line *line, const char *value) {
  return simulate_text_count(value, 1e12, &((simulate_options *)line->options)->tokens);
}

static bool read_size(const char *value, uint64_t least, uint64_t *size) {
  return tool_units_read_size(value, size) && *size >= least && *size <= UINT64_C(1) << 40;
}

static bool read_tensor(tool_command_line *line, const char *value) {
  return read_size(value, 64, &((simulate_options *)line->options)->tensor_size);
}

static bool read_burst(tool_command_line *line, const char *value) {
  return read_size(value, 0, &((simulate_options *)line->options)->burst_size);
}

static bool read_cache(tool_command_line *line, const char *value) {
  uint64_t *size = &((simulate_options *)line->options)->cache_size;
  if (strcmp(value, "here") == 0) {
    *size = tool_cache_size(TOOL_CACHE_FOLDER);
    return true;
  }
  return read_size(value, 0, size);
}

/* ------------------------------------------------------------------ lists */

static bool add_nodes(simulate_options *o, uint64_t nodes) {
  if (o->node_count == SIMULATE_SWEEP_MAX) {
    return false;
  }
  o->nodes[o->node_count++] = (int)nodes;
  return true;
}

/* "2-1024": the first, twice that, and so on; the last one in any case. */
static bool add_doubling(simulate_options *o, const char *word, const char *dash) {
  char first[TOOL_UNITS_TEXT_MAX] = "";
  uint64_t from = 0, to = 0;
  memcpy(first, word, (size_t)(dash - word));
  if (!tool_units_read_whole(first, 1, SIMULATE_NODES_MAX, &from) ||
      !tool_units_read_whole(dash + 1, from, SIMULATE_NODES_MAX, &to)) {
    return false;
  }
  for (uint64_t nodes = from; nodes < to; nodes *= 2) {
    if (!add_nodes(o, nodes)) {
      return false;
    }
  }
  return add_nodes(o, to);
}

static bool read_sweep(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  char word[TOOL_UNITS_TEXT_MAX];
  o->node_count = 0;
  do {
    uint64_t nodes = 0;
    bool good = tool_units_next_word(&value, word, sizeof word);
    const char *dash = good ? strchr(word, '-') : NULL;
    good = good && (dash ? add_doubling(o, word, dash)
                         : tool_units_read_whole(word, 1, SIMULATE_NODES_MAX, &nodes) &&
                               add_nodes(o, nodes));
    if (!good) {
      return tool_refuse(line,
                         "--sweep takes up to %d numbers of nodes, such as 2,4,8 or 2-1024, "
                         "each up to %d",
                         SIMULATE_SWEEP_MAX, SIMULATE_NODES_MAX);
    }
  } while (*value != '\0');
  return true;
}

static bool read_nodes(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  uint64_t nodes = 0;
  o->node_count = 0;
  return tool_units_read_whole(value, 1, SIMULATE_NODES_MAX, &nodes) && add_nodes(o, nodes);
}

static bool read_policy(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  lcomm_policy policy;
  lcomm_why error;
  if (o->policy_count == SIMULATE_POLICIES_MAX) {
    return tool_refuse(line, "more than %d policies", SIMULATE_POLICIES_MAX);
  }
  if (lcomm_policy_parse(value, &policy, &error) != LCOMM_OK) {
    return tool_refuse(line, "%s", error.text);
  }
  o->policies[o->policy_count++] = value;
  return true;
}

static bool read_type(tool_command_line *line, const char *value) {
  static const lcomm_dtype types[] = {LCOMM_FLOAT32, LCOMM_FLOAT16, LCOMM_BFLOAT16};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(value, lcomm_dtype_name(types[i])) == 0) {
      ((simulate_options *)line->options)->dtype = types[i];
      return true;
    }
  }
  return false;
}

static bool read_symmetry(tool_command_line *line, const char *value) {
  static const char *const names[] = {"auto", "on", "off"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(value, names[i]) == 0) {
      ((simulate_options *)line->options)->symmetry = (simulate_symmetry)i;
      return true;
    }
  }
  return false;
}

/* -------------------------------------------------------------- the whole */

static const simulate_options defaults = {.nodes = {4},
                                          .node_count = 1,
                                          .ranks = 8,
                                          .latency_s = -1,
                                          .message_s = -1,
                                          .byte_ns = -1,
                                          .cards = 1,
                                          .steps = 1,
                                          .parameters = 100000000,
                                          .tensor_size = 25 << 20,
                                          .dtype = LCOMM_FLOAT32};

static bool check(tool_command_line *line, const simulate_options *o) {
  if (o->workload && o->computation) {
    return tool_refuse(line, "--workload and --computation both say what is computed; take one");
  }
  if ((o->tokens > 0) != (o->tflops > 0)) {
    return tool_refuse(line, "--tokens and --tflops belong together");
  }
  if (o->one_machine && o->processors == 0) {
    return tool_refuse(line, "--one-machine wants --processors, the number that nodes share");
  }
  if (o->cache_size > 0 && o->processors == 0) {
    return tool_refuse(line, "--cache wants --processors, the number that share it");
  }
  if (o->fills && (o->compute_s > 0 || o->tokens > 0 || o->workload || o->computation)) {
    return tool_refuse(line, "--fill is instead of a computation; take one");
  }
  if (o->one_machine && o->symmetry == SIMULATE_SYMMETRY_ON) {
    return tool_refuse(line,
                       "on --one-machine all nodes work on the same processors, so one cannot "
                       "stand for all; leave --symmetry on away");
  }
  if (o->trace && (o->node_count > 1 || o->link_count > 1 || o->policy_count != 1)) {
    return tool_refuse(line, "--trace shows one simulation: one --policy, one number of nodes and "
                             "one --link");
  }
  if (!simulate_options_check_late(line, o)) {
    return false;
  }
  for (size_t i = 0; i < o->node_count; i++) {
    if ((int64_t)o->nodes[i] * o->ranks > SIMULATE_RANKS_MAX) {
      return tool_refuse(line, "%d nodes of %d ranks are more than %d ranks", o->nodes[i], o->ranks,
                         SIMULATE_RANKS_MAX);
    }
  }
  return true;
}

static void fill_in(simulate_options *o) {
  static const char *const codecs[] = {"", "net=int8", "net=topk:0.01+ef", NULL};
  static const char *const rules[] = {"", "quorum=75%", "stale=2", "stale=2:drop", NULL};
  const char *const *standard = o->late_count > 0 ? rules : codecs;
  bool has_none = o->policy_count == 0;
  for (size_t i = 0; has_none && standard[i]; i++) {
    o->policies[o->policy_count++] = standard[i];
  }
  if (o->link_count == 0 && !o->topology) {
    strcpy(o->links[0].name, "25g");
    (void)simulate_links_between("25g", &o->links[0].link);
    o->link_count = 1;
  }
  if (o->tokens > 0) {
    o->compute_s = 6.0 * (double)o->tokens * (double)o->parameters / (o->tflops * 1e12);
  }
}

tool_parse simulate_options_parse(int argc, char **argv, simulate_options *made, char *error) {
  static const tool_option known[] = {
      TOOL_READ('n', "nodes", read_nodes),
      TOOL_READ(0, "sweep", read_sweep),
      TOOL_INT('r', "ranks", offsetof(simulate_options, ranks), 1, 1024),
      TOOL_NAME(0, "topology", offsetof(simulate_options, topology)),
      TOOL_READ('l', "link", simulate_options_read_links),
      TOOL_READ(0, "server-link", simulate_options_read_server_link),
      TOOL_READ(0, "inside", simulate_options_read_inside),
      TOOL_INT(0, "cards", offsetof(simulate_options, cards), 1, 1024),
      TOOL_READ(0, "latency", read_latency),
      TOOL_READ(0, "message", read_message),
      TOOL_READ(0, "byte-ns", read_byte_ns),
      TOOL_READ(0, "burst", read_burst),
      TOOL_INT(0, "processors", offsetof(simulate_options, processors), 0, 65536),
      TOOL_FLAG(0, "one-machine", offsetof(simulate_options, one_machine), true),
      TOOL_READ(0, "cache", read_cache),
      TOOL_READ(0, "parameters", read_parameters),
      TOOL_READ(0, "tensor", read_tensor),
      TOOL_READ(0, "compute", read_compute),
      TOOL_FLAG(0, "fill", offsetof(simulate_options, fills), true),
      TOOL_READ(0, "tokens", read_tokens),
      TOOL_READ(0, "tflops", read_tflops),
      TOOL_NAME(0, "workload", offsetof(simulate_options, workload)),
      TOOL_NAME(0, "computation", offsetof(simulate_options, computation)),
      TOOL_NAME(0, "speeds", offsetof(simulate_options, speeds)),
      TOOL_READ(0, "launch", read_launch),
      TOOL_READ(0, "late", simulate_options_read_late),
      TOOL_READ('p', "policy", read_policy),
      TOOL_READ(0, "type", read_type),
      TOOL_FLAG(0, "calls", offsetof(simulate_options, calls), true),
      TOOL_INT(0, "steps", offsetof(simulate_options, steps), 1, SIMULATE_STEPS_MAX),
      TOOL_READ(0, "symmetry", read_symmetry),
      TOOL_NAME(0, "trace", offsetof(simulate_options, trace)),
      TOOL_FLAG(0, "json", offsetof(simulate_options, json), true),
      TOOL_FLAG(0, "list-links", offsetof(simulate_options, list_links), true),
      {0}};
  tool_command_line line = {.argc = argc, .argv = argv, .options = made, .error = error};
  *made = defaults;
  tool_parse parse = tool_options_parse(&line, known);
  if (parse == TOOL_RUN && (!tool_refuse_operands(&line) || !check(&line, made))) {
    parse = TOOL_USAGE;
  }
  fill_in(made);
  return parse;
}
