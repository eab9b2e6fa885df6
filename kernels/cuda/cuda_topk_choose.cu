/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* From candidates to entries: the chosen ones are counted, moved together, and
 * dropped where an output has no room for them. */

#include "kernels/cuda/cuda_topk_chosen.cuh"
#include "kernels/cuda/cuda_topk_digits.cuh"
#include "kernels/cuda/cuda_topk_shape.cuh"

typedef struct choose_args {
  lcomm_topk_tables t;
  float *accumulated; /* NULL: candidates left nothing that would have to be taken back */
  lcomm_topk_step step[LCOMM_TOPK_STEPS_MAX];
  uint32_t steps;
} choose_args;

/* Most often the magnitude decides. */
LCOMM_DEVICE int is_chosen(const choose_args *a, uint64_t last, float value, uint32_t at) {
  uint32_t magnitude = lcomm_topk_magnitude(value), least = (uint32_t)(last >> 32);
  if (magnitude != least) {
    return magnitude > least;
  }
  return lcomm_topk_key(&a->t, value, a->t.position[at]) >= last;
}

/* ------------------------------------------------------------------- count */

enum {
  OWN_PIECES = LCOMM_TOPK_CHUNK / LCOMM_TOPK_WARPS,
  AHEAD = 4, /* pieces whose first candidates are on their way together, */
  ROWS = 2   /* so many of each lane */
};

/* The candidates of a piece, and the last key that is chosen of them. */
typedef struct piece_args {
  lcomm_topk_run run;
  uint64_t last;
} piece_args;

LCOMM_DEVICE piece_args piece_of(const choose_args *a, uint32_t piece) {
  piece_args p = {{0, 0}, 0};
  if (piece >= a->t.pieces) {
    return p;
  }
  p.run = a->t.run[piece];
  p.last = a->t.search[a->t.piece[piece].segment].key;
  return p;
}

/* What lane `lane` has. */
LCOMM_DEVICE piece_args piece_of_lane(const piece_args *own, uint32_t lane) {
  piece_args p;
  p.run.place = lcomm_shuffle(own->run.place, lane);
  p.run.count = lcomm_shuffle(own->run.count, lane);
  p.last = (uint64_t)lcomm_shuffle((uint32_t)(own->last >> 32), lane) << 32;
  p.last |= lcomm_shuffle((uint32_t)own->last, lane);
  return p;
}

LCOMM_DEVICE void load_rows(const choose_args *a, lcomm_topk_run run, uint32_t first,
                            float value[ROWS]) {
  LCOMM_UNROLL for (uint32_t r = 0; r < ROWS; r++) {
    uint32_t i = first + r * LCOMM_WARP + lcomm_lane();
    value[r] = i < run.count ? a->t.value[run.place + i] : 0.0f;
  }
}

/* A bit for each lane whose candidate is chosen. */
LCOMM_DEVICE uint32_t chosen_of_row(const choose_args *a, const piece_args *p, uint32_t first,
                                    float value) {
  uint32_t i = first + lcomm_lane();
  return lcomm_ballot(i < p->run.count && is_chosen(a, p->last, value, p->run.place + i));
}

LCOMM_DEVICE uint32_t count_rows(const choose_args *a, const piece_args *p, uint32_t first,
                                 const float value[ROWS]) {
  uint32_t chosen = 0;
  LCOMM_UNROLL for (uint32_t r = 0; r < ROWS; r++) {
    uint32_t row = chosen_of_row(a, p, first + r * LCOMM_WARP, value[r]);
    chosen += (uint32_t)__builtin_popcount(row);
  }
  return chosen;
}

/* By a warp: its pieces, from the first on. */
LCOMM_DEVICE void count_pieces(const choose_args *a, uint32_t first, uint32_t counts[OWN_PIECES]) {
  piece_args own = piece_of(a, first + lcomm_lane() % OWN_PIECES), p[AHEAD];
  for (uint32_t i = 0; i < OWN_PIECES; i += AHEAD) {
    float value[AHEAD][ROWS];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      p[j] = piece_of_lane(&own, i + j);
      load_rows(a, p[j].run, 0, value[j]);
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint32_t chosen = count_rows(a, &p[j], 0, value[j]);
      for (uint32_t k = ROWS * LCOMM_WARP; k < p[j].run.count; k += ROWS * LCOMM_WARP) {
        load_rows(a, p[j].run, k, value[j]);
        chosen += count_rows(a, &p[j], k, value[j]);
      }
      if (lcomm_lane() == 0) {
        counts[i + j] = chosen;
      }
    }
  }
}

LCOMM_KERNEL(topk_count, choose_args) {
  LCOMM_SHARED uint32_t counts[LCOMM_TOPK_CHUNK], sums[LCOMM_TOPK_WARPS], last;
  uint32_t first = lcomm_block() * LCOMM_TOPK_CHUNK, own = lcomm_thread(), all;
  uint32_t warp = lcomm_warp() * OWN_PIECES;
  count_pieces(&a, first + warp, counts + warp);
  lcomm_sync_block();
  uint32_t before = lcomm_scan_block(own < LCOMM_TOPK_CHUNK ? counts[own] : 0, sums, &all);
  if (own < LCOMM_TOPK_CHUNK) {
    a.t.before[first + own] = before;
  }
  if (own == 0) {
    a.t.chunk_before[lcomm_block()] = all;
  }
  if (lcomm_is_last(a.t.ticket, lcomm_blocks(), &last)) {
    lcomm_scan_written(a.t.chunk_before, lcomm_blocks(), sums);
  }
}

