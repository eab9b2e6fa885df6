/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/text.h"

#include <string.h>

static char visible(char c) {
  if (c == '\n' || c == '\r' || c == '\t') {
    return ' ';
  }
  return (unsigned char)c < 0x20 || c == 0x7f ? '?' : c;
}

void lcomm_text_sanitize(char *bytes, size_t size) {
  size_t length = strnlen(bytes, size - 1);
  for (size_t i = 0; i < length; i++) {
    bytes[i] = visible(bytes[i]);
  }
  memset(bytes + length, 0, size - length);
}
