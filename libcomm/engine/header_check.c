/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/header_check.h"

const char *lcomm_header_field_name(lcomm_header_field field) {
  static const char *const names[] = {
#define LCOMM_HEADER_FIELD_TEXT(name, text) text,
      LCOMM_HEADER_FIELD_LIST(LCOMM_HEADER_FIELD_TEXT)
#undef LCOMM_HEADER_FIELD_TEXT
  };
  return (unsigned)field < LCOMM_HEADER_FIELD_COUNT ? names[field] : "unknown field";
}

static uint64_t value_of(const lcomm_wire_header *header, lcomm_header_field field) {
  switch (field) {
  case LCOMM_HEADER_SEQUENCE:
    return header->sequence;
  case LCOMM_HEADER_COUNT:
    return header->count;
  case LCOMM_HEADER_DTYPE:
    return header->dtype;
  case LCOMM_HEADER_CODEC:
    return header->codec;
  case LCOMM_HEADER_FLAGS:
    return header->flags;
  case LCOMM_HEADER_PARAMETERS:
    return header->parameters;
  case LCOMM_HEADER_PAYLOAD_SIZE:
    return header->payload_size;
  case LCOMM_HEADER_FIELD_COUNT:
    break;
  }
  return 0;
}

static bool differs(const lcomm_wire_header *theirs, const lcomm_header_expected *expected,
                    lcomm_header_field field) {
  uint64_t their = value_of(theirs, field), our = value_of(&expected->header, field);
  if (field == LCOMM_HEADER_PAYLOAD_SIZE && !expected->exact_size) {
    return their > our;
  }
  return their != our;
}

/* The size of a dense payload follows from its count. Elements that travel as they
 * are have the size of their type. */
static bool is_possible(const lcomm_wire_header *header) {
  lcomm_format format = lcomm_wire_get_format(header);
  if (lcomm_format_is_sparse(&format) || format.zstd ||
      header->payload_size == lcomm_payload_size(&format, header->count)) {
    return true;
  }
  return header->codec == LCOMM_CODEC_NONE &&
         header->payload_size == header->count * lcomm_dtype_size((lcomm_dtype)header->dtype);
}

static lcomm_header_verdict found(const lcomm_wire_header *theirs,
                                  const lcomm_header_expected *expected, lcomm_status status,
                                  lcomm_header_field field) {
  return (lcomm_header_verdict){.status = status,
                                .field = field,
                                .theirs = value_of(theirs, field),
                                .ours = value_of(&expected->header, field)};
}

lcomm_header_verdict lcomm_header_check(const lcomm_wire_header *theirs,
                                        const lcomm_header_expected *expected) {
  lcomm_header_field field = LCOMM_HEADER_SEQUENCE;
  while (field < LCOMM_HEADER_FIELD_COUNT && !differs(theirs, expected, field)) {
    field++;
  }
  if (field == LCOMM_HEADER_FIELD_COUNT) {
    return (lcomm_header_verdict){.status = LCOMM_OK, .field = field};
  }
  uint32_t others = theirs->parameters ^ expected->header.parameters;
  if (__builtin_popcount(others) <= LCOMM_HEADER_NEAR_BITS) {
    return found(theirs, expected, LCOMM_ERR_WIRE, field);
  }
  if (!is_possible(theirs)) {
    return found(theirs, expected, LCOMM_ERR_WIRE, LCOMM_HEADER_PAYLOAD_SIZE);
  }
  return found(theirs, expected, LCOMM_ERR_MISMATCH, field);
}
