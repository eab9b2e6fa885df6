/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_COMM_LEFT_H
#define LCOMM_COMM_COMM_LEFT_H

/* The memory of a communicator that messages may read, after its end. Where a peer was lost, others
 * may be in the middle of a message that this rank has sent; what they read stays as it is until
 * they have failed, too, have closed their links or have ended. Where a transport cannot know, it
 * stays to the end of the process. */

#include "libcomm/engine/engine.h"

/* Free what is left of a communicator whose links are closed, and itself; nobody reads there. */
void lcomm_comm_free_rest(lcomm_comm *comm);

/* Somebody may: keep it for lcomm_left_comms_free. */
void lcomm_left_comms_add(lcomm_comm *comm);

/* Free those that nobody reads any more. Any thread; no turn is held: pinned memory may be theirs.
 */
void lcomm_left_comms_free(void);

#endif
