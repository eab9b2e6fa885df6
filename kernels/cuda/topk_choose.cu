/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* From candidates to entries: the chosen ones are counted, moved together, and
 * dropped where an output has no room for them. */

#include "kernels/cuda/topk_chosen.cuh"
#include "kernels/cuda/topk_digits.cuh"
#include "kernels/cuda/topk_shape.cuh"

typedef struct choose_args {
  lcomm_topk_tables t;
  float *accumulated; /* NULL: candidates left nothing that would have to be taken back */
  lcomm_topk_step step[LCOMM_TOPK_STEPS_MAX];
  uint32_t steps;
} choose_args;

LCOMM_DEVICE int is_chosen(const choose_args *a, uint64_t last, uint32_t at) {
  return lcomm_topk_key(&a->t, a->t.value[at], a->t.position[at]) >= last;
}

/* ------------------------------------------------------------------- count */

/* By a warp. */
LCOMM_DEVICE uint32_t count_piece(const choose_args *a, uint32_t piece) {
  lcomm_topk_run run = {0, 0};
  uint64_t last = 0;
  uint32_t chosen = 0;
  if (piece < a->t.pieces) {
    run = a->t.run[piece];
    last = a->t.search[a->t.piece[piece].segment].key;
  }
  for (uint32_t i = lcomm_lane(); i < run.count; i += LCOMM_WARP)
    chosen += is_chosen(a, last, run.place + i);
  return lcomm_total_of_warp(chosen);
}

LCOMM_KERNEL(topk_count, choose_args) {
  enum { OWN = LCOMM_TOPK_CHUNK / LCOMM_TOPK_WARPS };
  LCOMM_SHARED uint32_t counts[LCOMM_TOPK_CHUNK], sums[LCOMM_TOPK_WARPS], last;
  uint32_t first = lcomm_block() * LCOMM_TOPK_CHUNK, own = lcomm_thread(), all;
  for (uint32_t i = lcomm_warp() * OWN; i < (lcomm_warp() + 1) * OWN; i++) {
    uint32_t chosen = count_piece(&a, first + i);
    if (lcomm_lane() == 0)
      counts[i] = chosen;
  }
  lcomm_sync_block();
  uint32_t before = lcomm_scan_block(own < LCOMM_TOPK_CHUNK ? counts[own] : 0, sums, &all);
  if (own < LCOMM_TOPK_CHUNK)
    a.t.before[first + own] = before;
  if (own == 0)
    a.t.chunk_before[lcomm_block()] = all;
  if (lcomm_is_last(a.t.ticket, lcomm_blocks(), &last))
    lcomm_scan_written(a.t.chunk_before, lcomm_blocks(), sums);
}

/* -------------------------------------------------------------------- move */

/* In its output's part. */
LCOMM_DEVICE uint32_t position_in_output(const lcomm_topk_tables *t, uint32_t local) {
  uint32_t tile = local / LCOMM_TILE / t->outputs;
  return tile * LCOMM_TILE + local % LCOMM_TILE;
}

/* Each warp moves a piece; the residual gets back the candidates that are not
 * chosen. */
LCOMM_KERNEL(topk_move, choose_args) {
  uint32_t piece = lcomm_block() * LCOMM_TOPK_WARPS + lcomm_warp();
  if (piece >= a.t.pieces)
    return;
  lcomm_topk_run run = a.t.run[piece];
  uint64_t last = a.t.search[a.t.piece[piece].segment].key;
  uint32_t place = lcomm_topk_before(&a.t, piece);
  for (uint32_t first = 0; first < run.count; first += LCOMM_WARP) {
    uint32_t at = run.place + first + lcomm_lane();
    int is_there = first + lcomm_lane() < run.count;
    uint32_t chosen = is_there && is_chosen(&a, last, at);
    uint32_t all = lcomm_ballot(chosen != 0);
    uint32_t before = (uint32_t)__builtin_popcount(all & ((1u << lcomm_lane()) - 1));
    if (chosen) {
      a.t.chosen_position[place + before] = position_in_output(&a.t, a.t.position[at]);
      a.t.chosen_value[place + before] = a.t.value[at];
    } else if (is_there && a.accumulated != NULL) {
      a.accumulated[lcomm_topk_global(&a.t, a.t.position[at])] =
          lcomm_finite_or_zero(a.t.value[at]);
    }
    place += (uint32_t)__builtin_popcount(all);
  }
}

