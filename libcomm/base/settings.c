/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/settings.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/base/log.h"

enum { NAME_MAX_BYTES = 64, NEAR_EDITS = 3 };

extern char **environ;

/* ---------------------------------------------------------------- values */

lcomm_status lcomm_settings_check(lcomm_why *why) {
  static const lcomm_env auto_or_off[] = {LCOMM_ENV_CUDA, LCOMM_ENV_CUDA_IPC};
  for (size_t i = 0; i < sizeof(auto_or_off) / sizeof(auto_or_off[0]); i++) {
    const char *value = lcomm_env_get(auto_or_off[i]);
    if (value && strcmp(value, "auto") != 0 && strcmp(value, "off") != 0) {
      return lcomm_why_set(why, LCOMM_ERR_ARGUMENT, "%s=%.40s is neither auto nor off",
                           lcomm_env_table[auto_or_off[i]].variable, value);
    }
  }
  return LCOMM_OK;
}

/* ----------------------------------------------------------------- names */

bool lcomm_settings_known(const char *name) {
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    if (strcmp(lcomm_env_table[i].variable, name) == 0) {
      return true;
    }
  }
  return strncmp(name, "LCOMM_UCX_", strlen("LCOMM_UCX_")) == 0;
}

static int least(int a, int b, int c) {
  int smaller = a < b ? a : b;
  return smaller < c ? smaller : c;
}

/* Levenshtein's distance: letters to add, to drop or to change. */
static int distance(const char *a, const char *b) {
  int row[NAME_MAX_BYTES + 1];
  int length = (int)strlen(b);
  if (length > NAME_MAX_BYTES) {
    return NAME_MAX_BYTES;
  }
  for (int j = 0; j <= length; j++) {
    row[j] = j;
  }
  for (int i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= length; j++) {
      int above = row[j];
      row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[length];
}

const char *lcomm_settings_nearest(const char *name) {
  const char *nearest = NULL;
  int edits = NEAR_EDITS + 1;
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    int here = distance(name, lcomm_env_table[i].variable);
    if (here < edits) {
      edits = here;
      nearest = lcomm_env_table[i].variable;
    }
  }
  return nearest;
}

/* Variables that had another name before. */
static const struct {
  const char *former, *now;
} renamed[] = {{"LCOMM_DOOR", "LCOMM_INTERPOSE"},
               {"LCOMM_DOOR_CONTROL", "LCOMM_INTERPOSE_CONTROL"}};

const char *lcomm_settings_renamed(const char *name) {
  for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
    if (strcmp(renamed[i].former, name) == 0) {
      return renamed[i].now;
    }
  }
  return NULL;
}

/* True: the variable had another name before, which the user is told. */
static bool warn_renamed(const char *name) {
  const char *now = lcomm_settings_renamed(name);
  char sentence[4 * NAME_MAX_BYTES];
  if (now) {
    snprintf(sentence, sizeof(sentence), "%s is called %s now; %s has no effect", name, now, name);
    lcomm_log(LCOMM_LOG_WARN, sentence);
  }
  return now != NULL;
}

/* One sentence for all, and one for each that is set by its former name. */
void lcomm_settings_warn_unknown(void) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  char sentence[1024] = "", name[NAME_MAX_BYTES];
  size_t used = 0;
  if (atomic_flag_test_and_set(&done)) {
    return;
  }
  for (char **it = environ; it && *it && used + 200 < sizeof(sentence); it++) {
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(*it, "="), *it);
    if (strncmp(name, "LCOMM_", strlen("LCOMM_")) != 0 || lcomm_settings_known(name) ||
        warn_renamed(name)) {
      continue;
    }
    const char *nearest = lcomm_settings_nearest(name);
    used +=
        (size_t)snprintf(sentence + used, sizeof(sentence) - used, "%s%s%s%s%s",
                         used > 0 ? ", " : "variables that libcomm does not know: ", name,
                         nearest ? " (is " : "", nearest ? nearest : "", nearest ? " meant?)" : "");
  }
  if (used > 0) {
    snprintf(sentence + used, sizeof(sentence) - used,
             ". They have no effect; `libcomm-info --env` lists all");
    lcomm_log(LCOMM_LOG_WARN, sentence);
  }
}
