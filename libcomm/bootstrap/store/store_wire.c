/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store_wire.h"

#include <string.h>

#include "codecs/little_endian.h"

static const uint8_t hello_magic[LCOMM_STORE_MAGIC_SIZE] = "lcommtcp";
static const uint8_t frame_magic[4] = "lcsf";

enum {
  AT_VERSION = 8,
  AT_RANK = 12,
  AT_WORLD = 16,
  AT_ATTEMPT = 20,
  AT_HOST = 24,
  AT_PROCESS = 88,
  AT_TOKEN = 96,
  AT_PORT = AT_TOKEN + LCOMM_TOKEN_MAX
};

_Static_assert(AT_PROCESS == AT_HOST + LCOMM_HOST_MAX, "the process follows the host");
_Static_assert(AT_PORT + 8 == LCOMM_STORE_HANDSHAKE_SIZE, "the port is the end");

enum { PORT_MAX = 65535 };

/* Text of a stranger, fit for people; as much as there is room for. */
static void take_text(const uint8_t *bytes, size_t size, char *text, size_t room) {
  size_t length = 0;
  for (; length < size && length < room - 1 && bytes[length] != 0; length++) {
    text[length] = (char)(bytes[length] >= 0x20 && bytes[length] < 0x7f ? bytes[length] : '?');
  }
  text[length] = '\0';
}

/* ----------------------------------------------------------------- hello */

void lcomm_store_pack_handshake(const lcomm_store_handshake *handshake, uint8_t *bytes) {
  memset(bytes, 0, LCOMM_STORE_HANDSHAKE_SIZE);
  memcpy(bytes, hello_magic, sizeof(hello_magic));
  lcomm_le_put(bytes + AT_VERSION, LCOMM_STORE_VERSION, 4);
  lcomm_le_put(bytes + AT_RANK, handshake->rank, 4);
  lcomm_le_put(bytes + AT_WORLD, handshake->world_size, 4);
  lcomm_le_put(bytes + AT_ATTEMPT, handshake->attempt, 4);
  memcpy(bytes + AT_HOST, handshake->host, strnlen(handshake->host, LCOMM_HOST_MAX));
  memcpy(bytes + AT_TOKEN, handshake->token, LCOMM_TOKEN_MAX);
  lcomm_le_put(bytes + AT_PROCESS, handshake->process, 8);
  lcomm_le_put(bytes + AT_PORT, handshake->port, 4);
}

bool lcomm_store_begins_handshake(const uint8_t *bytes, size_t size) {
  size_t known = size < sizeof(hello_magic) ? size : sizeof(hello_magic);
  return memcmp(bytes, hello_magic, known) == 0;
}

bool lcomm_store_knows_version(const uint8_t *bytes, size_t size) {
  return size < AT_VERSION + 4 || lcomm_le_get(bytes + AT_VERSION, 4) == LCOMM_STORE_VERSION;
}

lcomm_status lcomm_store_read_handshake(const uint8_t *bytes, lcomm_store_handshake *handshake,
                                        const char **why) {
  if (!lcomm_store_begins_handshake(bytes, LCOMM_STORE_HANDSHAKE_SIZE)) {
    *why = "what was sent is not a greeting of libcomm";
    return LCOMM_ERR_WIRE;
  }
  if (!lcomm_store_knows_version(bytes, LCOMM_STORE_HANDSHAKE_SIZE)) {
    *why = LCOMM_STORE_OTHER_VERSION;
    return LCOMM_ERR_UNSUPPORTED;
  }
  memset(handshake, 0, sizeof *handshake);
  handshake->rank = (uint32_t)lcomm_le_get(bytes + AT_RANK, 4);
  handshake->world_size = (uint32_t)lcomm_le_get(bytes + AT_WORLD, 4);
  take_text(bytes + AT_HOST, LCOMM_HOST_MAX, handshake->host, sizeof(handshake->host));
  memcpy(handshake->token, bytes + AT_TOKEN, sizeof(handshake->token));
  handshake->process = lcomm_le_get(bytes + AT_PROCESS, 8);
  handshake->attempt = (uint32_t)lcomm_le_get(bytes + AT_ATTEMPT, 4);
  uint64_t port = lcomm_le_get(bytes + AT_PORT, 4);
  handshake->port = port <= PORT_MAX ? (uint32_t)port : 0;
  return LCOMM_OK;
}

bool lcomm_store_same_token(const uint8_t a[LCOMM_TOKEN_MAX], const uint8_t b[LCOMM_TOKEN_MAX]) {
  volatile uint8_t difference = 0;
  for (int i = 0; i < LCOMM_TOKEN_MAX; i++) {
    difference |= a[i] ^ b[i];
  }
  return difference == 0;
}

/* ---------------------------------------------------------------- frames */

