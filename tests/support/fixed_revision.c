/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The commit that tests name: always one, so that they are not linked anew after every commit. */

#include "tools/common/tool_origin.h"

const char *build_revision(void) {
  return "revision-of-tests";
}
