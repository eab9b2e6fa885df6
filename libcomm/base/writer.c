/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/writer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

lcomm_writer lcomm_writer_begin(char *text, size_t size) {
  if (size > 0) {
    text[0] = '\0';
  }
  return (lcomm_writer){text, size, 0};
}

void lcomm_write(lcomm_writer *w, const char *format, ...) {
  va_list arguments;
  size_t room = w->length < w->size ? w->size - w->length : 0;
  va_start(arguments, format);
  int n = vsnprintf(room > 0 ? w->text + w->length : NULL, room, format, arguments);
  va_end(arguments);
  w->length += n > 0 ? (size_t)n : 0;
}

void lcomm_write_decimal(lcomm_writer *w, double value) {
  long long millionths = llround(value * 1000000);
  int digits = 6;
  long long rest = millionths % 1000000;
  for (; digits > 0 && rest % 10 == 0; rest /= 10) {
    digits--;
  }
  lcomm_write(w, "%lld", millionths / 1000000);
  if (digits > 0) {
    lcomm_write(w, ".%0*lld", digits, rest);
  }
}
