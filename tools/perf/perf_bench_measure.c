/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <math.h>
#include <stdio.h>

#include "tools/common/tool_timing.h"
#include "tools/perf/perf_bench.h"

/* A sample of one small operation would show how well the ranks left the
 * barrier, so a sample of them lasts this long ... */
#define SAMPLE_S 200e-6
/* ... up to this size, from which on one operation is long enough. */
#define SMALL_BYTES (512 << 10)
enum { BATCH_MAX = 4096, PROBES = 9 };

/* What the network interface of this host counted. */
typedef struct traffic {
  double bytes;
  double packets;
} traffic;

static double read_counter(lcomm_perf_bench *bench, const char *counter) {
  char path[256];
  unsigned long long value = 0;
  snprintf(path, sizeof path, "/sys/class/net/%s/statistics/%s", bench->options->interface_name,
           counter);
  FILE *file = fopen(path, "r");
  int read = file ? fscanf(file, "%llu", &value) : 0;
  if (file) {
    fclose(file);
  }
  if (read != 1) {
    lcomm_perf_world_stop(&bench->world,
                          "the interface named by --interface has no counters on this host");
  }
  return (double)value;
}

static traffic interface_sent(lcomm_perf_bench *bench) {
  if (!bench->options->interface_name || !bench->is_host_first) {
    return (traffic){0.0, 0.0};
  }
  return (traffic){read_counter(bench, "tx_bytes"), read_counter(bench, "tx_packets")};
}

/* Sums in place need their input back. Tensors have one buffer, which is
 * filled again between the operations of a batch, as a backward pass would. */
static int is_refilled(const lcomm_perf_call *call, const lcomm_perf_backend *backend) {
  return call->in_place || backend->tensors != NULL;
}

static int slots_used(const lcomm_perf_stage *stage, const lcomm_perf_backend *backend, int batch) {
  if (backend->tensors) {
    return 1;
  }
  return batch < stage->buffers.slots ? batch : stage->buffers.slots;
}

static void run_batch(lcomm_perf_stage *stage, lcomm_perf_bench *bench, lcomm_perf_backend *backend,
                      int batch) {
  int slots = slots_used(stage, backend, batch);
  for (int i = 0; i < batch; i++) {
    if (i > 0 && backend->tensors) {
      lcomm_perf_buffers_refill(&stage->buffers, 0);
    }
    lcomm_perf_expect(bench, backend,
                      lcomm_perf_backend_run(backend, stage->call,
                                             lcomm_perf_buffers_place(&stage->buffers, i % slots)));
  }
}

/* --late: each rank in turn. */
static int comes_late(const lcomm_perf_bench *bench, int round) {
  const lcomm_perf_options *o = bench->options;
  int turn = (round + o->sampling.warmups) % bench->world.ranks;
  return o->sampling.late_s > 0.0 && bench->world.ranks > 1 && turn == bench->world.rank;
}

/* The same inputs every time, all ranks starting together, but for the one that
 * comes late, whose own time does not count. The barriers around the counters keep
 * one rank's first bytes out of another one's last reading. */
static void take_sample(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c, int round) {
  lcomm_perf_backend *backend = &stage->backends[c];
  lcomm_perf_samples *samples = &stage->samples[c];
  int has_interface = bench->options->interface_name != NULL;
  int is_late = comes_late(bench, round);
  for (int slot = 0;
       is_refilled(stage->call, backend) && slot < slots_used(stage, backend, samples->batch);
       slot++) {
    lcomm_perf_buffers_refill(&stage->buffers, slot);
  }
  lcomm_perf_world_barrier(&bench->world);
  traffic before = interface_sent(bench);
  if (has_interface) {
    lcomm_perf_world_barrier(&bench->world);
  }
  if (is_late) {
    lcomm_perf_sleep_until(tool_now_s() + bench->options->sampling.late_s);
  }
  double cpu_begin_s = lcomm_perf_cpu_s();
  double begin_s = tool_now_s();
  run_batch(stage, bench, backend, samples->batch);
  double seconds = tool_now_s() - begin_s;
  double cpu_s = lcomm_perf_cpu_s() - cpu_begin_s;
  if (has_interface) {
    lcomm_perf_world_barrier(&bench->world); /* now everybody's bytes have left */
  }
  traffic after = interface_sent(bench);
  if (round < 0) {
    return;
  }
  samples->seconds[round] = is_late ? 0.0 : seconds / samples->batch;
  samples->cpu_s += cpu_s;
  samples->interface_bytes += after.bytes - before.bytes;
  samples->interface_packets += after.packets - before.packets;
}

