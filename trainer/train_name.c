/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_name.h"

#include <string.h>

int name_find(const char *const *names, int count, const char *name) {
  int found = 0;
  while (found < count && strcmp(names[found], name) != 0) {
    found++;
  }
  return found;
}
