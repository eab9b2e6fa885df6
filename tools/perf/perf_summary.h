/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_SUMMARY_H
#define LCOMM_TOOLS_PERF_PERF_SUMMARY_H

#include <stdint.h>

#include "libcomm.h"
#include "tools/perf/perf_backend.h"
#include "tools/perf/perf_options.h"
#include "tools/perf/perf_pattern.h"
#include "tools/perf/perf_world.h"

/* What a rank did during one operation. X(name, key in JSON). */
#define LCOMM_PERF_PHASE_LIST(X)                                                                   \
  X(LCOMM_PERF_ENCODE, "encode_s")                                                                 \
  X(LCOMM_PERF_DECODE, "decode_s")                                                                 \
  X(LCOMM_PERF_WIRE, "wire_s")                                                                     \
  X(LCOMM_PERF_WAIT, "wait_s")                                                                     \
  X(LCOMM_PERF_MESSAGES, "messages")

typedef enum lcomm_perf_phase {
#define LCOMM_PERF_PHASE_ENUM(name, key) name,
  LCOMM_PERF_PHASE_LIST(LCOMM_PERF_PHASE_ENUM)
#undef LCOMM_PERF_PHASE_ENUM
      LCOMM_PERF_PHASE_COUNT
} lcomm_perf_phase;

/* What one rank saw of one backend at one size. */
typedef struct lcomm_perf_samples {
  int batch;                              /* operations in one sample */
  int count;                              /* samples */
  double *seconds;                        /* of one operation, one per sample */
  double *phases[LCOMM_PERF_PHASE_COUNT]; /* likewise */
  double cpu_s;                           /* of all samples together */
  double interface_bytes;                 /* likewise, by this host's interface; counted by */
  double interface_packets;               /* its first rank */
  lcomm_stats first;                      /* the library's counters before all samples */
  lcomm_stats last;                       /* ... and after the last one */
  lcomm_perf_difference difference;
} lcomm_perf_samples;

/* Returns 0 if there is no memory. */
int lcomm_perf_samples_make(lcomm_perf_samples *samples, int count);
void lcomm_perf_samples_free(lcomm_perf_samples *samples);

/* Keep what the counters say about sample `i`. */
void lcomm_perf_samples_count(lcomm_perf_samples *samples, int i, const lcomm_stats *now);

/* --overlap: times of one size, in seconds. */
typedef struct lcomm_perf_overlap {
  double alone_s;
  double compute_s;
  double both_s;
  double hidden; /* 0 to 1, and outside it where times are not exact */
} lcomm_perf_overlap;

enum { LCOMM_PERF_PLAN_MAX = 128 };

/* One line of the table: one size by one backend, over all ranks. Bytes,
 * messages and processor time are of one operation of all ranks. */
typedef struct lcomm_perf_row {
  lcomm_perf_call call;
  char plan[LCOMM_PERF_PLAN_MAX]; /* of an all-reduce: codec and algorithm; "": unknown */
  const char *label;              /* policy, "exact" or MPI's call */
  double size_bytes;
  int batch;
  double min_s, median_s, max_s, p10_s, p90_s, p99_s;
  double sent_bytes[LCOMM_LINK_COUNT];
  double exact_bytes[LCOMM_LINK_COUNT];
  double messages[LCOMM_LINK_COUNT];
  double interface_bytes;
  double interface_packets;
  double cpu_s;
  double memory_bytes; /* of the rank that has most */
  double *rank_phases; /* owned: the median for each rank, phase by phase; NULL: unknown */
  double times_mpi;    /* MPI's median time / this one; 0: unknown */
  int is_libcomm;      /* the library's counters are known */
  int is_checked;
  double error;
  uint64_t wrong;
  lcomm_perf_overlap overlap;
} lcomm_perf_row;

/* Bring the ranks' samples together. Collective. Returns 0 if there is no memory. */
int lcomm_perf_summarise(const lcomm_perf_world *world, const lcomm_perf_backend *backend,
                         const lcomm_perf_call *call, lcomm_perf_samples *samples,
                         lcomm_perf_row *row);
void lcomm_perf_row_free(lcomm_perf_row *row);

/* A verdict of all ranks' differences for a row. Collective. */
/* Codec between nodes and algorithm of a plan as lcomm_plan_print writes it: "int8, gather over
 * all 2 ranks, 1 chunk". */
void lcomm_perf_plan_words(const char *plan, char words[LCOMM_PERF_PLAN_MAX]);

void lcomm_perf_row_check(const lcomm_perf_world *world, lcomm_perf_difference difference,
                          lcomm_perf_row *row);

/* 1 - (both - compute) / alone. */
double lcomm_perf_hidden(double alone_s, double compute_s, double both_s);

#endif
