/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_GOLDEN_H
#define LCOMM_TESTS_WIRE_GOLDEN_H

/* Golden files, and what the library makes of them: messages from numbers, and
 * numbers from messages by the same checks in the same order as the executor.
 */

#include "tests/kernels/kernel_samples.h"

#include <stdio.h>

#include "codecs/codec_topk.h"
#include "codecs/lossless.h"
#include "codecs/wire.h"
#include "tests/wire/decoder.h"

#define GOLDEN_FOLDER "tests/wire/golden/"

enum { GOLDEN_PARAMETERS = 0x12345678, GOLDEN_SEQUENCE = 5, GOLDEN_PATH_MAX = 512 };

/* Memory of just this size; free(data). */
typedef struct golden_bytes {
  uint8_t *data;
  size_t size;
} golden_bytes;

static inline golden_bytes golden_load(const char *name, const char *ending) {
  char path[GOLDEN_PATH_MAX];
  snprintf(path, sizeof path, GOLDEN_FOLDER "%s%s", name, ending);
  FILE *file = fopen(path, "rb");
  if (!file) {
    print_error("cannot open %s; run the tests from the root of the sources\n", path);
  }
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  golden_bytes loaded = {.size = (size_t)ftell(file)};
  rewind(file);
  loaded.data = sample_memory(loaded.size);
  assert_int_equal(fread(loaded.data, 1, loaded.size, file), loaded.size);
  fclose(file);
  return loaded;
}

/* Appends the bytes of "0a 1b", up to the end or to two spaces. */
static inline void golden_add_hex(const char *text, golden_bytes *bytes) {
  unsigned byte;
  int used = 0;
  for (; sscanf(text, "%2x%n", &byte, &used) == 1; text += used + 1) {
    bytes->data = realloc(bytes->data, bytes->size + 1);
    assert_non_null(bytes->data);
    bytes->data[bytes->size++] = (uint8_t)byte;
    if (text[used] != ' ' || text[used + 1] == ' ') {
      break;
    }
  }
}

/* A good message that the encoder can make: which format, of which numbers. */
typedef struct golden_good {
  const char *name;
  const lcomm_codec *codec;
  uint16_t block;
  uint8_t variant;
  int8_t exponent;
  uint32_t kept; /* top-k */
  lcomm_dtype dtype;
  uint8_t flags;      /* LCOMM_WIRE_CHECKSUM or 0 */
  const char *source; /* the numbers, a file without its ending */
} golden_good;

enum { GOLDEN_CHECKED = LCOMM_WIRE_CHECKSUM };

