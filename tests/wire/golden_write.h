/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_GOLDEN_WRITE_H
#define LCOMM_TESTS_WIRE_GOLDEN_WRITE_H

/* Writes the golden files anew: test_wire_golden --write. What it makes of the
 * library's own output is golden only once someone has looked at the change.
 */

#include "tests/wire/golden.h"
#include "tests/wire/golden_refused.h"

enum { SOURCE_COUNT = 685, HEADER_SIZE = LCOMM_WIRE_HEADER_SIZE };

static inline void write_file(const char *name, const char *ending, const void *bytes,
                              size_t size) {
  char path[GOLDEN_PATH_MAX];
  snprintf(path, sizeof path, GOLDEN_FOLDER "%s%s", name, ending);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

/* Zeros at the end are left out; every NaN is the same one. */
static inline void write_values(const char *name, const decoder_message *message) {
  size_t count = (size_t)message->count;
  while (count > 0 && lcomm_f32_bits(message->values[count - 1]) == 0) {
    count--;
  }
  for (size_t i = 0; i < count; i++) {
    if (lcomm_f32_magnitude(message->values[i]) > (int32_t)LCOMM_F32_INF_BITS) {
      message->values[i] = SAMPLE_NAN;
    }
  }
  write_file(name, ".f32", message->values, count * sizeof(float));
}

/* The source: integers and powers of two only, so that no library has a say. */

static inline float scaled(uint64_t *random, uint32_t exponent) {
  int32_t sum = 0;
  for (int part = 0; part < 4; part++) {
    sum += (int32_t)(sample_u64(random) >> 44) - (1 << 19);
  }
  return (float)sum * lcomm_f32_from_bits(exponent << 23);
}

/* Blocks of 32: of 128 the first is finite, the third zeros, the fourth has
 * Inf, the fifth NaN. */
static inline float source_value(uint32_t i, uint64_t *random) {
  uint32_t block = i / 32;
  float zero = i % 3 == 0 ? -0.0f : 0.0f, value = scaled(random, 88 + block % 4 * 8);
  switch (block) {
  case 5: /* below 2^-119, but no subnormals */
    return lcomm_f32_from_bits((uint32_t)(sample_u64(random) >> 20 & 0x80ffffff) | 0x01000000);
  case 6: /* subnormals */
    return lcomm_f32_from_bits((uint32_t)(sample_u64(random) >> 20 & 0x800fffff));
  case 4:
  case 8:
  case 9:
  case 10:
  case 11:
    return zero;
  case 13:
    return i % 8 == 2 ? SAMPLE_INFINITY : i % 8 == 5 ? -SAMPLE_INFINITY : value;
  case 16:
    return i % 16 == 3 ? lcomm_f32_from_bits(0xff812345u) : i % 16 == 9 ? SAMPLE_INFINITY : value;
  case 18: /* up to the largest number there is */
    return i % 32 == 7 ? lcomm_f32_from_bits(0xff7fffffu) : scaled(random, 233);
  case 20: /* ties of the 16-bit and the 8-bit formats */
    return lcomm_f32_from_bits((i % 3 == 0   ? 0x3f808000u
                                : i % 3 == 1 ? 0x3f801000u
                                             : 0x3f880000u) +
                               (i % 7 << 19));
  default:
    return value;
  }
}

/* Magnitudes at the edge of a scale, 1.75 times a power of two. */
static inline void set_edges(float *source) {
  source[650] = 1.75f;
  source[71] = -lcomm_f32_from_bits(0x43600001u); /* the next one after 224 */
}

static inline void write_sources(void) {
  float source[SOURCE_COUNT], topk[20] = {[2] = 1.0f, [3] = -2.0f, [9] = 0.5f};
  const float int4[] = {7.0f, -4.0f, 0.0f}, fp8[] = {1.0f, -0.5f};
  const float int2[] = {6.0f, -3.0f, 1.0f, -0.5f, 0.0f};
  uint64_t random = 11;
  for (uint32_t i = 0; i < SOURCE_COUNT; i++) {
    source[i] = source_value(i, &random);
  }
  set_edges(source);
  write_file("source", ".in", source, sizeof source);
  write_file("empty", ".in", source, 0);
  write_file("example_int4", ".in", int4, sizeof int4);
  write_file("example_int2", ".in", int2, sizeof int2);
  write_file("example_fp8e4m3", ".in", fp8, sizeof fp8);
  write_file("example_topk", ".in", topk, sizeof topk);
}

/* Messages that the encoder makes, and the same through the lossless stage */

static inline void write_good(FILE *index, const golden_good *good, bool zstd) {
  char name[64];
  golden_bytes source = golden_load(good->source, ".in");
  golden_bytes message =
      golden_encode(&lcomm_kernels_scalar, good, zstd, (const float *)(const void *)source.data,
                    source.size / sizeof(float));
  decoder_message read = golden_read(&lcomm_kernels_scalar, message.data, message.size);
  assert_null(read.refusal);
  snprintf(name, sizeof name, "%s%s", good->name, zstd ? "_zstd" : "");
  write_file(name, ".bin", message.data, message.size);
  if (zstd) {
    fprintf(index, "read %s %s\n", name, good->name);
  } else {
    fprintf(index, "same %s %s\n", name, good->source);
  }
  if (!zstd) {
    write_values(name, &read);
  }
  decoder_free(&read);
  free(source.data);
  free(message.data);
}

/* Messages that no encoder makes */

static inline void write_read(FILE *index, const char *name, lcomm_wire_header header,
                              golden_bytes payload) {
  golden_bytes message = golden_seal(header, payload);
  decoder_message read = golden_read(&lcomm_kernels_scalar, message.data, message.size);
  if (read.refusal) {
    print_error("%s: %s\n", name, read.refusal);
  }
  assert_null(read.refusal);
  write_file(name, ".bin", message.data, message.size);
  write_values(name, &read);
  fprintf(index, "read %s %s\n", name, name);
  decoder_free(&read);
  free(message.data);
}

/* Every byte as a code, behind a head of scales. */
static inline void write_bytes(FILE *index, const char *name, uint8_t codec, uint8_t flags,
                               uint64_t count, const char *head) {
  golden_bytes payload = {.data = NULL};
  lcomm_wire_header header = {.codec = codec, .flags = flags, .count = count};
  lcomm_format format = lcomm_wire_get_format(&header);
  golden_add_hex(head, &payload);
  size_t size = lcomm_payload_size(&format, count);
  payload.data = realloc(payload.data, size);
  assert_non_null(payload.data);
  for (size_t i = payload.size; i < size; i++) {
    payload.data[i] = (uint8_t)(i - payload.size);
  }
  payload.size = size;
  write_read(index, name, header, payload);
}

static inline void write_all_bytes(FILE *index) {
  const char *fp8 = "00 00 7f 7f fe fe ff ff", *half = "00 01 7f fe ff ee ee ee",
             *lowbit = "00 01 7f 7f 80 fd fe ff";
  const char *integer = "00 00 c0 7f 00 00 c0 7f 00 00 80 7f 00 00 80 7f "
                        "01 00 00 00 01 00 00 80 ff ff 7f 7f cd cc cc bd";
  write_bytes(index, "fp8e4m3_bytes", LCOMM_CODEC_FP8E4M3, 0, 1024, fp8);
  write_bytes(index, "fp8e5m2_bytes", LCOMM_CODEC_FP8E5M2, 0, 1024, fp8);
  write_bytes(index, "fp16_block_bytes", LCOMM_CODEC_FP16, 0x20, 640, half);
  write_bytes(index, "int8_bytes", LCOMM_CODEC_INT8, 0, 1024, integer);
  write_bytes(index, "sign_bytes", LCOMM_CODEC_SIGN, 0, 1024, lowbit);
  write_bytes(index, "int2_bytes", LCOMM_CODEC_INT2, 0, 1024, lowbit);
  write_bytes(index, "int4_bytes", LCOMM_CODEC_INT4, 0x04, 1024, integer);
}

static inline void write_hand_made(FILE *index) {
  for (size_t i = 0; i < sizeof hand_made / sizeof *hand_made; i++) {
    const hand_made_message *it = &hand_made[i];
    golden_bytes payload = {.data = sample_memory(1)};
    golden_add_hex(it->payload, &payload);
    lcomm_wire_header header = {.codec = it->codec, .flags = it->flags, .count = it->count};
    if (!it->phrase) {
      write_read(index, it->name, header, payload);
      continue;
    }
    golden_bytes message = golden_seal(header, payload);
    write_file(it->name, ".bin", message.data, message.size);
    fprintf(index, "refuse %s %s\n", it->name, it->phrase);
    free(message.data);
  }
}

/* Three chunks a plane, nearly all of them zeros. */
static inline void write_chunks(FILE *index) {
  const uint64_t count = 140000;
  lcomm_format format = lcomm_format_of(&lcomm_codec_bf16);
  golden_bytes payload = {.data = sample_memory(2 * count), .size = 2 * count};
  for (size_t i = 0; i < 40; i++) {
    payload.data[i * 5] = (uint8_t)(i + 1);
  }
  payload = golden_deflate(&lcomm_kernels_scalar, &format, payload, count);
  lcomm_wire_header header = {.count = count, .flags = LCOMM_WIRE_CHECKSUM};
  format.zstd = true;
  lcomm_wire_set_format(&header, &format);
  write_read(index, "chunks_zstd", header, payload);
}

/* example_int4 with a few bytes changed. */
static inline void write_changed(FILE *index) {
  for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
    const changed_message *it = &changed[i];
    golden_bytes message = golden_load("example_int4", ".bin");
    message.data = realloc(message.data, it->size > message.size ? it->size : message.size);
    assert_non_null(message.data);
    for (size_t at = message.size; at < it->size; at++) {
      message.data[at] = 0;
    }
    golden_bytes with = {.data = NULL};
    golden_add_hex(it->bytes, &with);
    for (size_t at = 0; at < with.size; at++) {
      message.data[it->offset + at] = with.data[at];
    }
    write_file(it->name, ".bin", message.data, it->size);
    fprintf(index, "refuse %s %s\n", it->name, it->phrase);
    free(with.data);
    free(message.data);
  }
}

static inline int write_golden(void) {
  FILE *index = fopen(GOLDEN_FOLDER "index.txt", "w");
  assert_non_null(index);
  write_sources();
  for (size_t i = 0; i < GOLDEN_GOOD; i++) {
    write_good(index, &golden_list[i], false);
    write_good(index, &golden_list[i], true);
  }
  write_all_bytes(index);
  write_chunks(index);
  write_hand_made(index);
  write_changed(index);
  return fclose(index);
}

#endif
