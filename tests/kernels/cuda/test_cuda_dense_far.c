/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Elements beyond 2^32, without the memory for all before them: of a launch, only
 * the last block runs, and the arrays begin so far before the memory there is that
 * this block finds it. */

#include "tests/kernels/cuda/dense_cases.h"

#include "tests/support/emulated/emulated_blocks.h"

enum { REST = 700, FAR_TILES = 5 << 20 };

/* A multiple of 2^32 and some tiles; the parts of a payload lie at multiples of 8. */
static const uint64_t before = (uint64_t)FAR_TILES * TILE;
static const view near_view = {REST, 1, 0, 0};

static lcomm_emulated_kernel *last_kernel;

static void run_in_last_block(const void *args) {
  lcomm_emulated_here.block = FAR_TILES;
  last_kernel(args);
}

static int launch_last_block(lcomm_emulated_kernel *kernel, const void *args, size_t args_size,
                             uint32_t blocks, uint32_t threads, void *stream, const char *name) {
  (void)args_size, (void)stream;
  assert_int_equal(blocks, FAR_TILES + 1);
  last_kernel = kernel;
  return lcomm_emulated_run(run_in_last_block, args, 1, threads, name);
}

/* The address that `bytes` before `memory` would be. */
static void *moved(const void *memory, uint64_t bytes) {
  return !memory ? NULL : (void *)((uintptr_t)memory - (uintptr_t)bytes);
}

static uint64_t code_bytes(const lcomm_cuda_code *code) {
  static const unsigned bits[LCOMM_CUDA_KIND_COUNT] = {32, 16, 16, 16, 16, 8, 8, 8, 4, 1, 2};
  return before / 8 * bits[code->kind];
}

static uint64_t scale_bytes(const lcomm_cuda_code *code) {
  bool floats = code->kind == LCOMM_CUDA_INT8 || code->kind == LCOMM_CUDA_INT4;
  return code->block == 0 ? 0 : before / code->block * (floats ? sizeof(float) : 1);
}

static lcomm_cuda_code far_parts(const lcomm_format *format, uint8_t *payload) {
  lcomm_cuda_code parts = parts_of(format, REST, payload);
  parts.scale = moved(parts.scale, scale_bytes(&parts));
  parts.code = moved(parts.code, code_bytes(&parts));
  return parts;
}

/* What belongs to no element is written by the first block, which does not run. */
static void write_rest(const lcomm_format *format, const uint8_t *right, uint8_t *payload) {
  lcomm_cuda_code parts = parts_of(format, REST, payload);
  size_t scales = parts.block == 0 ? 0 : (REST + parts.block - 1) / parts.block;
  if (parts.kind == LCOMM_CUDA_INT8 || parts.kind == LCOMM_CUDA_INT4) {
    scales *= sizeof(float);
  }
  size_t head = (size_t)((const uint8_t *)parts.code - payload);
  memcpy(payload + scales, right + scales, head - scales);
}

static void encode_far(const lcomm_format *format, const float *source, uint8_t *payload) {
  lcomm_cuda_encode a = {.source = moved(source, before * sizeof *source),
                         .n = before + REST,
                         .parts = 1,
                         .code = far_parts(format, payload)};
  assert_int_equal(lcomm_cuda_run_encode(&a, NULL), 0);
}

/* Numbers by counter begin at the far index. */
static void encode_right(const lcomm_format *format, const float *source, uint8_t *payload) {
  const lcomm_kernels *scalar = &lcomm_kernels_scalar;
  lcomm_cuda_code parts = parts_of(format, REST, payload);
  lcomm_encode(format, scalar, source, lcomm_range_whole(REST), SEED, payload);
  if (format->stochastic) {
    scalar->f32_to_fp8_stochastic[parts.kind == LCOMM_CUDA_E4M3 ? LCOMM_E4M3 : LCOMM_E5M2](
        source, format->block, SEED, before, parts.code, parts.scale, REST);
  }
}

static void decode_far(const lcomm_format *format, uint8_t *payload, float *destination) {
  lcomm_cuda_code source = far_parts(format, payload);
  lcomm_cuda_sum a = {.sources = &source,
                      .count = 1,
                      .factor = 0.5f,
                      .destination = moved(destination, before * sizeof *destination),
                      .n = before + REST,
                      .parts = 1};
  assert_int_equal(lcomm_cuda_run_sum(&a, NULL), 0);
}

static void elements_beyond_32_bits_are_found(void **state) {
  (void)state;
  lcomm_format formats[FORMATS_MAX];
  size_t count = dense_formats(formats);
  uint64_t random = 21;
  for (size_t f = 0; f < count; f++) {
    float *source = array_open(&near_view, REST), *expected = array_open(&near_view, REST);
    uint8_t *payload = payload_open(&formats[f], REST), *right = payload_open(&formats[f], REST);
    make_values(KIND_GRADIENT, source, REST, &random);
    encode_right(&formats[f], source, right);
    encode_far(&formats[f], source, payload);
    write_rest(&formats[f], right, payload);
    expect_equal_bytes(payload, right, lcomm_payload_size(&formats[f], REST), &formats[f],
                       &near_view, "payload");
    lcomm_decode(&formats[f], &lcomm_kernels_scalar, right, lcomm_range_whole(REST), 0.5f,
                 expected);
    decode_far(&formats[f], payload, source);
    expect_equal_bytes(source, expected, REST * sizeof *source, &formats[f], &near_view, "decoded");
    array_free(&near_view, source);
    array_free(&near_view, expected);
    payload_free(payload);
    payload_free(right);
  }
}

static int only_last_blocks(void **state) {
  (void)state;
  lcomm_emulated.launch = launch_last_block;
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elements_beyond_32_bits_are_found)};
  return cmocka_run_group_tests(tests, only_last_blocks, NULL);
}
