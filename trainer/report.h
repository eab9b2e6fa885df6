/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_REPORT_H
#define TRAINER_REPORT_H

#include "trainer/results.h"
#include "trainer/session.h"

/* What people read. Call these on rank 0 only. */

/* What is trained on what, by whom, and what the policy does. */
void report_start(const session *of);

/* One line of the table. */
void report_epoch(const session *of, const results *epoch);

/* How the run ended. */
void report_end(const session *of, const results *run);

#endif
