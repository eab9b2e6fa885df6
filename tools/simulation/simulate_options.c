/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_cache.h"
#include "tools/common/tool_units.h"

static const char usage[] =
    "usage: simulate [OPTIONS]\n"
    "Simulate training steps event by event, over the schedules, plans and policies of libcomm, "
    "on\n"
    "machines that are not there.\n"
    "The world:\n"
    "  --nodes N             (default 4)\n"
    "  --sweep LIST          several numbers of nodes: 2,4,8 or 2-1024, which doubles\n"
    "  --ranks N             of each node (default 8)\n"
    "  --topology FILE       nodes, ranks and what links cost, as libcomm-info --topology and\n"
    "                        --measure print them\n"
    "  --link LIST           between nodes: names (--list-links), or rates such as 200mbit for "
    "TCP\n"
    "                        (default 25g, or as the topology says)\n"
    "  --inside NAME         inside a node: a name, or a rate such as 20GB\n"
    "  --cards N             network cards of a node (default 1)\n"
    "  --latency TIME        of a message between nodes, such as 30us or 20ms\n"
    "  --message TIME        of a processor for a message between nodes, at each end\n"
    "  --byte-ns NS          of a processor for a byte between nodes, at each end\n"
    "  --burst SIZE          that a card lets pass at once after a pause (default 0)\n"
    "  --processors N        of a node, for communication and backward passes of all its ranks\n"
    "                        (default 0: each rank has one for communication, and computes\n"
    "                        elsewhere)\n"
    "  --one-machine         all nodes share these processors, as emulated hosts do\n"
    "  --cache SIZE          that these processors share, or here: what this machine has; vectors\n"
    "                        in it have the speeds of the smallest size (default 0: all are in\n"
    "                        memory)\n"
    "What is computed:\n"
    "  --parameters N        such as 350M or 1G (default 100M), in tensors of --tensor\n"
    "  --tensor SIZE         in bytes (default 25M)\n"
    "  --compute TIME        of forward and backward together (default 0)\n"
    "  --fill                instead: a copy fills the tensors, as allreduce_perf --tensors does\n"
    "  --tokens N            of a rank in a step, which take 6 floating-point operations for each\n"
    "                        parameter, at ...\n"
    "  --tflops N            ... so many 10^12 a second\n"
    "  --workload FILE       tensors with their times instead, as JSON (README.md)\n"
    "  --computation TRACE   tensors with their times from the trace of a rank (LCOMM_TRACE)\n"
    "  --speeds FILE         of codecs, as codec_bench --json prints them, of the largest size\n"
    "                        (default: built in)\n"
    "  --launch TIME         of each computation besides, such as 4us on a GPU (default 0)\n"
    "How it is sent:\n"
    "  --policy POLICY       up to 8 times; the first is what others are compared with (default\n"
    "                        exact, net=int8 and net=topk:0.01+ef)\n"
    "  --type TYPE           float32, float16 or bfloat16 (default float32)\n"
    "  --calls               all-reduces of plain buffers instead of tensors\n"
    "  --steps N             training steps; of several the first does not count (default 1)\n"
    "  --symmetry MODE       auto, on, off: may node 0 stand for all (default auto)\n"
    "What is shown:\n"
    "  --trace FILE          a timeline for Perfetto; of one world and one policy\n"
    "  --json                results for programs\n"
    "  --list-links          names of links, with what they mean\n"
    "  --version\n"
    "  --help\n"
    "Columns: step, with backward; communication, while some bucket is on its way; hidden, the\n"
    "share of that while the step computes; sent by a network card, with packet headers, and its\n"
    "messages; wire, the time that takes at the card's rate; memory of a rank besides gradients;\n"
    "times as fast as the first policy.\n"
    "Exit status: 1 a case cannot be simulated, 2 bad usage, or a file that cannot be read.\n";

void simulate_options_help(void) {
  fputs(usage, stdout);
}

/* ---------------------------------------------------------------- numbers */

/* "20ms", "30us", "1.5s"; "0". */
static bool read_time(const char *text, double *seconds) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  char *rest = NULL;
  double value = strtod(text, &rest);
  if (strspn(text, "0123456789.") == 0 || !(value >= 0 && value <= 1e5)) {
    return false;
  }
  if (value == 0 && *rest == '\0') {
    *seconds = 0;
    return true;
  }
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(rest, units[i].name) == 0) {
      *seconds = value * units[i].seconds;
      return *seconds <= 1e4;
    }
  }
  return false;
}

static bool read_latency(tool_command_line *line, const char *value) {
  return read_time(value, &((simulate_options *)line->options)->latency_s);
}

