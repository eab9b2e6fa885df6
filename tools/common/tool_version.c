/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/common/tool_version.h"

#include <stdio.h>

#include "libcomm/include/libcomm.h"

void tool_print_version(const char *program) {
  printf("%s (libcomm) %d.%d.%d\n", program, LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
         LCOMM_VERSION_PATCH);
}
