/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/run_cache.h"

#include <assert.h>

#include "libcomm/engine/operation.h"

/* ----------------------------------------------------------------- recency */

static bool is_older(const lcomm_run *a, const lcomm_run *b) {
  return (int32_t)(a->sequence - b->sequence) < 0;
}

static void detach(lcomm_run_cache *cache, lcomm_run *run) {
  *(run->newer ? &run->newer->older : &cache->newest) = run->older;
  *(run->older ? &run->older->newer : &cache->oldest) = run->newer;
}

/* Insert by the number of its last operation: nearly always at the front. */
static void attach(lcomm_run_cache *cache, lcomm_run *run) {
  lcomm_run *older = cache->newest, *newer = NULL;
  while (older && is_older(run, older)) {
    newer = older;
    older = older->older;
  }
  run->older = older;
  run->newer = newer;
  *(older ? &older->newer : &cache->oldest) = run;
  *(newer ? &newer->older : &cache->newest) = run;
}

/* -------------------------------------------------------------------- hash */

static lcomm_run **head_of(lcomm_run_cache *cache, uint64_t key) {
  return &cache->heads[key % LCOMM_RUN_CACHE_HEADS];
}

static void forget(lcomm_run_cache *cache, lcomm_run *run) {
  lcomm_run **link = head_of(cache, run->cache_key);
  while (*link != run) {
    link = &(*link)->next;
  }
  *link = run->next;
  run->next = NULL;
}

static lcomm_run *find(lcomm_run_cache *cache, const lcomm_plan_request *request, int ranks) {
  uint64_t key = lcomm_plan_key(request, ranks);
  lcomm_run *run = *head_of(cache, key);
  while (run && (run->in_use || run->cache_key != key || !lcomm_plan_fits(run->plan, request))) {
    run = run->next;
  }
  return run;
}

/* -------------------------------------------------------------------- runs */

lcomm_run *lcomm_run_cache_take(lcomm_run_cache *cache, const lcomm_plan_request *request,
                                int ranks) {
  lcomm_run *run = cache->newest; /* the same call again needs no hash */
  if (!run || run->in_use || !lcomm_plan_fits(run->plan, request)) {
    run = find(cache, request, ranks);
  }
  if (run) {
    assert(cache->idle_bytes >= run->charge);
    run->in_use = true;
    cache->idle_bytes -= run->charge;
    cache->idle_count--;
    cache->hits++;
  }
  return run;
}

void lcomm_run_cache_add(lcomm_run_cache *cache, lcomm_run *run, const lcomm_plan_request *request,
                         int ranks) {
  run->cache_key = lcomm_plan_key(request, ranks);
  run->charge = lcomm_plan_charge(run->plan);
  run->in_use = true;
  run->next = *head_of(cache, run->cache_key);
  *head_of(cache, run->cache_key) = run;
  attach(cache, run);
  cache->misses++;
}

static bool is_full(const lcomm_run_cache *cache) {
  return cache->idle_bytes > cache->limit_bytes || cache->idle_count > LCOMM_RUN_CACHE_IDLE;
}

static void retire(lcomm_run_cache *cache, lcomm_run *run) {
  detach(cache, run);
  forget(cache, run);
  cache->idle_bytes -= run->charge;
  cache->idle_count--;
  lcomm_run_retire(run->comm, run);
}

static void evict(lcomm_run_cache *cache) {
  lcomm_run *next = NULL;
  for (lcomm_run *run = cache->oldest; run && is_full(cache); run = next) {
    next = run->newer;
    if (!run->in_use && run != cache->newest) {
      retire(cache, run);
    }
  }
}

bool lcomm_run_cache_is_idle(const lcomm_run_cache *cache) {
  const lcomm_run *run = cache->newest;
  while (run && !run->in_use) {
    run = run->older;
  }
  return !run;
}

void lcomm_run_cache_clear(lcomm_run_cache *cache) {
  while (cache->newest) {
    retire(cache, cache->newest);
  }
}

void lcomm_run_cache_put(lcomm_run_cache *cache, lcomm_run *run) {
  assert(run->in_use);
  run->in_use = false;
  cache->idle_bytes += run->charge;
  cache->idle_count++;
  if (cache->newest != run) {
    detach(cache, run);
    attach(cache, run);
  }
  if (is_full(cache)) {
    evict(cache);
  }
}

void lcomm_run_cache_free(lcomm_run_cache *cache) {
  while (cache->newest) {
    lcomm_run *run = cache->newest;
    detach(cache, run);
    lcomm_run_destroy(run);
  }
}