static void count_sample(lcomm_perf_stage *stage, int c, int round) {
  lcomm_stats now = {0};
  lcomm_perf_samples *samples = &stage->samples[c];
  if (!stage->backends[c].comm || lcomm_stats_get(stage->backends[c].comm, &now) != LCOMM_OK) {
    return;
  }
  if (round < 0) {
    samples->first = samples->last = now;
  } else {
    lcomm_perf_samples_count(samples, round, &now);
  }
}

/* How many operations make a sample that is long enough. The first operation
 * makes the plan and does not count. */
static int choose_batch(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c) {
  double seconds[1 + PROBES];
  if (bench->options->sampling.batch > 0) {
    return bench->options->sampling.batch;
  }
  if (stage->buffers.area_bytes > SMALL_BYTES || bench->options->sampling.late_s > 0.0) {
    return 1;
  }
  for (int i = 0; i <= PROBES; i++) {
    lcomm_perf_buffers_refill(&stage->buffers, 0);
    double begin_s = tool_now_s();
    run_batch(stage, bench, &stage->backends[c], 1);
    seconds[i] = tool_now_s() - begin_s;
  }
  double median_s = tool_median(seconds + 1, PROBES);
  lcomm_perf_world_max(&bench->world, &median_s, 1);
  double wanted = ceil(SAMPLE_S / fmax(median_s, 1e-9));
  double most = stage->buffers.slots < BATCH_MAX ? stage->buffers.slots : BATCH_MAX;
  return (int)fmax(1.0, fmin(wanted, most));
}

static void check(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int c) {
  lcomm_perf_buffers_renew(&stage->buffers, 0);
  run_batch(stage, bench, &stage->backends[c], 1);
  stage->samples[c].difference = lcomm_perf_stage_check(stage, bench, c);
}

static void report(lcomm_perf_stage *stage, lcomm_perf_bench *bench) {
  lcomm_perf_row rows[LCOMM_PERF_BACKENDS_MAX];
  double mpi_s = 0.0;
  for (int c = 0; c < stage->count; c++) {
    lcomm_perf_row *row = &rows[c];
    if (!lcomm_perf_summarise(&bench->world, &stage->backends[c], stage->call, &stage->samples[c],
                              row)) {
      lcomm_perf_world_stop(&bench->world, "there is no memory for the results");
    }
    if (bench->options->check && bench->signal == 0) {
      lcomm_perf_row_check(&bench->world, stage->samples[c].difference, row);
    }
    bench->wrong += row->wrong;
    int is_baseline = stage->backends[c].is_baseline;
    mpi_s = is_baseline ? row->median_s : mpi_s;
    row->times_mpi = !is_baseline && row->median_s > 0.0 ? mpi_s / row->median_s : 0.0;
    if (bench->world.rank == 0) {
      lcomm_perf_report_row(&bench->report, row);
    }
    lcomm_perf_row_free(row);
  }
}

/* A sample of each, in turn; those before the first round warm up. Every other round goes
 * backwards, so that none always comes behind the same one: a link that is limited in rate
 * carries more at once after a pause, and so after one that sends less. */
static void take_round(lcomm_perf_stage *stage, lcomm_perf_bench *bench, int round) {
  for (int i = 0; i < stage->count; i++) {
    int c = round & 1 ? stage->count - 1 - i : i;
    if (round == 0) {
      count_sample(stage, c, -1);
    }
    take_sample(stage, bench, c, round);
    if (round >= 0) {
      count_sample(stage, c, round);
    }
  }
}

/* A run that is stopped reports the rounds it made. */
void lcomm_perf_measure(lcomm_perf_bench *bench, const lcomm_perf_call *call) {
  const lcomm_perf_options *o = bench->options;
  lcomm_perf_stage stage;
  lcomm_perf_stage_begin(&stage, bench, call,
                         o->sampling.batch > 0 ? o->sampling.batch : BATCH_MAX);
  for (int c = 0; c < stage.count; c++) {
    stage.samples[c].batch = choose_batch(&stage, bench, c);
  }
  int round = -o->sampling.warmups;
  for (; round < o->sampling.iterations && !lcomm_perf_is_stopped(bench); round++) {
    take_round(&stage, bench, round);
  }
  for (int c = 0; c < stage.count; c++) {
    stage.samples[c].count = round;
    if (o->check && bench->signal == 0) {
      check(&stage, bench, c);
    }
  }
  if (round > 0) {
    report(&stage, bench);
  }
  lcomm_perf_stage_end(&stage);
}
