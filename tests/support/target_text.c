/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_text.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fuzz_promise.h"
#include "trainer/train_text.h"

void lcomm_fuzz_text(const uint8_t *data, size_t size) {
  int file = memfd_create("text", 0);
  fuzz_require(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size),
               "the test machine has memory files");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  text_part part = {0};
  failure why;
  if (text_read_file(path, &part, &why) == 0) {
    fuzz_require(part.size > 0 && !memchr(part.bytes, 0, part.size), "text has no zero bytes");
  } else {
    fuzz_require(part.size == 0, "of a file that is refused nothing is kept");
    fuzz_require(memchr(why.text, '\0', sizeof why.text) && why.text[0] != '\0',
                 "a refusal is a sentence");
  }
  free(part.bytes);
  close(file);
}
