/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Saved values for other ranks, nodes or buckets than there were: resharded. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/feedback/checkpoint.h"
#include "libcomm/feedback/ef_memory.h"

/* --------------------------------------------------------------- holders */

lcomm_status lcomm_restore_share(lcomm_restore *restore, lcomm_restore_gather *gather) {
  lcomm_comm *comm = restore->comm;
  size_t ranges = 2 * restore->count;
  uint64_t *mine = calloc(ranges + 1, sizeof *mine);
  restore->ranges = calloc(ranges * (size_t)comm->size + 1, sizeof *restore->ranges);
  if (!mine || !restore->ranges) {
    free(mine);
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %zu buckets", restore->count);
  }
  for (size_t i = 0; i < restore->count; i++) {
    const lcomm_feedback_state *feedback = restore->restored[i].state.feedback;
    mine[2 * i] = feedback ? feedback->first : 0;
    mine[2 * i + 1] = feedback ? feedback->count : 0;
  }
  lcomm_status status = gather(comm, mine, restore->ranges, ranges * sizeof *mine);
  free(mine);
  return status;
}

/* Number of ranks that keep element `at` of a bucket, until *end. */
static int count_holders(const lcomm_restore *restore, size_t index, uint64_t at, uint64_t *end) {
  int holders = 0;
  for (int rank = 0; rank < restore->comm->size; rank++) {
    const uint64_t *range = restore->ranges + 2 * ((size_t)rank * restore->count + index);
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

static bool is_kept(const lcomm_restore *restore, size_t index) {
  for (int rank = 0; rank < restore->comm->size; rank++) {
    if (restore->ranges[2 * ((size_t)rank * restore->count + index) + 1] > 0) {
      return true;
    }
  }
  return false;
}

/* Of a reduce-scatter every node has one rank that sums its contributions to the segment. */
static int holder_of_segment(const lcomm_restore *restore, size_t index, uint64_t at,
                             uint64_t *end) {
  const lcomm_comm *comm = restore->comm;
  const uint64_t *parts = restore->restored[index].ef->request.part_counts;
  uint64_t segment_end = parts[0];
  int owner = 0;
  while (at >= segment_end) {
    segment_end += parts[++owner];
  }
  *end = segment_end < *end ? segment_end : *end;
  int node = (int)(at / LCOMM_STATE_TILE % (uint64_t)comm->topo.nodes);
  return is_kept(restore, index) ? lcomm_reduce_scatter_collector(&comm->topo, node, owner) : -1;
}

/* The rank that is handed elements at .. *end, which is lowered; -1 for none.
 * The ranks that keep an element take turns by tiles, so that all have a share. */
static int holder_of(const lcomm_restore *restore, size_t index, uint64_t at, uint64_t *end) {
  uint64_t tile = at / LCOMM_STATE_TILE, tile_end = (tile + 1) * LCOMM_STATE_TILE;
  *end = tile_end < *end ? tile_end : *end;
  if (lcomm_ef_scatters(restore->restored[index].ef)) {
    return holder_of_segment(restore, index, at, end);
  }
  int holders = count_holders(restore, index, at, end);
  if (holders == 0) {
    return -1;
  }
  int turn = (int)(tile % (uint64_t)holders);
  for (int rank = 0;; rank++) {
    const uint64_t *range = restore->ranges + 2 * ((size_t)rank * restore->count + index);
    if (at >= range[0] && at - range[0] < range[1] && turn-- == 0) {
      return rank;
    }
  }
}

/* --------------------------------------------------------------- sharing out */

/* sum += factor * values, rounded once. Zeros change nothing. */
static void add_values(float *sum, const uint8_t *values, uint64_t n, double factor) {
  for (uint64_t i = 0; i < n; i++) {
    float value;
    memcpy(&value, values + i * sizeof(value), sizeof(value));
    sum[i] = (float)((double)sum[i] + factor * (double)value);
  }
}

/* A part of what one old rank kept, in elements of the vector. */
typedef struct span_values {
  uint64_t first, n;
  const uint8_t *residual, *momentum; /* momentum may be NULL */
} span_values;

/* What of it belongs to this rank's result. */
static span_values own_values(const span_values *part, lcomm_span result) {
  uint64_t result_end = result.first + result.count, end = part->first + part->n;
  uint64_t first = part->first > result.first ? part->first : result.first;
  end = end < result_end ? end : result_end;
  size_t skipped = (size_t)(first - part->first) * sizeof(float);
  if (first >= end) {
    return (span_values){.n = 0};
  }
  return (span_values){.first = first - result.first,
                       .n = end - first,
                       .residual = part->residual + skipped,
                       .momentum = part->momentum ? part->momentum + skipped : NULL};
}

/* Nobody keeps these elements here: they go into the next result, and their
 * momentum becomes that of the results. */
static lcomm_status carry(lcomm_restore *restore, size_t index, const span_values *part,
                          double factor) {
  lcomm_restored *placed = &restore->restored[index];
  span_values own = own_values(part, placed->ef->result);
  bool carries = own.n > 0 && !lcomm_restore_all_zero(own.residual, own.n);
  bool moves = own.n > 0 && own.momentum && placed->ef->momentum > 0;
  lcomm_status status =
      carries ? lcomm_restore_vector(restore, index, &placed->state.carried) : LCOMM_OK;
  if (status == LCOMM_OK && carries) {
    add_values(placed->state.carried + own.first, own.residual, own.n, factor);
  }
  if (status == LCOMM_OK && moves) {
    status = lcomm_restore_vector(restore, index, &placed->state.velocity.now);
  }
  if (status == LCOMM_OK && moves) {
    add_values(placed->state.velocity.now + own.first, own.momentum, own.n, factor);
  }
  return status;
}

static void keep(lcomm_feedback_state *feedback, const span_values *part, double factor) {
  uint64_t at = part->first - feedback->first;
  add_values(feedback->residual.now + at, part->residual, part->n, factor);
  if (part->momentum && feedback->momentum.now) {
    add_values(feedback->momentum.now + at, part->momentum, part->n, factor);
  }
}

/* Hand out what one old rank kept of a tensor. An average over other ranks
 * gives a residual another weight, so it is scaled to mean the same. */
static lcomm_status hand_out(lcomm_restore *restore, const lcomm_target *target,
                             const lcomm_state_tensor *record, uint32_t saved_ranks) {
  const lcomm_comm *comm = restore->comm;
  int old_ranks = restore->ranks_before > 0 ? restore->ranks_before : (int)saved_ranks;
  size_t index = target->index;
  lcomm_restored *placed = &restore->restored[index];
  double result = placed->ef->request.op == LCOMM_AVG ? 1.0 / (double)old_ranks : 1.0;
  double factor =
      placed->ef->request.op == LCOMM_AVG ? (double)comm->size / (double)old_ranks : 1.0;
  uint64_t begin = target->offset + record->first, last = begin + record->n;
  lcomm_status status = LCOMM_OK;
  placed->has_residual = true;
  for (uint64_t at = begin, end = last; status == LCOMM_OK && at < last; at = end, end = last) {
    int holder = holder_of(restore, index, at, &end);
    size_t skipped = (size_t)(at - begin) * sizeof(float);
    span_values part = {.first = at, .n = end - at, .residual = record->residual + skipped};
    part.momentum = record->momentum ? record->momentum + skipped : NULL;
    if (holder == comm->rank) {
      keep(placed->state.feedback, &part, factor);
    } else if (holder < 0) {
      status = carry(restore, index, &part, result);
    }
  }
  return status;
}

/* Of a reduce-scatter every rank has the velocity of its own part, and zeros as a residual of it;
 * elsewhere it is equal on all ranks, so one file says it. */
static bool takes_velocity(const lcomm_restored *restored, const lcomm_state_header *header,
                           const lcomm_state_tensor *record) {
  return record->has_velocity && (record->of_scatters || header->rank == 0) &&
         lcomm_restore_has_velocity(restored);
}

static bool has_residual(const lcomm_state_tensor *record) {
  bool only_velocity = record->of_scatters && record->has_velocity &&
                       lcomm_restore_all_zero(record->residual, record->n);
  return record->n > 0 && !only_velocity;
}

lcomm_status lcomm_reshard_add(lcomm_restore *restore, const lcomm_state_header *header,
                               lcomm_state_reader *reader) {
  lcomm_state_tensor record;
  lcomm_status status = LCOMM_OK;
  uint32_t environment = lcomm_fp_enter();
  lcomm_restore_next_file(restore);
  for (size_t i = 0; status == LCOMM_OK && lcomm_state_next(reader, &record); i++) {
    lcomm_target target;
    status = lcomm_restore_match(restore, &record, &i, &target);
    if (status != LCOMM_OK || target.ignored) {
      continue;
    }
    if (has_residual(&record)) {
      status = hand_out(restore, &target, &record, header->ranks);
    }
    if (status == LCOMM_OK && takes_velocity(&restore->restored[target.index], header, &record)) {
      status = lcomm_restore_velocity(restore, &target, &record);
    }
    if (status == LCOMM_OK && record.shape.rank > 0 && header->rank == 0) { /* that of all ranks */
      status = lcomm_restore_basis(restore, &target, &record);
    }
  }
  lcomm_fp_leave(environment);
  return status;
}

/* ------------------------------------------------------------------- end */

/* What takes up a residual keeps its momentum beside it, so tensors and calls that came
 * with a velocity hand it in, as at the end of a warm-up. */
static void take_over(lcomm_restore *restore, size_t index) {
  lcomm_restored *placed = &restore->restored[index];
  lcomm_feedback_state *feedback = placed->state.feedback;
  bool scatters = lcomm_ef_scatters(placed->ef);
  float units = lcomm_ef_units(placed->ef);
  lcomm_span own = placed->ef->result; /* all that this rank keeps of what it has the velocity of */
  if (!scatters) {
    own = lcomm_span_whole(feedback ? feedback->first : 0, feedback ? feedback->count : 0);
  }
  uint64_t last = own.first + own.count;
  for (uint64_t at = own.first, end = last; at < last; at = end, end = last) {
    int holders = scatters ? 1 : count_holders(restore, index, at, &end);
    float share = units / (float)holders;
    for (; feedback->momentum.now && at < end; at++) {
      feedback->momentum.now[at - feedback->first] +=
          share * placed->state.velocity.now[at - placed->ef->result.first];
    }
  }
  lcomm_ef_array_free(placed->ef->comm, placed->ef->request.location, &placed->state.velocity);
}

void lcomm_restore_finish(lcomm_restore *restore) {
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < restore->count; i++) {
    const lcomm_restored *placed = &restore->restored[i];
    if (placed->ef->momentum > 0 && placed->state.velocity.now && placed->has_residual &&
        is_kept(restore, i)) {
      take_over(restore, i);
    }
  }
  lcomm_fp_leave(environment);
}
