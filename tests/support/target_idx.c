/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_idx.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fuzz_promise.h"
#include "trainer/train_data.h"

void lcomm_fuzz_idx(const uint8_t *data, size_t size) {
  if (size < 1) {
    return;
  }
  int file = memfd_create("idx", 0);
  fuzz_require(file >= 0 && write(file, data + 1, size - 1) == (ssize_t)(size - 1),
               "the test machine has memory files");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  idx_array array;
  failure why;
  if (idx_read(path, data[0] % 2 == 0 ? 1 : 3, &array, &why) == 0) {
    idx_free(&array);
  } else {
    fuzz_require(memchr(why.text, '\0', sizeof why.text) && why.text[0] != '\0',
                 "a refusal is a sentence");
  }
  close(file);
}
