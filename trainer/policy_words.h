/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_POLICY_WORDS_H
#define TRAINER_POLICY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "trainer/model.h"

/* What a policy does to the gradients of a model, in words: a few lines, each
 * begun with `indent`. `policy` is in canonical form (lcomm_policy_string).
 * Cuts what does not fit. */
void policy_words(const char *policy, int nodes, const model *net, const char *indent, char *text,
                  size_t size);

/* Does the policy keep the momentum (momentum correction)? The optimiser must
 * not have one of its own then. */
bool policy_keeps_momentum(const char *policy);

#endif
