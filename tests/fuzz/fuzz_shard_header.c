/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lcomm_fuzz_shard_header(data, size);
  return 0;
}
