/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_TABLES_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_TABLES_CUH

/* What an encoder of top-k has in device memory.
 *
 * A view is cut at the ends of tiles and of segments into *pieces*; one block of
 * threads looks at one piece. Pieces are numbered by output first, then by place,
 * so what is chosen of them, piece after piece, is sorted for every payload. A
 * segment is searched by one block for each of its *spans*. A *group* is so many
 * entries of a payload as one block writes.
 *
 * Every segment has an area for its candidates: those of a piece lie together and
 * in order, but pieces come in the order in which they were done. Nothing that is
 * sent depends on it.
 */

#include <stdint.h>

#include "kernels/cuda/cuda_topk.h"
#include "kernels/element.h"
#include "kernels/kernels.h"
#include "kernels/stripe.h"

enum {
  LCOMM_TOPK_THREADS = 256,
  LCOMM_TOPK_WARPS = LCOMM_TOPK_THREADS / 32,
  LCOMM_TOPK_SPAN = 32 * LCOMM_TILE, /* elements */
  LCOMM_TOPK_LINE = 4,               /* neighbours in a sample */
  LCOMM_TOPK_CHUNK = 128,            /* pieces whose chosen ones a block counts */
  LCOMM_TOPK_INDEX_BLOCK = 32,       /* entries, see codecs/codec_topk.h */
  LCOMM_TOPK_GROUP = 4096,           /* entries */
  LCOMM_TOPK_GROUP_BLOCKS = LCOMM_TOPK_GROUP / LCOMM_TOPK_INDEX_BLOCK,
  LCOMM_TOPK_BINS = 2048,
  LCOMM_TOPK_STEPS_MAX = 6,
  LCOMM_TOPK_POSITIONS = 3, /* the step that looks at positions first */
  LCOMM_TOPK_FOUND = 255    /* no step is left */
};

/* Bytes of the values of a payload; int8 has scales before the codes. */
LCOMM_ELEMENT uint64_t lcomm_topk_value_bytes(uint64_t entries, uint32_t int8) {
  uint64_t scales = (entries + LCOMM_BLOCK - 1) / LCOMM_BLOCK * sizeof(float);
  return int8 ? scales + entries : entries * sizeof(uint16_t);
}

/* What is left, but no more than fits. */
LCOMM_ELEMENT uint32_t lcomm_topk_at_most(uint64_t left, uint32_t room) {
  return left < room ? (uint32_t)left : room;
}

typedef struct lcomm_cuda_segment {
  uint32_t first, count, kept; /* elements */
  uint32_t area, capacity;     /* of its candidates */
  uint32_t first_span, spans;
  uint32_t histogram;   /* which one is its own; of several spans only */
  uint32_t lines, rank; /* of its sample; no lines: all elements are candidates */
} lcomm_cuda_segment;

/* How far the search for the last chosen element of a segment has come. */
typedef struct lcomm_topk_search {
  uint64_t key;    /* of that element, as far as it is known; else zeros */
  uint32_t rank;   /* of it, among elements whose keys begin so */
  uint32_t step;   /* that comes next */
  uint32_t least;  /* magnitude of the candidates */
  uint32_t found;  /* candidates, whether there was room or not */
  uint32_t stored; /* in the area, when there was not */
  uint32_t placed; /* in the area, when the chosen were collected themselves */
  uint32_t ticket; /* blocks that have counted */
  uint32_t unused;
} lcomm_topk_search;

typedef struct lcomm_topk_piece {
  uint32_t first, segment;
} lcomm_topk_piece;

/* The candidates of a piece. */
typedef struct lcomm_topk_run {
  uint32_t place, count;
} lcomm_topk_run;

typedef struct lcomm_topk_output {
  uint32_t first_piece, end_piece;
  uint32_t first_group, capacity; /* entries */
} lcomm_topk_output;

typedef struct lcomm_topk_progress {
  uint32_t ticket;     /* groups that are measured */
  uint32_t index_size; /* bytes of all index blocks */
} lcomm_topk_progress;

typedef struct lcomm_topk_tables {
  uint32_t count, parts, part, outputs; /* of the view */
  uint32_t pieces;
  /* Made once. */
  const lcomm_cuda_segment *segment;
  const uint32_t *span_segment;
  const lcomm_topk_piece *piece;
  const lcomm_topk_output *output;
  const uint32_t *group_output;
  /* Scratch; zeros between two encodes: */
  uint32_t *histogram;
  uint32_t *ticket;
  uint32_t *misled;              /* is any segment? Set by the sample, too */
  lcomm_topk_progress *progress; /* but for index_size */
  lcomm_topk_search *search;     /* but for what the sample sets */
  /* anything: */
  lcomm_topk_run *run;                  /* of each piece */
  uint32_t *position, *chosen_position; /* of candidates; of entries */
  float *value, *chosen_value;
  uint32_t *before, *chunk_before; /* chosen: in the chunk before a piece, and before a chunk */
  uint32_t *group_before;          /* bytes of index blocks of the output before a group */
} lcomm_topk_tables;

/* A digit of keys. */
typedef struct lcomm_topk_step {
  uint32_t shift, bits;
} lcomm_topk_step;

struct lcomm_cuda_topk {
  lcomm_topk_tables tables;
  uint32_t spans, chunks, groups, steps;
  uint32_t int8;
  uint32_t trims; /* outputs may have to drop entries */
  lcomm_topk_step step[LCOMM_TOPK_STEPS_MAX];
  lcomm_topk_output *output; /* host memory, with one more that ends the groups */
  void *copied;              /* the tables in host memory, which the device may still be reading */
};

/* What stays in the residual of elements that are sent. */
typedef enum lcomm_topk_rest {
  LCOMM_TOPK_REST_DONE, /* collecting has left it, or there is no residual */
  LCOMM_TOPK_REST_SENT, /* error of the value */
  LCOMM_TOPK_REST_OWNER /* what was there, and weight * error of the value */
} lcomm_topk_rest;

/* An encode, as its parts see it. */
typedef struct lcomm_topk_job {
  const float *base;
  float *accumulated; /* residual that holds base + before, or NULL */
  const float *before;
  uint32_t early; /* candidates leave the error of bf16 in it, not their value */
  lcomm_topk_rest rest;
  float *residual; /* of SENT, OWNER */
  float weight;
  uint8_t *const *payload;
  uint64_t *payload_size;
} lcomm_topk_job;

#ifdef __cplusplus
extern "C" {
#endif

/* The steps of an encode, in this order. */
int lcomm_cuda_topk_sample(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, void *stream);
int lcomm_cuda_topk_collect(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, void *stream);
int lcomm_cuda_topk_search(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, void *stream);
int lcomm_cuda_topk_choose(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, void *stream);
int lcomm_cuda_topk_write(const lcomm_cuda_topk *topk, const lcomm_topk_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif
