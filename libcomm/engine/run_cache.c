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
  *(run->cached.newer ? &run->cached.newer->cached.older : &cache->newest) = run->cached.older;
  *(run->cached.older ? &run->cached.older->cached.newer : &cache->oldest) = run->cached.newer;
}

/* Insert by the number of its last operation: nearly always at the front. */
static void attach(lcomm_run_cache *cache, lcomm_run *run) {
  lcomm_run *older = cache->newest, *newer = NULL;
  while (older && is_older(run, older)) {
    newer = older;
    older = older->cached.older;
  }
  run->cached.older = older;
  run->cached.newer = newer;
  *(older ? &older->cached.newer : &cache->oldest) = run;
  *(newer ? &newer->cached.older : &cache->newest) = run;
}

/* -------------------------------------------------------------------- hash */

static lcomm_run **head_of(lcomm_run_cache *cache, uint64_t key) {
  return &cache->heads[key % LCOMM_RUN_CACHE_HEADS];
}

static void forget(lcomm_run_cache *cache, lcomm_run *run) {
  lcomm_run **link = head_of(cache, run->cached.key);
  while (*link != run) {
    link = &(*link)->cached.next;
  }
  *link = run->cached.next;
  run->cached.next = NULL;
}

static lcomm_run *find(lcomm_run_cache *cache, const lcomm_plan_request *request, int ranks) {
  uint64_t key = lcomm_plan_key(request, ranks);
  lcomm_run *run = *head_of(cache, key);
  while (run &&
         (run->cached.in_use || run->cached.key != key || !lcomm_plan_fits(run->plan, request))) {
    run = run->cached.next;
  }
  return run;
}

/* -------------------------------------------------------------------- runs */

lcomm_run *lcomm_run_cache_take(lcomm_run_cache *cache, const lcomm_plan_request *request,
                                int ranks) {
  lcomm_run *run = cache->newest; /* the same call again needs no hash */
  if (!run || run->cached.in_use || !lcomm_plan_fits(run->plan, request)) {
    run = find(cache, request, ranks);
  }
  if (run) {
    assert(cache->idle_bytes >= run->cached.charge);
    run->cached.in_use = true;
    cache->idle_bytes -= run->cached.charge;
    cache->idle_count--;
    cache->hits++;
  }
  return run;
}

void lcomm_run_cache_add(lcomm_run_cache *cache, lcomm_run *run, const lcomm_plan_request *request,
                         int ranks) {
  run->cached.key = lcomm_plan_key(request, ranks);
  run->cached.charge = lcomm_plan_charge(run->plan);
  run->cached.in_use = true;
  run->cached.next = *head_of(cache, run->cached.key);
  *head_of(cache, run->cached.key) = run;
  attach(cache, run);
  cache->misses++;
}

static bool is_full(const lcomm_run_cache *cache) {
  return cache->idle_bytes > cache->limit_bytes || cache->idle_count > LCOMM_RUN_CACHE_IDLE;
}

static void retire(lcomm_run_cache *cache, lcomm_run *run) {
  detach(cache, run);
  forget(cache, run);
  cache->idle_bytes -= run->cached.charge;
  cache->idle_count--;
  lcomm_run_retire(run->comm, run);
}

static void evict(lcomm_run_cache *cache) {
  lcomm_run *next = NULL;
  for (lcomm_run *run = cache->oldest; run && is_full(cache); run = next) {
    next = run->cached.newer;
    if (!run->cached.in_use && run != cache->newest) {
      retire(cache, run);
    }
  }
}

bool lcomm_run_cache_is_idle(const lcomm_run_cache *cache) {
  const lcomm_run *run = cache->newest;
  while (run && !run->cached.in_use) {
    run = run->cached.older;
  }
  return !run;
}

void lcomm_run_cache_clear(lcomm_run_cache *cache) {
  while (cache->newest) {
    retire(cache, cache->newest);
  }
}

void lcomm_run_cache_expire_automatic(lcomm_run_cache *cache) {
  lcomm_run *older = NULL;
  for (lcomm_run *run = cache->newest; run; run = older) {
    older = run->cached.older;
    bool automatic = run->plan->automatic.allowed != LCOMM_AUTO_NONE;
    run->cached.expired |= automatic;
    if (automatic && !run->cached.in_use) {
      retire(cache, run);
    }
  }
}

/* Give it up: it is in use, so no call finds it. */
static void drop(lcomm_run_cache *cache, lcomm_run *run) {
  detach(cache, run);
  forget(cache, run);
  lcomm_run_retire(run->comm, run);
}

void lcomm_run_cache_put(lcomm_run_cache *cache, lcomm_run *run) {
  assert(run->cached.in_use);
  if (run->cached.expired) {
    drop(cache, run);
    return;
  }
  run->cached.in_use = false;
  cache->idle_bytes += run->cached.charge;
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
