/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_options.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/common/tool_units.h"
#include "tools/cuda/cuda_case.h"
#include "tools/cuda/cuda_fixture.h"

enum { DEVICES_MAX = 1024, LIMIT_MAX_S = 86400 };

static const char usage[] =
    "usage: cuda_bench [OPTIONS]\n"
    "Time the kernels of this machine's CUDA device, check their bytes against the host's codecs,\n"
    "and compare each with a copy of as many bytes inside the device, in turn, in the same run.\n"
    "  -n, --count N        values (default 256M; K, M and G are powers of 1024)\n"
    "  -s, --samples N      of each time (default 15; 0: no checks, no times: for a profiler)\n"
    "  -l, --launches N     in a row for a sample (default 20)\n"
    "  -d, --device N       (default 0)\n"
    "      --only TEXT      only cases whose name has this\n"
    "      --limit S        seconds for a case; one that hangs ends the program by SIGALRM\n"
    "      --torch[=SCRIPT] top-k by PyTorch, too (default tools/cuda/torch_topk.py)\n"
    "      --json FILE, --csv FILE   written anew after every case\n"
    "      --list           the cases and their targets, without a device\n"
    "      --version\n"
    "  -h, --help\n"
    "Columns: bytes: what a value costs at the least, read and written; time: of a launch, the\n"
    "median; GB/s: these bytes over the time; copy: the same for the copy; share: how many times\n"
    "as fast as the copy, the median over pairs, and its least and greatest.\n"
    "Exit status: 1 a result is not that of the host, or the device failed; 2 bad usage; 3 there\n"
    "is no device. A missed target is no failure. A device that is lost ends the measuring.\n";

static bool read_count(tool_command_line *line, const char *value) {
  lcomm_gpu_options *o = line->options;
  return (tool_units_read_size(value, &o->count) && o->count > 0 &&
          o->count <= LCOMM_GPU_COUNT_MAX) ||
         tool_refuse(line, "'-n %s' is no number from 1 to 2G", value);
}

static bool read_only(tool_command_line *line, const char *value) {
  ((lcomm_gpu_options *)line->options)->only = value;
  for (size_t i = 0; i < lcomm_gpu_case_count; i++) {
    if (strstr(lcomm_gpu_cases[i].name, value)) {
      return true;
    }
  }
  return tool_refuse(line, "no case has '%s' in its name; --list names them", value);
}

static bool read_torch(tool_command_line *line, const char *value) {
  ((lcomm_gpu_options *)line->options)->torch_script = value ? value : "tools/cuda/torch_topk.py";
  return true;
}

#define MEMBER(member) offsetof(lcomm_gpu_options, member)
static const tool_option known[] = {
    TOOL_READ('n', "count", read_count),
    TOOL_WHOLE('s', "samples", MEMBER(samples), 0, TOOL_REPETITIONS_MAX),
    TOOL_WHOLE('l', "launches", MEMBER(launches), 1, 1000000),
    TOOL_INT('d', "device", MEMBER(device), 0, DEVICES_MAX),
    TOOL_READ(0, "only", read_only),
    TOOL_WHOLE(0, "limit", MEMBER(limit_s), 0, LIMIT_MAX_S),
    TOOL_MAY_READ(0, "torch", read_torch),
    TOOL_TEXT(0, "json", MEMBER(json_path)),
    TOOL_TEXT(0, "csv", MEMBER(csv_path)),
    TOOL_FLAG(0, "list", MEMBER(list), true),
    {0}};

tool_parse lcomm_gpu_options_parse(int argc, char **argv, lcomm_gpu_options *options, char *error) {
  tool_command_line line = {.argc = argc, .argv = argv, .options = options, .error = error};
  *options = (lcomm_gpu_options){.count = UINT64_C(1) << 28, .samples = 15, .launches = 20};
  return tool_options_parse_alone(&line, known);
}

void lcomm_gpu_help(void) {
  fputs(usage, stdout);
}
