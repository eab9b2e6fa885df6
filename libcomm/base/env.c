/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/env.h"

#include <stdlib.h>
#include <string.h>

#include "libcomm/include/libcomm_interpose.h"

const lcomm_env_entry lcomm_env_table[LCOMM_ENV_COUNT] = {
#define LCOMM_ENV_ROW(id, variable, standard, help) [id] = {variable, standard, help},
    LCOMM_ENV_LIST(LCOMM_ENV_ROW)
#undef LCOMM_ENV_ROW
};

const lcomm_env_entry lcomm_launcher_table[LCOMM_LAUNCHER_COUNT] = {
#define LCOMM_LAUNCHER_ROW(id, variable, standard, help) [id] = {variable, standard, help},
    LCOMM_LAUNCHER_LIST(LCOMM_LAUNCHER_ROW)
#undef LCOMM_LAUNCHER_ROW
};

static const char *get(const char *variable) {
  const char *value = getenv(variable);
  return value && value[0] ? value : NULL;
}

const char *lcomm_env_get(lcomm_env variable) {
  return get(lcomm_env_table[variable].variable);
}

const char *lcomm_setting(const char *variable) {
  for (int i = 0; variable && i < LCOMM_ENV_COUNT; i++) {
    if (strcmp(lcomm_env_table[i].variable, variable) == 0) {
      return lcomm_env_get((lcomm_env)i);
    }
  }
  for (int i = 0; variable && i < LCOMM_LAUNCHER_COUNT; i++) {
    if (strcmp(lcomm_launcher_table[i].variable, variable) == 0) {
      return lcomm_launcher_get((lcomm_launcher)i);
    }
  }
  return NULL;
}

const char *lcomm_launcher_get(lcomm_launcher variable) {
  return get(lcomm_launcher_table[variable].variable);
}
