/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_main.h"

#include <stdio.h>
#include <string.h>

#include "libcomm_interpose.h"
#include "tools/common/tool_options.h"
#include "tools/perf/perf_bench.h"
#include "tools/perf/perf_world.h"

enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Whether the policies are usable, which should not come out after the first
 * size only, and where the run is as libcomm sees it. Without policies there are as
 * many nodes as hosts. */
static lcomm_perf_site inspect(lcomm_perf_bench *bench) {
  const lcomm_perf_options *o = bench->options;
  double hosts = bench->is_host_first;
  lcomm_perf_world_sum(&bench->world, &hosts, 1);
  lcomm_perf_site site = {.ranks = bench->world.ranks, .nodes = (int)hosts, .hosts = (int)hosts};
  for (int p = 0; p < o->policy_count; p++) {
    lcomm_config config = lcomm_perf_config(o, o->policies[p]);
    lcomm_comm *comm = NULL;
    if (lcomm_perf_world_comm(&bench->world, &config, &comm) != LCOMM_OK) {
      lcomm_perf_world_stop_together(&bench->world, lcomm_perf_world_comm_error(&bench->world));
    }
    site.nodes = lcomm_nodes(comm);
    (void)lcomm_transports(comm, site.transports, sizeof site.transports);
    (void)lcomm_interfaces(comm, site.interfaces, sizeof site.interfaces);
    (void)lcomm_destroy(comm);
  }
  return site;
}

/* All sizes of one type, operation and root. A size that comes to the same
 * count as the one before is left out. */
static void measure_sizes(lcomm_perf_bench *bench, lcomm_dtype dtype, lcomm_op op, int root) {
  const lcomm_perf_options *o = bench->options;
  lcomm_perf_call call = {o->collective, 0, dtype, op, root, o->in_place, o->libcomm_memory};
  uint64_t last = 0;
  for (uint64_t size = o->sizes.min_bytes; size <= o->sizes.max_bytes;
       size = lcomm_perf_next_size(o, size)) {
    if (bench->signal > 0) {
      return;
    }
    call.count =
        lcomm_perf_count_of(o->collective, size, lcomm_dtype_size(dtype), bench->world.ranks);
    if (call.count == last) {
      continue;
    }
    last = call.count;
    if (o->overlap.wanted) {
      lcomm_perf_measure_overlap(bench, &call);
    } else {
      lcomm_perf_measure(bench, &call);
    }
  }
}

static void measure_all(lcomm_perf_bench *bench) {
  const lcomm_perf_options *o = bench->options;
  int first = o->root == LCOMM_PERF_ROOT_ALL ? 0 : o->root;
  int end = !o->collective->has_root         ? first + 1
            : o->root == LCOMM_PERF_ROOT_ALL ? bench->world.ranks
                                             : first + 1;
  for (int d = 0; d < o->dtype_count; d++) {
    for (int i = 0; i < o->op_count; i++) {
      for (int root = first; root < end; root++) {
        measure_sizes(bench, o->dtypes[d], o->ops[i], root);
      }
    }
  }
}

static void run(lcomm_perf_bench *bench, int argc, char **argv) {
  const lcomm_perf_options *o = bench->options;
  char error[TOOL_ERROR_MAX];
  if (o->collective->has_root && o->root >= bench->world.ranks) {
    lcomm_perf_world_stop_together(&bench->world, "there is no such rank as --root names");
  }
  bench->is_host_first = lcomm_perf_world_is_host_first(&bench->world);
  lcomm_perf_site site = inspect(bench);
  if (o->data_path && !lcomm_perf_recording_load(&bench->recording, o->data_path, bench->world.rank,
                                                 error, sizeof error)) {
    lcomm_perf_world_stop(&bench->world, error);
  }
  const char *trouble = NULL;
  if (bench->world.rank == 0) {
    trouble = lcomm_perf_report_begin(&bench->report, o, &site, stdout, argc, argv);
  }
  if (trouble) {
    lcomm_perf_world_stop(&bench->world, trouble);
  }
  measure_all(bench);
  if (bench->world.rank == 0) {
    trouble = lcomm_perf_report_end(&bench->report);
  }
  if (trouble) {
    lcomm_perf_world_stop(&bench->world, trouble);
  }
  if (bench->world.rank == 0 && bench->signal > 0) {
    fprintf(stderr, "%s: stopped by a signal (%s); the results above are of the samples so far\n",
            o->collective->tool, strsignal(bench->signal));
  }
  lcomm_perf_recording_free(&bench->recording);
}

/* Once, by rank 0; without MPI nobody has met yet, and everybody says it. */
static int say(const lcomm_perf_options *options, tool_parse parse, const char *error) {
  lcomm_perf_world world = {.rank = 0};
  if (options->boot == LCOMM_PERF_BOOT_MPI) {
    lcomm_perf_world_begin(&world, options);
  }
  const char *tool = options->collective->tool;
  if (world.rank == 0 && parse == TOOL_HELP) {
    lcomm_perf_help(stdout, options->collective);
  } else if (world.rank == 0) {
    (void)tool_answer(tool, parse, NULL, error);
  }
  if (options->boot == LCOMM_PERF_BOOT_MPI) {
    lcomm_perf_world_end(&world);
  }
  return parse == TOOL_USAGE ? EXIT_USAGE : EXIT_OK;
}

int lcomm_perf_main(int argc, char **argv, lcomm_perf_kind kind) {
  char error[TOOL_ERROR_MAX];
  lcomm_perf_options options;
  tool_parse parse =
      lcomm_perf_options_parse(argc, argv, lcomm_perf_collective_of(kind), &options, error);
  if (parse != TOOL_RUN) {
    return say(&options, parse, error);
  }
  lcomm_perf_interrupt_watch();
  lcomm_perf_bench bench;
  memset(&bench, 0, sizeof bench);
  bench.options = &options;
  lcomm_perf_world_begin(&bench.world, &options);
  run(&bench, argc, argv);
  lcomm_perf_world_end(&bench.world);
  if (bench.signal > 0) {
    return EXIT_SIGNAL + bench.signal;
  }
  return bench.wrong > 0 ? EXIT_WRONG : EXIT_OK;
}
