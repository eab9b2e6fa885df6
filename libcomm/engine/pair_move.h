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

/* pair_pieces.c: the same for the pieces of long data; *over when all of them are. Those of a
 * receive are posted once by lcomm_pair_post_pieces(). */
lcomm_status lcomm_pair_move_out(lcomm_comm *comm, lcomm_pair_message *message, bool *moved,
                                 bool *over);
lcomm_status lcomm_pair_move_in(lcomm_comm *comm, lcomm_pair_message *message, bool *moved,
                                bool *over);
lcomm_status lcomm_pair_post_pieces(lcomm_comm *comm, lcomm_pair_message *message);

/* pair_transfer.c */

/* Tags; those of graphs have the number of their channel besides (pair_recording.h). */
enum {
  LCOMM_PAIR_CHANNEL_SHIFT = 16,
  LCOMM_PAIR_HEADER_TAG = LCOMM_TAG_CONTROL | 32,
  LCOMM_PAIR_REQUEST_TAG = LCOMM_TAG_CONTROL | 33,
  LCOMM_PAIR_PIECE_TAG = LCOMM_TAG_CONTROL | 34
};

/* Post a transfer to or from the peer; *posted says that it is in flight. */
lcomm_status lcomm_pair_send(lcomm_comm *comm, const lcomm_pair_message *message, uint32_t tag,
                             const void *bytes, size_t size, lcomm_transfer *transfer,
                             bool *posted);
lcomm_status lcomm_pair_receive(lcomm_comm *comm, const lcomm_pair_message *message, uint32_t tag,
                                void *bytes, size_t size, lcomm_transfer *transfer, bool *posted);

/* Clear *posted when the transfer is over. */
lcomm_status lcomm_pair_test(lcomm_comm *comm, const lcomm_pair_message *message,
                             lcomm_transfer *transfer, bool *posted, size_t *size, bool *moved);

/* Forget what is in flight of a message. */
void lcomm_pair_forget(lcomm_comm *comm, lcomm_pair_message *message);

/* Fail: what a peer has sent is no message; `why` as half a sentence. */
lcomm_status lcomm_pair_malformed(lcomm_comm *comm, int peer, const char *why);

#endif
