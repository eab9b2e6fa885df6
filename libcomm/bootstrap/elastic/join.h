/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_JOIN_H
#define LCOMM_BOOTSTRAP_JOIN_H

/* Joining a job that is under way; the call is in libcomm_elastic.h. */

#include <stdbool.h>

#include "libcomm/include/libcomm_elastic.h"

/* Does the environment ask lcomm_create_env() to join (LCOMM_JOIN)? ARGUMENT for what is neither on
 * nor off. */
lcomm_status lcomm_join_is_asked(bool *asked);

#endif
