/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_FRAME_H
#define LCOMM_ENGINE_PAIR_FRAME_H

/* Pieces of messages between two ranks that travel behind a header of codecs/wire.h: those that
 * are encoded, and all with check=. The header's sequence is the number of the message, its
 * parameters are the number of the piece. */

#include "libcomm/engine/pair_internal.h"

enum {
  LCOMM_PAIR_FRAME_PIECE = 1 << 20,                           /* bytes of data */
  LCOMM_PAIR_FRAME_ROOM = LCOMM_PAIR_FRAME_PIECE + (16 << 10) /* of a frame, at most */
};

/* Make what the message needs in that queue; it travels in frames if message->wire is set. One of a
 * graph gets a lossless stage of its own. MEMORY. */
lcomm_status lcomm_pair_frame_prepare(lcomm_comm *comm, lcomm_pair_queue *queue,
                                      lcomm_pair_message *message);

/* The memory of a frame, one for each piece of the window. */
static inline uint8_t *lcomm_pair_frame_at(const lcomm_pair_message *it, uint32_t piece) {
  return it->wire + (size_t)(piece % LCOMM_PAIR_WINDOW) * LCOMM_PAIR_FRAME_ROOM;
}

/* Write the frame of a piece there; returns its bytes. */
size_t lcomm_pair_frame_write(lcomm_comm *comm, lcomm_pair_message *message, uint32_t piece);

/* Read `size` bytes that a peer has sent there, any bytes, into the data of the message. Returns
 * NULL, or why they are no frame of this piece: a static phrase. */
const char *lcomm_pair_frame_read(lcomm_comm *comm, lcomm_pair_message *message, uint32_t piece,
                                  size_t size);

/* Part of lcomm_pairs_free. */
void lcomm_pair_frames_free(lcomm_comm *comm);

#endif
