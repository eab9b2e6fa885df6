/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/status.h"

#include <stdbool.h>
#include <stdio.h>

#include "libcomm/include/libcomm_interpose.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

size_t lcomm_dtype_size(lcomm_dtype dtype) {
  static const uint8_t sizes[] = {
#define SIZE_OF(name, value, size, text) [value] = size,
      LCOMM_DTYPE_LIST(SIZE_OF)
#undef SIZE_OF
  };
  return (size_t)dtype < COUNT_OF(sizes) ? sizes[dtype] : 0;
}

const char *lcomm_dtype_name(lcomm_dtype dtype) {
  static const char *const names[] = {
#define TEXT_OF(name, value, size, text) [value] = text,
      LCOMM_DTYPE_LIST(TEXT_OF)
#undef TEXT_OF
  };
  return (size_t)dtype < COUNT_OF(names) ? names[dtype] : "unknown dtype";
}

/* Codes are 0, -1, -2, ...; their negatives index a table. */
static size_t status_index(lcomm_status status) {
  return status > 0 ? SIZE_MAX : (size_t)(-(long)status);
}

const char *lcomm_status_name(lcomm_status status) {
  static const char *const names[] = {
#define NAME_OF(name, value, text) [-(value)] = #name,
      LCOMM_STATUS_LIST(NAME_OF)
#undef NAME_OF
  };
  size_t index = status_index(status);
  return index < COUNT_OF(names) ? names[index] : "LCOMM_ERR_UNKNOWN";
}

const char *lcomm_status_string(lcomm_status status) {
  static const char *const texts[] = {
#define TEXT_OF(name, value, text) [-(value)] = text,
      LCOMM_STATUS_LIST(TEXT_OF)
#undef TEXT_OF
  };
  size_t index = status_index(status);
  return index < COUNT_OF(texts) ? texts[index] : "unknown status";
}

lcomm_status lcomm_status_received(int32_t number, char *text) {
  bool known = number <= 0 && number >= LCOMM_ERR_INTERNAL; /* the last of the list */
  lcomm_status status = known ? (lcomm_status)number : LCOMM_ERR_WIRE;
  if (text && known) {
    snprintf(text, LCOMM_STATUS_TEXT_MAX, "%s", lcomm_status_string(status));
  } else if (text) {
    snprintf(text, LCOMM_STATUS_TEXT_MAX,
             "it answers %d, which is no status; install the same libcomm on all hosts, and check "
             "the network",
             (int)number);
  }
  return status;
}

#define TEXT_OF(name, text) [name] = text,

const char *lcomm_call_name(lcomm_call_kind kind) {
  static const char *const names[] = {LCOMM_CALL_LIST(TEXT_OF)};
  return (size_t)kind < COUNT_OF(names) ? names[kind] : "unknown call";
}

const char *lcomm_link_name(lcomm_link link) {
  static const char *const names[] = {LCOMM_LINK_LIST(TEXT_OF)};
  return (size_t)link < COUNT_OF(names) ? names[link] : "unknown link";
}

#undef TEXT_OF

int lcomm_version(void) {
  return LCOMM_VERSION_MAJOR * 10000 + LCOMM_VERSION_MINOR * 100 + LCOMM_VERSION_PATCH;
}
