/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char perf_help[] =
    "usage: mpirun -np N allreduce_perf [OPTIONS]\n"
    "Time all-reduce under one or more policies, in turn, in one run.\n"
    "  -b, --bytes SIZE       smallest size of a rank's buffer (default 1M; K, M, G: 1024)\n"
    "  -e, --end SIZE         largest size (default: the smallest)\n"
    "  -f, --factor NUMBER    from one size to the next (default 2)\n"
    "  -n, --iterations N     timed runs of each case (default 5)\n"
    "  -w, --warmups N        runs before them (default 1)\n"
    "  -o, --op sum|avg       (default sum)\n"
    "  -d, --dtype TYPE       float32, float16 or bfloat16 (default float32)\n"
    "  -p, --policy POLICY    a policy, '' is exact; may be given up to 16 times (default '')\n"
    "      --against mpi      measure MPI_Allreduce too (float32 only)\n"
    "      --tensors          call through tensors, as a trainer does; a policy with +ef always\n"
    "                         does, since error feedback belongs to tensors\n"
    "  -c, --check            compare the last result with the exact one and between ranks\n"
    "      --data FILE        all-reduce the float32 values of FILE, repeated, instead of "
    "built-in\n"
    "                         numbers; %d in its name: one of several files for each rank\n"
    "      --interface NAME   also count bytes sent by this network interface of every host\n"
    "      --json FILE        write the results to FILE too\n"
    "  -h, --help\n"
    "Columns: min, med, max: of the slowest rank's time; algbw: size / med; busbw: algbw *\n"
    "2(P-1)/P; shm, net: bytes all ranks sent in one run, by link class; iface: bytes of all\n"
    "hosts' interfaces in one run, headers of all layers included; ratio: bytes of the same\n"
    "messages had they been exact / bytes sent, between nodes if there are several; error:\n"
    "mean squared error over mean square; #wrong: elements that differ between ranks or, for\n"
    "exact policies, from the exact result.\n"
    "Exit status: 1 results are wrong, 2 bad usage or an operation failed.\n";

/* A number of bytes such as 64K. Returns 0 if text is none. */
static int read_size(const char *text, uint64_t *size) {
  static const char units[] = "KMG";
  if (!isdigit((unsigned char)text[0])) {
    return 0;
  }
  char *end = NULL;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  unsigned shift = 0;
  const char *unit = *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : NULL;
  if (unit != NULL) {
    shift = 10 * (unsigned)(unit - units + 1);
    end++;
  }
  if (errno != 0 || *end != '\0' || value > (UINT64_C(1) << 50) >> shift) {
    return 0;
  }
  *size = (uint64_t)value << shift;
  return 1;
}

static int read_count(const char *text, int minimum, int *count) {
  char *end = NULL;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < minimum || value > 1000000) {
    return 0;
  }
  *count = (int)value;
  return 1;
}

static int read_factor(const char *text, double *factor) {
  char *end = NULL;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(value) || value <= 1.0) {
    return 0;
  }
  *factor = value;
  return 1;
}

static int read_op(const char *text, lcomm_op *op) {
  if (strcmp(text, "sum") != 0 && strcmp(text, "avg") != 0) {
    return 0;
  }
  *op = strcmp(text, "avg") == 0 ? LCOMM_AVG : LCOMM_SUM;
  return 1;
}

static int read_dtype(const char *text, lcomm_dtype *dtype) {
  for (int d = 0; lcomm_dtype_size((lcomm_dtype)d) > 0; d++) {
    if (strcmp(text, lcomm_dtype_name((lcomm_dtype)d)) == 0) {
      *dtype = (lcomm_dtype)d;
      return 1;
    }
  }
  return 0;
}

static int add_policy(const char *text, perf_options *options) {
  if (options->policy_count == PERF_POLICIES_MAX) {
    return 0;
  }
  options->policies[options->policy_count++] = text;
  return 1;
}

enum { OPTION_AGAINST = 256, OPTION_TENSORS, OPTION_JSON, OPTION_DATA, OPTION_INTERFACE };

