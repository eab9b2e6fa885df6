/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* libcomm-info: what this build can do, where its ranks are, and which plan
 * an all-reduce would follow, with the reason. Under mpirun it shows the real
 * ranks; with --ranks or --topology a machine that is not there. */

#include <ctype.h>
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "libcomm/base/env.h"
#include "libcomm/plan/plan.h"
#include "libcomm/topo/machine.h"
#include "libcomm/transport/transport.h"
#include "tools/info/device.h"

enum { BAD_INPUT = 2, SIZES_MAX = 32 };

typedef struct options {
  const char *policy, *topology_file;
  int ranks, nodes, rank;
  uint64_t sizes[SIZES_MAX];
  int size_count;
  lcomm_dtype dtype;
  bool tensor, only_env, only_topology;
} options;

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
    "  --load FILE         plan for the topology in FILE\n"
    "  --env               print only the environment variables\n"
    "  --help              this text\n";

static int complain(const char *what, const char *value) {
  fprintf(stderr, "libcomm-info: %s '%s'; --help lists the options\n", what, value);
  return BAD_INPUT;
}

/* -------------------------------------------------------------- options */

static bool parse_number(const char *text, int lowest, int *value) {
  char *end = NULL;
  long number = strtol(text, &end, 10);
  *value = (int)number;
  return end != text && *end == '\0' && number >= lowest && number <= 1 << 20;
}

