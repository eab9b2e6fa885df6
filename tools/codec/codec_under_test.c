/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_under_test.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "codecs/lossless_chunk.h"
#include "codecs/codec_residual.h"
#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "tools/common/tool_pages.h"

struct lcomm_subject {
  lcomm_codec_choice choice;
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

static lcomm_status create_topk(lcomm_subject *subject, const lcomm_subject_shape *shape) {
  lcomm_topk_shape topk = {.base_count = shape->count,
                           .parts = 1,
                           .outputs = 1,
                           .format = &subject->choice.format,
                           .segment_ends =
                               shape->segments > 0 ? shape->segment_ends : &shape->count,
                           .segments = shape->segments > 0 ? shape->segments : 1};
  lcomm_status status = lcomm_topk_create(&topk, &subject->topk);
  if (status == LCOMM_OK) {
    subject->payload_bound = lcomm_topk_output_bound(subject->topk, 0);
  }
  return status;
}

static lcomm_status create_lossless(lcomm_subject *subject) {
  const lcomm_format *format = &subject->choice.format;
  subject->stream_bound = lcomm_lossless_bound(format, subject->payload_bound);
  subject->stream = lcomm_pages_alloc(subject->stream_bound);
  subject->unpacked = lcomm_pages_alloc(subject->payload_bound);
  if (!subject->stream || !subject->unpacked) {
    return LCOMM_ERR_MEMORY;
  }
  return lcomm_lossless_create(format, subject->payload_bound, &subject->lossless);
}

static size_t residual_size(const lcomm_subject *subject) {
  return (size_t)subject->count * sizeof *subject->residual;
}

static lcomm_status create_parts(lcomm_subject *subject, const lcomm_subject_shape *shape) {
  lcomm_status status = LCOMM_OK;
  if (lcomm_format_is_sparse(&subject->choice.format)) {
    status = create_topk(subject, shape);
  } else {
    subject->payload_bound = lcomm_payload_size(&subject->choice.format, shape->count);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  subject->payload = lcomm_pages_alloc(subject->payload_bound);
  if (!subject->payload) {
    return LCOMM_ERR_MEMORY;
  }
  if (subject->choice.error_feedback) {
    subject->residual = lcomm_pages_alloc(residual_size(subject));
    if (!subject->residual) {
      return LCOMM_ERR_MEMORY;
    }
  }
  return subject->choice.format.zstd ? create_lossless(subject) : LCOMM_OK;
}

lcomm_status lcomm_subject_create(const lcomm_subject_shape *shape, lcomm_subject **subject) {
  *subject = NULL;
  if (shape->count == 0 || shape->count > SIZE_MAX / 16) {
    return LCOMM_ERR_ARGUMENT;
  }
  lcomm_subject *made = calloc(1, sizeof *made);
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->choice = *shape->choice;
  made->count = shape->count;
  lcomm_status status = create_parts(made, shape);
  if (status == LCOMM_OK) {
    *subject = made;
  } else {
    lcomm_subject_destroy(made);
  }
  return status;
}

void lcomm_subject_destroy(lcomm_subject *subject) {
  if (!subject) {
    return;
  }
  lcomm_topk_destroy(subject->topk);
  lcomm_lossless_destroy(subject->lossless);
  lcomm_pages_free(subject->residual, residual_size(subject));
  lcomm_pages_free(subject->payload, subject->payload_bound);
  lcomm_pages_free(subject->unpacked, subject->payload_bound);
  lcomm_pages_free(subject->stream, subject->stream_bound);
  free(subject);
}

uint64_t lcomm_subject_count(const lcomm_subject *subject) {
  return subject->count;
}

const lcomm_format *lcomm_subject_format(const lcomm_subject *subject) {
  return &subject->choice.format;
}

const uint8_t *lcomm_subject_payload(const lcomm_subject *subject) {
  return subject->payload;
}

void lcomm_subject_reset(lcomm_subject *subject) {
  if (subject->residual) {
    memset(subject->residual, 0, residual_size(subject));
  }
}

void lcomm_subject_encode(lcomm_subject *subject, const lcomm_kernels *kernels, const float *source,
                          uint64_t seed) {
  const lcomm_format *format = &subject->choice.format;
  lcomm_range range = lcomm_range_whole(subject->count);
  subject->payload_size = subject->payload_bound;
  if (subject->topk) {
    lcomm_topk_encode(subject->topk, kernels, source, subject->residual, LCOMM_TOPK_RELEASE,
                      &subject->payload, &subject->payload_size);
  } else if (subject->residual) {
    lcomm_residual_encode(format, kernels, source, subject->residual, range, seed,
                          subject->payload);
  } else {
    lcomm_encode(format, kernels, source, range, seed, subject->payload);
  }
  if (subject->lossless) {
    subject->stream_size =
        lcomm_lossless_encode(subject->lossless, kernels, subject->payload, subject->payload_size,
                              subject->count, subject->stream);
  }
}

/* The payload a receiver would read, NULL when the stream is none. */
static const uint8_t *arrived_payload(lcomm_subject *subject, const lcomm_kernels *kernels) {
  size_t size = 0;
  if (!subject->lossless) {
    return subject->payload;
  }
  lcomm_status status =
      lcomm_lossless_decode(subject->lossless, kernels, subject->stream, subject->stream_size,
                            subject->count, subject->unpacked, subject->payload_bound, &size, NULL);
  return status == LCOMM_OK && size == subject->payload_size ? subject->unpacked : NULL;
}

lcomm_status lcomm_subject_decode(lcomm_subject *subject, const lcomm_kernels *kernels,
                                  float *destination) {
  const lcomm_format *format = &subject->choice.format;
  const uint8_t *payload = arrived_payload(subject, kernels);
  if (!payload) {
    return LCOMM_ERR_WIRE;
  }
  if (subject->topk) {
    lcomm_topk_decode(format, payload, subject->count, 1, 0, 1.0f, destination);
  } else {
    lcomm_decode(format, kernels, payload, lcomm_range_whole(subject->count), 1.0f, destination);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_subject_add(lcomm_subject *subject, const lcomm_kernels *kernels,
                               float *destination) {
  const lcomm_format *format = &subject->choice.format;
  const uint8_t *payload = arrived_payload(subject, kernels);
  if (!payload) {
    return LCOMM_ERR_WIRE;
  }
  if (subject->topk) {
    lcomm_topk_add(format, payload, 1, 0, 1.0f, destination);
  } else {
    lcomm_accumulate(format, kernels, payload, lcomm_range_whole(subject->count), 1.0f,
                     destination);
  }
  return LCOMM_OK;
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

lcomm_subject_sizes lcomm_subject_sizes_of(const lcomm_subject *subject) {
  bool coded = subject->lossless != NULL;
  lcomm_subject_sizes sizes = {.payload_bytes = subject->payload_size,
                               .sent_bytes = coded ? subject->stream_size : subject->payload_size};
  if (!subject->topk) {
    return sizes;
  }
  sizes.entries = read_word(subject->payload);
  size_t values = lcomm_topk_values_size(&subject->choice.format, sizes.entries);
  sizes.index_bytes = subject->payload_size - sizeof(uint32_t) - values;
  sizes.sent_index_bytes = coded ? coded_index_bytes(subject->stream) : sizes.index_bytes;
  return sizes;
}
