/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which codecs pipe= of a policy may name. */

#include "libcomm/plan/policy_internal.h"

/* A message is what one rank has computed for another: no sum averages its errors, and what it
 * leaves out comes too late with the next one, which is of other values. */
static const struct {
  const char *name, *why;
} refused[] = {
    {"topk", "what it leaves out would arrive as 0"},
    {"sign", "one bit of a value is too little without a sum that makes up for it"},
    {"int2", "two bits of a value are too little without a sum that makes up for it"},
    {"lowrank", "it is for tensors that are matrices"},
    {"auto", "it chooses by the time of sums"},
};

static lcomm_status refuse(lcomm_policy_reader *r, lcomm_span value, const char *name,
                           const char *why) {
  return lcomm_policy_fail(r, value.text,
                           "%s cannot be used between two ranks: %s; expected none, fp16, bf16, "
                           "fp8e4m3, fp8e5m2, int8 or int4",
                           name, why);
}

bool lcomm_policy_pipe_takes(const char *name) {
  bool takes = true;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    takes &= strcmp(name, refused[i].name) != 0;
  }
  return takes;
}

lcomm_status lcomm_policy_check_pipe(lcomm_policy_reader *r, lcomm_span value, lcomm_span name) {
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (lcomm_span_is(name, refused[i].name)) {
      return refuse(r, value, refused[i].name, refused[i].why);
    }
  }
  return LCOMM_OK;
}
