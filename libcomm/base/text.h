/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_TEXT_H
#define LCOMM_BASE_TEXT_H

/* Texts for people, some of which come from peers. */

#include <stddef.h>
#include <stdint.h>

/* Make any `size` bytes (at least 1) a text: it ends within them, behind its end
 * there are zeros only, and it has no control characters. Line ends and tabulators
 * become blanks, others '?'. Bytes from 128 up stay, as parts of UTF-8. */
void lcomm_text_sanitize(char *bytes, size_t size);

enum { LCOMM_TEXT_COUNT_MAX = 27 };

/* A number with commas between thousands, "1,000". Returns text. */
const char *lcomm_text_count(uint64_t number, char text[LCOMM_TEXT_COUNT_MAX]);

#endif