/* -------------------------------------------------------------------- trim */

/* The key of the last entry that fits. */
LCOMM_DEVICE uint64_t last_that_fits(const choose_args *a, const lcomm_topk_entries *entries,
                                     lcomm_topk_histogram *h) {
  uint64_t known = 0;
  uint32_t rank = entries->sent;
  for (uint32_t step = 0; step < a->steps;) {
    lcomm_topk_clear(h);
    lcomm_sync_block();
    for (uint64_t i = lcomm_thread(); i < entries->count; i += LCOMM_TOPK_THREADS) {
      uint64_t at = entries->first + i;
      lcomm_topk_count(h, a->step[step], known,
                       lcomm_topk_key(&a->t, a->t.chosen_value[at], a->t.chosen_position[at]));
    }
    lcomm_sync_block();
    lcomm_topk_find(h, rank);
    known |= (uint64_t)h->digit << a->step[step].shift;
    rank = h->rank;
    step = lcomm_topk_next(h, step);
    lcomm_sync_block();
  }
  return known;
}

/* Moves the entries from `last` on to the front; the residual gets back the others. */
LCOMM_DEVICE void drop_below(const choose_args *a, const lcomm_topk_entries *entries, uint64_t last,
                             uint32_t sums[LCOMM_TOPK_WARPS]) {
  uint32_t *position = a->t.chosen_position + entries->first, end = 0;
  float *value = a->t.chosen_value + entries->first;
  for (uint64_t first = 0; first < entries->count; first += LCOMM_TOPK_THREADS) {
    uint64_t i = first + lcomm_thread();
    int is_there = i < entries->count;
    uint32_t own = is_there ? position[i] : 0, all;
    float what = is_there ? value[i] : 0.0f;
    uint32_t fits = is_there && lcomm_topk_key(&a->t, what, own) >= last;
    uint32_t before = lcomm_scan_block(fits, sums, &all);
    if (fits) {
      position[end + before] = own;
      value[end + before] = what;
    } else if (is_there && a->accumulated != NULL) {
      a->accumulated[lcomm_topk_entry_global(&a->t, lcomm_block(), own)] =
          lcomm_finite_or_zero(what);
    }
    end += all;
  }
}

/* A block for each output, as it seldom happens. */
LCOMM_KERNEL(topk_trim, choose_args) {
  LCOMM_SHARED lcomm_topk_histogram h;
  lcomm_topk_entries entries = lcomm_topk_entries_of(&a.t, lcomm_block());
  if (entries.count == entries.sent)
    return;
  uint64_t last = entries.sent == 0 ? UINT64_MAX : last_that_fits(&a, &entries, &h);
  drop_below(&a, &entries, last, h.sums);
}

extern "C" int lcomm_cuda_topk_choose(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                      void *stream) {
  choose_args args = {topk->tables, job->early ? job->accumulated : NULL, {}, topk->steps};
  for (uint32_t i = 0; i < topk->steps; i++)
    args.step[i] = topk->step[i];
  uint32_t blocks = lcomm_topk_divide_up(topk->tables.pieces, LCOMM_TOPK_WARPS);
  int error = LCOMM_LAUNCH(topk_count, topk->chunks, LCOMM_TOPK_THREADS, stream, args);
  if (error == 0)
    error = LCOMM_LAUNCH(topk_move, blocks, LCOMM_TOPK_THREADS, stream, args);
  if (error == 0 && topk->trims)
    error = LCOMM_LAUNCH(topk_trim, topk->tables.outputs, LCOMM_TOPK_THREADS, stream, args);
  return error;
}
