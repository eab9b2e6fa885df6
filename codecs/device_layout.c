/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/device_layout.h"

#include "codecs/block.h"

static lcomm_cuda_kind fp16_kind(uint8_t variant) {
  if (variant == LCOMM_FP16_FIXED) {
    return LCOMM_CUDA_F16_FIXED;
  }
  return variant == LCOMM_FP16_BLOCK ? LCOMM_CUDA_F16_BLOCK : LCOMM_CUDA_F16;
}

/* KIND_COUNT for a codec that is not dense. */
static lcomm_cuda_kind kind_of(const lcomm_format *format) {
  switch (format->codec->id) {
  case LCOMM_CODEC_NONE:
    return LCOMM_CUDA_F32;
  case LCOMM_CODEC_FP16:
    return fp16_kind(format->variant);
  case LCOMM_CODEC_BF16:
    return LCOMM_CUDA_BF16;
  case LCOMM_CODEC_FP8E4M3:
    return LCOMM_CUDA_E4M3;
  case LCOMM_CODEC_FP8E5M2:
    return LCOMM_CUDA_E5M2;
  case LCOMM_CODEC_INT8:
    return LCOMM_CUDA_INT8;
  case LCOMM_CODEC_INT4:
    return LCOMM_CUDA_INT4;
  case LCOMM_CODEC_SIGN:
    return LCOMM_CUDA_SIGN;
  case LCOMM_CODEC_INT2:
    return LCOMM_CUDA_INT2;
  case LCOMM_CODEC_TOPK:
    break;
  }
  return LCOMM_CUDA_KIND_COUNT;
}

static uint64_t bytes_of_codes(lcomm_cuda_kind kind, uint64_t count) {
  switch (kind) {
  case LCOMM_CUDA_F32:
    return count * sizeof(float);
  case LCOMM_CUDA_E4M3:
  case LCOMM_CUDA_E5M2:
  case LCOMM_CUDA_INT8:
    return count;
  case LCOMM_CUDA_INT4:
    return count / 2 + count % 2;
  case LCOMM_CUDA_SIGN:
    return lcomm_lowbit_codes_size(1, count);
  case LCOMM_CUDA_INT2:
    return lcomm_lowbit_codes_size(2, count);
  default:
    return count * sizeof(uint16_t);
  }
}

void lcomm_device_layout(const lcomm_format *format, uint64_t count, uint8_t *payload,
                         lcomm_cuda_code *layout) {
  lcomm_cuda_kind kind = kind_of(format);
  size_t head = lcomm_payload_size(format, count) - (size_t)bytes_of_codes(kind, count);
  bool scaled = kind != LCOMM_CUDA_F32 && kind != LCOMM_CUDA_F16 && kind != LCOMM_CUDA_BF16;
  *layout = (lcomm_cuda_code){.kind = kind,
                              .block = format->block,
                              .exponent = format->exponent,
                              .stochastic = format->stochastic,
                              .scale = scaled ? payload : NULL,
                              .code = payload + head};
  if (kind == LCOMM_CUDA_F16_BLOCK) {
    layout->block = LCOMM_BLOCK;
  }
}
