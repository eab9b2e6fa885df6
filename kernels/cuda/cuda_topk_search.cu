/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The last chosen element of each segment: among the candidates, or, where the
 * sample misled (too few candidates, or more than there is room for), among all
 * elements, which takes more passes over them. Which it is is seen on the device:
 * a segment has little to do in the kernels that the other way needs. */

#include "kernels/cuda/cuda_topk_digits.cuh"
#include "kernels/cuda/cuda_topk_tile.cuh"

enum {
  AHEAD = 8,               /* loads of a thread */
  BLOCK_CANDIDATES = 4096, /* fewer, and the block costs more than what it counts */
  RECOLLECTING_BLOCKS = 1024
};

typedef struct search_args {
  lcomm_topk_tables t;
  const float *all; /* what there is to choose from */
  lcomm_topk_step step;
  uint32_t index;
} search_args;

/* ------------------------------------------------------------------- begin */

/* By one thread. Without enough elements above zero, all of these are chosen, and
 * the search is for the last of the zeros that make up the number. */
LCOMM_DEVICE void begin_search(const lcomm_cuda_segment *segment, lcomm_topk_search *search) {
  uint32_t lacking = segment->kept - search->found;
  search->key = 0;
  search->rank = segment->kept;
  search->step = search->found == segment->kept ? (uint32_t)LCOMM_TOPK_FOUND : 0;
  if (search->found < segment->kept && search->least <= 1) {
    search->rank = lacking;
    search->step = LCOMM_TOPK_POSITIONS;
  }
}

/* Candidates that are none gave up their place in the residual. */
LCOMM_DEVICE void take_back(const lcomm_topk_tables *t, const lcomm_cuda_segment *segment,
                            const lcomm_topk_search *search, float *accumulated) {
  uint32_t stored = search->found > segment->capacity ? search->stored : search->found;
  lcomm_topk_range own =
      lcomm_topk_part_of(stored, lcomm_block() - segment->first_span, segment->spans);
  for (uint64_t i = own.begin + lcomm_thread(); i < own.end; i += LCOMM_TOPK_THREADS) {
    uint64_t at = segment->area + i;
    accumulated[lcomm_topk_global(t, t->position[at])] = t->value[at];
  }
}

typedef struct check_args {
  lcomm_topk_tables t;
  float *accumulated; /* may be NULL */
} check_args;

LCOMM_KERNEL(topk_check, check_args) {
  const lcomm_cuda_segment *segment = &a.t.segment[a.t.span_segment[lcomm_block()]];
  lcomm_topk_search *search = &a.t.search[a.t.span_segment[lcomm_block()]];
  int misled = lcomm_topk_misled(segment, search);
  if (a.accumulated && misled) {
    take_back(&a.t, segment, search, a.accumulated);
  }
  if (lcomm_block() != segment->first_span || lcomm_thread() != 0) {
    return;
  }
  if (misled) {
    lcomm_atomic_or(a.t.misled, 1);
  }
  begin_search(segment, search);
}

/* ------------------------------------------------------------------- steps */

/* Blocks that count for a segment. */
LCOMM_DEVICE uint32_t blocks_of(const lcomm_cuda_segment *segment,
                                const lcomm_topk_search *search) {
  if (lcomm_topk_misled(segment, search)) {
    return segment->spans;
  }
  uint64_t blocks = ((uint64_t)search->found + BLOCK_CANDIDATES - 1) / BLOCK_CANDIDATES;
  return lcomm_topk_at_most(blocks, segment->spans);
}

/* Positions are looked at only where the magnitude is the sought one's. */
LCOMM_DEVICE void count_candidate(const search_args *a, uint64_t known, float value, uint64_t at,
                                  lcomm_topk_histogram *h) {
  uint32_t position = 0;
  if (a->step.shift < 32) {
    if (lcomm_topk_magnitude(value) != known >> 32) {
      return;
    }
    position = a->t.position[at];
  }
  lcomm_topk_count(h, a->step, known, lcomm_topk_key(&a->t, value, position));
}

