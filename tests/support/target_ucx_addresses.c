/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_ucx_addresses.h"

#include "libcomm/transport/ucx/ucx_addresses.h"
#include "tests/support/fuzz_promise.h"

/* The size that a label describes, read once more. */
static size_t size_in(const uint8_t *label) {
  return label[0] | (size_t)label[1] << 8 | (size_t)label[2] << 16 | (size_t)label[3] << 24;
}

static void read_book(const uint8_t *data, size_t size, int count) {
  size_t labels_size = (size_t)count * LCOMM_UCX_LABEL_SIZE;
  if (size < labels_size) {
    return;
  }
  uint8_t *labels = fuzz_copy(data, labels_size);
  size_t width = lcomm_ucx_addresses_width(labels, count), rest = size - labels_size;
  fuzz_require(width >= 1 && width <= LCOMM_UCX_ADDRESS_MAX, "a row has a size");
  uint8_t *rows = fuzz_allocate((size_t)count * width);
  if (rest > 0) {
    memcpy(rows, data + labels_size, rest < (size_t)count * width ? rest : (size_t)count * width);
  }
  for (int rank = 0; rank < count; rank++) {
    const uint8_t *found = lcomm_ucx_address_find(labels, rows, width, rank);
    fuzz_require(!found || found == rows + (size_t)rank * width, "an address is in its row");
    size_t found_size = found ? size_in(labels + (size_t)rank * LCOMM_UCX_LABEL_SIZE) : 1;
    fuzz_require(found_size >= 1 && found_size <= width, "an address fits its row");
    fuzz_require(!found || lcomm_ucx_address_size(labels, rank) == found_size, "its size is told");
  }
  free(labels);
  free(rows);
}

/* Any bytes are an address that comes through whole, or not at all. */
static void carry(const uint8_t *data, size_t size) {
  uint8_t label[LCOMM_UCX_LABEL_SIZE], *row = fuzz_copy(data, size);
  lcomm_ucx_label_pack(row, size, label);
  bool fits = size > 0 && size <= LCOMM_UCX_ADDRESS_MAX;
  size_t width = lcomm_ucx_addresses_width(label, 1);
  fuzz_require(width == (fits ? size : 1), "a row is as large as its address");
  fuzz_require(!fits || lcomm_ucx_address_find(label, row, width, 0) == row,
               "a good address is found");
  if (fits) {
    row[size / 2] ^= 1;
    fuzz_require(!lcomm_ucx_address_find(label, row, width, 0), "a damaged one is not");
  }
  free(row);
}

void lcomm_fuzz_ucx_addresses(const uint8_t *data, size_t size) {
  if (size > 0) {
    read_book(data + 1, size - 1, data[0] % 8 + 1);
  }
  carry(data, size);
}
