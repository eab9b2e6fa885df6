/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The list of codecs, and what can be asked of a format. */

#include <stdio.h>
#include <string.h>

#include "codecs/codec.h"

const lcomm_codec *const lcomm_codec_list[] = {&lcomm_codec_none,
                                               &lcomm_codec_fp16,
                                               &lcomm_codec_bf16,
                                               &lcomm_codec_fp8e4m3,
                                               &lcomm_codec_fp8e5m2,
                                               &lcomm_codec_int8,
                                               &lcomm_codec_topk,
                                               &lcomm_codec_int4,
                                               &lcomm_codec_sign,
                                               &lcomm_codec_int2,
                                               NULL};

const lcomm_codec *lcomm_codec_by_name(const char *name, size_t length) {
  for (size_t i = 0; lcomm_codec_list[i] != NULL; i++) {
    const char *known = lcomm_codec_list[i]->name;
    if (strlen(known) == length && memcmp(known, name, length) == 0) {
      return lcomm_codec_list[i];
    }
  }
  return NULL;
}

const lcomm_codec *lcomm_codec_by_id(unsigned id) {
  for (size_t i = 0; lcomm_codec_list[i] != NULL; i++) {
    if ((unsigned)lcomm_codec_list[i]->id == id) {
      return lcomm_codec_list[i];
    }
  }
  return NULL;
}

lcomm_format lcomm_format_of(const lcomm_codec *codec) {
  lcomm_format format = {.codec = codec, .block = codec->blocks[0]};
  if (codec->id == LCOMM_CODEC_TOPK) {
    format.density = 0.01;
  }
  return format;
}

lcomm_format lcomm_format_exact(lcomm_dtype dtype) {
  if (dtype == LCOMM_FLOAT16) {
    return lcomm_format_of(&lcomm_codec_fp16);
  }
  if (dtype == LCOMM_BFLOAT16) {
    return lcomm_format_of(&lcomm_codec_bf16);
  }
  return lcomm_format_of(&lcomm_codec_none);
}

bool lcomm_format_equal(const lcomm_format *a, const lcomm_format *b) {
  return a->codec == b->codec && a->block == b->block && a->variant == b->variant &&
         a->exponent == b->exponent && a->stochastic == b->stochastic && a->zstd == b->zstd &&
         !(a->density < b->density || a->density > b->density) && a->kept == b->kept;
}

double lcomm_format_bits(const lcomm_format *format) {
  return format->codec->bits(format);
}
