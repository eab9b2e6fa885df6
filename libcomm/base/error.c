/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/base/write_guard.h"

static _Thread_local char thread_text[LCOMM_ERROR_MAX];

lcomm_status lcomm_error_thread(lcomm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(thread_text, sizeof(thread_text), format, arguments);
  va_end(arguments);
  lcomm_log_error(thread_text);
  return status;
}

void lcomm_error_thread_keep(const char *sentence) {
  snprintf(thread_text, sizeof(thread_text), "%s", sentence);
}

const char *lcomm_error_thread_text(void) {
  return thread_text;
}

typedef enum log_level { LOG_NONE, LOG_WARNING, LOG_ERROR, LOG_INFO } log_level;

static log_level asked_level(void) {
  static const char *const names[] = {
      [LOG_NONE] = "none", [LOG_WARNING] = "warning", [LOG_ERROR] = "error", [LOG_INFO] = "info"};
  const char *text = lcomm_env_get(LCOMM_ENV_LOG);
  for (log_level level = LOG_NONE; text && level <= LOG_INFO; level++) {
    if (strcmp(text, names[level]) == 0) {
      return level;
    }
  }
  return LOG_WARNING;
}

static void say(log_level level, const char *sentence) {
  lcomm_write_guard guard;
  if (asked_level() < level) {
    return;
  }
  lcomm_write_guard_begin(&guard);
  errno = 0;
  int written = fprintf(stderr, "libcomm: %s\n", sentence);
  lcomm_write_guard_end(&guard, written < 0 ? errno : 0);
}

void lcomm_log_warning(const char *sentence) {
  say(LOG_WARNING, sentence);
}

void lcomm_log_error(const char *sentence) {
  say(LOG_ERROR, sentence);
}

void lcomm_log_info(const char *sentence) {
  say(LOG_INFO, sentence);
}
