/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_MEETING_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_MEETING_H

/* The ranks of a world as threads of this process, for what all of them do together, and the
 * all-gather by which they make their communicators. */

#include <libcomm.h>
#include <stdbool.h>
#include <stddef.h>

/* What one rank does. A rank that returns false leaves for good: who waits for it in an
 * all-gather is told that it failed. */
typedef bool fidelity_rank_work(void *context, int rank, const lcomm_bootstrap *boot);

/* Run `work` for all ranks 0 .. ranks-1 at once, each on a thread of its own. Returns whether all
 * returned true; false also when a thread cannot be started. */
bool fidelity_meeting_run(int ranks, fidelity_rank_work *work, void *context);

#endif
