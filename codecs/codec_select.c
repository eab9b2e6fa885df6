/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_select.h"

#include "codecs/codec_select_internal.h"

enum {
  CANDIDATES_LEAST = 8192,
  CHUNK = 4096 /* elements selected before their values are fetched, still cached */
};

/* The free end of `entries`. */
static lcomm_entries free_end(const lcomm_entries *entries) {
  return (lcomm_entries){.position = entries->position + entries->count,
                         .value = entries->value + entries->count};
}

static bool releases(const lcomm_select_input *input) {
  return input->residual != NULL && input->keep == LCOMM_SELECT_BF16_ERROR;
}

static void release_from(const lcomm_select_input *input, const lcomm_entries *entries,
                         size_t begin) {
  for (size_t i = begin; releases(input) && i < entries->count; i++) {
    input->residual[lcomm_select_global(input, entries->position[i])] =
        lcomm_select_bf16_error(entries->value[i]);
  }
}

static void take_back(const lcomm_select_input *input, const lcomm_entries *entries) {
  for (size_t i = 0; releases(input) && i < entries->count; i++) {
    input->residual[lcomm_select_global(input, entries->position[i])] = entries->value[i];
  }
}

/* The pass */

/* The sample is taken first, then the candidates are collected in the same place. */
size_t lcomm_select_room(uint64_t count, uint64_t kept) {
  uint64_t wanted = 4 * kept + CANDIDATES_LEAST, sample = lcomm_select_sample_size(count);
  wanted = wanted > sample ? wanted : sample;
  return (size_t)(count < wanted ? count : wanted);
}

/* Fine bins, which hold few candidates each, need the least magnitude of the
 * candidates. Without it the bins have to span all magnitudes. */
static void open_histogram(lcomm_rank_histogram *histogram, uint32_t least) {
  if (least > 1) {
    lcomm_rank_fine(histogram, least);
  } else {
    lcomm_rank_coarse(histogram, least);
  }
}

/* A range of the arrays that the pass has just processed, and that is in the cache. */
typedef struct chunk {
  uint64_t local;
  const float *base, *before, *acc;
  float *residual; /* may be NULL */
  size_t length;
} chunk;

/* Fetches the values of the entries from `begin` on, all in `it`, and counts
 * them. */
static void fetch(const chunk *it, lcomm_entries *entries, size_t begin,
                  lcomm_rank_histogram *histogram) {
  for (size_t i = begin; i < entries->count; i++) {
    float value = it->acc[entries->position[i] - (uint32_t)it->local];
    entries->value[i] = value;
    lcomm_rank_count(histogram, value);
  }
}

/* Releases, while they are cached, the candidates that will probably be
 * chosen. */
static void release_chunk(const chunk *it, const lcomm_entries *entries, size_t begin,
                          uint32_t likely) {
  enum { PIECE = 64 };
  float left[PIECE];
  for (size_t n; begin < entries->count; begin += n) {
    n = entries->count - begin < PIECE ? entries->count - begin : PIECE;
    for (size_t i = 0; i < n; i++) {
      float value = entries->value[begin + i];
      uint32_t error = lcomm_f32_bits(lcomm_select_bf16_error(value));
      int sent = lcomm_f32_magnitude(value) >= (int32_t)likely;
      left[i] = lcomm_f32_from_bits(lcomm_pick(sent, error, lcomm_f32_bits(value)));
    }
    for (size_t i = 0; i < n; i++) {
      it->residual[entries->position[begin + i] - (uint32_t)it->local] = left[i];
    }
  }
}

static chunk chunk_at(const lcomm_select_input *input, uint64_t local, uint64_t end) {
  uint64_t run = lcomm_stripe_run(local, end, input->parts);
  uint64_t length = run < CHUNK ? run : CHUNK, global = lcomm_select_global(input, local);
  return (chunk){.local = local,
                 .base = input->base + global,
                 .before = input->residual ? input->before + global : NULL,
                 .acc = (input->residual ? input->residual : input->base) + global,
                 .residual = input->residual ? input->residual + global : NULL,
                 .length = (size_t)length};
}

/* Accumulates the range, stores the candidates that fit, returns how many
 * there were. */
static size_t collect(const lcomm_select_input *input, lcomm_select_span span,
                      lcomm_threshold threshold, lcomm_rank_histogram *histogram,
                      lcomm_entries *stored, size_t capacity) {
  size_t found = 0;
  chunk it;
  uint64_t end = span.first + span.count;
  for (uint64_t local = span.first; local < end; local += it.length) {
    it = chunk_at(input, local, end);
    size_t begin = stored->count, room = capacity - begin;
    size_t hits = input->kernels->ef.accumulate_select(it.base, it.before, it.residual, it.length,
                                                       threshold.least, (uint32_t)local,
                                                       stored->position + begin, room);
    stored->count += hits < room ? hits : room;
    found += hits;
    fetch(&it, stored, begin, histogram);
    if (releases(input)) {
      release_chunk(&it, stored, begin, threshold.likely);
    }
  }
  return found;
}

