/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/purpose.h"

#include <stdio.h>

const char *lcomm_purpose_text(lcomm_purpose purpose, uint64_t residual,
                               char text[LCOMM_PURPOSE_TEXT_MAX]) {
  unsigned long long number = residual;
  text[0] = '\0';
  if (purpose == LCOMM_PURPOSE_LASTING) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " with residual %llu", number);
  } else if (purpose == LCOMM_PURPOSE_FLUSH) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " that flushes residual %llu", number);
  } else if (purpose == LCOMM_PURPOSE_BUCKET) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " of a bucket");
  }
  return text;
}
