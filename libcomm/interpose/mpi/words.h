/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_WORDS_H
#define LCOMM_INTERPOSE_MPI_WORDS_H

/* Texts of other ranks, and the words of a control file (control.h). Knows nothing of
 * MPI. */

#include <stddef.h>

enum { LCOMM_INTERPOSE_WORDS_MAX = 1024 }; /* with the terminator */

typedef enum lcomm_interpose_words {
  LCOMM_INTERPOSE_WORDS_ON,
  LCOMM_INTERPOSE_WORDS_OFF,
  LCOMM_INTERPOSE_WORDS_POLICY,
  LCOMM_INTERPOSE_WORDS_UNKNOWN
} lcomm_interpose_words;

/* Make any `size` bytes (at least 1) a text, which ends within them and has no control
 * characters; bytes from 128 up stay, as parts of UTF-8. */
void lcomm_interpose_text_sanitize(char *bytes, size_t size);

/* Of a file's first `length` bytes, below LCOMM_INTERPOSE_WORDS_MAX, in a buffer of
 * LCOMM_INTERPOSE_WORDS_MAX: leave the first line as a text, without the white space
 * around it; "on" when there is none. */
void lcomm_interpose_words_trim(char *words, size_t length);

/* What trimmed words ask for; *policy: what follows "policy ". */
lcomm_interpose_words lcomm_interpose_words_read(const char *words, const char **policy);

#endif
