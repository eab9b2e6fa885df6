/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The codec lowrank:RANK[,values=CODEC] of a policy: read and written, and the matrices that it
 * acts on. */

#include "libcomm/plan/policy_internal.h"

/* What the factors may travel by, the first one if nothing is said. */
static const lcomm_codec *const codecs[] = {&lcomm_codec_none, &lcomm_codec_bf16,
                                            &lcomm_codec_int8};

enum { CODECS = sizeof codecs / sizeof codecs[0], LEAST_GAIN = 2 };

static lcomm_status read_values(lcomm_policy_reader *r, lcomm_span option,
                                lcomm_codec_spec *choice) {
  lcomm_span name = option;
  bool begins = lcomm_span_begins(option, "values=");
  if (begins) {
    name = lcomm_span_after(option, strlen("values="));
  }
  for (int i = 0; begins && i < CODECS; i++) {
    if (lcomm_span_is(name, codecs[i]->name)) {
      choice->format = lcomm_format_of(codecs[i]);
      return LCOMM_OK;
    }
  }
  return lcomm_policy_refuse(r, "", option,
                             " says nothing of low rank; expected values=none, values=bf16 or "
                             "values=int8, by which the factors travel");
}

static lcomm_status read_ending(lcomm_policy_reader *r, lcomm_span ending) {
  if (ending.length == 0 || lcomm_span_is(ending, "+ef")) {
    return LCOMM_OK;
  }
  return lcomm_policy_refuse(r, "ending ", ending,
                             " does not go with low rank, which always has error feedback; "
                             "expected +ef or nothing");
}

lcomm_status lcomm_policy_read_lowrank(lcomm_policy_reader *r, lcomm_span value,
                                       lcomm_codec_place place, lcomm_codec_spec *choice) {
  uint64_t rank = 0;
  lcomm_span ending = lcomm_span_after(value, lcomm_span_before(value, "+-").length);
  lcomm_span words = {value.text, value.length - ending.length}, word;
  lcomm_codec_spec read = {.format = lcomm_format_of(codecs[0]), .error_feedback = true};
  r->example = r->key ? "lowrank:4" : "int8";
  if (place == LCOMM_IN_NODE || !r->key) {
    return lcomm_policy_fail(r, value.text,
                             "lowrank is for tensors between nodes; expected it on net, and here "
                             "a codec");
  }
  words = lcomm_span_after(words, strlen("lowrank"));
  bool given = words.length > 0 && *words.text == ':';
  words = lcomm_span_after(words, given);
  (void)lcomm_span_next(&words, ",", &word);
  if (!given || !lcomm_policy_read_whole(word, LCOMM_RANK_MAX, &rank) || rank == 0) {
    return lcomm_policy_refuse(r, "", word,
                               " is no rank; expected lowrank:RANK with 1 <= RANK <= 64");
  }
  read.rank = (uint16_t)rank;
  LCOMM_TRY(lcomm_span_next(&words, ",", &word) ? read_values(r, word, &read) : LCOMM_OK);
  if (lcomm_span_next(&words, ",", &word)) {
    return lcomm_policy_refuse(r, "option ", word, " is one too many; expected values=CODEC once");
  }
  LCOMM_TRY(read_ending(r, ending));
  *choice = read;
  return LCOMM_OK;
}

void lcomm_policy_write_lowrank(lcomm_writer *w, const lcomm_codec_spec *choice) {
  lcomm_write(w, "lowrank:%u", choice->rank);
  if (choice->format.codec != codecs[0]) {
    lcomm_write(w, ",values=%s", choice->format.codec->name);
  }
}

bool lcomm_lowrank_gains(unsigned rank, uint64_t rows, uint64_t columns) {
  uint64_t count = rows * columns; /* of elements that there are */
  return rank > 0 && rows > 1 && columns > 1 &&
         LEAST_GAIN * (uint64_t)rank * (rows + columns) < count;
}
