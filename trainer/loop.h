/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_LOOP_H
#define TRAINER_LOOP_H

#include "trainer/log.h"
#include "trainer/session.h"

/* Train all epochs, with reports on rank 0. Collective. Returns 0, or -1 with
 * `why` if a loss is not a number, replicas differ, or libcomm failed. */
int loop_run(session *of, run_log *log, failure *why);

#endif
