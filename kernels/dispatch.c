/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which table this process uses. Whether a table runs here is asked of the
 * processor and of the system in x86.c or generic.c. */

#include <string.h>

#include "kernels/kernels.h"

const lcomm_kernels *lcomm_kernels_best(void) {
  const lcomm_kernels *best = lcomm_kernels_list[0];
  for (size_t i = 1; lcomm_kernels_list[i] != NULL; i++) {
    if (lcomm_kernels_runs(lcomm_kernels_list[i])) {
      best = lcomm_kernels_list[i];
    }
  }
  return best;
}

const lcomm_kernels *lcomm_kernels_by_name(const char *name, const char **why) {
  const lcomm_kernels *found = NULL;
  const char *reason = "this build has no such kernels";
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    const lcomm_kernels *table = lcomm_kernels_list[i];
    if (strcmp(table->name, name) != 0) {
      continue;
    }
    if (lcomm_kernels_runs(table)) {
      found = table;
    } else {
      reason = "this processor or system does not support it";
    }
  }
  if (!found && why) {
    *why = reason;
  }
  return found;
}
