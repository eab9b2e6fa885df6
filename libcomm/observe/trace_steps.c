/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <string.h>

#include "libcomm/observe/trace.h"
#include "libcomm/plan/number.h"

/* A number at *text, which moves behind it. */
static bool read_step(const char **text, uint64_t *step) {
  bool overflow = false;
  size_t digits = lcomm_read_integer(*text, strlen(*text), step, &overflow);
  *text += digits;
  return digits > 0 && !overflow;
}

lcomm_status lcomm_trace_steps_parse(const char *text, lcomm_trace_steps *steps, lcomm_why *why) {
  const char *at = text;
  *steps = (lcomm_trace_steps){0, UINT64_MAX};
  if (!text) {
    return LCOMM_OK;
  }
  bool good = read_step(&at, &steps->first);
  if (good && *at == '\0') {
    steps->last = steps->first;
  } else if (good && strcmp(at, "-") != 0) {
    good = *at++ == '-' && read_step(&at, &steps->last) && *at == '\0';
  }
  if (good && steps->first <= steps->last) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "LCOMM_TRACE_STEPS=%.40s is not a step or a range of steps, counted from 0; for "
      "example 100-120, 7 or 1000-",
      text);
}
