/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEMBER(member) offsetof(experiment_options, member)
static const tool_option known[] = {TOOL_NAME('o', "out", MEMBER(out_asked)),
                                    TOOL_FLAG('n', "estimate", MEMBER(estimate_only), true),
                                    TOOL_FLAG('r', "report", MEMBER(report_only), true),
                                    TOOL_FLAG(0, "mix-machines", MEMBER(mix_machines), true),
                                    {0}};

void experiment_options_help(void) {
  fputs(
      "usage: libcomm-experiment [OPTIONS] FILE\n"
      "Run what FILE describes - programs, policies, rates of links, hosts, seeds - and show in a\n"
      "report when compression pays. tools/experiments/README.md explains such files.\n"
      "\n"
      "  -o, --out FOLDER    results (default build/experiments/NAME of the file)\n"
      "  -n, --estimate      only say which runs there are and how long they take\n"
      "  -r, --report        only make the report anew, from the runs that are there\n"
      "      --mix-machines  go on in a folder that has results of another machine\n"
      "      --version\n"
      "  -h, --help\n"
      "\n"
      "The folder gets report.html, report.md and results.csv, and in runs/ a folder for each "
      "run:\n"
      "run.json (command, environment, commit, machine, how it ended), results.jsonl, out, err,\n"
      "bytes.json. In pictures/ are the scripts that drew the report's pictures, in simulated/ "
      "what\n"
      "simulations read.\n"
      "The same call again goes on where the last one stopped, and tries again what failed; runs\n"
      "that are there are not repeated. Runs come in a random order that the seed of the file\n"
      "decides; each ends at its limit.\n"
      "\n"
      "Exit status: 0 all runs have results; 1 some failed, which the report names; 2 a bad file "
      "or\n"
      "option, or results cannot be written; 77 this machine can make no emulated hosts (root, "
      "ip,\n"
      "tc); 128 + the number of a signal: stopped, what was measured is kept.\n",
      stdout);
}

/* build/experiments/NAME, of the file's name without its ending. */
static bool name_folder(tool_command_line *line, experiment_options *o) {
  char name[256], here[EXPERIMENT_PATH_MAX / 2] = "";
  const char *last = strrchr(o->file, '/');
  snprintf(name, sizeof name, "%s", last ? last + 1 : o->file);
  char *dot = strrchr(name, '.');
  if (dot && dot != name) {
    *dot = '\0';
  }
  bool absolute = o->out_asked && o->out_asked[0] == '/';
  if (!absolute && !getcwd(here, sizeof here)) {
    return tool_refuse(line, "this folder has no name that is short enough");
  }
  int size = o->out_asked ? snprintf(o->out, sizeof o->out, "%s%s%s", here, absolute ? "" : "/",
                                     o->out_asked)
                          : snprintf(o->out, sizeof o->out, "%s/build/experiments/%s", here, name);
  return size < EXPERIMENT_PATH_MAX - EXPERIMENT_CASE_NAME_MAX - 64 ||
         tool_refuse(line, "the path of --out is too long");
}

tool_parse experiment_options_parse(int argc, char **argv, experiment_options *o, char *error) {
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  *o = (experiment_options){.file = NULL};
  tool_parse parse = tool_options_parse(&line, known);
  if (parse != TOOL_RUN) {
    return parse;
  }
  if (line.operand_count != 1) {
    tool_refuse(&line, "one FILE is wanted, not %zu", line.operand_count);
    return TOOL_USAGE;
  }
  o->file = line.operands[0];
  return name_folder(&line, o) ? TOOL_RUN : TOOL_USAGE;
}
