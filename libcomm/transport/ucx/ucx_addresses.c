/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_addresses.h"

#include <stdbool.h>

#include <xxhash.h>

#include "codecs/little_endian.h"

/* A label, little-endian: bytes 0..3 the size of the address, 4..7 the version,
 * 8..15 the checksum of the address. */
enum { VERSION = 1, VERSION_AT = 4, CHECKSUM_AT = 8 };

static const uint8_t *label_of(const uint8_t *labels, int rank) {
  return labels + (size_t)rank * LCOMM_UCX_LABEL_SIZE;
}

/* The size that a label describes; 0: no address. */
static size_t described_size(const uint8_t *label) {
  uint64_t size = lcomm_le_get(label, 4);
  bool known = lcomm_le_get(label + VERSION_AT, 4) == VERSION;
  return known && size <= LCOMM_UCX_ADDRESS_MAX ? (size_t)size : 0;
}

void lcomm_ucx_label_pack(const void *address, size_t size, uint8_t *label) {
  size = size <= LCOMM_UCX_ADDRESS_MAX ? size : 0;
  lcomm_le_put(label, size, 4);
  lcomm_le_put(label + VERSION_AT, VERSION, 4);
  lcomm_le_put(label + CHECKSUM_AT, size > 0 ? XXH3_64bits(address, size) : 0, 8);
}

size_t lcomm_ucx_addresses_width(const uint8_t *labels, int count) {
  size_t width = 1;
  for (int rank = 0; rank < count; rank++) {
    size_t size = described_size(label_of(labels, rank));
    width = size > width ? size : width;
  }
  return width;
}

size_t lcomm_ucx_address_size(const uint8_t *labels, int rank) {
  return described_size(label_of(labels, rank));
}

const uint8_t *lcomm_ucx_address_find(const uint8_t *labels, const uint8_t *rows, size_t width,
                                      int rank) {
  const uint8_t *label = label_of(labels, rank), *address = rows + (size_t)rank * width;
  size_t size = described_size(label);
  bool whole = size > 0 && size <= width;
  return whole && XXH3_64bits(address, size) == lcomm_le_get(label + CHECKSUM_AT, 8) ? address
                                                                                     : NULL;
}
