/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_TEXT_H
#define LCOMM_BASE_TEXT_H

/* Texts that come from peers and are shown to people. */

#include <stddef.h>

/* Make any `size` bytes (at least 1) a text: it ends within them, behind its end
 * there are zeros only, and it has no control characters. Line ends and tabulators
 * become blanks, others '?'. Bytes from 128 up stay, as parts of UTF-8. */
void lcomm_text_sanitize(char *bytes, size_t size);

#endif
