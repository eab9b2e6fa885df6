/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_checkpoint.h"

#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/support/fuzz_promise.h"
#include "trainer/train_checkpoint.h"

enum {
  HEAD = 8 + 8 * CHECKPOINT_WORDS + CHECKPOINT_NAME_SIZE, /* bytes before its sum */
  VALUES_MAX = 4096
};

static void put_sums_right(uint8_t *file, size_t size) {
  if (size < HEAD + 8) {
    return;
  }
  uint64_t sum = XXH3_64bits(file, HEAD);
  memcpy(file + HEAD, &sum, sizeof sum);
  if (size >= HEAD + 16) {
    sum = XXH3_64bits_withSeed(file + HEAD + 8, size - HEAD - 16, 0);
    memcpy(file + size - 8, &sum, sizeof sum);
  }
}

static void load(checkpoint_file *file, const checkpoint *head, failure *why) {
  if (head->at.values > VALUES_MAX) {
    return;
  }
  float *values = fuzz_allocate(head->at.values * sizeof(float));
  if (checkpoint_get(file, values, head->at.values, why) || checkpoint_end(file, why)) {
    fuzz_require(why->text[0] != '\0', "a refusal is a sentence");
  }
  free(values);
}

void lcomm_fuzz_checkpoint(const uint8_t *data, size_t size) {
  if (size < 1) {
    return;
  }
  uint8_t *copy = fuzz_copy(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    put_sums_right(copy, size - 1);
  }
  int memory = memfd_create("checkpoint", 0);
  fuzz_require(memory >= 0 && write(memory, copy, size - 1) == (ssize_t)(size - 1),
               "the test machine has memory files");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  checkpoint_file file;
  checkpoint head;
  failure why = {0};
  if (checkpoint_open(path, &file, &head, &why) == 0) {
    fuzz_require(memchr(head.model, '\0', sizeof head.model) != NULL, "a name ends");
    load(&file, &head, &why);
    checkpoint_close(&file);
  } else {
    fuzz_require(why.text[0] != '\0', "a refusal is a sentence");
  }
  close(memory);
  free(copy);
}
