/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory of the guard: what is summed, results, and, of tensors on a device, pinned memory that
 * samples come to first. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/device_turn.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/tensor/bucket.h"

/* ------------------------------------------------------------------ pinned */

static bool is_on_device(const lcomm_guard *guard) {
  return lcomm_memory_is_on_device(guard->location);
}

/* Made without the turn. */
static bool get_pinned(lcomm_guard *guard, uint64_t count) {
  unsigned depth = lcomm_turn_give(guard->comm);
  guard->pinned = lcomm_device_memory_of(guard->location.device, (count + 1) * sizeof(float),
                                         lcomm_device_get(NULL)->memory.pinned_get);
  lcomm_turn_take(guard->comm, depth);
  return guard->pinned != NULL;
}

static void free_pinned(lcomm_guard *guard) {
  if (guard->pinned) {
    unsigned depth = lcomm_turn_give(guard->comm);
    (void)lcomm_device_get(NULL)->memory.pinned_free(guard->pinned);
    lcomm_turn_take(guard->comm, depth);
    guard->pinned = NULL;
  }
}

/* ------------------------------------------------------------------- places */

/* Results that are summed lie behind the residuals. */
static bool sums_results(const lcomm_guard_share *share) {
  return lcomm_ef_scatters(share->ef);
}

static void place_sums(lcomm_guard *guard, lcomm_guard_share *share, uint64_t *sum,
                       uint64_t *result) {
  uint64_t elements = lcomm_sample_elements(&share->sample);
  uint64_t lanes = 1 + share->has_residual;
  share->sums = guard->sums + *sum;
  share->results = sums_results(share) ? share->sums + lanes * elements : guard->results + *result;
  share->waited = guard->sums + guard->ef.request.count - guard->share_count + share->number;
  share->staged = (lcomm_guard_staged){share->sums, share->sums + elements, share->results};
  if (guard->pinned) {
    float *pinned = guard->pinned + *sum + *result;
    share->staged = (lcomm_guard_staged){pinned, pinned + elements, pinned + lanes * elements};
  }
  *sum += lcomm_guard_lanes(share) * elements;
  *result += elements;
}

static void place_shares(lcomm_guard *guard) {
  uint64_t sum = 0, result = 0;
  for (size_t i = 0; i < guard->share_count; i++) {
    place_sums(guard, &guard->shares[i], &sum, &result);
  }
}

/* Sums, and results behind them. */
static uint64_t count_staged(const lcomm_guard *guard, uint64_t *results) {
  uint64_t sums = 0;
  *results = 0;
  for (size_t i = 0; i < guard->share_count; i++) {
    uint64_t elements = lcomm_sample_elements(&guard->shares[i].sample);
    sums += elements * lcomm_guard_lanes(&guard->shares[i]);
    *results += elements;
  }
  return sums;
}

bool lcomm_guard_place(lcomm_guard *guard) {
  uint64_t results = 0, sums = count_staged(guard, &results);
  guard->ef.request.count = sums + guard->share_count;
  guard->sums =
      lcomm_links_memory_get(&guard->comm->links, guard->ef.request.count * sizeof(float));
  guard->results = malloc((results + 1) * sizeof(float));
  if (!guard->sums || !guard->results ||
      (is_on_device(guard) && !get_pinned(guard, sums + results))) {
    return false;
  }
  place_shares(guard);
  return true;
}

bool lcomm_guard_move(lcomm_guard *guard, lcomm_memory_location location) {
  uint64_t results = 0, sums = count_staged(guard, &results);
  if (lcomm_memory_is_beside(location, guard->location)) {
    return true;
  }
  free_pinned(guard);
  guard->location = location;
  if (is_on_device(guard) && !get_pinned(guard, sums + results)) {
    return false;
  }
  place_shares(guard);
  return true;
}

/* A run that was given up may still send from its sums; it keeps them then. */
void lcomm_guard_free_memory(lcomm_guard *guard) {
  lcomm_run *run = guard->ef.exact_run;
  if (run && run->messages.abandoned) {
    run->memory.own_vector = (uint8_t *)guard->sums;
    guard->sums = NULL;
  }
  lcomm_ef_free(&guard->ef);
  lcomm_links_memory_free(&guard->comm->links, guard->sums);
  free(guard->results);
  free_pinned(guard);
}

/* ------------------------------------------------------------------ staging */

void lcomm_guard_fetch(const lcomm_guard_share *share) {
  size_t size = lcomm_sample_elements(&share->sample) * sizeof(float);
  if (share->staged.gradient == share->sums) {
    return;
  }
  memcpy(share->sums, share->staged.gradient, (1 + share->has_residual) * size);
  memcpy(share->results, share->staged.result, size);
}
