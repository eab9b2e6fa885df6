/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_compare_zstd.h"

#include <stdlib.h>
#include <zstd.h>

#include "codecs/lossless_chunk.h"
#include "tools/common/tool_pages.h"

enum { LEVEL = 1, RIVALS = 2 };

/* A lane's plane and both coders; the sizes are those of the last run. */
typedef struct coder {
  uint8_t *plane, *others; /* the other planes lie there */
  size_t plane_size, others_size;
  uint8_t *stream;
  size_t stream_bound;
  void *memory;
  lcomm_zstd own;
  ZSTD_CCtx *zstd;
  size_t coded_size[RIVALS];
} coder;

static void run_coder(void *argument, size_t rival) {
  lcomm_lane *lane = argument;
  coder *c = lane->own;
  if (rival == 0) {
    uint8_t *end =
        lcomm_plane_encode(&c->own, LCOMM_PLANE_DENSE, c->plane, c->plane_size, c->stream);
    c->coded_size[0] = (size_t)(end - c->stream);
    return;
  }
  c->coded_size[1] =
      ZSTD_compressCCtx(c->zstd, c->stream, c->stream_bound, c->plane, c->plane_size, LEVEL);
  if (ZSTD_isError(c->coded_size[1])) {
    lane->status = LCOMM_ERR_INTERNAL;
  }
}

/* Bytes of a code that has an exponent plane, else 0. */
static size_t code_size(const lcomm_codec *codec) {
  switch (codec->id) {
  case LCOMM_CODEC_NONE:
    return 4;
  case LCOMM_CODEC_FP16:
  case LCOMM_CODEC_BF16:
    return 2;
  default:
    return 0;
  }
}

static void destroy_coder(coder *c) {
  if (!c) {
    return;
  }
  lcomm_pages_free(c->plane, c->plane_size);
  lcomm_pages_free(c->others, c->others_size);
  lcomm_pages_free(c->stream, c->stream_bound);
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
  c->plane = lcomm_pages_alloc(c->plane_size);
  c->others = lcomm_pages_alloc(c->others_size);
  c->stream = lcomm_pages_alloc(c->stream_bound);
  c->zstd = ZSTD_createCCtx();
  c->memory = malloc(lcomm_zstd_memory());
  if (!c->plane || !c->others || !c->stream || !c->zstd || !c->memory) {
    return LCOMM_ERR_MEMORY;
  }
  c->own = lcomm_zstd_init(c->memory);
  return c->own.compressor ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* The plane of the first n codes of the lane's payload. */
static lcomm_status create_coder(const lcomm_format *format, size_t n, lcomm_lane *lane) {
  size_t width = code_size(format->codec);
  coder *c = calloc(1, sizeof *c);
  lane->own = c;
  lcomm_status status = c ? allocate(c, n, width) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_OK) {
    return status;
  }
  size_t size = lcomm_subject_sizes_of(lane->subject).payload_bytes;
  const uint8_t *codes = lcomm_subject_payload(lane->subject) + size - lane->count * width;
  uint8_t *plane[4] = {c->plane, c->others, c->others + n, c->others + 2 * n};
  if (width == 2) {
    lcomm_kernels_best()->split2(codes, plane, n);
  } else {
    lcomm_kernels_best()->split4(codes, plane, n);
  }
  return LCOMM_OK;
}

static lcomm_status fight(lcomm_lanes *lanes, size_t plane_size, lcomm_result *result) {
  double *seconds = calloc(lanes->repetitions * RIVALS, sizeof *seconds);
  if (!seconds) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_race race;
  lcomm_status status = lcomm_lanes_race(lanes, NULL, run_coder, RIVALS, &race, seconds);
  if (status == LCOMM_OK) {
    double gb = 1e-9 * (double)plane_size * (double)lanes->threads;
    const coder *c = lanes->lane[0].own;
    result->duels[result->duel_count++] =
        (lcomm_duel){.name = "exponent plane",
                     .rival = "zstd level 1",
                     .kernels = lcomm_kernels_best(),
                     .size_bytes = plane_size,
                     .gb_s = lcomm_race_rate(&race, seconds, 0, gb),
                     .rival_gb_s = lcomm_race_rate(&race, seconds, 1, gb),
                     .times = lcomm_race_ratio(&race, seconds, 0, 1),
                     .ratio = (double)plane_size / (double)c->coded_size[0],
                     .rival_ratio = (double)plane_size / (double)c->coded_size[1]};
  }
  free(seconds);
  return status;
}

lcomm_status lcomm_duel_zstd(const lcomm_results *results, lcomm_lanes *lanes,
                             lcomm_result *result) {
  const lcomm_format *format = &result->codec->choice.format;
  /* no value twice: zstd would see the repetition, in life there is none */
  uint64_t values = lcomm_dataset_count(results->dataset);
  size_t n = values < lanes->lane[0].count ? (size_t)values : lanes->lane[0].count;
  lcomm_status status = LCOMM_OK;
  if (code_size(format->codec) == 0) {
    return LCOMM_OK;
  }
  for (size_t i = 0; status == LCOMM_OK && i < lanes->threads; i++) {
    status = create_coder(format, n, &lanes->lane[i]);
  }
  if (status == LCOMM_OK) {
    status = fight(lanes, n, result);
  }
  for (size_t i = 0; i < lanes->threads; i++) {
    destroy_coder(lanes->lane[i].own);
    lanes->lane[i].own = NULL;
  }
  return status;
}
