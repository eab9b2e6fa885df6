/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/error.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/env.h"

static _Thread_local char thread_text[LCOMM_ERROR_MAX];

lcomm_status lcomm_error_thread(lcomm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(thread_text, sizeof(thread_text), format, arguments);
  va_end(arguments);
  lcomm_log_error(thread_text);
  return status;
}

const char *lcomm_error_thread_text(void) {
  return thread_text;
}

void lcomm_log_error(const char *sentence) {
  const char *level = lcomm_env_get(LCOMM_ENV_LOG);
  if (level && (strcmp(level, "error") == 0 || strcmp(level, "info") == 0)) {
    fprintf(stderr, "libcomm: %s\n", sentence);
  }
}

void lcomm_log_info(const char *sentence) {
  const char *level = lcomm_env_get(LCOMM_ENV_LOG);
  if (level && strcmp(level, "info") == 0) {
    fprintf(stderr, "libcomm: %s\n", sentence);
  }
}