static bool parse_sizes(const char *text, options *o) {
  o->size_count = 0;
  while (*text) {
    char *end = NULL;
    if (!isdigit((unsigned char)*text) || o->size_count == SIZES_MAX) {
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

/* 0 to go on, BAD_INPUT, or -1 when all has been said. */
static int parse_options(int argc, char **argv, options *o) {
  static const struct option known[] = {
      {"policy", required_argument, NULL, 'p'}, {"size", required_argument, NULL, 's'},
      {"type", required_argument, NULL, 't'},   {"ranks", required_argument, NULL, 'n'},
      {"nodes", required_argument, NULL, 'm'},  {"rank", required_argument, NULL, 'r'},
      {"load", required_argument, NULL, 'l'},   {"topology", optional_argument, NULL, 'T'},
      {"tensor", no_argument, NULL, 'b'},       {"env", no_argument, NULL, 'e'},
      {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
  parse_sizes("1K,64K,1M,64M", o);
  for (int c; (c = getopt_long(argc, argv, "p:s:t:n:m:r:l:T::beh", known, NULL)) != -1;) {
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
      good = parse_number(optarg, 1, &o->ranks);
      break;
    case 'm':
      good = parse_number(optarg, 1, &o->nodes);
      break;
    case 'r':
      good = parse_number(optarg, 0, &o->rank);
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
    case 'b':
      o->tensor = true;
      break;
    case 'e':
      o->only_env = true;
      break;
    case 'h':
      fputs(usage, stdout);
      return -1;
    default:
      return BAD_INPUT;
    }
    if (!good) {
      return complain("cannot use the value", optarg);
    }
  }
  return optind < argc ? complain("unexpected argument", argv[optind]) : 0;
}

/* ------------------------------------------------------------- topology */

static char *read_file(const char *path) {
  enum { LARGEST = 16 << 20 };
  FILE *file = fopen(path, "rb");
  char *text = file ? malloc(LARGEST + 1) : NULL;
  if (text) {
    text[fread(text, 1, LARGEST, file)] = '\0';
  }
  if (file) {
    fclose(file);
  }
  return text;
}

static lcomm_status load_topology(const char *path, lcomm_topo *topo, char *error) {
  char *text = read_file(path);
  if (!text) {
    snprintf(error, LCOMM_TOPO_ERROR_MAX, "the topology file %.200s cannot be read", path);
    return LCOMM_ERR_SYSTEM;
  }
  lcomm_status status = lcomm_topo_load(text, topo, error);
  free(text);
  return status;
}

static lcomm_status find_topology(const options *o, lcomm_topo *topo, char *error) {
  int size = 1;
  const char *posed = lcomm_env_get(LCOMM_ENV_NODES);
  int nodes = o->nodes;
  if (nodes == 0 && o->ranks == 0 && posed && !parse_number(posed, 1, &nodes)) {
    snprintf(error, LCOMM_TOPO_ERROR_MAX, "LCOMM_NODES=%.40s is not a number of nodes", posed);
    return LCOMM_ERR_ARGUMENT;
  }
  if (o->topology_file) {
    return load_topology(o->topology_file, topo, error);
  }
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  lcomm_identity mine;
  lcomm_identity_self(&mine);
  if (o->ranks == 0) {
    lcomm_identity_device(&mine);
  }
  int count = o->ranks > 0 ? o->ranks : size;
  lcomm_identity *all = calloc((size_t)(count > size ? count : size), sizeof(*all));
  if (!all) {
    snprintf(error, LCOMM_TOPO_ERROR_MAX, "out of memory for %d ranks", count);
    return LCOMM_ERR_MEMORY;
  }
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
  for (int i = 0; o->ranks > 0 && i < count; i++) {
    all[i] = mine;
  }
  lcomm_status status = lcomm_topo_create(all, count, nodes, topo, error);
  free(all);
  return status;
}

/* What a function of the library writes into a buffer of the size it asks for. */
typedef size_t (*printer)(const void *subject, char *text, size_t size);

static void print_text(printer print, const void *subject) {
  size_t length = print(subject, NULL, 0);
  char *text = malloc(length + 1);
  if (text) {
    print(subject, text, length + 1);
    fputs(text, stdout);
  }
  free(text);
}

static size_t print_ranks(const void *topo, char *text, size_t size) {
  return lcomm_topo_print(topo, text, size);
}

static size_t print_links(const void *topo, char *text, size_t size) {
  return lcomm_topo_matrix(topo, text, size);
}

static size_t print_machine(const void *identity, char *text, size_t size) {
  const lcomm_identity *mine = identity;
  return lcomm_machine_print(LCOMM_SYSFS_ROOT, mine->host, lcomm_gpus_here(), text, size);
}

static lcomm_plan_request request_of(const options *o, int size) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = o->sizes[size] / lcomm_dtype_size(o->dtype),
                              .dtype = o->dtype,
                              .lasting = o->tensor};
}

static int print_traffic(const options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  for (int i = 0; i < o->size_count; i++) {
    char why[256], text[8192];
    lcomm_plan_request request = request_of(o, i);
    if (lcomm_plan_traffic_print(&request, policy, topo, text, sizeof(text), why, sizeof(why)) !=
        LCOMM_OK) {
      return complain("no plan:", why);
    }
    fputs(text, stdout);
  }
  return 0;
}

/* All but the lines of the topology itself is for people and begins with '#'. */
static int print_topology(const options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  lcomm_identity mine;
  if (!o->topology_file && o->ranks == 0) {
    lcomm_identity_self(&mine);
    print_text(print_machine, &mine);
  }
  print_text(print_ranks, topo);
  print_text(print_links, topo);
  return o->topology_file ? print_traffic(o, policy, topo) : 0;
}

/* --------------------------------------------------------------- screens */

static void print_variable(const lcomm_env_entry *entry, const char *value) {
  printf("  %-30s %-34s %s%s%s%s\n", entry->variable, entry->standard, entry->help,
         value ? " [now: " : "", value ? value : "", value ? "]" : "");
}

static void print_env(void) {
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    const char *value = lcomm_env_get((lcomm_env)i);
    bool secret = value && i == LCOMM_ENV_TOKEN;
    print_variable(&lcomm_env_table[i], secret ? "set" : value);
  }
  printf("\nof launchers, for lcomm_create_env\n");
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    print_variable(&lcomm_launcher_table[i], lcomm_launcher_get((lcomm_launcher)i));
  }
}

static void print_kernels(void) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *used = isa ? lcomm_kernels_by_name(isa, NULL) : lcomm_kernels_best();
  printf("\nkernels\n");
  for (int i = 0; lcomm_kernels_list[i]; i++) {
    const lcomm_kernels *table = lcomm_kernels_list[i], *next = lcomm_kernels_list[i + 1];
    if (next && strcmp(next->name, table->name) == 0 && lcomm_kernels_runs(next)) {
      continue; /* a better version of the same table */
    }
    bool runs = lcomm_kernels_runs(table);
    printf("  %-10s %s\n", table->name,
           table == used ? "in use"
           : runs        ? "runs here"
                         : "not on this processor or system");
    i += next && strcmp(next->name, table->name) == 0;
  }
  if (!used) {
    printf("  LCOMM_ISA=%s is none of those that run here\n", isa);
  }
}

