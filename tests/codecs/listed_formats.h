/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_LISTED_FORMATS_H
#define LCOMM_TESTS_CODECS_LISTED_FORMATS_H

/* The dense formats, for programs whose tests all run over them: the set-up of the group lists
 * them. Included by one program each. */

#include "tests/codecs/formats.h"

static lcomm_format formats[FORMATS_MAX];
static size_t format_count;

static int list_formats(void **state) {
  (void)state;
  format_count = dense_formats(formats);
  return 0;
}

#endif
