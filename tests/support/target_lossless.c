/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_lossless.h"

#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "codecs/lossless.h"
#include "tests/support/fuzz_promise.h"

typedef struct input {
  lcomm_format format;
  uint64_t count;
  size_t bound, capacity; /* of payloads */
  const uint8_t *rest;
  size_t size;
  lcomm_lossless *lossless;
} input;

static lcomm_format choose_format(uint8_t byte) {
  static const struct {
    const lcomm_codec *codec;
    uint8_t variant;
  } known[] = {
      {&lcomm_codec_none, 0},    {&lcomm_codec_fp16, LCOMM_VARIANT_PLAIN},
      {&lcomm_codec_bf16, 0},    {&lcomm_codec_fp16, LCOMM_FP16_FIXED},
      {&lcomm_codec_fp8e4m3, 0}, {&lcomm_codec_fp16, LCOMM_FP16_BLOCK},
      {&lcomm_codec_fp8e5m2, 0}, {&lcomm_codec_topk, LCOMM_VARIANT_PLAIN},
      {&lcomm_codec_int8, 0},    {&lcomm_codec_topk, LCOMM_TOPK_INT8},
      {&lcomm_codec_int4, 0},    {&lcomm_codec_sign, 0},
      {&lcomm_codec_int2, 0},
  };
  size_t index = byte % (sizeof known / sizeof *known);
  lcomm_format format = lcomm_format_of(known[index].codec);
  format.variant = known[index].variant;
  if (byte >= 128 && format.codec->blocks[1] != 0) {
    format.block = format.codec->blocks[1];
  }
  return format;
}

/* Decode into exactly `capacity` bytes. Returns the payload when it is one. */
static uint8_t *decode(const input *in, const uint8_t *stream, size_t size, size_t capacity,
                       size_t *payload_size) {
  uint8_t *payload = fuzz_allocate(capacity);
  const char *why = NULL;
  lcomm_status status = lcomm_lossless_decode(in->lossless, lcomm_kernels_best(), stream, size,
                                              in->count, payload, capacity, payload_size, &why);
  if (status == LCOMM_OK) {
    return payload;
  }
  fuzz_require(status == LCOMM_ERR_WIRE && why != NULL, "a refused stream has a reason");
  fuzz_require(lcomm_lossless_decode(in->lossless, lcomm_kernels_best(), stream, size, in->count,
                                     payload, capacity, payload_size, NULL) == status,
               "why may be NULL");
  free(payload);
  return NULL;
}

static void require_valid(const input *in, const uint8_t *payload, size_t size) {
  if (lcomm_format_is_sparse(&in->format)) {
    fuzz_require(lcomm_topk_check(&in->format, payload, size, in->count, NULL) == LCOMM_OK,
                 "a decoded sparse payload is valid");
  } else {
    fuzz_require(size == lcomm_payload_size(&in->format, in->count),
                 "a dense payload has its size");
  }
}

static void round_trip(const input *in, const uint8_t *payload, size_t size) {
  size_t bound = lcomm_lossless_bound(&in->format, in->bound), again_size = 0;
  uint8_t *room = fuzz_allocate(bound);
  size_t stream_size =
      lcomm_lossless_encode(in->lossless, lcomm_kernels_best(), payload, size, in->count, room);
  fuzz_require(stream_size <= bound, "a stream keeps to its bound");
  uint8_t *stream = fuzz_copy(room, stream_size);
  uint8_t *again = decode(in, stream, stream_size, size, &again_size);
  fuzz_require(again && again_size == size && memcmp(again, payload, size) == 0,
               "a payload survives its stream");
  free(again);
  free(stream);
  free(room);
}

static void decode_any(const input *in) {
  size_t size = 0;
  uint8_t *stream = fuzz_copy(in->rest, in->size);
  uint8_t *payload = decode(in, stream, in->size, in->capacity, &size);
  if (payload) {
    fuzz_require(size <= in->capacity, "a payload keeps to its room");
    require_valid(in, payload, size);
    round_trip(in, payload, size);
  }
  free(payload);
  free(stream);
}

/* The rest, over and over. */
static void dense_payload(const input *in) {
  size_t size = lcomm_payload_size(&in->format, in->count);
  uint8_t *payload = fuzz_allocate(size);
  for (size_t i = 0; in->size > 0 && i < size; i++) {
    payload[i] = in->rest[i % in->size];
  }
  round_trip(in, payload, size);
  free(payload);
}

/* Three bytes of the rest are an entry: how far it is, and its value. */
static void sparse_payload(const input *in) {
  size_t most = in->size / 3 < in->count ? in->size / 3 : (size_t)in->count, count = 0;
  uint32_t *position = fuzz_allocate(most * sizeof *position);
  float *value = fuzz_allocate(most * sizeof *value);
  uint64_t next = 0;
  for (const uint8_t *at = in->rest; count < most; at += 3, count++) {
    uint32_t bits = (uint32_t)at[1] << 24 | (uint32_t)at[2] << 16;
    next += at[0] < 250 ? at[0] / 4u : (at[0] - 249u) * 1000;
    if (next >= in->count) {
      break;
    }
    position[count] = (uint32_t)next++;
    memcpy(&value[count], &bits, sizeof bits);
  }
  lcomm_entries entries = {.position = position, .value = value, .count = count};
  uint8_t *payload = fuzz_allocate(in->bound);
  round_trip(in, payload, lcomm_topk_write(&in->format, lcomm_kernels_best(), &entries, payload));
  free(payload);
  free(value);
  free(position);
}

void lcomm_fuzz_lossless(const uint8_t *data, size_t size) {
  if (size < 4) {
    return;
  }
  input in = {.format = choose_format(data[0]),
              .count = data[1] + 256u * data[2],
              .rest = data + 4,
              .size = size - 4};
  bool sparse = lcomm_format_is_sparse(&in.format);
  in.bound = sparse ? lcomm_topk_bound(&in.format, in.count, in.count)
                    : lcomm_payload_size(&in.format, in.count);
  in.capacity = data[3] == 255 ? in.bound : in.bound / 255 * data[3];
  fuzz_require(lcomm_lossless_create(&in.format, in.bound, &in.lossless) == LCOMM_OK,
               "any format has a lossless stage");
  decode_any(&in);
  if (sparse) {
    sparse_payload(&in);
  } else {
    dense_payload(&in);
  }
  lcomm_lossless_destroy(in.lossless);
}
