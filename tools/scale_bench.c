/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What grows with the number of ranks: a plan, its messages and its slots, for machines that need
 * not be there; and of sums on ranks that meet by lcomm_create_env(), what they look at and hold.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libcomm/engine/engine.h"
#include "libcomm/include/libcomm_stats.h"
#include "tools/common/tool_options.h"
#include "tools/common/tool_timing.h"
#include "tools/scale/scale_held.h"
#include "tools/scale/scale_meet.h"

enum { EXIT_TROUBLE = 2, PLANS = 5, WARM_SUMS = 2 };

static const char usage[] =
    "usage: scale_bench --nodes N --ranks R [OPTIONS]\n"
    "   or: scale_bench --meet R\n"
    "   or: RANK=R WORLD_SIZE=N MASTER_ADDR=HOST MASTER_PORT=PORT scale_bench --sums N [OPTIONS]\n"
    "Make the plan of an all-reduce for R ranks on N nodes, or make N of them, and print one line\n"
    "of JSON: of the plan of rank 0 the median time, the memory that making it took, steps,\n"
    "messages, and bytes of its slots; of a meeting the time, the bytes through the rank with "
    "most\n"
    "and the processor time of rank 0; of sums, for each of them on the rank that has most: looks\n"
    "at messages in flight, messages; memory of the process; and links, maps of shared memory,\n"
    "descriptors and threads when the communicator is made, after a sum of 8 B, and at the end;\n"
    "times to make it, of the sum of 8 B, and to end it (of rank 0).\n"
    "  --nodes N                pose as so many nodes (default 1)\n"
    "  --ranks R                as many on all nodes together\n"
    "  --meet R                 so many threads meet at a TCP store\n"
    "  --sums N                 make so many sums\n"
    "  --parts N                then split it into N, sum 8 B in each part and end the part;\n"
    "                           prints the times of the slowest rank\n"
    "  --count N                float32 elements (default 25000000)\n"
    "  -p, --policy POLICY      (default exact)\n"
    "  --transport NAMES        as in LCOMM_TRANSPORT (default auto)\n"
    "  --version\n"
    "  --help\n"
    "Exit status: 2 bad usage, or something failed.\n";

typedef struct scale_options {
  int nodes, ranks, meet, sums, parts;
  uint64_t count;
  const char *policy, *transport;
} scale_options;

static tool_parse read_options(int argc, char **argv, scale_options *o, char *error) {
  static const tool_option known[] = {
      TOOL_INT(0, "nodes", offsetof(scale_options, nodes), 1, 65536),
      TOOL_INT(0, "ranks", offsetof(scale_options, ranks), 1, 65536),
      TOOL_INT(0, "meet", offsetof(scale_options, meet), 2, 4096),
      TOOL_INT(0, "sums", offsetof(scale_options, sums), 1, 1000000),
      TOOL_INT(0, "parts", offsetof(scale_options, parts), 1, 65536),
      TOOL_WHOLE(0, "count", offsetof(scale_options, count), 1, UINT64_C(1) << 36),
      TOOL_TEXT('p', "policy", offsetof(scale_options, policy)),
      TOOL_TEXT(0, "transport", offsetof(scale_options, transport)),
      {0}};
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  *o = (scale_options){.nodes = 1, .count = 25000000, .policy = "", .transport = "auto"};
  tool_parse parse = tool_options_parse(&line, known);
  if (parse != TOOL_RUN) {
    return parse;
  }
  if (o->ranks == 0 && o->sums == 0 && o->meet == 0) {
    snprintf(error, TOOL_ERROR_MAX, "either --ranks, for a plan, --meet or --sums is needed");
    return TOOL_USAGE;
  }
  return tool_refuse_operands(&line) ? parse : TOOL_USAGE;
}

static void help(void) {
  fputs(usage, stdout);
}

static int fail(const char *sentence) {
  fprintf(stderr, "scale_bench: %s\n", sentence);
  return EXIT_TROUBLE;
}

/* --------------------------------------------------------------------- plans */

static double peak_bytes(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return 1024.0 * (double)use.ru_maxrss;
}

/* Slots with memory of their own. */
static double slot_bytes(const lcomm_plan *plan) {
  double bytes = 0;
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    bytes += (double)plan->slot_sizes[i].memory;
  }
  return bytes;
}

