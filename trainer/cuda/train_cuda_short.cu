/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Values of 16 bits: rounding, codes, and elements on their way from and to the host. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

/* ---------------------------------------------------------------------- codes */

typedef struct codes_args {
  float *values;
  uint16_t *codes;
  float factor;
  uint64_t count;
} codes_args;

LCOMM_KERNEL(round_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(a.values[i]));
  }
}

LCOMM_KERNEL(round_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = lcomm_f16_to_f32(lcomm_f32_to_f16(a.values[i]));
  }
}

LCOMM_KERNEL(encode_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.codes[i] = lcomm_f32_to_bf16(a.factor * a.values[i]);
  }
}

LCOMM_KERNEL(encode_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.codes[i] = lcomm_f32_to_f16(a.factor * a.values[i]);
  }
}

LCOMM_KERNEL(decode_bf16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = a.factor * lcomm_bf16_to_f32(a.codes[i]);
  }
}

LCOMM_KERNEL(decode_f16, codes_args) {
  for (TRAIN_EACH(i, a.count)) {
    a.values[i] = a.factor * lcomm_f16_to_f32(a.codes[i]);
  }
}

void train_cuda_round(precision_kind kind, float *values, size_t count) {
  codes_args args = {values, NULL, 1.0f, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(round_bf16, count, args);
  } else if (kind == PRECISION_FP16) {
    TRAIN_LAUNCH(round_f16, count, args);
  }
}

void train_cuda_encode(precision_kind kind, const float *values, float factor, uint16_t *codes,
                       size_t count) {
  codes_args args = {(float *)values, codes, factor, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(encode_bf16, count, args);
  } else {
    TRAIN_LAUNCH(encode_f16, count, args);
  }
}

void train_cuda_decode(precision_kind kind, const uint16_t *codes, float factor, float *values,
                       size_t count) {
  codes_args args = {values, (uint16_t *)codes, factor, count};
  if (kind == PRECISION_BF16) {
    TRAIN_LAUNCH(decode_bf16, count, args);
  } else {
    TRAIN_LAUNCH(decode_f16, count, args);
  }
}

/* ------------------------------------------------------------ elements, the host */

void train_cuda_store(element *values, const float *host, size_t count) {
  float *place = train_cuda.stored == PRECISION_FP32
                     ? values
                     : (float *)train_cuda_scratch(count * sizeof(float));
  if (!place) {
    return;
  }
  train_cuda_write(place, host, count * sizeof *host);
  if (place != values) {
    train_cuda_encode(train_cuda.stored, place, 1.0f, (uint16_t *)values, count);
  }
}

void train_cuda_load(float *host, const element *values, size_t count) {
  const float *place = values;
  if (train_cuda.stored != PRECISION_FP32) {
    float *made = (float *)train_cuda_scratch(count * sizeof(float));
    if (!made) {
      return;
    }
    train_cuda_decode(train_cuda.stored, (const uint16_t *)values, 1.0f, made, count);
    place = made;
  }
  train_cuda_read(host, place, count * sizeof *host);
}
