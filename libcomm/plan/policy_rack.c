/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which codecs rack= of a policy may name. */

#include "libcomm/plan/policy_internal.h"

/* Inside a rack bytes move faster than between racks, so coarser codecs would save nothing that
 * counts. */
static const char *const taken[] = {"none", "fp16", "bf16", "fp8e4m3", "fp8e5m2", "int8"};

bool lcomm_policy_rack_takes(lcomm_span name) {
  return lcomm_policy_find_name(name, taken, sizeof taken / sizeof taken[0]) >= 0;
}

lcomm_status lcomm_policy_check_rack(lcomm_policy_reader *r, lcomm_span value, lcomm_span name) {
  char quoted[LCOMM_QUOTE_MAX];
  bool known = lcomm_codec_by_name(name.text, name.length) || lcomm_span_is(name, "auto") ||
               lcomm_span_is(name, "lowrank");
  if (!known || lcomm_policy_rack_takes(name)) {
    return LCOMM_OK;
  }
  return lcomm_policy_fail(r, value.text,
                           "%s cannot be used inside a rack, whose links are faster than those of "
                           "net; expected none, fp16, bf16, fp8e4m3, fp8e5m2 or int8",
                           lcomm_policy_quote(name, quoted));
}

lcomm_status lcomm_policy_fail_in_rack(lcomm_policy_reader *r, lcomm_span value) {
  return lcomm_policy_fail(r, value.text,
                           "rack has the error feedback that net has: what is rounded off inside a "
                           "rack is kept where the codec of net has +ef; expected no +ef here");
}
