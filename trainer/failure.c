/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/failure.h"

#include <stdarg.h>
#include <stdio.h>

int failure_set(failure *why, int exit_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why->text, sizeof why->text, format, arguments);
  va_end(arguments);
  why->exit_code = exit_code;
  why->speaker = SPEAKER_EACH_RANK;
  return -1;
}

int failure_set_common(failure *why, int exit_code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why->text, sizeof why->text, format, arguments);
  va_end(arguments);
  why->exit_code = exit_code;
  why->speaker = SPEAKER_FIRST_RANK;
  return -1;
}