static const golden_good golden_list[] = {
    {"none", &lcomm_codec_none, 0, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"fp16", &lcomm_codec_fp16, 0, 0, 0, 0, LCOMM_FLOAT16, GOLDEN_CHECKED, "source"},
    {"fp16_fixed", &lcomm_codec_fp16, 0, 1, 4, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"fp16_block", &lcomm_codec_fp16, 0, 2, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"bf16", &lcomm_codec_bf16, 0, 0, 0, 0, LCOMM_BFLOAT16, 0, "source"},
    {"fp8e4m3", &lcomm_codec_fp8e4m3, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"fp8e4m3_64", &lcomm_codec_fp8e4m3, 64, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"fp8e4m3_32", &lcomm_codec_fp8e4m3, 32, 0, 0, 0, LCOMM_FLOAT32, 0, "source"},
    {"fp8e5m2", &lcomm_codec_fp8e5m2, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"fp8e5m2_64", &lcomm_codec_fp8e5m2, 64, 0, 0, 0, LCOMM_FLOAT32, 0, "source"},
    {"fp8e5m2_32", &lcomm_codec_fp8e5m2, 32, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int8", &lcomm_codec_int8, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int8_32", &lcomm_codec_int8, 32, 0, 0, 0, LCOMM_FLOAT32, 0, "source"},
    {"int4", &lcomm_codec_int4, 32, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int4_128", &lcomm_codec_int4, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"sign", &lcomm_codec_sign, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"sign_64", &lcomm_codec_sign, 64, 0, 0, 0, LCOMM_FLOAT32, 0, "source"},
    {"sign_32", &lcomm_codec_sign, 32, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int2", &lcomm_codec_int2, 128, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int2_64", &lcomm_codec_int2, 64, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"int2_32", &lcomm_codec_int2, 32, 0, 0, 0, LCOMM_FLOAT32, 0, "source"},
    {"topk", &lcomm_codec_topk, 0, 0, 0, 151, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"topk_int8", &lcomm_codec_topk, 0, 1, 0, 151, LCOMM_FLOAT32, GOLDEN_CHECKED, "source"},
    {"topk_all", &lcomm_codec_topk, 0, 0, 0, 685, LCOMM_FLOAT32, 0, "source"},
    {"empty_none", &lcomm_codec_none, 0, 0, 0, 0, LCOMM_FLOAT32, GOLDEN_CHECKED, "empty"},
    {"empty_fp16_fixed", &lcomm_codec_fp16, 0, 1, 4, 0, LCOMM_FLOAT32, 0, "empty"},
    {"empty_int8", &lcomm_codec_int8, 128, 0, 0, 0, LCOMM_FLOAT32, 0, "empty"},
    {"empty_topk", &lcomm_codec_topk, 0, 1, 0, 1, LCOMM_FLOAT32, 0, "empty"},
    {"example_int4", &lcomm_codec_int4, 32, 0, 0, 0, LCOMM_FLOAT32, 0, "example_int4"},
    {"example_int2", &lcomm_codec_int2, 128, 0, 0, 0, LCOMM_FLOAT32, 0, "example_int2"},
    {"example_fp8e4m3", &lcomm_codec_fp8e4m3, 64, 0, 0, 0, LCOMM_FLOAT32, 0, "example_fp8e4m3"},
    {"example_topk", &lcomm_codec_topk, 0, 0, 0, 3, LCOMM_FLOAT32, 0, "example_topk"},
};

enum { GOLDEN_GOOD = sizeof golden_list / sizeof *golden_list };

static inline lcomm_format golden_format(const golden_good *good) {
  lcomm_format format = lcomm_format_of(good->codec);
  format.block = good->block;
  format.variant = good->variant;
  format.exponent = good->exponent;
  format.density = 0;
  format.kept = good->kept;
  return format;
}

/* Encoding */

static inline golden_bytes golden_topk(const lcomm_kernels *kernels, const lcomm_format *format,
                                       const float *source, uint64_t count) {
  lcomm_topk *topk;
  lcomm_topk_shape shape = {.base_count = count,
                            .parts = 1,
                            .outputs = 1,
                            .format = format,
                            .segment_ends = &count,
                            .segments = 1};
  assert_int_equal(lcomm_topk_create(&shape, &topk), LCOMM_OK);
  golden_bytes payload = {.data = sample_memory(lcomm_topk_output_bound(topk, 0))};
  lcomm_topk_encode(topk, kernels, source, NULL, NULL, LCOMM_TOPK_HOLD, &payload.data,
                    &payload.size);
  lcomm_topk_destroy(topk);
  return payload;
}

static inline golden_bytes golden_payload(const lcomm_kernels *kernels, const lcomm_format *format,
                                          const float *source, uint64_t count) {
  if (lcomm_format_is_sparse(format)) {
    return golden_topk(kernels, format, source, count);
  }
  golden_bytes payload = {.size = lcomm_payload_size(format, count)};
  payload.data = sample_memory(payload.size);
  memset(payload.data, 0xee, payload.size); /* zeros are to be written */
  lcomm_encode(format, kernels, source, lcomm_range_whole(count), 1, payload.data);
  return payload;
}

/* Header and payload; frees the payload. */
static inline golden_bytes golden_seal(lcomm_wire_header header, golden_bytes payload) {
  golden_bytes message = {.size = LCOMM_WIRE_HEADER_SIZE + payload.size};
  message.data = sample_memory(message.size);
  header.version = LCOMM_WIRE_VERSION;
  header.parameters = GOLDEN_PARAMETERS;
  header.sequence = GOLDEN_SEQUENCE;
  header.payload_size = payload.size;
  if ((header.flags & LCOMM_WIRE_CHECKSUM) != 0) {
    header.checksum = lcomm_wire_checksum(payload.data, payload.size);
  }
  lcomm_wire_pack(&header, message.data);
  memcpy(message.data + LCOMM_WIRE_HEADER_SIZE, payload.data, payload.size);
  free(payload.data);
  return message;
}

/* The lossless stage; frees the payload. */
static inline golden_bytes golden_deflate(const lcomm_kernels *kernels, const lcomm_format *format,
                                          golden_bytes payload, uint64_t count) {
  lcomm_lossless *lossless;
  assert_int_equal(lcomm_lossless_create(format, payload.size, &lossless), LCOMM_OK);
  golden_bytes stream = {.data = sample_memory(lcomm_lossless_bound(format, payload.size))};
  stream.size =
      lcomm_lossless_encode(lossless, kernels, payload.data, payload.size, count, stream.data);
  lcomm_lossless_destroy(lossless);
  free(payload.data);
  return stream;
}

static inline golden_bytes golden_encode(const lcomm_kernels *kernels, const golden_good *good,
                                         bool zstd, const float *source, uint64_t count) {
  lcomm_format format = golden_format(good);
  lcomm_wire_header header = {.dtype = (uint8_t)good->dtype, .flags = good->flags, .count = count};
  golden_bytes payload = golden_payload(kernels, &format, source, count);
  if (zstd) {
    payload = golden_deflate(kernels, &format, payload, count);
  }
  format.zstd = zstd;
  lcomm_wire_set_format(&header, &format);
  return golden_seal(header, payload);
}

/* Decoding */

static inline const char *golden_check(const lcomm_wire_header *header, const lcomm_format *format,
                                       const uint8_t *payload, size_t size) {
  bool exact = !lcomm_format_is_sparse(format) && !format->zstd;
  bool absurd = header->count > (uint64_t)1 << 56;
  if (exact && (absurd || header->payload_size != lcomm_payload_size(format, header->count))) {
    return "payload bytes";
  }
  if (header->payload_size != size) {
    return "its length is not what its header says";
  }
  if ((header->flags & LCOMM_WIRE_CHECKSUM) != 0 &&
      lcomm_wire_checksum(payload, size) != header->checksum) {
    return "wrong checksum";
  }
  return NULL;
}

/* Takes the stream, gives the payload. */
static inline const char *golden_inflate(const lcomm_kernels *kernels, const lcomm_format *format,
                                         uint64_t count, golden_bytes *bytes) {
  const char *why = NULL;
  uint64_t room = count < DECODER_VALUES_MAX ? count : DECODER_VALUES_MAX;
  size_t most = lcomm_format_is_sparse(format) ? lcomm_topk_bound(format, room, room)
                                               : lcomm_payload_size(format, room);
  lcomm_lossless *lossless;
  golden_bytes payload = {.data = sample_memory(most)};
  assert_int_equal(lcomm_lossless_create(format, most, &lossless), LCOMM_OK);
  if (lcomm_lossless_decode(lossless, kernels, bytes->data, bytes->size, count, payload.data, most,
                            &payload.size, &why) != LCOMM_OK) {
    payload.size = 0;
  }
  lcomm_lossless_destroy(lossless);
  free(bytes->data);
  *bytes = payload;
  return why;
}

static inline void golden_values(const lcomm_kernels *kernels, const lcomm_format *format,
                                 const uint8_t *payload, decoder_message *message) {
  size_t count = (size_t)message->count;
  message->values = sample_memory(count * sizeof(float));
  memset(message->values, 0xee, count * sizeof(float)); /* all are to be written */
  if (lcomm_format_is_sparse(format)) {
    lcomm_topk_decode(format, payload, count, 1, 0, 1.0f, message->values);
  } else {
    lcomm_decode(format, kernels, payload, lcomm_range_whole(count), 1.0f, message->values);
  }
}

/* What was refused, if anything, of a message whose header is good. */
static inline const char *golden_behind(const lcomm_kernels *kernels, const lcomm_format *format,
                                        golden_bytes *payload, decoder_message *message) {
  bool sparse = lcomm_format_is_sparse(format);
  if (sparse && message->count > DECODER_VALUES_MAX) {
    return "more values than there is room for";
  }
  const char *why = format->zstd ? golden_inflate(kernels, format, message->count, payload) : NULL;
  if (why) {
    return why;
  }
  if (sparse &&
      lcomm_topk_check(format, payload->data, payload->size, message->count, NULL) != LCOMM_OK) {
    return "not a top-k payload";
  }
  golden_values(kernels, format, payload->data, message);
  return NULL;
}

/* As decoder_read, by the library. */
static inline decoder_message golden_read(const lcomm_kernels *kernels, const uint8_t *bytes,
                                          size_t size) {
  decoder_message message = {.refusal = NULL};
  lcomm_wire_header header;
  if (lcomm_wire_unpack(bytes, size, &header, &message.refusal) != LCOMM_OK) {
    return message;
  }
  lcomm_format format = lcomm_wire_get_format(&header);
  const uint8_t *behind = bytes + LCOMM_WIRE_HEADER_SIZE;
  size -= LCOMM_WIRE_HEADER_SIZE;
  message.count = header.count;
  message.refusal = golden_check(&header, &format, behind, size);
  if (message.refusal) {
    return message;
  }
  golden_bytes payload = {.data = sample_memory(size), .size = size};
  memcpy(payload.data, behind, size);
  message.refusal = golden_behind(kernels, &format, &payload, &message);
  free(payload.data);
  return message;
}

#endif