static void print_plan(const lcomm_plan *plan, const lcomm_topo *topo, double plan_s,
                       double memory) {
  lcomm_plan_traffic traffic;
  lcomm_plan_count(plan, topo, &traffic);
  uint64_t messages = 0, far = traffic.messages[LCOMM_LINK_NET];
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    messages += traffic.messages[i];
  }
  double piece = far > 0 ? (double)traffic.bytes[LCOMM_LINK_NET] / (double)far : 0;
  printf("{\"nodes\": %d, \"ranks\": %d, \"plan_s\": %.6f, \"plan_bytes\": %.0f, \"steps\": %u, "
         "\"slots\": %u, \"slot_bytes\": %.0f, \"chunks\": %u, \"sends\": %" PRIu64
         ", \"far_sends\": %" PRIu64 ", \"far_piece_bytes\": %.0f}\n",
         topo->nodes, topo->size, plan_s, memory, plan->schedule.step_count,
         plan->schedule.slot_count, slot_bytes(plan), plan->shape.chunks, messages, far, piece);
}

/* The first plan shows what memory that takes, all of them together how long it takes. */
static int measure_plan(const scale_options *o, const lcomm_topo *topo,
                        const lcomm_policy *policy) {
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                .count = o->count,
                                .dtype = LCOMM_FLOAT32,
                                .op = LCOMM_SUM};
  lcomm_why why;
  double times_s[PLANS], memory = 0;
  for (int i = 0; i < PLANS; i++) {
    lcomm_plan *plan = NULL;
    double before = peak_bytes(), begun_s = tool_now_s();
    if (lcomm_plan_create(&request, policy, topo, 0, &plan, &why) != LCOMM_OK) {
      return fail(why.text);
    }
    times_s[i] = tool_now_s() - begun_s;
    memory = i == 0 ? peak_bytes() - before : memory;
    if (i == PLANS - 1) {
      print_plan(plan, topo, tool_median(times_s, PLANS), memory);
    }
    lcomm_plan_destroy(plan);
  }
  return EXIT_SUCCESS;
}

static int show_plan(const scale_options *o) {
  lcomm_why why;
  lcomm_policy policy;
  lcomm_topo topo;
  if (lcomm_policy_parse(o->policy, &policy, &why) != LCOMM_OK) {
    return fail(why.text);
  }
  lcomm_identity *identities = calloc((size_t)o->ranks, sizeof *identities);
  lcomm_status status =
      identities ? lcomm_topo_create(identities, o->ranks, o->nodes, &topo, &why)
                 : lcomm_why_set(&why, LCOMM_ERR_MEMORY, "out of memory for %d ranks", o->ranks);
  free(identities);
  if (status != LCOMM_OK) {
    return fail(why.text);
  }
  int result = measure_plan(o, &topo, &policy);
  lcomm_topo_free(&topo);
  return result;
}

/* ------------------------------------------------------------------- meetings */

static int show_meeting(const scale_options *o) {
  scale_meeting found;
  const char *wrong = scale_meet(o->meet, &found);
  if (wrong) {
    return fail(wrong);
  }
  printf("{\"ranks\": %d, \"meet_s\": %.6f, \"root_processor_s\": %.6f, \"most_bytes\": %" PRIu64
         ", \"root_bytes\": %" PRIu64 ", \"said_bytes\": %" PRIu64 "}\n",
         o->meet, found.meet_s, found.root_processor_s, found.most_bytes, found.root_bytes,
         found.said_bytes);
  return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------- sums */

/* Of a rank, then of the one that has most: 64-bit numbers alone. */
typedef struct sums_found {
  int64_t looks, messages, slot_bytes, memory_kib;
  scale_holdings made, first, end;
} sums_found;

enum { FOUND = sizeof(sums_found) / sizeof(int64_t) };

/* Likewise: float64 alone. */
typedef struct sums_times {
  double create_s, sum_s, split_s, part_s;
} sums_times;

enum { TIMES = sizeof(sums_times) / sizeof(double) };

static lcomm_status sum_two(lcomm_comm *comm) {
  float two[2] = {1, 1};
  return lcomm_allreduce(comm, two, two, 2, LCOMM_FLOAT32, LCOMM_SUM);
}

static void note(const lcomm_comm *comm, sums_found *found) {
  lcomm_stats stats;
  lcomm_stats_get(comm, &stats);
  found->looks = (int64_t)comm->waiting.looks;
  found->messages = 0;
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    found->messages += (int64_t)stats.sent_messages[i];
  }
  found->slot_bytes = (int64_t)stats.memory_bytes;
}

static lcomm_status make_sums(lcomm_comm *comm, const scale_options *o, int sums, float *vector) {
  for (int i = 0; i < sums; i++) {
    for (uint64_t e = 0; e < o->count; e++) {
      vector[e] = 1;
    }
    LCOMM_TRY(lcomm_allreduce(comm, vector, vector, o->count, LCOMM_FLOAT32, LCOMM_SUM));
  }
  return LCOMM_OK;
}

