/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/env.h"

#include <stdlib.h>

const lcomm_env_entry lcomm_env_table[LCOMM_ENV_COUNT] = {
#define LCOMM_ENV_ROW(id, variable, standard, help) [id] = {variable, standard, help},
    LCOMM_ENV_LIST(LCOMM_ENV_ROW)
#undef LCOMM_ENV_ROW
};

const char *lcomm_env_get(lcomm_env variable) {
  const char *value = getenv(lcomm_env_table[variable].variable);
  return value && value[0] ? value : NULL;
}