/* -------------------------------------------------------------------- move */

/* In its output's part. */
LCOMM_DEVICE uint32_t position_in_output(const lcomm_topk_tables *t, uint32_t local) {
  uint32_t tile = local / LCOMM_TILE / t->outputs;
  return tile * LCOMM_TILE + local % LCOMM_TILE;
}

/* A candidate, which becomes entry `place` or goes back. */
LCOMM_DEVICE void move_candidate(const choose_args *a, uint32_t position, float value,
                                 uint32_t chosen, uint32_t place) {
  if (chosen) {
    a->t.chosen_position[place] = position_in_output(&a->t, position);
    a->t.chosen_value[place] = value;
  } else if (a->accumulated) {
    a->accumulated[lcomm_topk_global(&a->t, position)] = lcomm_finite_or_zero(value);
  }
}

LCOMM_DEVICE void load_positions(const choose_args *a, lcomm_topk_run run, uint32_t first,
                                 uint32_t position[ROWS]) {
  LCOMM_UNROLL for (uint32_t r = 0; r < ROWS; r++) {
    uint32_t i = first + r * LCOMM_WARP + lcomm_lane();
    position[r] = i < run.count ? a->t.position[run.place + i] : 0;
  }
}

/* So many rows of a piece; `place` is that of their first entry, and then of the next. */
LCOMM_DEVICE void move_rows(const choose_args *a, const piece_args *p, uint32_t first,
                            const float value[ROWS], const uint32_t position[ROWS],
                            uint32_t *place) {
  LCOMM_UNROLL for (uint32_t r = 0; r < ROWS; r++) {
    uint32_t begin = first + r * LCOMM_WARP, bit = 1u << lcomm_lane();
    uint32_t all = chosen_of_row(a, p, begin, value[r]);
    uint32_t before = (uint32_t)__builtin_popcount(all & (bit - 1));
    if (begin + lcomm_lane() < p->run.count) {
      move_candidate(a, position[r], value[r], all & bit, *place + before);
    }
    *place += (uint32_t)__builtin_popcount(all);
  }
}

enum { MOVED_PIECES = 4 /* by a warp */, MOVED_AHEAD = 2 };

/* The residual gets back the candidates that are not chosen. */
LCOMM_KERNEL(topk_move, choose_args) {
  uint32_t first = (lcomm_block() * LCOMM_TOPK_WARPS + lcomm_warp()) * MOVED_PIECES;
  uint32_t piece = first + lcomm_lane() % MOVED_PIECES;
  piece_args own = piece_of(&a, piece), p[MOVED_AHEAD];
  uint32_t own_place = piece < a.t.pieces ? lcomm_topk_before(&a.t, piece) : 0;
  for (uint32_t i = 0; i < MOVED_PIECES; i += MOVED_AHEAD) {
    float value[MOVED_AHEAD][ROWS];
    uint32_t position[MOVED_AHEAD][ROWS];
    LCOMM_UNROLL for (uint32_t j = 0; j < MOVED_AHEAD; j++) {
      p[j] = piece_of_lane(&own, i + j);
      load_rows(&a, p[j].run, 0, value[j]);
      load_positions(&a, p[j].run, 0, position[j]);
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < MOVED_AHEAD; j++) {
      uint32_t place = lcomm_shuffle(own_place, i + j);
      move_rows(&a, &p[j], 0, value[j], position[j], &place);
      for (uint32_t k = ROWS * LCOMM_WARP; k < p[j].run.count; k += ROWS * LCOMM_WARP) {
        load_rows(&a, p[j].run, k, value[j]);
        load_positions(&a, p[j].run, k, position[j]);
        move_rows(&a, &p[j], k, value[j], position[j], &place);
      }
    }
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
    } else if (is_there && a->accumulated) {
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
  if (entries.count == entries.sent) {
    return;
  }
  uint64_t last = entries.sent == 0 ? UINT64_MAX : last_that_fits(&a, &entries, &h);
  drop_below(&a, &entries, last, h.sums);
}

extern "C" int lcomm_cuda_topk_choose(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                      void *stream) {
  choose_args args = {topk->tables, job->early ? job->accumulated : NULL, {}, topk->steps};
  for (uint32_t i = 0; i < topk->steps; i++) {
    args.step[i] = topk->step[i];
  }
  uint32_t blocks = lcomm_topk_divide_up(topk->tables.pieces, LCOMM_TOPK_WARPS * MOVED_PIECES);
  int error = LCOMM_LAUNCH(topk_count, topk->chunks, LCOMM_TOPK_THREADS, stream, args);
  if (error == 0) {
    error = LCOMM_LAUNCH(topk_move, blocks, LCOMM_TOPK_THREADS, stream, args);
  }
  if (error == 0 && topk->trims) {
    error = LCOMM_LAUNCH(topk_trim, topk->tables.outputs, LCOMM_TOPK_THREADS, stream, args);
  }
  return error;
}
