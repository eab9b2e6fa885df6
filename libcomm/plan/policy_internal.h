/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_INTERNAL_H
#define LCOMM_PLAN_POLICY_INTERNAL_H

/* What the parser and the formatter of policies share. */

#include "libcomm/plan/policy.h"

enum { LCOMM_SCOPE_COUNT = 2, LCOMM_ALGORITHM_COUNT = 4 };

extern const lcomm_policy lcomm_policy_default;
extern const char *const lcomm_scope_names[LCOMM_SCOPE_COUNT];         /* by lcomm_scope */
extern const char *const lcomm_algorithm_names[LCOMM_ALGORITHM_COUNT]; /* by lcomm_algorithm */

#endif