/* Neighbours in rank come into different parts. */
static lcomm_status measure_parts(lcomm_comm *comm, const scale_options *o, sums_times *times) {
  lcomm_comm *part = NULL;
  double begun_s = tool_now_s();
  LCOMM_TRY(lcomm_split(comm, lcomm_rank(comm) % o->parts, 0, NULL, &part));
  times->split_s = tool_now_s() - begun_s;
  begun_s = tool_now_s();
  lcomm_status status = sum_two(part);
  if (status != LCOMM_OK) {
    (void)fail(lcomm_last_error(part));
  }
  lcomm_status ended = lcomm_destroy(part);
  times->part_s = tool_now_s() - begun_s;
  return status != LCOMM_OK ? status : ended;
}

static lcomm_status measure_times(lcomm_comm *comm, const scale_options *o, sums_times *times) {
  double begun_s = tool_now_s();
  LCOMM_TRY(sum_two(comm));
  times->sum_s = tool_now_s() - begun_s;
  if (o->parts > 0) {
    LCOMM_TRY(measure_parts(comm, o, times));
  }
  return lcomm_allreduce(comm, times, times, TIMES, LCOMM_FLOAT64, LCOMM_MAX);
}

static lcomm_status measure_sums(lcomm_comm *comm, const scale_options *o, float *vector,
                                 sums_found *found) {
  sums_found before;
  scale_held(comm, &found->made);
  LCOMM_TRY(sum_two(comm));
  scale_held(comm, &found->first);
  LCOMM_TRY(make_sums(comm, o, WARM_SUMS, vector));
  note(comm, &before);
  LCOMM_TRY(make_sums(comm, o, o->sums, vector));
  note(comm, found);
  found->looks = (found->looks - before.looks) / o->sums;
  found->messages = (found->messages - before.messages) / o->sums;
  found->memory_kib = scale_memory_kib();
  scale_held(comm, &found->end);
  return lcomm_allreduce(comm, found, found, FOUND, LCOMM_INT64, LCOMM_MAX);
}

static void print_held(const char *name, const scale_holdings *held) {
  printf(", \"%slinks\": %" PRId64 ", \"%smaps\": %" PRId64 ", \"%sdescriptors\": %" PRId64
         ", \"%sthreads\": %" PRId64,
         name, held->links, name, held->maps, name, held->descriptors, name, held->threads);
}

static void print_sums(const scale_options *o, int ranks, const sums_found *found,
                       const sums_times *times, double end_s) {
  printf("{\"nodes\": %d, \"ranks\": %d, \"looks\": %" PRId64 ", \"messages\": %" PRId64
         ", \"slot_bytes\": %" PRId64 ", \"memory_kib\": %" PRId64,
         o->nodes, ranks, found->looks, found->messages, found->slot_bytes, found->memory_kib);
  print_held("", &found->end);
  print_held("made_", &found->made);
  print_held("first_", &found->first);
  printf(", \"create_s\": %.6f, \"sum_s\": %.6f, \"end_s\": %.6f", times->create_s, times->sum_s,
         end_s);
  if (o->parts > 0) {
    printf(", \"split_s\": %.6f, \"part_s\": %.6f", times->split_s, times->part_s);
  }
  printf("}\n");
}

static int show_sums(const scale_options *o) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  sums_found found = {0};
  sums_times times = {0};
  config.policy = o->policy;
  config.nodes = o->nodes;
  config.transport = o->transport;
  config.progress = LCOMM_PROGRESS_CALLS;
  float *vector = malloc(o->count * sizeof *vector);
  if (!vector) {
    return fail("out of memory for the vector");
  }
  double begun_s = tool_now_s();
  lcomm_status status = lcomm_create_env(&config, &comm);
  times.create_s = tool_now_s() - begun_s;
  if (status == LCOMM_OK) {
    status = measure_sums(comm, o, vector, &found);
  }
  if (status == LCOMM_OK) {
    status = measure_times(comm, o, &times);
  }
  if (status != LCOMM_OK) {
    fail(lcomm_last_error(comm));
  }
  int rank = comm ? lcomm_rank(comm) : 0, ranks = comm ? lcomm_size(comm) : 0;
  begun_s = tool_now_s();
  lcomm_destroy(comm);
  if (status == LCOMM_OK && rank == 0) {
    print_sums(o, ranks, &found, &times, tool_now_s() - begun_s);
  }
  free(vector);
  return status == LCOMM_OK ? EXIT_SUCCESS : EXIT_TROUBLE;
}

int main(int argc, char **argv) {
  char error[TOOL_ERROR_MAX];
  scale_options options;
  tool_parse parse = read_options(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer("scale_bench", parse, help, error);
  }
  return options.sums > 0   ? show_sums(&options)
         : options.meet > 0 ? show_meeting(&options)
                            : show_plan(&options);
}