LCOMM_DEVICE void count_candidates(const search_args *a, const lcomm_cuda_segment *segment,
                                   const lcomm_topk_search *search, uint64_t known,
                                   lcomm_topk_histogram *h) {
  const lcomm_topk_range own = lcomm_topk_part_of(
      search->found, lcomm_block() - segment->first_span, blocks_of(segment, search));
  uint64_t end = segment->area + own.end;
  for (uint64_t first = segment->area + own.begin + lcomm_thread(); first < end;
       first += AHEAD * LCOMM_TOPK_THREADS) {
    float value[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t at = first + j * LCOMM_TOPK_THREADS;
      value[j] = at < end ? a->t.value[at] : 0.0f;
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t at = first + j * LCOMM_TOPK_THREADS;
      if (at < end) {
        count_candidate(a, known, value[j], at, h);
      }
    }
  }
}

/* The elements of this block's span whose positions can have the known part. */
LCOMM_DEVICE lcomm_topk_range elements_of(const search_args *a, const lcomm_cuda_segment *segment,
                                          uint64_t known) {
  uint64_t begin =
      segment->first + (uint64_t)(lcomm_block() - segment->first_span) * LCOMM_TOPK_SPAN;
  uint64_t end = begin + LCOMM_TOPK_SPAN, segment_end = (uint64_t)segment->first + segment->count;
  uint32_t open = a->step.shift + a->step.bits;
  end = end < segment_end ? end : segment_end;
  if (open < 32) {
    uint64_t last = a->t.count - 1 - (uint32_t)known, most = (uint64_t)1 << open;
    uint64_t first = last + 1 > most ? last + 1 - most : 0;
    begin = begin > first ? begin : first;
    end = end < last + 1 ? end : last + 1;
  }
  lcomm_topk_range range = {begin, end};
  return range;
}

LCOMM_DEVICE void count_elements(const search_args *a, const lcomm_cuda_segment *segment,
                                 uint64_t known, lcomm_topk_histogram *h) {
  lcomm_topk_range own = elements_of(a, segment, known);
  for (uint64_t i = own.begin + lcomm_thread(); i < own.end; i += AHEAD * LCOMM_TOPK_THREADS) {
    float value[AHEAD];
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t at = i + j * LCOMM_TOPK_THREADS;
      value[j] = at < own.end ? a->all[lcomm_topk_global(&a->t, (uint32_t)at)] : 0.0f;
    }
    LCOMM_UNROLL for (uint32_t j = 0; j < AHEAD; j++) {
      uint64_t at = i + j * LCOMM_TOPK_THREADS;
      if (at < own.end) {
        lcomm_topk_count(h, a->step, known, lcomm_topk_key(&a->t, value[j], (uint32_t)at));
      }
    }
  }
}

LCOMM_KERNEL(topk_search, search_args) {
  LCOMM_SHARED lcomm_topk_histogram h;
  const lcomm_cuda_segment *segment = &a.t.segment[a.t.span_segment[lcomm_block()]];
  lcomm_topk_search *search = &a.t.search[a.t.span_segment[lcomm_block()]];
  uint32_t blocks = blocks_of(segment, search);
  if (search->step != a.index || lcomm_block() - segment->first_span >= blocks) {
    return;
  }
  uint64_t known = search->key;
  uint32_t rank = search->rank;
  lcomm_topk_clear(&h);
  lcomm_sync_block();
  if (lcomm_topk_misled(segment, search)) {
    count_elements(&a, segment, known, &h);
  } else {
    count_candidates(&a, segment, search, known, &h);
  }
  if (!lcomm_topk_gather(&a.t, segment, search, blocks, &h)) {
    return;
  }
  lcomm_topk_find(&h, rank);
  if (lcomm_thread() == 0) {
    search->key = known | (uint64_t)h.digit << a.step.shift;
    search->rank = h.rank;
    search->step = lcomm_topk_next(&h, a.index);
  }
}

/* -------------------------------------------------------------- recollecting */

typedef struct recollect_args {
  lcomm_topk_tables t;
  const float *all;
  float *accumulated; /* may be NULL */
  uint32_t early;
} recollect_args;

