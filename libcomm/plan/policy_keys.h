/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_KEYS_H
#define LCOMM_PLAN_POLICY_KEYS_H

/* The keys of a policy, KEY=VALUE, and what the parser of the whole knows while it reads. */

#include "libcomm/plan/policy_internal.h"

enum { LCOMM_POLICY_KEYS = 24 };

typedef struct lcomm_policy_parser {
  lcomm_policy_reader in;
  lcomm_policy *policy;
  const char *word[LCOMM_POLICY_KEYS]; /* where each key was given, or NULL */
  const lcomm_policy_preset *preset;   /* of net=, or NULL */
} lcomm_policy_parser;

typedef struct lcomm_policy_key {
  const char *name;
  lcomm_status (*parse)(lcomm_policy_parser *p, lcomm_span value);
  const char *example; /* a value, and what else the key needs */
} lcomm_policy_key;

/* The first one is net. */
extern const lcomm_policy_key lcomm_policy_keys[LCOMM_POLICY_KEYS];

#endif
