/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_WRITER_H
#define LCOMM_BASE_WRITER_H

/* Formatted text into a buffer of fixed size; the length that it would need is counted. */

#include <stddef.h>

typedef struct lcomm_writer {
  char *text;
  size_t size, length; /* length: needed so far, may be more than size */
} lcomm_writer;

/* text may be NULL when size is 0. */
lcomm_writer lcomm_writer_begin(char *text, size_t size);

__attribute__((format(printf, 2, 3))) void lcomm_write(lcomm_writer *w, const char *format, ...);

/* Rounded to a multiple of 0.000001, without trailing zeros, whatever the locale is. */
void lcomm_write_decimal(lcomm_writer *w, double value);

#endif
