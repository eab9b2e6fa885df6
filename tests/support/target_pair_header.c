/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_pair_header.h"

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/engine/pair_header.h"
#include "tests/support/fuzz_promise.h"

void lcomm_fuzz_pair_header(const uint8_t *data, size_t size) {
  uint8_t bytes[LCOMM_PAIR_HEADER_SIZE];
  lcomm_pair_header header, again = {0};
  if (!lcomm_pair_header_read(data, size, &header)) {
    return;
  }
  fuzz_require(size >= sizeof(bytes), "a header has all its bytes");
  fuzz_require(lcomm_dtype_size(header.dtype) > 0, "a data type is one");
  lcomm_format format = lcomm_pair_header_get_format(&header);
  fuzz_require(format.codec && !lcomm_format_is_sparse(&format), "a codec of pieces is dense");
  lcomm_pair_header_set_format(&again, &format, (header.flags & LCOMM_WIRE_CHECKSUM) != 0);
  fuzz_require(again.codec == header.codec && again.flags == header.flags,
               "codec and flags say a format");
  lcomm_pair_header_write(&header, bytes);
  fuzz_require(memcmp(bytes, data, sizeof(bytes)) == 0, "there is one way to write it");
  fuzz_require(lcomm_pair_header_read(bytes, sizeof(bytes), &again) &&
                   again.count == header.count && again.dtype == header.dtype &&
                   again.number == header.number && again.codec == header.codec &&
                   again.flags == header.flags,
               "what is written is read again");
}
