/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_under_test.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "codecs/lossless_chunk.h"
#include "tools/common/tool_pages.h"

struct lcomm_under_test {
  lcomm_codec_spec choice;
  uint64_t count;
  lcomm_topk *topk;         /* NULL: dense */
  lcomm_lossless *lossless; /* NULL: without the stage */
  float *residual;          /* NULL: without error feedback */
  uint8_t *payload;
  uint8_t *unpacked; /* the payload again, out of the stream */
  uint8_t *stream;
  size_t payload_bound, stream_bound;
  size_t payload_size, stream_size;
};

static lcomm_status create_topk(lcomm_under_test *tested, const lcomm_under_test_shape *shape) {
  lcomm_topk_shape topk = {.base_count = shape->count,
                           .parts = 1,
                           .outputs = 1,
                           .format = &tested->choice.format,
                           .segment_ends =
                               shape->segments > 0 ? shape->segment_ends : &shape->count,
                           .segments = shape->segments > 0 ? shape->segments : 1};
  lcomm_status status = lcomm_topk_create(&topk, &tested->topk);
  if (status == LCOMM_OK) {
    tested->payload_bound = lcomm_topk_output_bound(tested->topk, 0);
  }
  return status;
}

static lcomm_status create_lossless(lcomm_under_test *tested) {
  const lcomm_format *format = &tested->choice.format;
  tested->stream_bound = lcomm_lossless_bound(format, tested->payload_bound);
  tested->stream = tool_pages_alloc(tested->stream_bound);
  tested->unpacked = tool_pages_alloc(tested->payload_bound);
  if (!tested->stream || !tested->unpacked) {
    return LCOMM_ERR_MEMORY;
  }
  return lcomm_lossless_create(format, tested->payload_bound, &tested->lossless);
}

static size_t residual_size(const lcomm_under_test *tested) {
  return (size_t)tested->count * sizeof *tested->residual;
}

