/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_POLICY_H
#define LCOMM_TESTS_SUPPORT_TARGET_POLICY_H

/* Fuzz target for the readers of the policy grammar, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

/* The bytes, up to the first zero, as a policy and as a codec alone. */
void lcomm_fuzz_policy(const uint8_t *data, size_t size);

#endif
