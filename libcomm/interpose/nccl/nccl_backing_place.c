/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The last bytes of an ncclUniqueId, which NCCL leaves zero: its own part is an address and a
 * number of some 40 bytes.
 *
 *   88 "lcm1"   92 port u16, little-endian   94 zeros   96 token   112 IPv6 address, or of IPv4 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_backing.h"

enum { BEGIN = 88, PORT_AT = 92, ZEROS_AT = 94, TOKEN_AT = 96, ADDRESS_AT = 112, TOKEN_BYTES = 16 };
static const char magic[4] = {'l', 'c', 'm', '1'};

/* Of IPv4 addresses as parts of IPv6's. */
static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

_Static_assert(ADDRESS_AT + 16 == sizeof(ncclUniqueId), "an id holds a place");
_Static_assert(2 * TOKEN_BYTES + 1 == LCOMM_NCCL_TOKEN_MAX, "a token is so many hex digits");

static bool is_free(const ncclUniqueId *id) {
  for (size_t i = BEGIN; i < sizeof(id->internal); i++) {
    if (id->internal[i]) {
      return false;
    }
  }
  return true;
}

static bool write_address(const char *text, unsigned char *bytes) {
  memcpy(bytes, mapped, sizeof(mapped));
  return inet_pton(AF_INET, text, bytes + sizeof(mapped)) == 1 ||
         inet_pton(AF_INET6, text, bytes) == 1;
}

static bool read_address(const unsigned char *bytes, char *text) {
  bool is_ipv4 = memcmp(bytes, mapped, sizeof(mapped)) == 0;
  return inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? bytes + sizeof(mapped) : bytes, text,
                   LCOMM_NCCL_ADDRESS_MAX) != NULL;
}

void lcomm_nccl_place_add(ncclUniqueId *id) {
  lcomm_nccl_place place;
  unsigned char *bytes = (unsigned char *)id->internal;
  if (!is_free(id) || lcomm_nccl_place_guess(&place) != ncclSuccess) {
    (void)lcomm_nccl_last_failure(); /* the call itself has not failed */
    return;
  }
  unsigned token[TOKEN_BYTES];
  for (size_t i = 0; i < TOKEN_BYTES; i++) {
    if (sscanf(place.token + 2 * i, "%2x", &token[i]) != 1) {
      return;
    }
  }
  if (!write_address(place.address, bytes + ADDRESS_AT)) {
    memset(bytes + ADDRESS_AT, 0, sizeof *id - ADDRESS_AT);
    return;
  }
  memcpy(bytes + BEGIN, magic, sizeof(magic));
  bytes[PORT_AT] = (unsigned char)(place.port & 0xff);
  bytes[PORT_AT + 1] = (unsigned char)(place.port >> 8);
  for (size_t i = 0; i < TOKEN_BYTES; i++) {
    bytes[TOKEN_AT + i] = (unsigned char)token[i];
  }
}

bool lcomm_nccl_place_take(ncclUniqueId *id, lcomm_nccl_place *place) {
  unsigned char *bytes = (unsigned char *)id->internal;
  if (memcmp(bytes + BEGIN, magic, sizeof(magic)) != 0 || bytes[ZEROS_AT] || bytes[ZEROS_AT + 1]) {
    return false;
  }
  memset(place, 0, sizeof *place);
  place->port = (uint16_t)(bytes[PORT_AT] | bytes[PORT_AT + 1] << 8);
  for (size_t i = 0; i < TOKEN_BYTES; i++) {
    snprintf(place->token + 2 * i, 3, "%02x", bytes[TOKEN_AT + i]);
  }
  if (place->port == 0 || !read_address(bytes + ADDRESS_AT, place->address)) {
    return false;
  }
  memset(bytes + BEGIN, 0, sizeof *id - BEGIN);
  return true;
}

/* ---------------------------------------------------- places of a communicator */

lcomm_status lcomm_nccl_places_tell(lcomm_comm *comm, lcomm_nccl_places *places) {
  lcomm_nccl_place place;
  ncclUniqueId mine = {{0}}; /* no place */
  int ranks = lcomm_size(comm), listener = -1;
  ncclUniqueId *all = calloc((size_t)ranks, sizeof *all);
  if (!all) {
    lcomm_abort(comm, "a rank has no memory to make a communicator");
    return LCOMM_ERR_MEMORY;
  }
  if (lcomm_nccl_place_find(&place, &listener) == ncclSuccess) {
    lcomm_nccl_id_write(&place, &mine);
  } else {
    (void)lcomm_nccl_last_failure(); /* it matters where ranks are lost only */
  }
  *places = (lcomm_nccl_places){.at = all, .count = ranks, .socket = listener > 0 ? listener : 0};
  return lcomm_allgather(comm, &mine, all, sizeof mine, LCOMM_UINT8);
}

void lcomm_nccl_places_free(lcomm_nccl_places *places) {
  if (places->socket > 0) {
    close(places->socket);
  }
  free(places->at);
}
