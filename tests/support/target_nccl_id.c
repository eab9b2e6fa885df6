/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_nccl_id.h"

#include <string.h>

#include "libcomm/interpose/nccl/nccl_backing.h"
#include "tests/support/fuzz_bytes.h"
#include "tests/support/fuzz_promise.h"

/* A place in an id of another NCCL is taken out whole, or not at all. */
static void take_place(ncclUniqueId id) {
  const ncclUniqueId before = id;
  lcomm_nccl_place place;
  bool taken = lcomm_nccl_place_take(&id, &place);
  bool same = memcmp(&before, &id, sizeof(id)) == 0;
  fuzz_require(taken != same, "an id is changed where there is a place");
  if (taken) {
    fuzz_require(place.port > 0 && strlen(place.token) == LCOMM_NCCL_TOKEN_MAX - 1,
                 "a place has a port and a token");
    fuzz_require(strnlen(place.address, sizeof(place.address)) < sizeof(place.address),
                 "an address is a text");
    fuzz_require(!lcomm_nccl_place_take(&id, &place), "it is gone then");
  }
}

void lcomm_fuzz_nccl_id(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  ncclUniqueId id, again;
  lcomm_nccl_place place, copy;
  fuzz_take(&in, &id, sizeof(id));
  take_place(id);
  if (!lcomm_nccl_id_read(&id, &place)) {
    return;
  }
  size_t length = strnlen(place.address, sizeof(place.address));
  fuzz_require(length > 0 && length < sizeof(place.address), "an address is a text");
  fuzz_require(strnlen(place.token, sizeof(place.token)) < sizeof(place.token),
               "a token is a text");
  fuzz_require(place.port > 0, "a port is one");
  for (size_t i = 0; i < length; i++) {
    fuzz_require(place.address[i] > ' ' && place.address[i] < 127, "an address can be shown");
  }
  lcomm_nccl_id_write(&place, &again);
  fuzz_require(lcomm_nccl_id_read(&again, &copy) && strcmp(copy.address, place.address) == 0 &&
                   strcmp(copy.token, place.token) == 0 && copy.port == place.port,
               "what is written is read again");
}