/* What is not finite does not stay, whether it was chosen or not. */
LCOMM_DEVICE void clear_not_finite(const lcomm_topk_tile *tile, const float value[LCOMM_TOPK_OWN],
                                   float *accumulated) {
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    if ((tile->mask >> k & 1) && !lcomm_f32_is_finite(value[k])) {
      accumulated[tile->global + tile->own + lcomm_topk_distance(k)] = 0.0f;
    }
  }
}

/* Of a piece whose segment's candidates were none: those that are chosen, which are
 * known by now. */
LCOMM_DEVICE void recollect(const recollect_args *a, uint32_t i, uint32_t counts[LCOMM_WARP],
                            uint32_t *place) {
  lcomm_topk_piece piece = a->t.piece[i];
  const lcomm_cuda_segment *segment = &a->t.segment[piece.segment];
  lcomm_topk_search *search = &a->t.search[piece.segment];
  lcomm_topk_tile tile = lcomm_topk_tile_of(&a->t, piece, segment);
  float value[LCOMM_TOPK_OWN];
  uint32_t hits = 0;
  lcomm_topk_load(a->all, &tile, value);
  LCOMM_UNROLL for (uint32_t k = 0; k < LCOMM_TOPK_OWN; k++) {
    uint32_t local = tile.local + tile.own + lcomm_topk_distance(k);
    hits |= (uint32_t)(lcomm_topk_key(&a->t, value[k], local) >= search->key) << k;
  }
  hits &= tile.mask;
  lcomm_topk_order order = lcomm_topk_order_of(hits, counts);
  if (lcomm_thread() == 0) {
    *place = lcomm_topk_claim(segment, search, &search->placed, order.all);
    lcomm_topk_run run = {*place, *place == LCOMM_TOPK_NOWHERE ? 0 : order.all};
    a->t.run[i] = run;
  }
  lcomm_sync_block();
  if (a->accumulated) {
    clear_not_finite(&tile, value, a->accumulated);
  }
  if (*place != LCOMM_TOPK_NOWHERE) {
    lcomm_topk_stage(&a->t, &tile, value, hits, &order, *place, a->accumulated, a->early);
  }
}

LCOMM_KERNEL(topk_recollect, recollect_args) {
  LCOMM_SHARED uint32_t counts[LCOMM_WARP], place;
  if (*a.t.misled == 0) {
    return;
  }
  for (uint32_t i = lcomm_block(); i < a.t.pieces; i += lcomm_blocks()) {
    uint32_t segment = a.t.piece[i].segment;
    if (lcomm_topk_misled(&a.t.segment[segment], &a.t.search[segment])) {
      recollect(&a, i, counts, &place);
    }
  }
}

/* ------------------------------------------------------------------ launch */

static int search_all(const lcomm_cuda_topk *topk, const float *all, void *stream) {
  int error = 0;
  for (uint32_t i = 0; i < topk->steps && error == 0; i++) {
    search_args args = {topk->tables, all, topk->step[i], i};
    error = LCOMM_LAUNCH(topk_search, topk->spans, LCOMM_TOPK_THREADS, stream, args);
  }
  return error;
}

extern "C" int lcomm_cuda_topk_search(const lcomm_cuda_topk *topk, const lcomm_topk_job *job,
                                      void *stream) {
  const float *all = job->accumulated ? job->accumulated : job->base;
  check_args checked = {topk->tables, job->accumulated};
  int error = LCOMM_LAUNCH(topk_check, topk->spans, LCOMM_TOPK_THREADS, stream, checked);
  if (error == 0) {
    error = search_all(topk, all, stream);
  }
  if (error != 0) {
    return error;
  }
  uint32_t blocks = lcomm_topk_at_most(topk->tables.pieces, RECOLLECTING_BLOCKS);
  recollect_args args = {topk->tables, all, job->accumulated, job->early};
  return LCOMM_LAUNCH(topk_recollect, blocks, LCOMM_TOPK_THREADS, stream, args);
}
