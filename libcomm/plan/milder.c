/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/milder.h"

#include "libcomm/base/writer.h"

static const lcomm_codec *next_of(const lcomm_codec *codec) {
  switch (codec->id) {
  case LCOMM_CODEC_SIGN:
    return &lcomm_codec_int2;
  case LCOMM_CODEC_INT2:
  case LCOMM_CODEC_TOPK:
    return &lcomm_codec_int4;
  case LCOMM_CODEC_INT4:
  case LCOMM_CODEC_FP8E4M3:
  case LCOMM_CODEC_FP8E5M2:
    return &lcomm_codec_int8;
  case LCOMM_CODEC_INT8:
  case LCOMM_CODEC_FP16:
    return &lcomm_codec_bf16;
  case LCOMM_CODEC_BF16:
    return &lcomm_codec_none;
  default:
    return NULL;
  }
}

static bool has_room_for_feedback(const lcomm_codec *codec) {
  return codec->feeds_back || codec->id == LCOMM_CODEC_INT8;
}

/* Low rank is a class of matrices that are as far as the policy allows: no step of others. */
static bool milder_class(lcomm_auto_class automatic, unsigned rungs, lcomm_codec_spec *choice) {
  rungs += automatic > LCOMM_AUTO_LOWRANK;
  if (rungs >= (unsigned)automatic) {
    *choice = (lcomm_codec_spec){.format = lcomm_format_of(&lcomm_codec_none)};
    return false;
  }
  *choice = lcomm_auto_spec((lcomm_auto_class)((unsigned)automatic - rungs));
  return true;
}

bool lcomm_milder_codec(const lcomm_codec_spec *codec, unsigned rungs, bool momentum,
                        lcomm_codec_spec *choice) {
  const lcomm_codec *it = codec->format.codec;
  if (rungs == 0) {
    *choice = *codec;
    return true;
  }
  if (codec->automatic != LCOMM_AUTO_NONE) {
    return milder_class(codec->automatic, rungs, choice);
  }
  it = codec->rank > 0 ? &lcomm_codec_int4 : next_of(it);
  for (unsigned i = 1; i < rungs && it; i++) {
    it = next_of(it);
  }
  *choice = (lcomm_codec_spec){.format = lcomm_format_of(it ? it : &lcomm_codec_none)};
  choice->error_feedback =
      codec->error_feedback && !momentum && has_room_for_feedback(choice->format.codec);
  choice->format.zstd = codec->format.zstd && choice->format.codec->id != LCOMM_CODEC_NONE;
  return it != NULL;
}

const char *lcomm_milder_text(const lcomm_codec_spec *codec, bool momentum, char *text,
                              size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  lcomm_codec_spec choice;
  char name[64];
  for (unsigned rungs = 0; lcomm_milder_codec(codec, rungs, momentum, &choice); rungs++) {
    lcomm_write(&w, "%s%s", rungs > 0 ? " -> " : "",
                lcomm_codec_spec_format(&choice, name, sizeof name));
  }
  return text;
}

const lcomm_codec_spec *lcomm_farthest_codec(const lcomm_codec_spec *net,
                                             const lcomm_codec_spec *node, int nodes) {
  return nodes > 1 ? net : node;
}

void lcomm_codecs_soften(lcomm_codec_spec *net, lcomm_codec_spec *node, int nodes,
                         const lcomm_codec_spec *choice) {
  bool exact = choice->format.codec->id == LCOMM_CODEC_NONE;
  if (nodes > 1 || exact) {
    *net = *choice;
  }
  if (nodes < 2 || exact) {
    *node = *choice;
  }
}
