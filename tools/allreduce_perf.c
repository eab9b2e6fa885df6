/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-reduce under several policies and by MPI, timed in turn in one run, with
 * the bytes that travelled and the quality of the results. Uses the public
 * interface only. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm.h"
#include "libcomm_mpi.h"
#include "tools/perf/contender.h"
#include "tools/perf/judge.h"
#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/recording.h"
#include "tools/perf/report.h"

enum { CONTENDERS_MAX = PERF_POLICIES_MAX + 1, ERROR_SIZE = 1024 };
enum { EXIT_OK = 0, EXIT_WRONG = 1, EXIT_USAGE = 2 };

/* What a network interface counted. */
typedef struct traffic {
  double bytes;
  double packets;
} traffic;

/* What one rank saw of one contender at one size. */
typedef struct samples {
  double *seconds; /* one per timed run */
  uint64_t sent_bytes[LCOMM_LINK_COUNT];
  uint64_t exact_bytes[LCOMM_LINK_COUNT];
  traffic sent; /* by this host's interface, counted by its first rank */
  perf_difference difference;
} samples;

typedef struct bench {
  perf_options options;
  int rank;
  int ranks;
  int is_host_first;        /* reads the interface counter for its host */
  perf_recording recording; /* of --data; empty: built-in numbers */
  perf_report report;
  uint64_t wrong;
} bench;

/* A rank cannot stop alone without leaving the others waiting. */
static void give_up(const bench *b, const char *error) {
  fprintf(stderr, "allreduce_perf: rank %d: %s\n", b->rank, error);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, EXIT_USAGE);
}

/* libcomm tells every rank what went wrong, so they can all say it and end in
 * order; mpirun then reports the exit status. */
static void give_up_together(const bench *b, const char *error) {
  fprintf(stderr, "allreduce_perf: rank %d: %s\n", b->rank, error);
  fflush(NULL);
  MPI_Finalize();
  exit(EXIT_USAGE);
}

static double read_counter(const bench *b, const char *counter) {
  char path[256];
  unsigned long long value = 0;
  snprintf(path, sizeof path, "/sys/class/net/%s/statistics/%s", b->options.interface_name,
           counter);
  FILE *file = fopen(path, "r");
  int read = file != NULL ? fscanf(file, "%llu", &value) : 0;
  if (file != NULL) {
    fclose(file);
  }
  if (read != 1) {
    give_up(b, "the interface named by --interface has no counters on this host");
  }
  return (double)value;
}

static traffic interface_sent(const bench *b) {
  if (b->options.interface_name == NULL || !b->is_host_first) {
    return (traffic){0.0, 0.0};
  }
  return (traffic){read_counter(b, "tx_bytes"), read_counter(b, "tx_packets")};
}

