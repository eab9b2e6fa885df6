/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/interpose_control.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm_interpose.h"

/* -------------------------------------------------------------------- modes */

/* The values of LCOMM_INTERPOSE. */
static const struct {
  const char *value;
  lcomm_interpose_mode mode;
} modes[] = {{"on", LCOMM_INTERPOSE_ON},
             {"require", LCOMM_INTERPOSE_ON},
             {"off", LCOMM_INTERPOSE_OFF},
             {"blocking", LCOMM_INTERPOSE_BLOCKING},
             {"report", LCOMM_INTERPOSE_REPORT}};

bool lcomm_interpose_mode_read(lcomm_interpose_mode *mode) {
  const char *text = lcomm_setting("LCOMM_INTERPOSE");
  *mode = LCOMM_INTERPOSE_ON;
  for (size_t i = 0; text && i < sizeof(modes) / sizeof *modes; i++) {
    *mode = modes[i].mode;
    if (strcmp(text, modes[i].value) == 0) {
      return true;
    }
  }
  return !text;
}

bool lcomm_interpose_is_required(void) {
  const char *text = lcomm_setting("LCOMM_INTERPOSE");
  return text && strcmp(text, "require") == 0;
}

lcomm_interpose_tables lcomm_interpose_tables_wanted(lcomm_interpose_mode mode) {
  const char *stats = lcomm_setting("LCOMM_STATS");
  bool named = stats && strcmp(stats, "none") != 0;
  return (lcomm_interpose_tables){.recorded = mode == LCOMM_INTERPOSE_REPORT || named,
                                  .of_rank_0 = mode == LCOMM_INTERPOSE_REPORT || named,
                                  .of_all = named && strcmp(stats, "exit:all") == 0};
}

double lcomm_interpose_timeout_s(void) {
  const char *text = lcomm_setting("LCOMM_TIMEOUT_S");
  double value = text ? strtod(text, NULL) : 0;
  return value > 0 ? value : LCOMM_INTERPOSE_DEFAULT_TIMEOUT_S;
}

/* ------------------------------------------------------------- control file */

void lcomm_interpose_text_sanitize(char *bytes, size_t size) {
  size_t length = strnlen(bytes, size - 1);
  for (size_t i = 0; i < length; i++) {
    bytes[i] = (unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f ? '?' : bytes[i];
  }
  memset(bytes + length, 0, size - length);
}

bool lcomm_interpose_control_wanted(void) {
  static atomic_int wanted; /* 0: not known, 1: no, 2: yes */
  int known = atomic_load(&wanted);
  if (known == 0) {
    known = lcomm_setting("LCOMM_INTERPOSE_CONTROL") ? 2 : 1;
    atomic_store(&wanted, known);
  }
  return known == 2;
}

void lcomm_interpose_control_read(char *words) {
  const char *path = lcomm_setting("LCOMM_INTERPOSE_CONTROL");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  ssize_t length = file < 0 ? 0 : read(file, words, LCOMM_INTERPOSE_CONTROL_MAX - 1);
  if (file >= 0) {
    close(file);
  }
  lcomm_interpose_control_trim(words, length > 0 ? (size_t)length : 0);
}

void lcomm_interpose_control_trim(char *words, size_t length) {
  size_t begin = 0;
  words[length] = '\0';
  size_t end = strcspn(words, "\n");
  while (begin < end && strchr(" \t\r", words[begin])) {
    begin++;
  }
  while (end > begin && strchr(" \t\r", words[end - 1])) {
    end--;
  }
  memmove(words, words + begin, end - begin);
  words[end - begin] = '\0';
  if (end == begin) {
    strcpy(words, "on");
  }
  lcomm_interpose_text_sanitize(words, LCOMM_INTERPOSE_CONTROL_MAX);
}

lcomm_interpose_control_command lcomm_interpose_control_parse(const char *words,
                                                              const char **policy) {
  if (strncmp(words, "policy ", 7) == 0) {
    *policy = words + 7;
    return LCOMM_INTERPOSE_CONTROL_POLICY;
  }
  if (strcmp(words, "off") == 0) {
    return LCOMM_INTERPOSE_CONTROL_OFF;
  }
  return strcmp(words, "on") == 0 ? LCOMM_INTERPOSE_CONTROL_ON : LCOMM_INTERPOSE_CONTROL_UNKNOWN;
}

void lcomm_interpose_control_say(void (*log)(const char *format, ...), const char *what,
                                 const char *why) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char last[LCOMM_INTERPOSE_CONTROL_MAX];
  char text[LCOMM_INTERPOSE_CONTROL_MAX];
  snprintf(text, sizeof(text), "%s%s", what, why);
  pthread_mutex_lock(&lock);
  if (strcmp(text, last) != 0) {
    log("LCOMM_INTERPOSE_CONTROL: %s", text);
    memcpy(last, text, sizeof(last));
  }
  pthread_mutex_unlock(&lock);
}
