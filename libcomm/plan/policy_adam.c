/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The word adam= of a policy: onebit[,beta1=BETA][,refresh=STEPS]. */

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

static const lcomm_adam_policy standard = {.onebit = true, .beta1 = 0.9};

static lcomm_status read_beta1(lcomm_policy_reader *r, lcomm_span piece, double *beta1) {
  lcomm_span text = lcomm_span_after(piece, strlen("beta1="));
  size_t length = lcomm_read_decimal(text.text, text.length, beta1);
  if (length > 0 && length == text.length && *beta1 > 0 && *beta1 < 1) {
    return LCOMM_OK;
  }
  return lcomm_policy_refuse(r, "", piece,
                             " names no momentum; expected a decimal number with 0 < BETA < 1");
}

static lcomm_status read_refresh(lcomm_policy_reader *r, lcomm_span piece, uint64_t *steps) {
  if (lcomm_policy_read_whole(lcomm_span_after(piece, strlen("refresh=")), UINT64_MAX, steps) &&
      *steps > 0) {
    return LCOMM_OK;
  }
  return lcomm_policy_refuse(r, "", piece,
                             " names no number of steps; expected digits, from 1 to below 2^64");
}

static lcomm_status read_option(lcomm_policy_reader *r, lcomm_span piece, lcomm_adam_policy *adam) {
  if (lcomm_span_begins(piece, "beta1=")) {
    return read_beta1(r, piece, &adam->beta1);
  }
  if (lcomm_span_begins(piece, "refresh=")) {
    return read_refresh(r, piece, &adam->refresh);
  }
  return lcomm_policy_refuse(r, "unknown option ", piece, "; expected beta1=BETA or refresh=STEPS");
}

lcomm_status lcomm_policy_read_adam(lcomm_policy_reader *r, lcomm_span value,
                                    lcomm_adam_policy *adam) {
  lcomm_span piece = lcomm_span_before(value, ",");
  *adam = standard;
  if (!lcomm_span_is(piece, "onebit")) {
    return lcomm_policy_refuse(r, "unknown mode ", piece,
                               "; expected onebit[,beta1=BETA][,refresh=STEPS]");
  }
  lcomm_status status = LCOMM_OK;
  while (status == LCOMM_OK && piece.length < value.length) {
    value = lcomm_span_after(value, piece.length + 1);
    piece = lcomm_span_before(value, ",");
    status = read_option(r, piece, adam);
  }
  return status;
}

void lcomm_policy_write_adam(lcomm_writer *w, const lcomm_adam_policy *adam) {
  char text[LCOMM_DECIMAL_TEXT_MAX];
  if (!adam->onebit) {
    return;
  }
  lcomm_write(w, " adam=onebit");
  if (adam->beta1 < standard.beta1 || adam->beta1 > standard.beta1) {
    lcomm_format_decimal(adam->beta1, text, sizeof text);
    lcomm_write(w, ",beta1=%s", text);
  }
  if (adam->refresh > 0) {
    lcomm_write(w, ",refresh=%llu", (unsigned long long)adam->refresh);
  }
}

const char *lcomm_policy_adam_conflict(const lcomm_policy *policy) {
  bool other = false, feedback = false;
  if (!policy->adam.onebit) {
    return NULL;
  }
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    const lcomm_codec_spec *net = lcomm_policy_net_codec(policy, i);
    other |= lcomm_format_is_sparse(&net->format) || net->rank > 0 ||
             net->automatic == LCOMM_AUTO_LOWRANK;
    feedback |= net->error_feedback;
  }
  if (other || !feedback) {
    return "momentum travels by a dense codec that makes up for its errors; expected a codec of "
           "net with +ef, and no topk or lowrank";
  }
  if (policy->warmup_steps == 0) {
    return "the optimiser learns its variance from exact gradients first; expected warmup=STEPS "
           "with STEPS > 0";
  }
  return NULL;
}
