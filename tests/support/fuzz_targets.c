/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_targets.h"

#include "codecs/wire.h"
#include "libcomm/topo/topo.h"
#include "tests/support/fuzz_promise.h"

static char *text_of(const uint8_t *data, size_t size) {
  char *text = fuzz_allocate(size + 1);
  if (size > 0)
    memcpy(text, data, size);
  return text;
}

static bool is_printable(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text < 0x20 || *text >= 0x7f)
      return false;
  }
  return true;
}

/* --------------------------------------------------------------- topology */

static char *print_topo(const lcomm_topo *topo) {
  size_t size = lcomm_topo_print(topo, NULL, 0) + 1;
  char *text = fuzz_allocate(size);
  fuzz_require(lcomm_topo_print(topo, text, size) == size - 1, "print knows its length");
  fuzz_require(strlen(text) == size - 1, "print fills its length");
  return text;
}

static void check_topo(const lcomm_topo *topo) {
  char error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo loaded;
  char *text = print_topo(topo);
  fuzz_require(lcomm_topo_load(text, &loaded, error) == LCOMM_OK, "printed topologies load");
  char *again = print_topo(&loaded);
  fuzz_require(strcmp(text, again) == 0, "printed topologies print the same again");
  fuzz_require(topo->size == loaded.size && topo->nodes == loaded.nodes,
               "sizes survive their text");
  for (int rank = 0; rank < topo->size; rank++)
    fuzz_require(topo->node[rank] == loaded.node[rank] &&
                     memcmp(topo->host[rank], loaded.host[rank], LCOMM_HOST_MAX) == 0,
                 "the place of every rank survives its text");
  for (int node = 0; node < topo->nodes; node++) {
    lcomm_group group = lcomm_topo_node_group(topo, node, lcomm_topo_rank(topo, node, 0));
    fuzz_require(group.size > 0 && group.me == 0, "every node has a first rank");
    fuzz_require(lcomm_topo_link(topo, group.ranks[0], group.ranks[group.size - 1]) !=
                     LCOMM_LINK_NET,
                 "no network inside a node");
  }
  free(text);
  free(again);
  lcomm_topo_free(&loaded);
}

static void load_text(const uint8_t *data, size_t size) {
  char *text = text_of(data, size), error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo topo;
  if (lcomm_topo_load(text, &topo, error) == LCOMM_OK) {
    check_topo(&topo);
  } else {
    fuzz_require(strncmp(error, "topology, line ", 15) == 0, "a topology error names its line");
    fuzz_require(is_printable(error), "a topology error is printable");
  }
  lcomm_topo_free(&topo);
  free(text);
}

/* Byte 0: ranks, byte 1: forced nodes, then what peers say of themselves. */
static void create_from_peers(const uint8_t *data, size_t size) {
  enum { RANKS = 32 };
  lcomm_identity identities[RANKS];
  char error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo topo;
  if (size < 2)
    return;
  int ranks = data[0] % (RANKS + 1), forced_nodes = (int8_t)data[1] / 4;
  memset(identities, 0, sizeof identities);
  size_t said = size - 2 < sizeof identities ? size - 2 : sizeof identities;
  memcpy(identities, data + 2, said);
  for (int rank = 0; rank < ranks; rank++)
    identities[rank].host_hash %= 8; /* so that hosts repeat */
  if (lcomm_topo_create(identities, ranks, forced_nodes, &topo, error) == LCOMM_OK)
    check_topo(&topo);
  else
    fuzz_require(is_printable(error) && error[0] != '\0', "a topology error is a sentence");
  lcomm_topo_free(&topo);
}

void lcomm_fuzz_topo(const uint8_t *data, size_t size) {
  load_text(data, size);
  create_from_peers(data, size);
}

/* ------------------------------------------------------------ wire header */

void lcomm_fuzz_wire(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size), packed[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_header header;
  const char *why = NULL;
  lcomm_status status = lcomm_wire_unpack(bytes, size, &header, &why);
  fuzz_require(lcomm_wire_unpack(bytes, size, &header, NULL) == status, "why may be NULL");
  if (status == LCOMM_OK) {
    lcomm_wire_pack(&header, packed);
    fuzz_require(memcmp(packed, bytes, sizeof packed) == 0,
                 "an accepted header packs to its bytes");
    fuzz_require(header.version == LCOMM_WIRE_VERSION, "an accepted header has a known version");
    fuzz_require(lcomm_codec_by_id(header.codec) != NULL, "an accepted header has a codec");
    lcomm_format format = lcomm_wire_get_format(&header);
    lcomm_wire_header again = {.flags = header.flags};
    lcomm_wire_set_format(&again, &format);
    fuzz_require(again.codec == header.codec && again.flags == header.flags,
                 "a format survives its header");
    fuzz_require(lcomm_dtype_size((lcomm_dtype)header.dtype) > 0, "an accepted header has a dtype");
    lcomm_wire_checksum(bytes + sizeof packed, size - sizeof packed);
  } else {
    fuzz_require(status == LCOMM_ERR_WIRE && why != NULL, "a refused header has a reason");
  }
  free(bytes);
}

const lcomm_fuzz_target lcomm_fuzz_targets[] = {
    {"policy", lcomm_fuzz_policy},
    {"topo", lcomm_fuzz_topo},
    {"wire", lcomm_fuzz_wire},
    {"dense", lcomm_fuzz_dense},
    {"kernels", lcomm_fuzz_kernels},
    {"topk", lcomm_fuzz_topk},
    {"lossless", lcomm_fuzz_lossless},
    {"state", lcomm_fuzz_state},
    {"idx", lcomm_fuzz_idx},
    {"npy", lcomm_fuzz_npy},
    {"safetensors", lcomm_fuzz_safetensors},
    {"meta", lcomm_fuzz_meta},
    {"capture", lcomm_fuzz_capture},
    {"trace", lcomm_fuzz_trace},
    {"store", lcomm_fuzz_store},
    {NULL, NULL},
};
