/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_RUN_CACHE_H
#define LCOMM_ENGINE_RUN_CACHE_H

/* The cache of runs of plain calls, kept for the next call of the same shape and found by a hash of
 * the request. The cache owns them, those in use, too. LCOMM_RUN_CACHE bounds the bytes of those
 * that are not in use, LCOMM_RUN_CACHE_IDLE their number; the one not used for longest goes first,
 * and the last one stays in any case.
 *
 * Ranks must keep the same runs, because what peers have opened of each other's devices stays in
 * use with a run. So a run is charged what depends on the shape only (lcomm_plan_charge), recency
 * is the number of a run's last operation, and the limit is the smallest of all ranks. */

#include <stdbool.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"
#include "libcomm/plan/plan.h"

struct lcomm_comm;
struct lcomm_run;

enum {
  LCOMM_RUN_CACHE_HEADS = 256,
  LCOMM_RUN_CACHE_IDLE = 1024, /* the memory of more would be searched for long */
};

/* The default of LCOMM_RUN_CACHE, in bytes. */
#define LCOMM_RUN_CACHE_STANDARD (UINT64_C(256) << 20)

typedef struct lcomm_run_cache {
  struct lcomm_run *heads[LCOMM_RUN_CACHE_HEADS]; /* by hash, linked by next */
  struct lcomm_run *newest, *oldest;              /* by recency, linked by older and newer */
  uint64_t limit_bytes, idle_bytes;
  uint32_t idle_count;
  uint64_t hits, misses; /* calls that found a run; that had to make one */
} lcomm_run_cache;

/* Take a run that fits and is not in use; NULL when there is none. */
struct lcomm_run *lcomm_run_cache_take(lcomm_run_cache *cache, const lcomm_plan_request *request,
                                       int ranks);

/* Add a new run, which is in use. */
void lcomm_run_cache_add(lcomm_run_cache *cache, struct lcomm_run *run,
                         const lcomm_plan_request *request, int ranks);

/* Give a run back, which is not in use any more. What exceeds the limit is retired
 * (lcomm_run_retire). */
void lcomm_run_cache_put(lcomm_run_cache *cache, struct lcomm_run *run);

/* Is none of the runs in use, that is, not given back by its request? */
bool lcomm_run_cache_is_idle(const lcomm_run_cache *cache);

/* Forget all runs, of which none is in use: they were made for another policy. */
void lcomm_run_cache_clear(lcomm_run_cache *cache);

/* Forget the runs whose plans net=auto chose, those in use when they are given back: its figures
 * have changed. */
void lcomm_run_cache_expire_automatic(lcomm_run_cache *cache);

/* Destroy all runs, those in use as well. */
void lcomm_run_cache_free(lcomm_run_cache *cache);

#endif
