/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/pair_header.h"

#include <string.h>

enum { NUMBER_AT = 4, COUNT_AT = 8, DTYPE_AT = 16, ZEROS_AT = 17 };
static const uint8_t magic[4] = {'l', 'c', 'p', 'r'};

static void put(uint8_t *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) {
    bytes[i] = (uint8_t)(value >> 8 * i);
  }
}

static uint64_t get(const uint8_t *bytes, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; i++) {
    value |= (uint64_t)bytes[i] << 8 * i;
  }
  return value;
}

void lcomm_pair_header_write(const lcomm_pair_header *header, uint8_t *bytes) {
  memset(bytes, 0, LCOMM_PAIR_HEADER_SIZE);
  memcpy(bytes, magic, sizeof(magic));
  put(bytes + NUMBER_AT, header->number, 4);
  put(bytes + COUNT_AT, header->count, 8);
  bytes[DTYPE_AT] = (uint8_t)header->dtype;
}

bool lcomm_pair_header_read(const uint8_t *bytes, size_t size, lcomm_pair_header *header) {
  if (size < LCOMM_PAIR_HEADER_SIZE || memcmp(bytes, magic, sizeof(magic)) != 0 ||
      get(bytes + ZEROS_AT, LCOMM_PAIR_HEADER_SIZE - ZEROS_AT) != 0) {
    return false;
  }
  header->number = (uint32_t)get(bytes + NUMBER_AT, 4);
  header->count = get(bytes + COUNT_AT, 8);
  header->dtype = (lcomm_dtype)bytes[DTYPE_AT];
  return lcomm_dtype_size(header->dtype) > 0;
}
