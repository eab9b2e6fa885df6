/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How long computations take, by where the arrays are that they touch. */

#include "tools/simulation/simulate_engine_internal.h"

simulate_cache *simulate_cache_of(simulate_engine *engine, uint32_t rank) {
  if (engine->pool_count == 0 || !(engine->settings->cache > 0)) {
    return NULL;
  }
  int node = engine->pool_count > 1 ? engine->world->topo->node[rank] : 0;
  return &engine->pools[node].cache;
}

/* share: what is in the cache. */
static simulate_time between(simulate_time memory, simulate_time cache, double share) {
  return (simulate_time)((double)memory * (1 - share) + (double)cache * share + 0.5);
}

static double size_of(const simulate_engine *engine, uint32_t rank, uint32_t bucket) {
  return (double)simulate_world_program(engine->world, bucket, rank)->data_size;
}

simulate_time simulate_touch_step(simulate_engine *engine, uint32_t rank, uint32_t id,
                                  const simulate_step *step) {
  simulate_cache *cache = simulate_cache_of(engine, rank);
  uint32_t bucket = simulate_bucket_of(engine, id);
  if (!cache || step->work == 0) {
    return step->work;
  }
  simulate_arrays *arrays = &engine->ranks[rank].arrays[simulate_arrays_of(engine, bucket)];
  double size = size_of(engine, rank, bucket), vector = step->vector, residual = step->residual;
  double there =
      vector * (step->is_again ? simulate_cache_again(cache, vector * size)
                               : simulate_cache_touch(cache, &arrays->vector, size, vector));
  if (residual > 0) {
    there += residual * simulate_cache_touch(cache, &arrays->residual, size, residual);
  }
  return between(step->work, step->cached, vector > 0 ? there / (vector + residual) : 0);
}

simulate_time simulate_touch_copy(simulate_engine *engine, uint32_t rank, uint32_t id,
                                  const simulate_pass *pass) {
  simulate_cache *cache = simulate_cache_of(engine, rank);
  uint32_t bucket = simulate_bucket_of(engine, id);
  if (!cache) {
    return pass->memory;
  }
  double there = simulate_cache_touch(
      cache, &engine->ranks[rank].arrays[simulate_arrays_of(engine, bucket)].vector,
      size_of(engine, rank, bucket), 1);
  return between(pass->memory, pass->cache, there);
}

simulate_time simulate_touch_fill(simulate_engine *engine, uint32_t rank, uint32_t bucket) {
  simulate_cache *cache = simulate_cache_of(engine, rank);
  const simulate_pass *fill = &simulate_world_program(engine->world, bucket, rank)->fill;
  if (!cache) {
    return fill->memory;
  }
  simulate_arrays *arrays = &engine->ranks[rank].arrays[simulate_arrays_of(engine, bucket)];
  double size = size_of(engine, rank, bucket);
  double there = simulate_cache_touch(cache, &arrays->source, size, 1) +
                 simulate_cache_touch(cache, &arrays->vector, size, 1);
  return between(fill->memory, fill->cache, there / 2);
}

void simulate_touch_made(simulate_engine *engine, uint32_t rank, uint32_t bucket) {
  simulate_cache *cache = simulate_cache_of(engine, rank);
  if (cache) {
    simulate_cache_touch(cache,
                         &engine->ranks[rank].arrays[simulate_arrays_of(engine, bucket)].vector,
                         size_of(engine, rank, bucket), 1);
  }
}
