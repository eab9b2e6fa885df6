/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Payloads of top-k that are read together: those of a group into places of their own, with what
 * leaves residuals by them, or the summands of a sum. */

#include "kernels/cuda/cuda_topk_apply.cuh"

/* Payloads that are added, each to an array of its own. */
typedef struct add_list_args {
  lcomm_topk_readings list;
  float *vector[LCOMM_CUDA_LIST_MAX];
  uint8_t what[LCOMM_CUDA_LIST_MAX]; /* of lcomm_topk_what */
  float factor;
} add_list_args;

LCOMM_KERNEL(topk_add_list, add_list_args) {
  LCOMM_SHARED lcomm_topk_strip s;
  lcomm_list_place place = lcomm_list_place_of(&a.list.blocks);
  lcomm_topk_apply_args one = {};
  one.r = a.list.reading[place.piece];
  one.what = (lcomm_topk_what)a.what[place.piece];
  one.factor = a.factor;
  one.vector = a.vector[place.piece];
  lcomm_topk_apply_strip(&one, place.block, &s);
}

typedef struct clear_list_args {
  lcomm_list_blocks blocks;
  lcomm_topk_clear_args piece[LCOMM_CUDA_LIST_MAX];
} clear_list_args;

LCOMM_KERNEL(topk_clear_list, clear_list_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  lcomm_topk_clear_tile(&a.piece[place.piece], place.block);
}

/* What was sent leaves a residual, and a momentum, where it is in the payload that was applied.
 * Each is two payloads of a list. */
typedef struct commit_piece {
  lcomm_topk_reading sent, applied;
  float *residual, *momentum;
} commit_piece;

typedef struct commit_list_args {
  lcomm_list_blocks blocks;
  commit_piece piece[LCOMM_CUDA_COMMITS_MAX];
} commit_list_args;

LCOMM_KERNEL(topk_commit_list, commit_list_args) {
  LCOMM_SHARED lcomm_topk_strip s;
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const commit_piece *piece = &a.piece[place.piece];
  lcomm_topk_apply_args one = {};
  one.r = piece->sent;
  one.what = LCOMM_TOPK_APPLY_COMMIT;
  one.vector = piece->residual;
  one.masked = piece->momentum;
  one.applied = piece->applied;
  lcomm_topk_apply_strip(&one, place.block, &s);
}

/* ------------------------------------------------------------------- launch */

/* What of a list can have an entry. */
typedef struct listing {
  add_list_args added;
  commit_list_args committed;
  uint32_t read, commits;
} listing;

