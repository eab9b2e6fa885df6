/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_pair_header.h"

#include <string.h>

#include "libcomm/engine/pair_header.h"
#include "tests/support/fuzz_promise.h"

void lcomm_fuzz_pair_header(const uint8_t *data, size_t size) {
  uint8_t bytes[LCOMM_PAIR_HEADER_SIZE];
  lcomm_pair_header header, again;
  if (!lcomm_pair_header_read(data, size, &header)) {
    return;
  }
  fuzz_require(size >= sizeof(bytes), "a header has all its bytes");
  fuzz_require(lcomm_dtype_size(header.dtype) > 0, "a data type is one");
  lcomm_pair_header_write(&header, bytes);
  fuzz_require(memcmp(bytes, data, sizeof(bytes)) == 0, "there is one way to write it");
  fuzz_require(lcomm_pair_header_read(bytes, sizeof(bytes), &again) &&
                   again.count == header.count && again.dtype == header.dtype &&
                   again.number == header.number,
               "what is written is read again");
}
