/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The classes of errors that auto:CLASS may make, and their codecs. */

#include "libcomm/plan/policy.h"

static const char *const names[LCOMM_AUTO_COUNT] = {"none", "lossless", "bf16",    "int8", "int4",
                                                    "int2", "sign",     "lowrank", "topk"};

const char *lcomm_auto_class_name(lcomm_auto_class automatic) {
  return names[automatic];
}

lcomm_codec_spec lcomm_auto_candidate(int candidate) {
  static const lcomm_codec *const codecs[LCOMM_AUTO_COUNT] = {
      &lcomm_codec_none, &lcomm_codec_none, &lcomm_codec_bf16, &lcomm_codec_int8, &lcomm_codec_int4,
      &lcomm_codec_int2, &lcomm_codec_sign, &lcomm_codec_none, &lcomm_codec_topk};
  lcomm_codec_spec choice = {.format = lcomm_format_of(codecs[candidate]),
                             .error_feedback = candidate >= LCOMM_AUTO_INT4};
  choice.format.zstd = candidate == LCOMM_AUTO_LOSSLESS;
  choice.rank = candidate == LCOMM_AUTO_LOWRANK ? LCOMM_AUTO_RANK : 0;
  return choice;
}

lcomm_codec_spec lcomm_auto_spec(lcomm_auto_class automatic) {
  bool factors = automatic == LCOMM_AUTO_LOWRANK;
  lcomm_codec_spec choice = lcomm_auto_candidate(factors ? LCOMM_AUTO_SIGN : (int)automatic);
  choice.automatic = automatic;
  return choice;
}

static bool is_of_kind(const lcomm_codec_spec *choice, int candidate) {
  lcomm_codec_spec other = lcomm_auto_candidate(candidate);
  return other.format.codec == choice->format.codec && other.rank == 0;
}

lcomm_auto_class lcomm_auto_class_of(const lcomm_codec_spec *choice) {
  int candidate = LCOMM_AUTO_NONE;
  if (choice->rank > 0) {
    return LCOMM_AUTO_LOWRANK;
  }
  while (candidate < LCOMM_AUTO_COUNT && !is_of_kind(choice, candidate)) {
    candidate++;
  }
  return (lcomm_auto_class)candidate;
}

bool lcomm_policy_is_automatic(const lcomm_policy *policy) {
  bool automatic = false;
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    automatic |= lcomm_policy_net_codec(policy, i)->automatic != LCOMM_AUTO_NONE;
  }
  return automatic;
}