static int take_in(const lcomm_cuda_sparse *a, float *base, listing *it) {
  if (!lcomm_topk_is_valid(a)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  if (a->entries > 0) {
    it->added.list.reading[it->read] = lcomm_topk_reading_of(a);
    it->added.what[it->read] = LCOMM_TOPK_APPLY_ADD;
    it->added.vector[it->read++] = base;
  }
  return 0;
}

static bool has_payload(const lcomm_cuda_topk_decode *a) {
  return a->payload.payload != NULL;
}

/* The payload that was taken in last says what is applied. */
static lcomm_topk_reading note_positions(uint32_t *positions, listing *it) {
  uint32_t last = it->read - 1;
  it->added.list.reading[last].position = positions;
  it->added.what[last] = LCOMM_TOPK_APPLY_ADD_NOTED;
  return it->added.list.reading[last];
}

static int take_commit(const lcomm_cuda_topk_decode *a, listing *it) {
  bool applies = has_payload(a);
  if (!lcomm_topk_is_valid(&a->sent)) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  if (a->sent.entries == 0 || (applies && a->payload.entries == 0)) {
    return 0;
  }
  commit_piece *piece = &it->committed.piece[it->commits++];
  piece->sent = lcomm_topk_reading_of(&a->sent);
  if (applies) {
    piece->applied = note_positions(a->positions, it);
  }
  piece->residual = a->residual;
  piece->momentum = a->momentum;
  return 0;
}

static int take_piece(const lcomm_cuda_topk_decode *a, listing *it) {
  int error = has_payload(a) ? take_in(&a->payload, a->base, it) : 0;
  return error != 0 || !a->residual ? error : take_commit(a, it);
}

static int take_all(const lcomm_cuda_topk_decode *list, uint32_t count, listing *it) {
  uint32_t payloads = 0, commits = 0;
  int error = count > LCOMM_CUDA_LIST_MAX ? LCOMM_CUDA_INVALID_VALUE : 0;
  for (uint32_t i = 0; i < count && error == 0; i++) {
    commits += list[i].residual != NULL;
    payloads += has_payload(&list[i]) + (list[i].residual != NULL);
    bool fits = payloads <= LCOMM_CUDA_LIST_MAX && commits <= LCOMM_CUDA_COMMITS_MAX;
    error = fits ? take_piece(&list[i], it) : LCOMM_CUDA_INVALID_VALUE;
  }
  return error;
}

static int clear_all(const lcomm_cuda_topk_decode *list, uint32_t count, void *stream) {
  clear_list_args args = {};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t next = args.blocks.count;
    if (!has_payload(&list[i])) {
      continue;
    }
    args.piece[next] = lcomm_topk_clearing_of(&list[i].payload, list[i].base);
    if (!lcomm_list_add(&args.blocks, lcomm_topk_tiles_of(&args.piece[next]))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
  }
  return args.blocks.count == 0 ? 0
                                : LCOMM_LAUNCH(topk_clear_list, lcomm_list_blocks_all(&args.blocks),
                                               LCOMM_TOPK_THREADS, stream, args);
}

static int find_marks(const listing *it, void *stream) {
  lcomm_topk_reading all[LCOMM_CUDA_LIST_MAX];
  memcpy(all, it->added.list.reading, it->read * sizeof *all);
  for (uint32_t i = 0; i < it->commits; i++) {
    all[it->read + i] = it->committed.piece[i].sent;
  }
  return lcomm_cuda_topk_find_all_marks(all, it->read + it->commits, stream);
}

/* Their marks were found, so no grid is too large. */
static int add_all(listing *it, void *stream) {
  lcomm_topk_readings *list = &it->added.list;
  for (uint32_t i = 0; i < it->read; i++) {
    (void)lcomm_list_add(&list->blocks, list->reading[i].strips);
  }
  return it->read == 0 ? 0
                       : LCOMM_LAUNCH(topk_add_list, lcomm_list_blocks_all(&list->blocks),
                                      LCOMM_TOPK_THREADS, stream, it->added);
}

static int commit_all(listing *it, void *stream) {
  commit_list_args *args = &it->committed;
  for (uint32_t i = 0; i < it->commits; i++) {
    (void)lcomm_list_add(&args->blocks, args->piece[i].sent.strips);
  }
  return it->commits == 0 ? 0
                          : LCOMM_LAUNCH(topk_commit_list, lcomm_list_blocks_all(&args->blocks),
                                         LCOMM_TOPK_THREADS, stream, *args);
}

extern "C" int lcomm_cuda_run_topk_decode_list(const lcomm_cuda_topk_decode *list, uint32_t count,
                                               float factor, void *stream) {
  listing all = {};
  int error = take_all(list, count, &all);
  all.added.factor = factor;
  if (error == 0) {
    error = clear_all(list, count, stream);
  }
  if (error != 0 || all.read + all.commits == 0) {
    return error;
  }
  error = find_marks(&all, stream);
  if (error == 0) {
    error = add_all(&all, stream);
  }
  return error != 0 ? error : commit_all(&all, stream);
}

/* One after the other: entries of several may have one position. */
static int add_each(const listing *all, void *stream) {
  int error = find_marks(all, stream);
  for (uint32_t i = 0; i < all->read && error == 0; i++) {
    lcomm_topk_apply_args args = {};
    args.r = all->added.list.reading[i];
    args.what = LCOMM_TOPK_APPLY_ADD;
    args.factor = all->added.factor;
    args.vector = all->added.vector[i];
    error = lcomm_cuda_topk_apply(&args, stream);
  }
  return error;
}

extern "C" int lcomm_cuda_run_topk_add_list(const lcomm_cuda_sparse *list, uint32_t count,
                                            float factor, float *base, void *stream) {
  listing all = {};
  int error = count > LCOMM_CUDA_LIST_MAX ? LCOMM_CUDA_INVALID_VALUE : 0;
  all.added.factor = factor;
  for (uint32_t i = 0; i < count && error == 0; i++) {
    error = take_in(&list[i], base, &all);
  }
  return error != 0 || all.read == 0 ? error : add_each(&all, stream);
}
