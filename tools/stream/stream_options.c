/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_options.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/stream/stream_case.h"

enum { NODES_MAX = 1024, LIMIT_MAX_S = 86400 };

static const char usage[] =
    "usage: RANK=R WORLD_SIZE=N MASTER_ADDR=HOST MASTER_PORT=PORT stream_bench [OPTIONS]\n"
    "Time sums in order with a stream of a CUDA device, as a program that trains makes them. "
    "Ranks\n"
    "take the devices in turn, and may share one.\n"
    "      --nodes N        nodes that ranks pose as (default: as they are)\n"
    "      --policy P       (default that of the environment)\n"
    "  -s, --samples N      of each time (default 15)\n"
    "      --only TEXT      only cases whose name has this\n"
    "      --limit S        seconds for a case; one that hangs ends the program by SIGALRM\n"
    "      --json FILE      by rank 0, written anew after every case\n"
    "      --list           the cases and their targets, without a device\n"
    "      --version\n"
    "  -h, --help\n"
    "latency: from the call until the stream is over, nothing else in it; host: until the call\n"
    "returns; same bits: sums of drawn values have the bits of sums of the host; graph: the same\n"
    "calls, captured into a CUDA graph and replayed; hidden: which share of a sum of 100 MiB the\n"
    "time of a matrix product (cuBLAS) beside it hides; allocate: memory is got and freed while\n"
    "sums are in flight, and these are right. Cases of bits allow any policy, the others want\n"
    "exact sums.\n"
    "Exit status: 1 a sum is wrong or failed; 2 bad usage; 3 there is no device. A missed target "
    "is\n"
    "no failure.\n";

static bool read_only(tool_command_line *line, const char *value) {
  ((stream_options *)line->options)->only = value;
  for (size_t i = 0; i < stream_case_count; i++) {
    if (strstr(stream_cases[i].name, value)) {
      return true;
    }
  }
  return tool_refuse(line, "no case has '%s' in its name; --list names them", value);
}

#define MEMBER(member) offsetof(stream_options, member)
static const tool_option known[] = {
    TOOL_INT(0, "nodes", MEMBER(nodes), 0, NODES_MAX),
    TOOL_TEXT(0, "policy", MEMBER(policy)),
    TOOL_WHOLE('s', "samples", MEMBER(samples), 1, TOOL_REPETITIONS_MAX),
    TOOL_READ(0, "only", read_only),
    TOOL_WHOLE(0, "limit", MEMBER(limit_s), 0, LIMIT_MAX_S),
    TOOL_NAME(0, "json", MEMBER(json_path)),
    TOOL_FLAG(0, "list", MEMBER(list), true),
    {0}};

tool_parse stream_options_parse(int argc, char **argv, stream_options *options, char *error) {
  tool_command_line line = {.argc = argc, .argv = argv, .options = options, .error = error};
  *options = (stream_options){.samples = 15};
  return tool_options_parse_alone(&line, known);
}

void stream_help(void) {
  fputs(usage, stdout);
}
