/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_compare.h"

#include <stdlib.h>
#include <zstd.h>

#include "codecs/lossless_chunk.h"
#include "tools/common/tool_pages.h"

enum { LEVEL = 1, VARIANTS = 2 };

/* A worker's plane and both coders; the sizes are those of the last run. */
typedef struct coder {
  uint8_t *plane, *others; /* the other planes lie there */
  size_t plane_size, others_size;
  uint8_t *stream;
  size_t stream_bound;
  void *memory;
  lcomm_zstd own;
  ZSTD_CCtx *zstd;
  size_t coded_size[VARIANTS];
} coder;

static void run_coder(void *argument, size_t variant) {
  lcomm_worker *worker = argument;
  coder *c = worker->own;
  if (variant == 0) {
    uint8_t *end =
        lcomm_plane_encode(&c->own, LCOMM_PLANE_DENSE, c->plane, c->plane_size, c->stream);
    c->coded_size[0] = (size_t)(end - c->stream);
    return;
  }
  c->coded_size[1] =
      ZSTD_compressCCtx(c->zstd, c->stream, c->stream_bound, c->plane, c->plane_size, LEVEL);
  if (ZSTD_isError(c->coded_size[1])) {
    worker->status = LCOMM_ERR_INTERNAL;
  }
}

static void destroy_coder(coder *c) {
  if (!c) {
    return;
  }
  tool_pages_free(c->plane, c->plane_size);
  tool_pages_free(c->others, c->others_size);
  tool_pages_free(c->stream, c->stream_bound);
  ZSTD_freeCCtx(c->zstd);
  free(c->memory);
  free(c);
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static lcomm_status allocate(coder *c, size_t n, size_t width) {
  c->plane_size = n;
  c->others_size = n * (width - 1);
  c->stream_bound = larger(lcomm_planes_bound(n, 1), ZSTD_compressBound(n));
  c->plane = tool_pages_alloc(c->plane_size);
  c->others = tool_pages_alloc(c->others_size);
  c->stream = tool_pages_alloc(c->stream_bound);
  c->zstd = ZSTD_createCCtx();
  c->memory = malloc(lcomm_zstd_memory());
  if (!c->plane || !c->others || !c->stream || !c->zstd || !c->memory) {
    return LCOMM_ERR_MEMORY;
  }
  c->own = lcomm_zstd_init(c->memory);
  return c->own.compressor ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* The plane of the first n codes of the worker's payload. */
static lcomm_status create_coder(const lcomm_format *format, size_t n, lcomm_worker *worker) {
  size_t width = lcomm_lossless_number_size(format->codec);
  coder *c = calloc(1, sizeof *c);
  worker->own = c;
  lcomm_status status = c ? allocate(c, n, width) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_OK) {
    return status;
  }
  size_t size = lcomm_under_test_sizes_of(worker->tested).payload_bytes;
  const uint8_t *codes = lcomm_under_test_payload(worker->tested) + size - worker->count * width;
  uint8_t *plane[4] = {c->plane, c->others, c->others + n, c->others + 2 * n};
  if (width == 2) {
    lcomm_kernels_best()->planes.split2(codes, plane, n);
  } else {
    lcomm_kernels_best()->planes.split4(codes, plane, n);
  }
  return LCOMM_OK;
}

static lcomm_status time_both(lcomm_workers *workers, size_t plane_size, lcomm_result *result) {
  double *seconds = calloc(workers->repetitions * VARIANTS, sizeof *seconds);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  tool_timing timing;
  lcomm_status status = lcomm_workers_time(workers, NULL, run_coder, VARIANTS, &timing, seconds);
  if (status == LCOMM_OK) {
    double gb = 1e-9 * (double)plane_size * (double)workers->threads;
    const coder *c = workers->worker[0].own;
    result->comparisons[result->comparison_count++] =
        (lcomm_comparison){.name = "exponent plane",
                           .other = "zstd level 1",
                           .kernels = lcomm_kernels_best(),
                           .size_bytes = plane_size,
                           .gb_s = tool_timing_rate(&timing, seconds, 0, gb),
                           .other_gb_s = tool_timing_rate(&timing, seconds, 1, gb),
                           .times = tool_timing_ratio(&timing, seconds, 0, 1),
                           .ratio = (double)plane_size / (double)c->coded_size[0],
                           .other_ratio = (double)plane_size / (double)c->coded_size[1]};
  }
  free(seconds);
  return status;
}

lcomm_status lcomm_compare_zstd(const lcomm_results *results, lcomm_workers *workers,
                                lcomm_result *result) {
  const lcomm_format *format = &result->codec->choice.format;
  /* each value once: zstd would compress the repetition, which a gradient does not have */
  uint64_t values = lcomm_dataset_count(results->dataset);
  size_t n = values < workers->worker[0].count ? (size_t)values : workers->worker[0].count;
  lcomm_status status = LCOMM_OK;
  if (lcomm_lossless_number_size(format->codec) == 1) { /* codes without an exponent plane */
    return LCOMM_OK;
  }
  for (size_t i = 0; status == LCOMM_OK && i < workers->threads; i++) {
    status = create_coder(format, n, &workers->worker[i]);
  }
  if (status == LCOMM_OK) {
    status = time_both(workers, n, result);
  }
  for (size_t i = 0; i < workers->threads; i++) {
    destroy_coder(workers->worker[i].own);
    workers->worker[i].own = NULL;
  }
  return status;
}
