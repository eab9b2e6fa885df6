/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/words.h"

#include <string.h>

void lcomm_interpose_text_sanitize(char *bytes, size_t size) {
  size_t length = strnlen(bytes, size - 1);
  for (size_t i = 0; i < length; i++) {
    bytes[i] = (unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f ? '?' : bytes[i];
  }
  memset(bytes + length, 0, size - length);
}

void lcomm_interpose_words_trim(char *words, size_t length) {
  size_t begin = 0;
  words[length] = '\0';
  size_t end = strcspn(words, "\n");
  while (begin < end && strchr(" \t\r", words[begin])) {
    begin++;
  }
  while (end > begin && strchr(" \t\r", words[end - 1])) {
    end--;
  }
  memmove(words, words + begin, end - begin);
  words[end - begin] = '\0';
  if (end == begin) {
    strcpy(words, "on");
  }
  lcomm_interpose_text_sanitize(words, LCOMM_INTERPOSE_WORDS_MAX);
}

lcomm_interpose_words lcomm_interpose_words_read(const char *words, const char **policy) {
  if (strncmp(words, "policy ", 7) == 0) {
    *policy = words + 7;
    return LCOMM_INTERPOSE_WORDS_POLICY;
  }
  if (strcmp(words, "off") == 0) {
    return LCOMM_INTERPOSE_WORDS_OFF;
  }
  return strcmp(words, "on") == 0 ? LCOMM_INTERPOSE_WORDS_ON : LCOMM_INTERPOSE_WORDS_UNKNOWN;
}
