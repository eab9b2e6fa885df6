/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Patterns of names in a policy. */

#include "libcomm/plan/policy_internal.h"

lcomm_status lcomm_policy_read_glob(lcomm_policy_reader *r, lcomm_span text, const char *shape,
                                    char *glob) {
  char quoted[LCOMM_QUOTE_MAX];
  if (text.length == 0) {
    return lcomm_policy_fail(r, text.text, "empty pattern; expected %s without empty parts", shape);
  }
  if (text.length >= LCOMM_POLICY_GLOB_MAX) {
    return lcomm_policy_fail(r, text.text, "pattern %s has %zu bytes; expected at most %d",
                             lcomm_policy_quote(text, quoted), text.length,
                             LCOMM_POLICY_GLOB_MAX - 1);
  }
  for (size_t i = 0; i < text.length; i++) {
    unsigned char byte = (unsigned char)text.text[i];
    if (byte < 0x20 || byte == 0x7f) {
      return lcomm_policy_fail(r, text.text + i,
                               "control character in pattern %s; expected printable bytes",
                               lcomm_policy_quote(text, quoted));
    }
  }
  memset(glob, 0, LCOMM_POLICY_GLOB_MAX);
  memcpy(glob, text.text, text.length);
  return LCOMM_OK;
}

/* Only the last star needs to be tried again: an earlier one could match no
 * text that the last one cannot reach, so the work is pattern times name. */
bool lcomm_policy_glob_matches(const char *glob, const char *name) {
  const char *star = NULL, *star_name = NULL;
  while (*name != '\0') {
    if (*glob == '*') {
      star = ++glob;
      star_name = name;
    } else if (*glob == '?' || *glob == *name) {
      glob++;
      name++;
    } else if (star) {
      glob = star;
      name = ++star_name;
    } else {
      return false;
    }
  }
  while (*glob == '*') {
    glob++;
  }
  return *glob == '\0';
}

bool lcomm_policy_exempts(const lcomm_policy *policy, const char *name) {
  for (unsigned i = 0; i < policy->exempt_count; i++) {
    if (lcomm_policy_glob_matches(policy->exempt[i], name)) {
      return true;
    }
  }
  return false;
}
