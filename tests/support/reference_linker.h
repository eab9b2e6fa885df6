/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_REFERENCE_LINKER_H
#define LCOMM_TESTS_REFERENCE_LINKER_H

/* The linker's specification: it compares all steps with all others, as the
 * rules are written, and takes its time. */

#include "libcomm/sched/sched.h"

/* Are the dependencies and the windows of a linked schedule just those of the
 * reference? Leaves the schedule as it is. */
bool reference_links_alike(const lcomm_schedule *schedule, const bool copies[LCOMM_STAGE_COUNT]);

#endif
