/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_SETTINGS_H
#define LCOMM_BASE_SETTINGS_H

/* The variables LCOMM_* as a whole: values that are none, names that are none. */

#include <stdbool.h>
#include <stddef.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm_interpose.h" /* lcomm_settings_warn_unknown */

/* Variables that are a choice of words and are read where nothing can be returned. ARGUMENT
 * with a sentence in `why` that names variable, value and words. */
lcomm_status lcomm_settings_check(lcomm_why *why);

/* The variable of libcomm whose name is nearest to `name`, NULL when none is near. */
const char *lcomm_settings_nearest(const char *name);

/* Does libcomm know the variable `name`? Those of UCX with LCOMM_ before their name it does. */
bool lcomm_settings_known(const char *name);

/* What the variable with the former name `name` is called now; NULL when no variable had it. */
const char *lcomm_settings_renamed(const char *name);

#endif
