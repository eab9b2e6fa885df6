/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Saved values for other ranks, nodes or buckets than there were: dealt anew. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/floats.h"
#include "libcomm/state.h"

/* --------------------------------------------------------------- holders */

lcomm_status lcomm_placement_share(lcomm_placement *placement) {
  lcomm_comm *comm = placement->comm;
  size_t ranges = 2 * comm->bucket_count;
  uint64_t *mine = calloc(ranges + 1, sizeof(*mine));
  placement->ranges = calloc(ranges * (size_t)comm->size + 1, sizeof(*placement->ranges));
  if (!mine || !placement->ranges) {
    free(mine);
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %zu buckets", comm->bucket_count);
  }
  for (size_t i = 0; i < comm->bucket_count; i++) {
    const lcomm_feedback_state *feedback = placement->buckets[i].feedback;
    mine[2 * i] = feedback ? feedback->first : 0;
    mine[2 * i + 1] = feedback ? feedback->count : 0;
  }
  lcomm_status status = lcomm_allgather(comm, mine, placement->ranges,
                                        ranges * sizeof(*mine) / sizeof(float), LCOMM_FLOAT32);
  free(mine);
  return status;
}

/* Number of ranks that keep element `at` of a bucket, until *end. */
static int count_holders(const lcomm_placement *placement, size_t bucket, uint64_t at,
                         uint64_t *end) {
  int holders = 0;
  for (int rank = 0; rank < placement->comm->size; rank++) {
    const uint64_t *range =
        placement->ranges + 2 * ((size_t)rank * placement->comm->bucket_count + bucket);
    uint64_t last = range[0] + range[1];
    if (range[1] == 0 || at >= last) {
      continue;
    }
    holders += at >= range[0];
    uint64_t change = at >= range[0] ? last : range[0];
    *end = change < *end ? change : *end;
  }
  return holders;
}

/* The rank that is handed elements at .. *end, which is lowered; -1 for none.
 * The ranks that keep an element take turns by tiles, so that all have a share. */
static int holder_of(const lcomm_placement *placement, size_t bucket, uint64_t at, uint64_t *end) {
  uint64_t tile = at / LCOMM_STATE_TILE, tile_end = (tile + 1) * LCOMM_STATE_TILE;
  *end = tile_end < *end ? tile_end : *end;
  int holders = count_holders(placement, bucket, at, end);
  if (holders == 0) {
    return -1;
  }
  int turn = (int)(tile % (uint64_t)holders);
  for (int rank = 0;; rank++) {
    const uint64_t *range =
        placement->ranges + 2 * ((size_t)rank * placement->comm->bucket_count + bucket);
    if (at >= range[0] && at - range[0] < range[1] && turn-- == 0) {
      return rank;
    }
  }
}

/* --------------------------------------------------------------- dealing */

/* sum += factor * values, rounded once. Zeros change nothing. */
static void add_values(float *sum, const uint8_t *values, uint64_t n, double factor) {
  for (uint64_t i = 0; i < n; i++) {
    float value;
    memcpy(&value, values + i * sizeof(value), sizeof(value));
    sum[i] = (float)((double)sum[i] + factor * (double)value);
  }
}

/* Nobody keeps these elements here: they go into the next result, and their
 * momentum becomes that of the results. */
static lcomm_status owe(lcomm_placement *placement, size_t bucket, const lcomm_state_tensor *part,
                        double factor) {
  lcomm_placed_bucket *placed = &placement->buckets[bucket];
  bool zero = lcomm_placement_all_zero(part->residual, part->n);
  lcomm_status status = zero ? LCOMM_OK : lcomm_placement_vector(placement, bucket, &placed->owed);
  if (status == LCOMM_OK && !zero) {
    add_values(placed->owed + part->first, part->residual, part->n, factor);
  }
  if (status == LCOMM_OK && part->momentum && lcomm_placement_has_momentum(placement)) {
    status = lcomm_placement_vector(placement, bucket, &placed->velocity);
  }
  if (status == LCOMM_OK && part->momentum && lcomm_placement_has_momentum(placement)) {
    add_values(placed->velocity + part->first, part->momentum, part->n, factor);
  }
  return status;
}

static void keep(lcomm_feedback_state *feedback, const lcomm_state_tensor *part, double factor) {
  uint64_t at = part->first - feedback->first;
  add_values(feedback->residual + at, part->residual, part->n, factor);
  if (part->momentum && feedback->momentum) {
    add_values(feedback->momentum + at, part->momentum, part->n, factor);
  }
}

