/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_options.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_options.h"
#include "tools/common/tool_units.h"

static const char usage[] =
    "Usage: libcomm-info [options], alone or under mpirun\n"
    "\n"
    "  --policy POLICY     plan under this policy; without it LCOMM_POLICY, else exact\n"
    "  --size SIZE[,SIZE]  plan all-reduces of these sizes in bytes; K, M, G (1K,64K,1M,64M)\n"
    "  --tensor            plan buckets of tensors, which may keep error feedback\n"
    "  --matrix ROWSxCOLUMNS  plan a tensor of this shape instead, and say what it sends: by low\n"
    "                      rank, if the policy has it and this matrix gains, or net=auto chooses\n"
    "                      it\n"
    "  --type TYPE         float32, float16 or bfloat16 (float32)\n"
    "  --ranks N           suppose N ranks ...\n"
    "  --nodes M           ... on M nodes\n"
    "  --rank R            show the plan of rank R (0)\n"
    "  --device            suppose that every rank has a device, and say what calls of CUDA\n"
    "                      an operation costs its caller there\n"
    "  --topology [FILE]   print only this machine and the topology, or the one in FILE and what\n"
    "                      its ranks would send over which links, as text that loads back\n"
    "  --measure           under mpirun: print the topology of the ranks with what their links "
    "cost,\n"
    "                      measured between the first two ranks of each class of link\n"
    "  --load FILE         plan for the topology in FILE\n"
    "  --plan              print only the plans, with the time they would take\n"
    "  --json              print all of it, or with --plan the plans, as JSON\n"
    "  --env               print only the environment variables\n"
    "  --version           print the version\n"
    "  --help              this text\n";

int info_complain(const char *what, const char *value) {
  fprintf(stderr, "libcomm-info: %s '%s'; --help lists the options\n", what, value);
  return INFO_BAD_INPUT;
}

static bool read_sizes(tool_command_line *line, const char *value) {
  info_options *o = line->options;
  return tool_units_read_sizes(value, o->sizes, INFO_SIZES_MAX, &o->size_count);
}

/* As many elements as a vector may have. */
static bool read_matrix(tool_command_line *line, const char *value) {
  info_options *o = line->options;
  const char *x = strchr(value, 'x');
  char rows[TOOL_UNITS_TEXT_MAX];
  if (!x || (size_t)(x - value) >= sizeof rows) {
    return false;
  }
  snprintf(rows, sizeof rows, "%.*s", (int)(x - value), value);
  return tool_units_read_whole(rows, 1, INFO_SIDE_MAX, &o->rows) &&
         tool_units_read_whole(x + 1, 1, INFO_SIDE_MAX, &o->columns) &&
         o->rows * o->columns <= INFO_ELEMENTS_MAX;
}

static bool read_type(tool_command_line *line, const char *value) {
  info_options *o = line->options;
  for (int i = 0; lcomm_dtype_size((lcomm_dtype)i) > 0; i++) {
    if (strcmp(value, lcomm_dtype_name((lcomm_dtype)i)) == 0) {
      o->dtype = (lcomm_dtype)i;
      return true;
    }
  }
  return false;
}

/* The file may stand alone behind the option. */
static bool read_topology(tool_command_line *line, const char *value) {
  info_options *o = line->options;
  const char *next = tool_next_word(line);
  o->only_topology = true;
  if (value) {
    o->topology_file = value;
  } else if (next && next[0] != '-') {
    o->topology_file = next;
    tool_take_word(line);
  }
  return true;
}

#define MEMBER(member) offsetof(info_options, member)
static const tool_option known[] = {TOOL_TEXT('p', "policy", MEMBER(policy)),
                                    TOOL_READ('s', "size", read_sizes),
                                    TOOL_READ('x', "matrix", read_matrix),
                                    TOOL_READ('t', "type", read_type),
                                    TOOL_INT('n', "ranks", MEMBER(ranks), 1, INFO_NUMBER_MAX),
                                    TOOL_INT('m', "nodes", MEMBER(nodes), 1, INFO_NUMBER_MAX),
                                    TOOL_INT('r', "rank", MEMBER(rank), 0, INFO_NUMBER_MAX),
                                    TOOL_TEXT('l', "load", MEMBER(topology_file)),
                                    TOOL_MAY_READ('T', "topology", read_topology),
                                    TOOL_FLAG('b', "tensor", MEMBER(tensor), true),
                                    TOOL_FLAG('d', "device", MEMBER(device), true),
                                    TOOL_FLAG('e', "env", MEMBER(only_env), true),
                                    TOOL_FLAG('M', "measure", MEMBER(measure), true),
                                    TOOL_FLAG('P', "plan", MEMBER(only_plan), true),
                                    TOOL_FLAG('j', "json", MEMBER(json), true),
                                    {0}};

static void help(void) {
  fputs(usage, stdout);
}

int info_parse_options(int argc, char **argv, info_options *o) {
  char error[TOOL_ERROR_MAX];
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  read_sizes(&line, "1K,64K,1M,64M");
  tool_parse parse = tool_options_parse(&line, known);
  if (parse == TOOL_RUN && !tool_refuse_operands(&line)) {
    parse = TOOL_USAGE;
  }
  if (parse != TOOL_RUN) {
    int result = tool_answer("libcomm-info", parse, help, error);
    return result == 0 ? -1 : result;
  }
  if (o->measure && (o->ranks > 0 || o->topology_file)) {
    return info_complain("only ranks that are there can be measured, not those of",
                         o->topology_file ? o->topology_file : "--ranks");
  }
  if (o->json && (o->measure || o->only_topology || o->only_env)) {
    return info_complain("--json is for plans and for all together, not for",
                         o->measure         ? "--measure"
                         : o->only_topology ? "--topology"
                                            : "--env");
  }
  if (o->rows > 0 && (o->only_topology || o->measure || o->device)) {
    return info_complain("--matrix is for the plans of one tensor; it does not go with",
                         o->only_topology ? "--topology"
                         : o->measure     ? "--measure"
                                          : "--device");
  }
  return 0;
}
