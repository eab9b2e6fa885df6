/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_cache.h"

#include <math.h>

double simulate_cache_again(const simulate_cache *cache, double bytes) {
  return cache->size > 0 ? exp(-bytes / cache->size) : 0;
}

double simulate_cache_touch(simulate_cache *cache, simulate_array *array, double bytes,
                            double part) {
  static const double WHOLE = 1 - 1e-6; /* parts need not add up to the last bit */
  double share = array->is_seen ? simulate_cache_again(cache, cache->brought - array->seen) : 0;
  if (!(array->covered > 0)) {
    array->begun = cache->brought;
  }
  cache->brought += (1 - share) * part * bytes;
  array->covered += part;
  if (array->covered >= WHOLE) {
    array->covered = 0;
    array->seen = array->begun;
    array->is_seen = true;
  }
  return share;
}
