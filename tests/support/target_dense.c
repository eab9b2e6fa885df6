/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_dense.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "kernels/element.h"
#include "tests/codecs/formats.h"
#include "tests/support/fuzz_promise.h"

enum { HEAD = 4, SEED = 12345 };

typedef struct input {
  lcomm_format format;
  uint64_t count, first; /* first: a multiple of LCOMM_BLOCK, at most count */
  size_t size;           /* of the payload */
  uint8_t *payload;
  float *values;
} input;

/* The bytes over and over, `size` of them. */
static void *repeat(const uint8_t *data, size_t given, size_t size) {
  uint8_t *bytes = fuzz_allocate(size);
  for (size_t i = 0; given > 0 && i < size; i++) {
    bytes[i] = data[i % given];
  }
  return bytes;
}

static bool read_input(const uint8_t *data, size_t size, input *in) {
  lcomm_format formats[FORMATS_MAX];
  if (size < HEAD) {
    return false;
  }
  in->format = formats[data[0] % dense_formats(formats)];
  in->count = (data[1] + 256u * data[2]) % 2000;
  in->first = data[3] * (uint64_t)LCOMM_BLOCK;
  in->first = in->first > in->count ? 0 : in->first;
  in->size = lcomm_payload_size(&in->format, in->count);
  in->payload = repeat(data + HEAD, size - HEAD, in->size);
  in->values = repeat(data + HEAD, size - HEAD, (size_t)in->count * sizeof(float));
  return true;
}

static void free_input(input *in) {
  free(in->payload);
  free(in->values);
}

static float *array(const input *in) {
  return fuzz_allocate((size_t)in->count * sizeof(float));
}

static void check_decoding(const input *in, const lcomm_kernels *kernels) {
  lcomm_range all = lcomm_range_whole(in->count);
  lcomm_range rest = {in->count, in->first, in->count - in->first};
  float *whole = array(in), *part = array(in), *sum = array(in);
  lcomm_decode(&in->format, kernels, in->payload, all, 0.5f, whole);
  lcomm_decode(&in->format, kernels, in->payload, rest, 0.5f, part + in->first);
  fuzz_require(memcmp(whole + in->first, part + in->first, (size_t)rest.n * sizeof *part) == 0,
               "a range decodes as in the whole");
  lcomm_accumulate(&in->format, kernels, in->payload, all, 0.5f, sum);
  for (uint64_t i = 0; i < in->count; i++) {
    fuzz_require(sum[i] == whole[i] || (isnan(sum[i]) && isnan(whole[i])),
                 "adding to zero is decoding");
  }
  free(whole);
  free(part);
  free(sum);
}

static void check_encoding(const input *in, const lcomm_kernels *kernels) {
  lcomm_range all = lcomm_range_whole(in->count);
  lcomm_range head = {in->count, 0, in->first},
              rest = {in->count, in->first, in->count - in->first};
  uint8_t *whole = fuzz_allocate(in->size), *parts = fuzz_allocate(in->size);
  float *decoded = array(in), *residual = array(in);
  lcomm_encode(&in->format, kernels, in->values, all, SEED, whole);
  lcomm_encode(&in->format, kernels, in->values + in->first, rest, SEED, parts);
  lcomm_encode(&in->format, kernels, in->values, head, SEED, parts);
  fuzz_require(memcmp(whole, parts, in->size) == 0, "ranges give the bytes of the whole");
  lcomm_decode(&in->format, kernels, whole, all, 1.0f, decoded);
  for (uint64_t i = 0; i < in->count; i++) {
    fuzz_require(isfinite(in->values[i]) || !isfinite(decoded[i]), "NaN and Inf are not lost");
  }
  lcomm_residual_encode(&in->format, kernels, in->values, residual, residual, all, SEED, parts);
  for (uint64_t i = 0; i < in->count; i++) {
    fuzz_require(isfinite(residual[i]), "a residual stays finite");
  }
  free(whole);
  free(parts);
  free(decoded);
  free(residual);
}

void lcomm_fuzz_dense(const uint8_t *data, size_t size) {
  input in;
  if (!read_input(data, size, &in)) {
    return;
  }
  check_decoding(&in, lcomm_kernels_best());
  check_encoding(&in, lcomm_kernels_best());
  free_input(&in);
}

/* ---------------------------------------------------------------- kernels */

