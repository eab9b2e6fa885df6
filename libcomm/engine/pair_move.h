/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_MOVE_H
#define LCOMM_ENGINE_PAIR_MOVE_H

#include "libcomm/engine/pair_internal.h"

/* Do what can be done for the first message of a queue without waiting; *over once it is over.
 * Errors are the communicator's. */
lcomm_status lcomm_pair_move(lcomm_comm *comm, lcomm_pair_message *message, bool *moved,
                             bool *over);

/* The same for both ends of a message to this rank itself. */
lcomm_status lcomm_pair_move_own(lcomm_comm *comm, const lcomm_pair_message *out,
                                 lcomm_pair_message *in, bool *moved, bool *over);

/* Forget what is in flight of a message. */
void lcomm_pair_forget(lcomm_comm *comm, lcomm_pair_message *message);

#endif
