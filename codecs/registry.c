/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <string.h>

#include "codecs/codec.h"

const lcomm_codec *const lcomm_codec_list[] = {
    &lcomm_codec_none,    &lcomm_codec_fp16, &lcomm_codec_bf16, &lcomm_codec_fp8e4m3,
    &lcomm_codec_fp8e5m2, &lcomm_codec_int8, &lcomm_codec_topk, NULL};

const lcomm_codec *lcomm_codec_by_name(const char *name, size_t length) {
  for (size_t i = 0; lcomm_codec_list[i] != NULL; i++) {
    const char *known = lcomm_codec_list[i]->name;
    if (strlen(known) == length && memcmp(known, name, length) == 0)
      return lcomm_codec_list[i];
  }
  return NULL;
}

const lcomm_codec *lcomm_codec_by_id(unsigned id) {
  for (size_t i = 0; lcomm_codec_list[i] != NULL; i++)
    if ((unsigned)lcomm_codec_list[i]->id == id)
      return lcomm_codec_list[i];
  return NULL;
}

const lcomm_codec *lcomm_codec_exact(lcomm_dtype dtype) {
  switch (dtype) {
  case LCOMM_FLOAT32:
    return &lcomm_codec_none;
  case LCOMM_FLOAT16:
    return &lcomm_codec_fp16;
  case LCOMM_BFLOAT16:
    return &lcomm_codec_bf16;
  }
  return NULL;
}
