/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The dense side of the lossless stage: what stands before the codes, and the
 * codes as they are or as planes of their bytes. */

#include "codecs/lossless.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/block.h"
#include "codecs/lossless_chunk.h"

enum { PLANES_MAX = 4, ALIGNMENT = 64 };

size_t lcomm_lossless_number_size(const lcomm_codec *codec) {
  switch (codec->id) {
  case LCOMM_CODEC_NONE:
    return 4;
  case LCOMM_CODEC_FP16:
  case LCOMM_CODEC_BF16:
    return 2;
  default:
    return 1;
  }
}

static size_t codes_size(const lcomm_format *format, uint64_t count) {
  switch (format->codec->id) {
  case LCOMM_CODEC_INT4:
    return (size_t)(count / 2 + count % 2);
  case LCOMM_CODEC_SIGN:
    return lcomm_lowbit_codes_size(1, count);
  case LCOMM_CODEC_INT2:
    return lcomm_lowbit_codes_size(2, count);
  default:
    return (size_t)count * lcomm_lossless_number_size(format->codec);
  }
}

static size_t planes_size(const lcomm_format *format, size_t payload_bound) {
  if (lcomm_format_is_sparse(format)) {
    return lcomm_lossless_topk_planes(format, payload_bound);
  }
  return payload_bound;
}

size_t lcomm_lossless_bound(const lcomm_format *format, size_t payload_bound) {
  size_t head = lcomm_format_is_sparse(format) ? 2 * sizeof(uint32_t) : 0;
  return head + lcomm_planes_bound(planes_size(format, payload_bound), PLANES_MAX);
}

lcomm_status lcomm_lossless_create(const lcomm_format *format, size_t payload_bound,
                                   lcomm_lossless **lossless) {
  size_t head = (sizeof(lcomm_lossless) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t contexts = (lcomm_zstd_memory() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t planes = planes_size(format, payload_bound);
  *lossless = NULL;
  if (planes < payload_bound || planes > SIZE_MAX / 2) {
    return LCOMM_ERR_MEMORY;
  }
  uint8_t *memory = NULL;
  if (posix_memalign((void **)&memory, ALIGNMENT, head + contexts + planes) != 0) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_lossless *made = (lcomm_lossless *)(void *)memory;
  *made = (lcomm_lossless){.format = *format,
                           .zstd = lcomm_zstd_init(memory + head),
                           .payload_bound = payload_bound,
                           .planes = memory + head + contexts,
                           .planes_size = planes};
  if (!made->zstd.compressor || !made->zstd.decompressor) {
    free(memory);
    return LCOMM_ERR_MEMORY;
  }
  *lossless = made;
  return LCOMM_OK;
}

void lcomm_lossless_destroy(lcomm_lossless *lossless) {
  free(lossless);
}

/* Where the planes of n numbers of `width` bytes lie, one after the other. */
static void place_planes(const lcomm_lossless *lossless, size_t width, size_t n,
                         uint8_t *plane[PLANES_MAX]) {
  for (size_t i = 0; i < width; i++) {
    plane[i] = lossless->planes + i * n;
  }
}

static uint8_t *encode_codes(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                             const uint8_t *codes, uint64_t count, uint8_t *stream) {
  uint8_t *plane[PLANES_MAX];
  size_t width = lcomm_lossless_number_size(lossless->format.codec), n = (size_t)count;
  if (width == 1) {
    return lcomm_plane_encode(&lossless->zstd, LCOMM_PLANE_DENSE, codes,
                              codes_size(&lossless->format, count), stream);
  }
  place_planes(lossless, width, n, plane);
  if (width == 2) {
    kernels->planes.split2(codes, plane, n);
  } else {
    kernels->planes.split4(codes, plane, n);
  }
  for (size_t i = width; i > 0; i--) {
    stream = lcomm_plane_encode(&lossless->zstd, LCOMM_PLANE_DENSE, plane[i - 1], n, stream);
  }
  return stream;
}

size_t lcomm_lossless_encode(lcomm_lossless *lossless, const lcomm_kernels *kernels,
                             const uint8_t *payload, size_t size, uint64_t count, uint8_t *stream) {
  if (lcomm_format_is_sparse(&lossless->format)) {
    return lcomm_lossless_topk_encode(lossless, kernels, payload, stream);
  }
  size_t head = size - codes_size(&lossless->format, count);
  uint8_t *end = lcomm_plane_encode(&lossless->zstd, LCOMM_PLANE_DENSE, payload, head, stream);
  end = encode_codes(lossless, kernels, payload + head, count, end);
  return (size_t)(end - stream);
}

static const char *decode_codes(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                lcomm_stream *stream, uint64_t count, uint8_t *codes) {
  uint8_t *plane[PLANES_MAX];
  size_t width = lcomm_lossless_number_size(lossless->format.codec), n = (size_t)count;
  if (width == 1) {
    return lcomm_plane_decode(&lossless->zstd, stream, codes, codes_size(&lossless->format, count));
  }
  place_planes(lossless, width, n, plane);
  const char *wrong = NULL;
  for (size_t i = width; i > 0 && !wrong; i--) {
    wrong = lcomm_plane_decode(&lossless->zstd, stream, plane[i - 1], n);
  }
  if (wrong) {
    return wrong;
  }
  if (width == 2) {
    kernels->planes.join2((const uint8_t *const *)plane, codes, n);
  } else {
    kernels->planes.join4((const uint8_t *const *)plane, codes, n);
  }
  return NULL;
}

static const char *decode_dense(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                lcomm_stream stream, uint64_t count, uint8_t *payload,
                                size_t capacity, size_t *payload_size) {
  /* A value takes a bit at least; only then can its size be computed. */
  if (count / 8 > capacity) {
    return "more values than there is room for";
  }
  size_t size = lcomm_payload_size(&lossless->format, count);
  if (size > capacity || size > lossless->payload_bound) {
    return "more values than there is room for";
  }
  size_t head = size - codes_size(&lossless->format, count);
  const char *wrong = lcomm_plane_decode(&lossless->zstd, &stream, payload, head);
  if (!wrong) {
    wrong = decode_codes(lossless, kernels, &stream, count, payload + head);
  }
  if (!wrong && stream.size > 0) {
    wrong = "bytes behind the last plane";
  }
  if (!wrong) {
    *payload_size = size;
  }
  return wrong;
}

lcomm_status lcomm_lossless_decode(lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                   const uint8_t *stream, size_t size, uint64_t count,
                                   uint8_t *payload, size_t capacity, size_t *payload_size,
                                   const char **why) {
  lcomm_stream whole = {stream, size};
  const char *wrong =
      lcomm_format_is_sparse(&lossless->format)
          ? lcomm_lossless_topk_decode(lossless, kernels, whole, count, payload, capacity,
                                       payload_size)
          : decode_dense(lossless, kernels, whole, count, payload, capacity, payload_size);
  if (!wrong) {
    return LCOMM_OK;
  }
  if (why) {
    *why = wrong;
  }
  return LCOMM_ERR_WIRE;
}
