/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_options.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_options.h"

static const char usage[] =
    "Usage: libcomm-info [options], alone or under mpirun\n"
    "\n"
    "  --policy POLICY     plan under this policy; without it LCOMM_POLICY, else exact\n"
    "  --size SIZE[,SIZE]  plan all-reduces of these sizes in bytes; K, M, G (1K,64K,1M,64M)\n"
    "  --tensor            plan buckets of tensors, which may keep error feedback\n"
    "  --type TYPE         float32, float16 or bfloat16 (float32)\n"
    "  --ranks N           suppose N ranks ...\n"
    "  --nodes M           ... on M nodes\n"
    "  --rank R            show the plan of rank R (0)\n"
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

bool info_parse_number(const char *text, int lowest, int *value) {
  char *end = NULL;
  long number = strtol(text, &end, 10);
  *value = (int)number;
  return end != text && *end == '\0' && number >= lowest && number <= 1 << 20;
}

static bool parse_sizes(const char *text, info_options *o) {
  o->size_count = 0;
  while (*text) {
    char *end = NULL;
    if (!isdigit((unsigned char)*text) || o->size_count == INFO_SIZES_MAX) {
      return false;
    }
    uint64_t size = strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (size > UINT64_C(1) << 40) {
      return false;
    }
    o->sizes[o->size_count++] = size << shift;
    text = end + (shift > 0);
    if (*text == ',') {
      text++;
    } else if (*text) {
      return false;
    }
  }
  return o->size_count > 0;
}

static bool parse_type(const char *text, lcomm_dtype *dtype) {
  for (int i = 0; lcomm_dtype_size((lcomm_dtype)i) > 0; i++) {
    if (strcmp(text, lcomm_dtype_name((lcomm_dtype)i)) == 0) {
      *dtype = (lcomm_dtype)i;
      return true;
    }
  }
  return false;
}

int info_parse_options(int argc, char **argv, info_options *o) {
  static const struct option known[] = {
      {"policy", required_argument, NULL, 'p'}, {"size", required_argument, NULL, 's'},
      {"type", required_argument, NULL, 't'},   {"ranks", required_argument, NULL, 'n'},
      {"nodes", required_argument, NULL, 'm'},  {"rank", required_argument, NULL, 'r'},
      {"load", required_argument, NULL, 'l'},   {"topology", optional_argument, NULL, 'T'},
      {"tensor", no_argument, NULL, 'b'},       {"env", no_argument, NULL, 'e'},
      {"measure", no_argument, NULL, 'M'},      {"plan", no_argument, NULL, 'P'},
      {"json", no_argument, NULL, 'j'},         {"version", no_argument, NULL, 'V'},
      {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
  parse_sizes("1K,64K,1M,64M", o);
  for (int c; (c = getopt_long(argc, argv, "p:s:t:n:m:r:l:T::bMPjVeh", known, NULL)) != -1;) {
    bool good = true;
    switch (c) {
    case 'p':
      o->policy = optarg;
      break;
    case 's':
      good = parse_sizes(optarg, o);
      break;
    case 't':
      good = parse_type(optarg, &o->dtype);
      break;
    case 'n':
      good = info_parse_number(optarg, 1, &o->ranks);
      break;
    case 'm':
      good = info_parse_number(optarg, 1, &o->nodes);
      break;
    case 'r':
      good = info_parse_number(optarg, 0, &o->rank);
      break;
    case 'l':
      o->topology_file = optarg;
      break;
    case 'T': /* the file may stand alone behind it */
      o->only_topology = true;
      o->topology_file = optarg                                    ? optarg
                         : optind < argc && argv[optind][0] != '-' ? argv[optind++]
                                                                   : o->topology_file;
      break;
    case 'M':
      o->measure = true;
      break;
    case 'b':
      o->tensor = true;
      break;
    case 'e':
      o->only_env = true;
      break;
    case 'P':
      o->only_plan = true;
      break;
    case 'j':
      o->json = true;
      break;
    case 'V':
      tool_print_version("libcomm-info");
      return -1;
    case 'h':
      fputs(usage, stdout);
      return -1;
    default:
      return INFO_BAD_INPUT;
    }
    if (!good) {
      return info_complain("cannot use the value", optarg);
    }
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
  return optind < argc ? info_complain("unexpected argument", argv[optind]) : 0;
}