static void print_build(void) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);
  mpi[strcspn(mpi, ",\n")] = '\0';
  const char *ucx = lcomm_ucx_version();
  printf("libcomm %d.%d.%d\n", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR, LCOMM_VERSION_PATCH);
  printf("\nbuild\n  compiler   %s\n  MPI        %s\n  UCX        %s\n", __VERSION__, mpi,
         ucx ? ucx : "none that can be loaded");
  printf("\ntransports\n");
  for (int i = 0; lcomm_transport_list[i]; i++) {
    printf("  %-10s %s\n", lcomm_transport_list[i]->name, lcomm_transport_list[i]->summary);
  }
  printf("\ncodecs       bits/value\n");
  for (int i = 0; lcomm_codec_list[i]; i++) {
    const lcomm_codec *codec = lcomm_codec_list[i];
    printf("  %-10s ", codec->name);
    lcomm_format format = lcomm_format_of(codec);
    printf("%10.2f  %s\n", lcomm_format_bits(&format), codec->summary);
  }
  print_kernels();
  info_print_device();
}

static int print_plans(const options *o, const lcomm_policy *policy, const lcomm_topo *topo) {
  for (int i = 0; i < o->size_count; i++) {
    char why[256], text[4096];
    lcomm_plan *plan = NULL;
    lcomm_plan_request request = request_of(o, i);
    if (lcomm_plan_create(&request, policy, topo, o->rank, &plan, why, sizeof(why)) != LCOMM_OK) {
      return complain("no plan:", why);
    }
    lcomm_plan_describe(plan, topo, text, sizeof(text));
    lcomm_plan_destroy(plan);
    printf("\n%s", text);
  }
  return 0;
}

static int print_all(const options *o) {
  char error[LCOMM_POLICY_ERROR_MAX + LCOMM_TOPO_ERROR_MAX]; /* room for either */
  char policy_text[LCOMM_POLICY_MAX];
  lcomm_topo topo = {0};
  lcomm_policy policy;
  const char *wanted = o->policy ? o->policy : lcomm_env_get(LCOMM_ENV_POLICY);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  lcomm_status status = find_topology(o, &topo, error);
  if (status == LCOMM_OK) {
    status = lcomm_policy_parse(wanted, &policy, error);
  }
  if (status == LCOMM_OK && o->rank >= topo.size) {
    snprintf(error, sizeof(error), "there is no rank %d among %d", o->rank, topo.size);
    status = LCOMM_ERR_ARGUMENT;
  }
  int result = 0;
  if (status != LCOMM_OK) {
    result = BAD_INPUT;
    fprintf(stderr, "libcomm-info: %s\n", error);
  } else if (rank == 0 && o->only_topology) {
    result = print_topology(o, &policy, &topo);
  } else if (rank == 0) {
    print_build();
    printf("\ntopology     %d rank%s on %d node%s\n", topo.size, topo.size == 1 ? "" : "s",
           topo.nodes, topo.nodes == 1 ? "" : "s");
    print_text(print_ranks, &topo);
    lcomm_policy_format(&policy, policy_text);
    printf("\npolicy       %s\n", policy_text);
    result = print_plans(o, &policy, &topo);
    printf("\nenvironment\n");
    print_env();
  }
  lcomm_topo_free(&topo);
  return result;
}

int main(int argc, char **argv) {
  options o = {.dtype = LCOMM_FLOAT32};
  int verdict = parse_options(argc, argv, &o);
  if (verdict != 0) {
    return verdict < 0 ? 0 : verdict;
  }
  if (o.only_env) {
    print_env();
    return 0;
  }
  MPI_Init(&argc, &argv);
  verdict = print_all(&o);
  MPI_Finalize();
  return verdict;
}
