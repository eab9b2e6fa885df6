/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_store.h"

#include "libcomm/bootstrap/elastic/reunion_wire.h"
#include "libcomm/bootstrap/store/store_wire.h"
#include "tests/support/fuzz_promise.h"

static void check_text(const char *text, size_t room) {
  size_t length = strnlen(text, room);
  fuzz_require(length < room, "a text of a peer ends");
  for (size_t i = 0; i < length; i++) {
    fuzz_require(text[i] >= 0x20 && text[i] < 0x7f, "a text of a peer is printable");
  }
}

/* ---------------------------------------------------------------- greeting */

static void read_greeting(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size);
  bool begins = lcomm_store_begins_handshake(bytes, size);
  for (size_t i = 0; begins && i < size; i++) {
    fuzz_require(lcomm_store_begins_handshake(bytes, i), "what begins well did so from the start");
  }
  free(bytes);
  if (size < LCOMM_STORE_HANDSHAKE_SIZE) {
    return;
  }
  uint8_t *whole = fuzz_copy(data, LCOMM_STORE_HANDSHAKE_SIZE), again[LCOMM_STORE_HANDSHAKE_SIZE];
  lcomm_store_handshake hello, second;
  const char *why = NULL;
  lcomm_status status = lcomm_store_read_handshake(whole, &hello, &why);
  if (status == LCOMM_OK) {
    fuzz_require(begins, "a greeting begins like one");
    check_text(hello.host, sizeof hello.host);
    lcomm_store_pack_handshake(&hello, again);
    fuzz_require(lcomm_store_read_handshake(again, &second, &why) == LCOMM_OK &&
                     memcmp(&hello, &second, sizeof hello) == 0,
                 "a greeting survives its bytes");
    fuzz_require(lcomm_store_same_token(hello.token, second.token), "a token is like itself");
    second.token[whole[0] % LCOMM_TOKEN_MAX] ^= (uint8_t)(whole[8] | 1);
    fuzz_require(!lcomm_store_same_token(hello.token, second.token), "another token is another");
  } else {
    fuzz_require(status == LCOMM_ERR_WIRE || status == LCOMM_ERR_UNSUPPORTED,
                 "a refusal has a status");
    fuzz_require(why && why[0] != '\0', "a refusal has a reason");
  }
  free(whole);
}

/* ------------------------------------------------------------------ frames */

static void read_reason(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size);
  uint8_t packed[LCOMM_STORE_HEADER_SIZE + LCOMM_STORE_REASON_MAX];
  lcomm_store_reason reason, second;
  lcomm_store_frame frame;
  if (lcomm_store_read_reason(bytes, size, &reason) == LCOMM_OK) {
    check_text(reason.text, sizeof reason.text);
    fuzz_require(reason.status < 0 && reason.status >= LCOMM_ERR_INTERNAL, "a reason is an error");
    size_t length = lcomm_store_pack_reason(LCOMM_STORE_FAILED, reason.status, reason.text, packed);
    fuzz_require(length <= sizeof packed, "a reason fits");
    fuzz_require(lcomm_store_read_frame(packed, &frame) == LCOMM_OK &&
                     frame.size == length - LCOMM_STORE_HEADER_SIZE,
                 "a reason has its header");
    fuzz_require(lcomm_store_read_reason(packed + LCOMM_STORE_HEADER_SIZE, (size_t)frame.size,
                                         &second) == LCOMM_OK &&
                     second.status == reason.status && strcmp(second.text, reason.text) == 0,
                 "a reason survives its bytes");
  } else {
    fuzz_require(size < 4 || size > LCOMM_STORE_REASON_MAX, "a reason of a good size is read");
  }
  free(bytes);
}