static bool read_message(tool_command_line *line, const char *value) {
  return read_time(value, &((simulate_options *)line->options)->message_s);
}

static bool read_compute(tool_command_line *line, const char *value) {
  return read_time(value, &((simulate_options *)line->options)->compute_s);
}

static bool read_launch(tool_command_line *line, const char *value) {
  double seconds = 0;
  bool good = read_time(value, &seconds);
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

/* Parameters and tokens: powers of 1000. */
static bool read_count(const char *text, double most, uint64_t *count) {
  static const char prefixes[] = "KMGT";
  char *rest = NULL;
  double value = strtod(text, &rest);
  if (strspn(text, "0123456789.") == 0 || !(value > 0)) {
    return false;
  }
  const char *prefix = *rest == '\0' ? NULL : strchr(prefixes, *rest == 'k' ? 'K' : *rest);
  for (int i = 0; prefix && i <= prefix - prefixes; i++) {
    value *= 1000;
  }
  if ((*rest != '\0' && (!prefix || rest[1] != '\0')) || !(value >= 1 && value <= most)) {
    return false;
  }
  *count = (uint64_t)(value + 0.5);
  return true;
}

static bool read_parameters(tool_command_line *line, const char *value) {
  return read_count(value, (double)SIMULATE_PARAMETERS_MAX,
                    &((simulate_options *)line->options)->parameters);
}

static bool read_tokens(tool_command_line *line, const char *value) {
  return read_count(value, 1e12, &((simulate_options *)line->options)->tokens);
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

static bool is_usable(const simulate_link *link) {
  return link->bytes_per_s >= 100 && link->bytes_per_s <= 1e15;
}

static bool read_links(tool_command_line *line, const char *value) {
  simulate_options *o = line->options;
  o->link_count = 0;
  do {
    simulate_named_link *it = &o->links[o->link_count];
    if (o->link_count == SIMULATE_LINKS_MAX ||
        !tool_units_next_word(&value, it->name, sizeof it->name) ||
        !simulate_links_between(it->name, &it->link) || !is_usable(&it->link)) {
      return tool_refuse(line,
                         "--link takes up to %d names (--list-links) or rates such as 200mbit",
                         SIMULATE_LINKS_MAX);
    }
    o->link_count++;
  } while (*value != '\0');
  return true;
}

static bool read_inside(tool_command_line *line, const char *value) {
  simulate_named_link *it = &((simulate_options *)line->options)->inside;
  if (strlen(value) >= sizeof it->name || !simulate_links_inside(value, &it->link) ||
      !is_usable(&it->link)) {
    return tool_refuse(line, "--inside takes a name (--list-links) or a rate such as 20GB");
  }
  snprintf(it->name, sizeof it->name, "%s", value);
  return true;
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
  for (size_t i = 0; i < o->node_count; i++) {
    if ((int64_t)o->nodes[i] * o->ranks > SIMULATE_RANKS_MAX) {
      return tool_refuse(line, "%d nodes of %d ranks are more than %d ranks", o->nodes[i], o->ranks,
                         SIMULATE_RANKS_MAX);
    }
  }
  return true;
}

static void fill_in(simulate_options *o) {
  if (o->policy_count == 0) {
    o->policies[0] = "";
    o->policies[1] = "net=int8";
    o->policies[2] = "net=topk:0.01+ef";
    o->policy_count = 3;
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
      TOOL_READ('l', "link", read_links),
      TOOL_READ(0, "inside", read_inside),
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

simulate_settings simulate_options_settings(const simulate_options *o, size_t link,
                                            const lcomm_topo *topo) {
  simulate_settings settings = {.cards = o->cards,
                                .processors = o->processors,
                                .one_machine = o->one_machine,
                                .cache = (double)o->cache_size,
                                .fills = o->fills,
                                .steps = o->steps};
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    settings.links[i] =
        o->inside.name[0] != '\0' ? o->inside.link : simulate_links_of_cost(&topo->cost[i]);
  }
  simulate_link *net = &settings.links[LCOMM_LINK_NET];
  *net = link < o->link_count ? o->links[link].link
                              : simulate_links_of_cost(&topo->cost[LCOMM_LINK_NET]);
  net->latency = o->latency_s >= 0 ? simulate_time_of(o->latency_s) : net->latency;
  net->message = o->message_s >= 0 ? simulate_time_of(o->message_s) : net->message;
  net->processor_ns_byte = o->byte_ns >= 0 ? o->byte_ns : net->processor_ns_byte;
  net->burst_size = o->burst_size;
  return settings;
}
