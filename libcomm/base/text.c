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

const char *lcomm_text_count(uint64_t number, char text[LCOMM_TEXT_COUNT_MAX]) {
  char digits[LCOMM_TEXT_COUNT_MAX];
  int at = LCOMM_TEXT_COUNT_MAX - 1, written = 0;
  digits[at] = '\0';
  do {
    if (written > 0 && written % 3 == 0) {
      digits[--at] = ',';
    }
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
    written++;
  } while (number > 0);
  memcpy(text, digits + at, (size_t)(LCOMM_TEXT_COUNT_MAX - at));
  return text;
}