/* Hand out what one old rank kept of a tensor. An average over other ranks
 * gives a residual another weight, so it is scaled to mean the same. */
static lcomm_status hand_out(lcomm_placement *placement, const lcomm_tensor *tensor,
                             const lcomm_state_tensor *record, uint32_t old_ranks) {
  const lcomm_comm *comm = placement->comm;
  size_t bucket = lcomm_placement_bucket(placement, tensor);
  double result = tensor->op == LCOMM_AVG ? 1.0 / (double)old_ranks : 1.0;
  double factor = tensor->op == LCOMM_AVG ? (double)comm->size / (double)old_ranks : 1.0;
  uint64_t begin = tensor->offset + record->first, last = begin + record->n;
  lcomm_status status = LCOMM_OK;
  placement->buckets[bucket].has_residual = true;
  for (uint64_t at = begin, end = last; status == LCOMM_OK && at < last; at = end, end = last) {
    int holder = holder_of(placement, bucket, at, &end);
    size_t skipped = (size_t)(at - begin) * sizeof(float);
    lcomm_state_tensor part = {.first = at, .n = end - at, .residual = record->residual + skipped};
    part.momentum = record->momentum ? record->momentum + skipped : NULL;
    if (holder == comm->rank) {
      keep(placement->buckets[bucket].feedback, &part, factor);
    } else if (holder < 0) {
      status = owe(placement, bucket, &part, result);
    }
  }
  return status;
}

lcomm_status lcomm_placement_add(lcomm_placement *placement, const lcomm_state_header *header,
                                 lcomm_state_reader *reader) {
  lcomm_state_tensor record;
  lcomm_status status = LCOMM_OK;
  uint32_t environment = lcomm_fp_enter();
  memset(placement->seen, 0, placement->comm->tensor_count * sizeof(*placement->seen));
  for (size_t i = 0; status == LCOMM_OK && lcomm_state_next(reader, &record); i++) {
    lcomm_tensor *tensor = NULL;
    status = lcomm_placement_match(placement, &record, &i, &tensor);
    if (status == LCOMM_OK && tensor && record.n > 0) {
      status = hand_out(placement, tensor, &record, header->ranks);
    }
    /* Equal on all ranks, so one file says it. */
    if (status == LCOMM_OK && tensor && record.has_velocity && header->rank == 0 &&
        lcomm_placement_has_momentum(placement)) {
      status = lcomm_placement_velocity(placement, tensor, &record);
    }
  }
  lcomm_fp_leave(environment);
  return status;
}

/* ------------------------------------------------------------------- end */

static bool is_kept(const lcomm_placement *placement, size_t bucket) {
  for (int rank = 0; rank < placement->comm->size; rank++) {
    if (placement->ranges[2 * ((size_t)rank * placement->comm->bucket_count + bucket) + 1] > 0) {
      return true;
    }
  }
  return false;
}

/* A bucket that takes up a residual keeps its momentum beside it, so tensors
 * that came with a velocity hand it in, as at the end of a warm-up. */
static void take_over(lcomm_placement *placement, size_t bucket) {
  lcomm_placed_bucket *placed = &placement->buckets[bucket];
  const lcomm_comm *comm = placement->comm;
  lcomm_feedback_state *feedback = placed->feedback;
  bool average = comm->buckets[bucket].op == LCOMM_AVG;
  uint64_t last = feedback ? feedback->first + feedback->count : 0;
  uint64_t at = feedback ? feedback->first : 0;
  for (uint64_t end = last; at < last; at = end, end = last) {
    int holders = count_holders(placement, bucket, at, &end);
    float share = (average ? (float)comm->size : 1.0f) / (float)holders;
    for (; feedback->momentum && at < end; at++) {
      feedback->momentum[at - feedback->first] += share * placed->velocity[at];
    }
  }
  lcomm_floats_free(comm->tensor_place, placed->velocity);
  placed->velocity = NULL;
}

void lcomm_placement_finish(lcomm_placement *placement) {
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < placement->comm->bucket_count; i++) {
    const lcomm_placed_bucket *placed = &placement->buckets[i];
    if (placed->velocity && placed->has_residual && is_kept(placement, i)) {
      take_over(placement, i);
    }
  }
  lcomm_fp_leave(environment);
}