/* Apply one option; 0 if its value is unusable. */
static int apply(int option, const char *value, perf_options *o) {
  switch (option) {
  case 'b':
    return read_size(value, &o->size_min_bytes);
  case 'e':
    return read_size(value, &o->size_max_bytes);
  case 'f':
    return read_factor(value, &o->factor);
  case 'n':
    return read_count(value, 1, &o->iterations);
  case 'w':
    return read_count(value, 0, &o->warmups);
  case 'o':
    return read_op(value, &o->op);
  case 'd':
    return read_dtype(value, &o->dtype);
  case 'p':
    return add_policy(value, o);
  case 'c':
    o->check = 1;
    return 1;
  case OPTION_AGAINST:
    o->against_mpi = 1;
    return strcmp(value, "mpi") == 0;
  case OPTION_TENSORS:
    o->tensors = 1;
    return 1;
  case OPTION_JSON:
    o->json_path = value;
    return 1;
  case OPTION_DATA:
    o->data_path = value;
    return 1;
  default: /* OPTION_INTERFACE: a name, not a path */
    o->interface_name = value;
    return value[0] != '\0' && strchr(value, '/') == NULL && value[0] != '.';
  }
}

perf_parse perf_options_parse(int argc, char **argv, perf_options *options, char *error,
                              size_t error_size) {
  static const struct option names[] = {{"bytes", required_argument, NULL, 'b'},
                                        {"end", required_argument, NULL, 'e'},
                                        {"factor", required_argument, NULL, 'f'},
                                        {"iterations", required_argument, NULL, 'n'},
                                        {"warmups", required_argument, NULL, 'w'},
                                        {"op", required_argument, NULL, 'o'},
                                        {"dtype", required_argument, NULL, 'd'},
                                        {"policy", required_argument, NULL, 'p'},
                                        {"check", no_argument, NULL, 'c'},
                                        {"against", required_argument, NULL, OPTION_AGAINST},
                                        {"tensors", no_argument, NULL, OPTION_TENSORS},
                                        {"json", required_argument, NULL, OPTION_JSON},
                                        {"data", required_argument, NULL, OPTION_DATA},
                                        {"interface", required_argument, NULL, OPTION_INTERFACE},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  perf_options o = {.size_min_bytes = UINT64_C(1) << 20,
                    .factor = 2.0,
                    .iterations = 5,
                    .warmups = 1,
                    .op = LCOMM_SUM,
                    .dtype = LCOMM_FLOAT32};
  opterr = 0; /* one sentence from rank 0 instead of one from each rank */
  for (int c; (c = getopt_long(argc, argv, ":b:e:f:n:w:o:d:p:ch", names, NULL)) != -1;) {
    if (c == 'h') {
      return PERF_HELP;
    }
    if (c == '?' || c == ':') {
      snprintf(error, error_size, "%s '%s'",
               c == ':' ? "a value is missing after" : "there is no option", argv[optind - 1]);
      return PERF_USAGE;
    }
    if (!apply(c, optarg, &o)) {
      snprintf(error, error_size, "'%s' is no usable value for %s", optarg,
               argv[optind - (optarg == argv[optind - 1] ? 2 : 1)]);
      return PERF_USAGE;
    }
  }
  if (optind < argc) {
    snprintf(error, error_size, "'%s' is no option", argv[optind]);
    return PERF_USAGE;
  }
  if (o.against_mpi && o.dtype != LCOMM_FLOAT32) {
    snprintf(error, error_size, "MPI knows no %s; --against mpi goes with float32",
             lcomm_dtype_name(o.dtype));
    return PERF_USAGE;
  }
  if (o.data_path != NULL && (o.check || o.dtype != LCOMM_FLOAT32)) {
    snprintf(error, error_size,
             "--data goes with float32 and without --check, which knows the "
             "built-in numbers only");
    return PERF_USAGE;
  }
  if (o.policy_count == 0) {
    add_policy("", &o);
  }
  if (o.size_max_bytes < o.size_min_bytes) {
    o.size_max_bytes = o.size_min_bytes;
  }
  *options = o;
  return PERF_RUN;
}
