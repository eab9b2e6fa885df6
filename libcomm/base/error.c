/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/error.h"

#include <stdio.h>

#include "libcomm/base/log.h"

static _Thread_local char thread_text[LCOMM_ERROR_MAX];

lcomm_status lcomm_error_thread(lcomm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(thread_text, sizeof(thread_text), format, arguments);
  va_end(arguments);
  lcomm_log_error(thread_text);
  return status;
}

lcomm_status lcomm_why_set(lcomm_why *why, lcomm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why->text, sizeof(why->text), format, arguments);
  va_end(arguments);
  return status;
}

void lcomm_error_thread_keep(const char *sentence) {
  snprintf(thread_text, sizeof(thread_text), "%s", sentence);
}

const char *lcomm_error_thread_text(void) {
  return thread_text;
}

void lcomm_log_warning(const char *sentence) {
  lcomm_log(LCOMM_LOG_WARN, sentence);
}

void lcomm_log_error(const char *sentence) {
  lcomm_log(LCOMM_LOG_ERROR, sentence);
}

void lcomm_log_info(const char *sentence) {
  lcomm_log(LCOMM_LOG_INFO, sentence);
}
