/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_shard_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_name.h"

static const char *const names[] = {
    [SHARD_NONE] = "none", [SHARD_OPTIMIZER] = "optimizer", [SHARD_GRADIENTS] = "gradients"};

const char *shard_name(shard_kind kind) {
  return names[kind];
}

shard_kind shard_find(const char *name) {
  return (shard_kind)name_find(names, SHARD_COUNT, name);
}

static void make_buckets(const model *net, shard_plan *made) {
  bool open = false; /* the last bucket is of small parameters */
  for (int i = 0; i < net->parameter_count; i++) {
    const model_parameter *at = &net->parameters[i];
    bool small = at->count < SHARD_LARGE;
    if (!small || !open) {
      made->buckets[made->bucket_count++] = (shard_bucket){.offset = at->offset, .first = i};
    }
    shard_bucket *last = &made->buckets[made->bucket_count - 1];
    last->parameters++;
    last->count += at->count;
    made->largest = last->count > made->largest ? last->count : made->largest;
    open = small;
  }
}

/* The end of a block, or of a parameter, that is nearest to element `aim` of all. */
static size_t cut_near(const model *net, const shard_bucket *in, size_t aim) {
  int last = in->first + in->parameters - 1;
  for (int i = in->first; i <= last; i++) {
    const model_parameter *at = &net->parameters[i];
    if (aim >= at->offset + at->count && i < last) {
      continue;
    }
    size_t within = aim - at->offset + OPTIMIZER_BLOCK / 2;
    size_t cut = within - within % OPTIMIZER_BLOCK;
    return at->offset + (cut < at->count ? cut : at->count);
  }
  return in->offset + in->count;
}

static size_t begin_of_part(const model *net, const shard_bucket *in, int ranks, int rank) {
  if (rank == ranks) {
    return in->offset + in->count;
  }
  return rank == 0 ? in->offset : cut_near(net, in, in->offset + in->count * (size_t)rank / ranks);
}

static void share_out(const model *net, shard_plan *made) {
  for (int i = 0; i < made->bucket_count; i++) {
    shard_bucket *at = &made->buckets[i];
    at->counts = made->counts + (size_t)i * made->ranks;
    for (int rank = 0; rank < made->ranks; rank++) {
      size_t begin = begin_of_part(net, at, made->ranks, rank);
      at->counts[rank] = begin_of_part(net, at, made->ranks, rank + 1) - begin;
      at->own_offset = rank == made->rank ? begin : at->own_offset;
    }
    at->own_count = at->counts[made->rank];
    at->at = made->count;
    made->count += at->own_count;
  }
}

/* What of a parameter is in this rank's part of the bucket. */
static void add_piece(const model *net, const shard_bucket *in, int parameter, size_t first_block,
                      shard_plan *made) {
  const model_parameter *of = &net->parameters[parameter];
  size_t end = of->offset + of->count, own_end = in->own_offset + in->own_count;
  size_t begin = of->offset > in->own_offset ? of->offset : in->own_offset;
  end = end < own_end ? end : own_end;
  if (begin < end) {
    made->pieces[made->piece_count++] =
        (optimizer_piece){.part = parameter,
                          .offset = in->at + (begin - in->own_offset),
                          .count = end - begin,
                          .block = first_block + (begin - of->offset) / OPTIMIZER_BLOCK};
  }
}

static void make_pieces(const model *net, shard_plan *made) {
  size_t block = 0;
  for (int i = 0; i < made->bucket_count; i++) {
    const shard_bucket *in = &made->buckets[i];
    for (int k = in->first; k < in->first + in->parameters; k++) {
      add_piece(net, in, k, block, made);
      block += optimizer_blocks(net->parameters[k].count);
    }
  }
}

int shard_plan_make(const model *net, int ranks, int rank, shard_plan *made) {
  memset(made, 0, sizeof *made);
  made->ranks = ranks;
  made->rank = rank;
  make_buckets(net, made);
  made->counts = calloc((size_t)made->bucket_count * (size_t)ranks, sizeof *made->counts);
  if (!made->counts) {
    return -1;
  }
  share_out(net, made);
  make_pieces(net, made);
  return 0;
}

void shard_plan_free(shard_plan *self) {
  free(self->counts);
  memset(self, 0, sizeof *self);
}

void shard_bucket_name(const shard_bucket *of, const model *net, char *name, size_t size) {
  const char *first = net->parameters[of->first].name;
  if (of->parameters == 1) {
    snprintf(name, size, "%s", first);
  } else {
    snprintf(name, size, "%s+%d", first, of->parameters - 1);
  }
}