/* One frame after the other, as a stream is read. */
static void read_frames(const uint8_t *data, size_t size) {
  uint8_t packed[LCOMM_STORE_HEADER_SIZE];
  lcomm_store_frame frame;
  while (size >= LCOMM_STORE_HEADER_SIZE) {
    uint8_t *header = fuzz_copy(data, LCOMM_STORE_HEADER_SIZE);
    lcomm_status status = lcomm_store_read_frame(header, &frame);
    if (status == LCOMM_OK) {
      lcomm_store_pack_frame(frame, packed);
      fuzz_require(memcmp(packed, header, sizeof packed) == 0, "a header packs to its bytes");
    }
    free(header);
    if (status != LCOMM_OK) {
      fuzz_require(status == LCOMM_ERR_WIRE, "a refused header has a status");
      return;
    }
    data += LCOMM_STORE_HEADER_SIZE;
    size -= LCOMM_STORE_HEADER_SIZE;
    size_t body = frame.size < size ? (size_t)frame.size : size;
    if (frame.kind == LCOMM_STORE_FAILED || frame.kind == LCOMM_STORE_REFUSED) {
      fuzz_require(frame.size <= LCOMM_STORE_REASON_MAX, "a reason is short");
      read_reason(data, body);
    }
    data += body;
    size -= body;
  }
}

static void read_notes(const uint8_t *data, size_t size) {
  uint8_t packed[LCOMM_STORE_PLACE_SIZE];
  lcomm_store_place place;
  lcomm_store_accusation it;
  if (size >= LCOMM_STORE_PLACE_SIZE) {
    uint8_t *bytes = fuzz_copy(data, LCOMM_STORE_PLACE_SIZE);
    if (lcomm_store_read_place(bytes, &place) == LCOMM_OK) {
      lcomm_store_pack_place(&place, packed);
      fuzz_require(memcmp(packed, bytes, sizeof packed) == 0, "a place packs to its bytes");
      fuzz_require((place.port > 0) == (place.way >= LCOMM_STORE_WAY_BESIDE),
                   "who is connected to has a port");
    }
    free(bytes);
  }
  if (size >= LCOMM_STORE_NOTE_SIZE) {
    uint8_t *bytes = fuzz_copy(data, LCOMM_STORE_NOTE_SIZE);
    if (lcomm_store_read_accusation(bytes, 1000, &it) == LCOMM_OK) {
      lcomm_store_pack_accusation(it, packed);
      fuzz_require(memcmp(packed, bytes, LCOMM_STORE_NOTE_SIZE) == 0 && it.rank < 1000,
                   "an accusation packs to its bytes and names a rank");
    }
    free(bytes);
  }
}

/* ------------------------------------------------------ a meeting of survivors */

static void read_list(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size), *packed = fuzz_allocate(size + 1);
  lcomm_reunion_list list = {.seats = NULL};
  if (lcomm_reunion_read_list(bytes, size, &list) == LCOMM_OK) {
    int all = list.survivors + list.dead;
    fuzz_require(list.survivors > 0 && all <= list.world && all <= list.room, "somebody survives");
    fuzz_require(list.rank < list.survivors + list.newcomers &&
                     list.world + list.newcomers <= LCOMM_REUNION_SEATS_MAX,
                 "the reader is in the list");
    for (int i = 0; i < all; i++) {
      fuzz_require(list.seats[i] >= 0 && list.seats[i] < list.world, "a seat is one that there is");
      for (int j = 0; j < i; j++) {
        fuzz_require(list.seats[i] != list.seats[j], "nobody is twice in a list");
      }
    }
    lcomm_reunion_pack_list(&list, packed);
    fuzz_require(lcomm_reunion_list_size(&list) == size && memcmp(packed, bytes, size) == 0,
                 "a list packs to its bytes");
  }
  free(list.seats);
  free(packed);
  free(bytes);
}

