/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_EVALUATE_H
#define TRAINER_EVALUATE_H

#include "trainer/session.h"

/* Share of the test images that the model tells correctly, 0..1. Every rank
 * looks at its part of them, until it notes a signal: then the share means nothing, and the
 * caller has to ask whether to stop. Collective. */
int evaluate(session *of, double *accuracy, failure *why);

#endif
