/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/common/tool_units.h"
#include "tools/cuda/cuda_case.h"
#include "tools/cuda/cuda_fixture.h"

enum {
  OPTION_ONLY = 256,
  OPTION_LIMIT,
  OPTION_TORCH,
  OPTION_JSON,
  OPTION_CSV,
  OPTION_LIST,
  OPTION_VERSION,
  DEVICES_MAX = 1024,
  LIMIT_MAX_S = 86400
};

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

static const struct option names[] = {{"count", required_argument, NULL, 'n'},
                                      {"samples", required_argument, NULL, 's'},
                                      {"launches", required_argument, NULL, 'l'},
                                      {"device", required_argument, NULL, 'd'},
                                      {"only", required_argument, NULL, OPTION_ONLY},
                                      {"limit", required_argument, NULL, OPTION_LIMIT},
                                      {"torch", optional_argument, NULL, OPTION_TORCH},
                                      {"json", required_argument, NULL, OPTION_JSON},
                                      {"csv", required_argument, NULL, OPTION_CSV},
                                      {"list", no_argument, NULL, OPTION_LIST},
                                      {"version", no_argument, NULL, OPTION_VERSION},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

static bool is_known(const char *part) {
  for (size_t i = 0; i < lcomm_gpu_case_count; i++) {
    if (strstr(lcomm_gpu_cases[i].name, part)) {
      return true;
    }
  }
  return false;
}

static bool read_count(const char *text, uint64_t *count) {
  return tool_units_read_size(text, count) && *count > 0 && *count <= LCOMM_GPU_COUNT_MAX;
}

static bool apply_number(lcomm_gpu_options *o, int option, const char *value, char *error) {
  uint64_t device = 0;
  switch (option) {
  case 'n':
    if (read_count(value, &o->count)) {
      return true;
    }
    snprintf(error, LCOMM_GPU_WHY_MAX, "'-n %s' is no number from 1 to 2G", value);
    return false;
  case 's':
    if (tool_units_read_whole(value, 0, TOOL_REPETITIONS_MAX, &o->samples)) {
      return true;
    }
    snprintf(error, LCOMM_GPU_WHY_MAX, "'-s %s' is no number from 0 to %d", value,
             TOOL_REPETITIONS_MAX);
    return false;
  case 'l':
    if (tool_units_read_whole(value, 1, 1000000, &o->launches)) {
      return true;
    }
    snprintf(error, LCOMM_GPU_WHY_MAX, "'-l %s' is no number from 1 to 1000000", value);
    return false;
  case OPTION_LIMIT:
    if (tool_units_read_whole(value, 0, LIMIT_MAX_S, &o->limit_s)) {
      return true;
    }
    snprintf(error, LCOMM_GPU_WHY_MAX, "'--limit %s' is no number of seconds", value);
    return false;
  default: /* 'd' */
    if (!tool_units_read_whole(value, 0, DEVICES_MAX, &device)) {
      snprintf(error, LCOMM_GPU_WHY_MAX, "'-d %s' is no number of a device", value);
      return false;
    }
    o->device = (int)device;
    return true;
  }
}

static bool apply(lcomm_gpu_options *o, int option, const char *value, char *error) {
  switch (option) {
  case OPTION_ONLY:
    o->only = value;
    snprintf(error, LCOMM_GPU_WHY_MAX, "no case has '%s' in its name; --list names them", value);
    return is_known(value);
  case OPTION_TORCH:
    o->torch_script = value ? value : "tools/cuda/torch_topk.py";
    return true;
  case OPTION_JSON:
    o->json_path = value;
    return true;
  case OPTION_CSV:
    o->csv_path = value;
    return true;
  case OPTION_LIST:
    return o->list = true;
  case '?':
  case ':':
    snprintf(error, LCOMM_GPU_WHY_MAX, "there is an option that is unknown or lacks its value");
    return false;
  default:
    return apply_number(o, option, value, error);
  }
}

lcomm_gpu_parse lcomm_gpu_options_parse(int argc, char **argv, lcomm_gpu_options *options,
                                        char *error) {
  *options = (lcomm_gpu_options){.count = UINT64_C(1) << 28, .samples = 15, .launches = 20};
  error[0] = '\0';
  opterr = 0;
  optind = 0;
  for (int c; (c = getopt_long(argc, argv, ":n:s:l:d:h", names, NULL)) != -1;) {
    if (c == 'h') {
      return LCOMM_GPU_HELP;
    }
    if (c == OPTION_VERSION) {
      return LCOMM_GPU_VERSION;
    }
    if (!apply(options, c, optarg, error)) {
      return LCOMM_GPU_USAGE;
    }
  }
  if (optind < argc) {
    snprintf(error, LCOMM_GPU_WHY_MAX, "'%s' is no option", argv[optind]);
    return LCOMM_GPU_USAGE;
  }
  return LCOMM_GPU_RUN;
}

void lcomm_gpu_help(void) {
  fputs(usage, stdout);
}