/* Of two NaNs that meet in hostile bytes either may survive. */
static bool same_values(const float *a, const float *b, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (lcomm_f32_bits(a[i]) != lcomm_f32_bits(b[i]) && !(isnan(a[i]) && isnan(b[i]))) {
      return false;
    }
  }
  return true;
}

static void compare_codec(const input *in, const lcomm_kernels *kernels) {
  const lcomm_kernels *scalar = &lcomm_kernels_scalar;
  lcomm_range all = lcomm_range_whole(in->count);
  uint8_t *expected = fuzz_allocate(in->size), *code = fuzz_allocate(in->size);
  float *value[2] = {array(in), array(in)};
  size_t bytes = (size_t)in->count * sizeof(float);
  lcomm_encode(&in->format, scalar, in->values, all, SEED, expected);
  lcomm_encode(&in->format, kernels, in->values, all, SEED, code);
  fuzz_require(memcmp(expected, code, in->size) == 0, "all tables encode alike");
  lcomm_decode(&in->format, scalar, in->payload, all, 0.3f, value[0]);
  lcomm_decode(&in->format, kernels, in->payload, all, 0.3f, value[1]);
  fuzz_require(same_values(value[0], value[1], in->count), "all tables decode alike");
  memset(value[0], 0, bytes);
  memset(value[1], 0, bytes);
  lcomm_accumulate(&in->format, scalar, in->payload, all, 0.3f, value[0]);
  lcomm_accumulate(&in->format, kernels, in->payload, all, 0.3f, value[1]);
  fuzz_require(same_values(value[0], value[1], in->count), "all tables add alike");
  free(expected);
  free(code);
  free(value[0]);
  free(value[1]);
}

static void compare_selection(const input *in, const lcomm_kernels *kernels) {
  const lcomm_kernels *tables[2] = {&lcomm_kernels_scalar, kernels};
  uint32_t *index[2], threshold = in->count > 0 ? in->payload[0] * 0x800000u : 0;
  float *residual[2];
  size_t found[2], n = (size_t)in->count;
  for (int t = 0; t < 2; t++) {
    index[t] = fuzz_allocate((n + 1) * sizeof **index);
    residual[t] = array(in);
    found[t] = tables[t]->ef.accumulate_select(in->values, residual[t], residual[t], n, threshold,
                                               7, index[t], n);
  }
  fuzz_require(found[0] == found[1] && memcmp(index[0], index[1], found[0] * sizeof **index) == 0 &&
                   memcmp(residual[0], residual[1], n * sizeof **residual) == 0,
               "all tables select alike");
  for (int t = 0; t < 2; t++) {
    free(index[t]);
    free(residual[t]);
  }
}

static void compare_planes(const input *in, const lcomm_kernels *kernels) {
  size_t n = (size_t)in->count, size = n * 4;
  uint8_t *one = fuzz_allocate(size), *two = fuzz_allocate(size), *back = fuzz_allocate(size);
  uint8_t *const first[4] = {one, one + n, one + 2 * n, one + 3 * n};
  uint8_t *const second[4] = {two, two + n, two + 2 * n, two + 3 * n};
  const uint8_t *source = (const uint8_t *)in->values;
  lcomm_kernels_scalar.planes.split4(source, first, n);
  kernels->planes.split4(source, second, n);
  fuzz_require(memcmp(one, two, size) == 0, "all tables split alike");
  kernels->planes.join4((const uint8_t *const *)second, back, n);
  fuzz_require(memcmp(back, source, size) == 0, "joining undoes splitting");
  lcomm_kernels_scalar.planes.split2(source, first, n);
  kernels->planes.split2(source, second, n);
  fuzz_require(memcmp(one, two, 2 * n) == 0, "all tables split 2-byte numbers alike");
  kernels->planes.join2((const uint8_t *const *)second, back, n);
  fuzz_require(memcmp(back, source, 2 * n) == 0, "joining undoes splitting of 2-byte numbers");
  free(one);
  free(two);
  free(back);
}

void lcomm_fuzz_kernels(const uint8_t *data, size_t size) {
  input in;
  if (!read_input(data, size, &in)) {
    return;
  }
  for (size_t t = 1; lcomm_kernels_list[t] != NULL; t++) {
    if (!lcomm_kernels_runs(lcomm_kernels_list[t])) {
      continue;
    }
    compare_codec(&in, lcomm_kernels_list[t]);
    compare_selection(&in, lcomm_kernels_list[t]);
    compare_planes(&in, lcomm_kernels_list[t]);
  }
  free_input(&in);
}
