/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_shard_header.h"

#include <string.h>

#include "libcomm/shards/quorum.h"
#include "libcomm/shards/shard_header.h"
#include "tests/support/fuzz_promise.h"

void lcomm_fuzz_shard_header(const uint8_t *data, size_t size) {
  uint8_t bytes[LCOMM_SHARD_HEADER_FIXED + 32];
  lcomm_shard_header header;
  int ranks = size > 0 && data[0] > 0 ? data[0] : 1;
  if (size == 0 || !lcomm_shard_header_read(data + 1, size - 1, ranks, &header)) {
    return;
  }
  fuzz_require(size - 1 == lcomm_shard_header_size(ranks), "a header has all its bytes");
  bool is_result = header.kind == LCOMM_SHARD_RESULT;
  bool has_payload = is_result || header.kind == LCOMM_SHARD_CONTRIBUTION;
  fuzz_require(has_payload || header.kind == LCOMM_SHARD_NOTICE ||
                   header.kind == LCOMM_SHARD_REQUEST,
               "a kind is one");
  fuzz_require(has_payload == (header.size > 0), "a payload has bytes");
  fuzz_require(header.owner < (uint32_t)ranks, "an owner is a rank");
  fuzz_require((header.used == 0) == (header.kind == LCOMM_SHARD_REQUEST) &&
                   header.used <= (uint32_t)ranks,
               "only a request is of no ranks");
  fuzz_require(!is_result || header.closed > header.round, "a result is of a closed round");
  fuzz_require(header.used == (uint32_t)lcomm_quorum_mask_count(header.mask, ranks),
               "as many are meant as the set has");
  lcomm_shard_header_write(&header, ranks, bytes);
  fuzz_require(memcmp(bytes, data + 1, size - 1) == 0, "there is one way to write it");
}