void lcomm_store_pack_frame(lcomm_store_frame frame, uint8_t *bytes) {
  memcpy(bytes, frame_magic, sizeof(frame_magic));
  lcomm_le_put(bytes + 4, (uint64_t)frame.kind, 4);
  lcomm_le_put(bytes + 8, frame.size, 8);
}

size_t lcomm_store_pack_reason(lcomm_store_kind kind, lcomm_status status, const char *text,
                               uint8_t *bytes) {
  size_t length = strnlen(text, LCOMM_ERROR_MAX - 1), size = 4 + length;
  lcomm_store_pack_frame((lcomm_store_frame){kind, size}, bytes);
  lcomm_le_put(bytes + LCOMM_STORE_HEADER_SIZE, (uint32_t)status, 4);
  memcpy(bytes + LCOMM_STORE_HEADER_SIZE + 4, text, length);
  return LCOMM_STORE_HEADER_SIZE + size;
}

static bool fits(uint64_t kind, uint64_t size) {
  switch (kind) {
  case LCOMM_STORE_WAIT:
  case LCOMM_STORE_LINKED:
  case LCOMM_STORE_ALONE:
  case LCOMM_STORE_TREE:
  case LCOMM_STORE_STAR:
  case LCOMM_STORE_PASSED:
  case LCOMM_STORE_DONE:
  case LCOMM_STORE_WHOLE:
    return size == 0;
  case LCOMM_STORE_WELCOME:
    return size == LCOMM_STORE_PLACE_SIZE;
  case LCOMM_STORE_ENTER:
  case LCOMM_STORE_ACCUSE:
    return size == LCOMM_STORE_NOTE_SIZE;
  case LCOMM_STORE_REFUSED:
  case LCOMM_STORE_FAILED:
    return size >= 4 && size <= LCOMM_STORE_REASON_MAX;
  case LCOMM_STORE_LIST:
    return size >= 8 && size % 4 == 0 && size <= LCOMM_STORE_LIST_MAX;
  case LCOMM_STORE_DATA:
    return true;
  default:
    return false;
  }
}

lcomm_status lcomm_store_read_frame(const uint8_t *bytes, lcomm_store_frame *frame) {
  uint64_t kind = lcomm_le_get(bytes + 4, 4), size = lcomm_le_get(bytes + 8, 8);
  if (memcmp(bytes, frame_magic, sizeof(frame_magic)) != 0 || !fits(kind, size)) {
    return LCOMM_ERR_WIRE;
  }
  *frame = (lcomm_store_frame){(lcomm_store_kind)kind, size};
  return LCOMM_OK;
}

lcomm_status lcomm_store_read_reason(const uint8_t *bytes, size_t size,
                                     lcomm_store_reason *reason) {
  if (size < 4 || size > LCOMM_STORE_REASON_MAX) {
    return LCOMM_ERR_WIRE;
  }
  int32_t status = (int32_t)(uint32_t)lcomm_le_get(bytes, 4);
  bool known = status < 0 && status >= LCOMM_ERR_INTERNAL;
  reason->status = known ? (lcomm_status)status : LCOMM_ERR_REMOTE;
  take_text(bytes + 4, size - 4, reason->text, sizeof(reason->text));
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- the tree */

void lcomm_store_pack_place(const lcomm_store_place *place, uint8_t *bytes) {
  lcomm_le_put(bytes, (uint64_t)place->way, 4);
  lcomm_le_put(bytes + 4, place->port, 4);
  memcpy(bytes + 8, place->address, sizeof(place->address));
}

lcomm_status lcomm_store_read_place(const uint8_t *bytes, lcomm_store_place *place) {
  uint64_t way = lcomm_le_get(bytes, 4), port = lcomm_le_get(bytes + 4, 4);
  bool has_port = way >= LCOMM_STORE_WAY_BESIDE;
  if (way > LCOMM_STORE_WAY_IPV6 || port > PORT_MAX || has_port != (port > 0)) {
    return LCOMM_ERR_WIRE;
  }
  place->way = (lcomm_store_way)way;
  place->port = (uint16_t)port;
  memcpy(place->address, bytes + 8, sizeof(place->address));
  return LCOMM_OK;
}

void lcomm_store_pack_accusation(lcomm_store_accusation it, uint8_t *bytes) {
  lcomm_le_put(bytes, it.rank, 4);
  lcomm_le_put(bytes + 4, (uint64_t)it.charge, 4);
}

lcomm_status lcomm_store_read_accusation(const uint8_t *bytes, int size,
                                         lcomm_store_accusation *it) {
  uint64_t rank = lcomm_le_get(bytes, 4), charge = lcomm_le_get(bytes + 4, 4);
  if (rank >= (uint64_t)size || charge < LCOMM_STORE_LOST || charge > LCOMM_STORE_STRANGE) {
    return LCOMM_ERR_WIRE;
  }
  *it = (lcomm_store_accusation){(uint32_t)rank, (lcomm_store_charge)charge};
  return LCOMM_OK;
}
