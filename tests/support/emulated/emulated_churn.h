/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_CHURN_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_CHURN_H

/* What a program may do at any time, beside whatever a test does: a thread that at random gets
 * and frees memory of the device and pinned memory, makes and destroys streams, and loads
 * kernels. Most of that waits for all streams. */

#include <stdint.h>

/* Begin on the device in use by the caller. One at a time: emulated_setup.churn has it begin and
 * end with the devices. */
void emulated_churn_begin(uint64_t seed);

/* End it; it frees what it has. How many things it did; -1: it could not
 * begin, or something was refused. */
int emulated_churn_end(void);

#endif