/* Picking from the candidates */

/* Keeps the entries whose key is `last` or greater. The pass has updated residuals
 * as if the entries from `likely` on were the chosen ones; this corrects those of
 * entries for which that is wrong. `wrong` has room for all entries. */
static void keep_from(const lcomm_select_input *input, lcomm_entries *entries, uint64_t last,
                      uint32_t likely, uint64_t *wrong) {
  size_t end = 0, wrongs = 0;
  for (size_t i = 0; i < entries->count; i++) {
    uint32_t position = entries->position[i];
    float value = entries->value[i];
    bool kept = lcomm_rank_key(value, position) >= last;
    entries->position[end] = position;
    entries->value[end] = value;
    end += kept;
    wrong[wrongs] = (uint64_t)position << 32 | lcomm_f32_bits(value);
    wrongs += kept != (lcomm_f32_magnitude(value) >= (int32_t)likely);
  }
  entries->count = end;
  for (size_t i = 0; releases(input) && i < wrongs; i++) {
    uint32_t position = (uint32_t)(wrong[i] >> 32);
    float value = lcomm_f32_from_bits((uint32_t)wrong[i]);
    bool kept = lcomm_rank_key(value, position) >= last;
    input->residual[lcomm_select_global(input, position)] =
        kept ? lcomm_select_bf16_error(value) : value;
  }
}

void lcomm_select_trim(lcomm_entries *entries, size_t kept, uint64_t *key) {
  lcomm_rank_histogram histogram;
  const lcomm_select_input no_residual = {.residual = NULL};
  if (entries->count <= kept) {
    return;
  }
  if (kept == 0) {
    entries->count = 0;
    return;
  }
  lcomm_rank_coarse(&histogram, 0);
  for (size_t i = 0; i < entries->count; i++) {
    lcomm_rank_count(&histogram, entries->value[i]);
  }
  uint64_t last = lcomm_rank_nth(&histogram, entries, kept, key);
  keep_from(&no_residual, entries, last, 0, key);
}

/* How an attempt to choose ended. */
typedef enum outcome {
  CHOSEN,
  TOO_FEW,   /* candidates */
  TOO_MANY,  /* for the room */
  ONLY_ZEROS /* are left to choose from */
} outcome;

/* Unless it is CHOSEN, the residual is acc everywhere, and `candidates`, in the
 * free end of `chosen`, holds what was found. */
static outcome attempt(const lcomm_select_input *input, lcomm_select_span span,
                       lcomm_select_margin margin, lcomm_entries *chosen, lcomm_entries *candidates,
                       uint64_t *key) {
  lcomm_rank_histogram histogram;
  lcomm_entries sample = free_end(chosen);
  size_t room = lcomm_select_room(span.count, span.kept);
  lcomm_threshold threshold = lcomm_select_threshold(input, span, margin, &sample, key);
  *candidates = free_end(chosen);
  open_histogram(&histogram, threshold.least);
  size_t found = collect(input, span, threshold, &histogram, candidates, room);
  if (found >= span.kept && found <= room) {
    uint64_t last = lcomm_rank_nth(&histogram, candidates, span.kept, key);
    keep_from(input, candidates, last, threshold.likely, key);
    chosen->count += candidates->count;
    return CHOSEN;
  }
  take_back(input, candidates);
  if (found > room) {
    return TOO_MANY;
  }
  return threshold.least > 1 ? TOO_FEW : ONLY_ZEROS;
}

void lcomm_select_range(const lcomm_select_input *input, uint64_t first, uint64_t count,
                        uint64_t kept, lcomm_entries *chosen, uint64_t *key) {
  lcomm_select_span span = {.first = first, .count = count, .kept = kept};
  lcomm_entries candidates;
  size_t begin = chosen->count;
  outcome end = attempt(input, span, LCOMM_SELECT_USUAL, chosen, &candidates, key);
  if (end == CHOSEN) {
    return;
  }
  lcomm_select_input acc = *input; /* is there now */
  acc.base = input->residual ? input->residual : input->base;
  acc.before = acc.residual = NULL;
  if (end == TOO_FEW) {
    end = attempt(&acc, span, LCOMM_SELECT_WIDE, chosen, &candidates, key);
  }
  if (end == ONLY_ZEROS) {
    lcomm_select_with_zeros(&acc, span, &candidates, chosen);
  } else if (end != CHOSEN) {
    lcomm_select_exhaustively(&acc, span, chosen);
  }
  release_from(input, chosen, begin);
}