static void read_introduction(const uint8_t *data) {
  uint8_t *bytes = fuzz_copy(data, LCOMM_REUNION_INTRODUCTION_SIZE);
  uint8_t *packed = fuzz_allocate(LCOMM_REUNION_INTRODUCTION_SIZE);
  lcomm_reunion_introduction *it = fuzz_allocate(sizeof *it);
  if (lcomm_reunion_read_introduction(bytes, it) == LCOMM_OK) {
    fuzz_require(it->timeout_s > 0 && it->left <= it->ranks_before, "an introduction makes sense");
    fuzz_require(strnlen(it->policy, sizeof it->policy) < sizeof it->policy &&
                     strnlen(it->name, sizeof it->name) < sizeof it->name &&
                     strnlen(it->transport, sizeof it->transport) < sizeof it->transport,
                 "texts of a peer end");
    lcomm_reunion_pack_introduction(it, packed);
    fuzz_require(memcmp(packed + LCOMM_REUNION_ADDRESS_SIZE, bytes + LCOMM_REUNION_ADDRESS_SIZE,
                        LCOMM_REUNION_INTRODUCTION_SIZE - LCOMM_REUNION_ADDRESS_SIZE) == 0,
                 "an introduction packs to its bytes");
  }
  free(it);
  free(packed);
  free(bytes);
}

static void read_standing(const uint8_t *data) {
  uint8_t *bytes = fuzz_copy(data, LCOMM_REUNION_STANDING_SIZE);
  uint8_t packed[LCOMM_REUNION_STANDING_SIZE];
  lcomm_standing standing;
  if (lcomm_reunion_read_standing(bytes, &standing) == LCOMM_OK) {
    fuzz_require(standing.remembered.kept <= standing.remembered.all,
                 "a rank keeps no more than all keep");
    lcomm_reunion_pack_standing(&standing, packed);
    fuzz_require(memcmp(packed, bytes, sizeof packed) == 0, "a standing packs to its bytes");
  }
  free(bytes);
}

static void read_calls(const uint8_t *data, size_t size) {
  size_t count = size / LCOMM_REUNION_CALLS_SIZE, length = count * LCOMM_REUNION_CALLS_SIZE;
  uint8_t *bytes = fuzz_copy(data, length), *packed = calloc(1, length + 1);
  lcomm_call_standing *all = calloc(count + 1, sizeof *all);
  if (lcomm_reunion_read_calls(bytes, count, all) == LCOMM_OK) {
    for (size_t i = 1; i < count; i++) {
      fuzz_require(all[i].number == 0 || all[i].number > all[i - 1].number, "numbers ascend");
    }
    lcomm_reunion_pack_calls(all, count, packed);
    fuzz_require(memcmp(packed, bytes, length) == 0, "calls pack to their bytes");
  }
  free(all);
  free(packed);
  free(bytes);
}

static void read_reunion(const uint8_t *data, size_t size) {
  uint8_t packed[LCOMM_REUNION_ADDRESS_SIZE + LCOMM_REUNION_VOTE_SIZE];
  lcomm_reunion_address address;
  lcomm_reunion_vote vote;
  read_list(data, size);
  read_calls(data, size);
  if (size >= LCOMM_REUNION_INTRODUCTION_SIZE) {
    read_introduction(data);
  }
  if (size >= LCOMM_REUNION_STANDING_SIZE) {
    read_standing(data);
  }
  if (size >= LCOMM_REUNION_ADDRESS_SIZE) {
    uint8_t *bytes = fuzz_copy(data, LCOMM_REUNION_ADDRESS_SIZE);
    if (lcomm_reunion_read_address(bytes, &address) == LCOMM_OK) {
      fuzz_require((address.family != 0) == (address.place.port > 0), "who listens has a port");
      lcomm_reunion_pack_address(&address, packed);
      fuzz_require(memcmp(packed, bytes, LCOMM_REUNION_ADDRESS_SIZE - 4) == 0,
                   "an address packs to its bytes");
    }
    free(bytes);
  }
  if (size >= LCOMM_REUNION_VOTE_SIZE) {
    uint8_t *bytes = fuzz_copy(data, LCOMM_REUNION_VOTE_SIZE);
    if (lcomm_reunion_read_vote(bytes, &vote) == LCOMM_OK) {
      lcomm_reunion_pack_vote(&vote, packed);
      fuzz_require(memcmp(packed, bytes, LCOMM_REUNION_VOTE_SIZE) == 0,
                   "a vote packs to its bytes");
    }
    free(bytes);
  }
}

void lcomm_fuzz_store(const uint8_t *data, size_t size) {
  read_reunion(data, size);
  read_notes(data, size);
  read_greeting(data, size);
  read_frames(data, size);
  read_reason(data, size);
}
