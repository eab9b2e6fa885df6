/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_WORDS_H
#define LCOMM_DOORS_MPI_WORDS_H

/* Texts of other ranks, and the words of a control file (control.h). Knows nothing of
 * MPI. */

#include <stddef.h>

enum { LCOMM_DOOR_WORDS_MAX = 1024 }; /* with the terminator */

typedef enum lcomm_door_words {
  LCOMM_DOOR_WORDS_ON,
  LCOMM_DOOR_WORDS_OFF,
  LCOMM_DOOR_WORDS_POLICY,
  LCOMM_DOOR_WORDS_UNKNOWN
} lcomm_door_words;

/* Make any `size` bytes (at least 1) a text, which ends within them and has no control
 * characters; bytes from 128 up stay, as parts of UTF-8. */
void lcomm_door_text_sanitize(char *bytes, size_t size);

/* Of a file's first `length` bytes, below LCOMM_DOOR_WORDS_MAX, in a buffer of
 * LCOMM_DOOR_WORDS_MAX: leave the first line as a text, without the white space
 * around it; "on" when there is none. */
void lcomm_door_words_trim(char *words, size_t length);

/* What trimmed words ask for; *policy: what follows "policy ". */
lcomm_door_words lcomm_door_words_read(const char *words, const char **policy);

#endif