static lcomm_status create_parts(lcomm_under_test *tested, const lcomm_under_test_shape *shape) {
  lcomm_status status = LCOMM_OK;
  if (lcomm_format_is_sparse(&tested->choice.format)) {
    status = create_topk(tested, shape);
  } else {
    tested->payload_bound = lcomm_payload_size(&tested->choice.format, shape->count);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  tested->payload = tool_pages_alloc(tested->payload_bound);
  if (!tested->payload) {
    return LCOMM_ERR_MEMORY;
  }
  if (tested->choice.error_feedback) {
    tested->residual = tool_pages_alloc(residual_size(tested));
    if (!tested->residual) {
      return LCOMM_ERR_MEMORY;
    }
  }
  return tested->choice.format.zstd ? create_lossless(tested) : LCOMM_OK;
}

lcomm_status lcomm_under_test_create(const lcomm_under_test_shape *shape,
                                     lcomm_under_test **tested) {
  *tested = NULL;
  if (shape->count == 0 || shape->count > SIZE_MAX / 16) {
    return LCOMM_ERR_ARGUMENT;
  }
  lcomm_under_test *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->choice = *shape->choice;
  made->count = shape->count;
  lcomm_status status = create_parts(made, shape);
  if (status == LCOMM_OK) {
    *tested = made;
  } else {
    lcomm_under_test_destroy(made);
  }
  return status;
}

void lcomm_under_test_destroy(lcomm_under_test *tested) {
  if (!tested) {
    return;
  }
  lcomm_topk_destroy(tested->topk);
  lcomm_lossless_destroy(tested->lossless);
  tool_pages_free(tested->residual, residual_size(tested));
  tool_pages_free(tested->payload, tested->payload_bound);
  tool_pages_free(tested->unpacked, tested->payload_bound);
  tool_pages_free(tested->stream, tested->stream_bound);
  free(tested);
}

uint64_t lcomm_under_test_count(const lcomm_under_test *tested) {
  return tested->count;
}

const lcomm_format *lcomm_under_test_format(const lcomm_under_test *tested) {
  return &tested->choice.format;
}

const uint8_t *lcomm_under_test_payload(const lcomm_under_test *tested) {
  return tested->payload;
}

void lcomm_under_test_reset(lcomm_under_test *tested) {
  if (tested->residual) {
    memset(tested->residual, 0, residual_size(tested));
  }
}

void lcomm_under_test_encode(lcomm_under_test *tested, const lcomm_kernels *kernels,
                             const float *source, uint64_t seed) {
  const lcomm_format *format = &tested->choice.format;
  lcomm_range range = lcomm_range_whole(tested->count);
  tested->payload_size = tested->payload_bound;
  if (tested->topk) {
    lcomm_topk_encode(tested->topk, kernels, source, tested->residual, tested->residual,
                      LCOMM_TOPK_RELEASE, &tested->payload, &tested->payload_size);
  } else if (tested->residual) {
    lcomm_residual_encode(format, kernels, source, tested->residual, tested->residual, range, seed,
                          tested->payload);
  } else {
    lcomm_encode(format, kernels, source, range, seed, tested->payload);
  }
  if (tested->lossless) {
    tested->stream_size =
        lcomm_lossless_encode(tested->lossless, kernels, tested->payload, tested->payload_size,
                              tested->count, tested->stream);
  }
}

/* The payload a receiver would read, NULL when the stream is none. */
static const uint8_t *arrived_payload(lcomm_under_test *tested, const lcomm_kernels *kernels) {
  size_t size = 0;
  if (!tested->lossless) {
    return tested->payload;
  }
  lcomm_status status =
      lcomm_lossless_decode(tested->lossless, kernels, tested->stream, tested->stream_size,
                            tested->count, tested->unpacked, tested->payload_bound, &size, NULL);
  return status == LCOMM_OK && size == tested->payload_size ? tested->unpacked : NULL;
}

lcomm_status lcomm_under_test_decode(lcomm_under_test *tested, const lcomm_kernels *kernels,
                                     float *destination) {
  const lcomm_format *format = &tested->choice.format;
  const uint8_t *payload = arrived_payload(tested, kernels);
  if (payload && tested->topk) {
    lcomm_topk_decode(format, payload, tested->count, 1, 0, 1.0f, destination);
  } else if (payload) {
    lcomm_decode(format, kernels, payload, lcomm_range_whole(tested->count), 1.0f, destination);
  }
  return payload ? LCOMM_OK : LCOMM_ERR_WIRE;
}

lcomm_status lcomm_under_test_add(lcomm_under_test *tested, const lcomm_kernels *kernels,
                                  float *destination) {
  const lcomm_format *format = &tested->choice.format;
  const uint8_t *payload = arrived_payload(tested, kernels);
  if (payload && tested->topk) {
    lcomm_topk_add(format, payload, 1, 0, 1.0f, destination);
  } else if (payload) {
    lcomm_accumulate(format, kernels, payload, lcomm_range_whole(tested->count), 1.0f, destination);
  }
  return payload ? LCOMM_OK : LCOMM_ERR_WIRE;
}

static uint32_t read_word(const uint8_t *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* Bytes of the coded delta plane of a sparse stream: u32 entries, u32 size of
 * the plane, then the plane's chunks. */
static size_t coded_index_bytes(const uint8_t *stream) {
  uint32_t size = read_word(stream + 4), chunks = size / LCOMM_CHUNK + (size % LCOMM_CHUNK != 0);
  const uint8_t *chunk = stream + 8;
  for (uint32_t i = 0; i < chunks; i++) {
    chunk += 4 + (read_word(chunk) & 0x7fffffff);
  }
  return (size_t)(chunk - (stream + 8));
}

lcomm_under_test_sizes lcomm_under_test_sizes_of(const lcomm_under_test *tested) {
  bool coded = tested->lossless != NULL;
  lcomm_under_test_sizes sizes = {.payload_bytes = tested->payload_size,
                                  .sent_bytes = coded ? tested->stream_size : tested->payload_size};
  if (!tested->topk) {
    return sizes;
  }
  sizes.entries = read_word(tested->payload);
  size_t values = lcomm_topk_values_size(&tested->choice.format, sizes.entries);
  sizes.index_bytes = tested->payload_size - sizeof(uint32_t) - values;
  sizes.sent_index_bytes = coded ? coded_index_bytes(tested->stream) : sizes.index_bytes;
  return sizes;
}
