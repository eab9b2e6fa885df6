/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_FORMATS_H
#define LCOMM_TESTS_CODECS_FORMATS_H

/* Every dense format there is: each codec with each of its blocks, variants
 * and roundings. */

#include "codecs/codec.h"

enum { FORMATS_MAX = 32 };

static inline size_t add_variants(lcomm_format format, lcomm_format *list) {
  size_t count = 0;
  bool fp8 = format.codec->id == LCOMM_CODEC_FP8E4M3 || format.codec->id == LCOMM_CODEC_FP8E5M2;
  list[count++] = format;
  if (fp8) {
    format.stochastic = true;
    list[count++] = format;
  }
  if (format.codec->id == LCOMM_CODEC_FP16) {
    format.variant = LCOMM_FP16_FIXED;
    format.exponent = 4;
    list[count++] = format;
    format.exponent = -3;
    list[count++] = format;
    format.exponent = 0;
    format.variant = LCOMM_FP16_BLOCK;
    list[count++] = format;
  }
  return count;
}

/* Fills list with all dense formats, returns how many. */
static inline size_t dense_formats(lcomm_format list[FORMATS_MAX]) {
  size_t count = 0;
  for (size_t i = 0; lcomm_codec_list[i] != NULL; i++) {
    const lcomm_codec *codec = lcomm_codec_list[i];
    if (!codec->encode) {
      continue;
    }
    size_t block = 0;
    do {
      lcomm_format format = lcomm_format_of(codec);
      format.block = codec->blocks[block];
      count += add_variants(format, list + count);
      block++;
    } while (codec->blocks[block] != 0);
  }
  return count;
}

/* A line of cmocka's table: what holds for each format, where `test` has the formats. Its state is
 * a format_property. */
#define FORMAT_TEST(test, property)                                                                \
  {                                                                                                \
    .name = #property, .test_func = test, .initial_state = &(format_property) { property }         \
  }

typedef struct format_property {
  void (*holds)(const lcomm_format *);
} format_property;

#endif