/* One run: the same inputs every time, all ranks starting together. */
static void run_once(const bench *b, perf_contender *contender, const perf_pattern *pattern,
                     void *buffer, uint64_t count, double *seconds, traffic *sent) {
  char error[ERROR_SIZE];
  if (b->recording.count > 0) {
    perf_recording_fill(&b->recording, buffer, count);
  } else {
    perf_pattern_fill(pattern, b->rank, buffer, count);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  traffic before = interface_sent(b);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  if (!perf_contender_run(contender, &b->options, buffer, count, error, sizeof error)) {
    give_up_together(b, error);
  }
  *seconds = MPI_Wtime() - begin;
  MPI_Barrier(MPI_COMM_WORLD); /* now everybody's bytes have left */
  traffic after = interface_sent(b);
  *sent = (traffic){after.bytes - before.bytes, after.packets - before.packets};
}

static int compare_seconds(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Bring the ranks' samples together into a row of the table on rank 0. */
static void report_samples(bench *b, const perf_contender *contender, samples *s, uint64_t count) {
  int n = b->options.iterations;
  MPI_Allreduce(MPI_IN_PLACE, s->seconds, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(s->seconds, (size_t)n, sizeof *s->seconds, compare_seconds);
  perf_row row = {.count = count,
                  .label = contender->label,
                  .min_s = s->seconds[0],
                  .median_s = 0.5 * (s->seconds[(n - 1) / 2] + s->seconds[n / 2]),
                  .max_s = s->seconds[n - 1],
                  .interface_bytes = s->sent.bytes / n,
                  .interface_packets = s->sent.packets / n,
                  .is_libcomm = contender->comm != NULL,
                  .is_checked = b->options.check};
  double squares[2] = {s->difference.error_square, s->difference.result_square};
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    row.sent_bytes[link] = (double)s->sent_bytes[link] / n;
    row.exact_bytes[link] = (double)s->exact_bytes[link] / n;
  }
  row.wrong = s->difference.wrong;
  MPI_Allreduce(MPI_IN_PLACE, row.sent_bytes, LCOMM_LINK_COUNT, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, row.exact_bytes, LCOMM_LINK_COUNT, MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &row.interface_bytes, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &row.interface_packets, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, squares, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &row.wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  row.error = squares[1] > 0.0 ? squares[0] / squares[1] : 0.0;
  b->wrong += row.wrong;
  if (b->rank == 0) {
    perf_report_row(&b->report, &row);
  }
}

static int make_contenders(bench *b, perf_contender *contenders, void *buffer, uint64_t count) {
  char error[ERROR_SIZE];
  int made = 0;
  if (b->options.against_mpi) {
    contenders[made++] = perf_contender_mpi();
  }
  for (int p = 0; p < b->options.policy_count; p++) {
    perf_contender *contender = &contenders[made++];
    if (!perf_contender_policy(contender, b->options.policies[p], &b->options, buffer, count, error,
                               sizeof error)) {
      give_up_together(b, error);
    }
  }
  return made;
}

/* All contenders at one size, in turn, so that what disturbs one disturbs all. */
static void measure_size(bench *b, uint64_t count) {
  const perf_options *o = &b->options;
  perf_contender contenders[CONTENDERS_MAX];
  samples all[CONTENDERS_MAX];
  perf_pattern pattern = perf_pattern_make(o->dtype, b->ranks);
  void *buffer = malloc(count * lcomm_dtype_size(o->dtype));
  double *seconds = malloc(sizeof *seconds * (size_t)o->iterations * CONTENDERS_MAX);
  if (buffer == NULL || seconds == NULL) {
    give_up(b, "no memory for a buffer of this size");
    return;
  }
  int contender_count = make_contenders(b, contenders, buffer, count);
  memset(all, 0, sizeof all);
  for (int round = -o->warmups; round < o->iterations; round++) {
    for (int c = 0; c < contender_count; c++) {
      double run_s = 0.0;
      traffic sent = {0.0, 0.0};
      if (round == 0 && contenders[c].comm != NULL) {
        lcomm_stats_reset(contenders[c].comm);
      }
      run_once(b, &contenders[c], &pattern, buffer, count, &run_s, &sent);
      if (round >= 0) {
        all[c].seconds = seconds + (ptrdiff_t)c * o->iterations;
        all[c].seconds[round] = run_s;
        all[c].sent.bytes += sent.bytes;
        all[c].sent.packets += sent.packets;
      }
      if (o->check && round == o->iterations - 1) {
        all[c].difference = perf_judge(&pattern, o->op, contenders[c].is_exact, buffer, count);
      }
    }
  }
  for (int c = 0; c < contender_count; c++) {
    lcomm_stats stats;
    if (contenders[c].comm != NULL && lcomm_stats_get(contenders[c].comm, &stats) == LCOMM_OK) {
      memcpy(all[c].sent_bytes, stats.sent_bytes, sizeof all[c].sent_bytes);
      memcpy(all[c].exact_bytes, stats.exact_bytes, sizeof all[c].exact_bytes);
    }
    report_samples(b, &contenders[c], &all[c], count);
    perf_contender_destroy(&contenders[c]);
  }
  free(seconds);
  free(buffer);
}

/* Number of nodes as libcomm sees them, LCOMM_NODES included, and whether the
 * policies are usable: a typing error should not come after the first size. */
static int inspect(bench *b, int *nodes) {
  for (int p = 0; p < b->options.policy_count; p++) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    lcomm_comm *comm = NULL;
    config.policy = b->options.policies[p];
    if (lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) != LCOMM_OK) {
      fprintf(stderr, "allreduce_perf: %s\n", lcomm_last_error(NULL));
      return 0;
    }
    *nodes = lcomm_nodes(comm);
    lcomm_destroy(comm);
  }
  return 1;
}

static void find_host_first(bench *b) {
  MPI_Comm host;
  int rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, b->rank, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &rank);
  MPI_Comm_free(&host);
  b->is_host_first = rank == 0;
}

static int run(bench *b) {
  const perf_options *o = &b->options;
  size_t element = lcomm_dtype_size(o->dtype);
  int nodes = 1;
  int is_ready = inspect(b, &nodes);
  if (!is_ready) {
    return EXIT_USAGE;
  }
  char error[ERROR_SIZE];
  if (o->data_path != NULL &&
      !perf_recording_load(&b->recording, o->data_path, b->rank, error, sizeof error)) {
    give_up(b, error);
  }
  find_host_first(b);
  if (b->rank == 0 && !perf_report_begin(&b->report, o, b->ranks, nodes)) {
    give_up(b, "cannot write the file named by --json");
  }
  double size = (double)o->size_min_bytes;
  for (; size <= (double)o->size_max_bytes; size *= o->factor) {
    uint64_t count = (uint64_t)size / element;
    measure_size(b, count > 0 ? count : 1);
  }
  if (b->rank == 0 && !perf_report_end(&b->report)) {
    give_up(b, "the file named by --json is incomplete; is the disk full?");
  }
  perf_recording_free(&b->recording);
  return b->wrong > 0 ? EXIT_WRONG : EXIT_OK;
}

int main(int argc, char **argv) {
  char error[ERROR_SIZE];
  bench b = {.rank = 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  int result = EXIT_OK;
  switch (perf_options_parse(argc, argv, &b.options, error, sizeof error)) {
  case PERF_RUN:
    result = run(&b);
    break;
  case PERF_HELP:
    if (b.rank == 0) {
      fputs(perf_help, stdout);
    }
    break;
  case PERF_USAGE:
    result = EXIT_USAGE;
    if (b.rank == 0) {
      fprintf(stderr, "allreduce_perf: %s; see allreduce_perf --help\n", error);
    }
    break;
  }
  MPI_Finalize();
  return result;
}
