/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_DATASET_H
#define LCOMM_TOOLS_CODEC_CODEC_DATASET_H

/* All the values of a run: sources, the buckets their tensors travel in, and
 * which sources are steps of one another. */

#include "tools/codec/codec_options.h"
#include "tools/codec/codec_source.h"

enum {
  LCOMM_DATASET_BUCKET_BYTES = 25 << 20, /* of float32, as in the default policy */
  LCOMM_DATASET_PIECE_MAX = 256 << 20    /* values of a tensor in one bucket */
};

/* Sources of one place in time order: the captures of a rank whose tensors have
 * the same names and sizes; any other source is a stream of one step. */
typedef struct lcomm_dataset_stream {
  size_t step_count;
  lcomm_source **steps; /* owned array of views, at least one */
} lcomm_dataset_stream;

typedef struct lcomm_dataset {
  size_t source_count, stream_count;
  lcomm_source **sources; /* as they were named; all are owned */
  lcomm_dataset_stream *streams;
  size_t unreadable_count;
  char **unreadable; /* a sentence for each file of a folder that could not be read; owned */
} lcomm_dataset;

/* Open what the options name. A bad file of a folder is left out, unless no file of the folder is
 * good; one that is named itself is a failure. On failure `error` (TOOL_ERROR_MAX bytes)
 * holds a sentence, and there is nothing to close. */
lcomm_status lcomm_dataset_open(const lcomm_bench_options *options, lcomm_dataset *dataset,
                                char *error);
void lcomm_dataset_close(lcomm_dataset *dataset);

/* Values of all sources together. */
uint64_t lcomm_dataset_count(const lcomm_dataset *dataset);

/* `count` values: those of all sources in order, again and again. */
void lcomm_dataset_fill(const lcomm_dataset *dataset, uint64_t count, float *values);

/* Values [first, first + count) of a source: whole tensors that are at most
 * LCOMM_DATASET_BUCKET_BYTES together, or one larger tensor, or a piece of at
 * most LCOMM_DATASET_PIECE_MAX values of one. */
typedef struct lcomm_dataset_bucket {
  uint64_t first, count;
  size_t tensor, tensor_count; /* the tensors it lies in */
} lcomm_dataset_bucket;

/* The bucket after this one, the first one after {0}. false at the end. */
bool lcomm_dataset_next(const lcomm_source_contents *contents, lcomm_dataset_bucket *bucket);

/* Buckets of a source. */
uint64_t lcomm_dataset_buckets(const lcomm_source_contents *contents);

/* Ends of the bucket's tensors, counted from its begin: `tensor_count` numbers. */
void lcomm_dataset_ends(const lcomm_source_contents *contents, const lcomm_dataset_bucket *bucket,
                        uint64_t *ends);

#endif
