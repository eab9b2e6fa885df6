/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Long data of messages between two ranks, piece by piece. */

#include "libcomm/engine/pair_frame.h"
#include "libcomm/engine/pair_move.h"

static lcomm_status post_out(lcomm_comm *comm, lcomm_pair_message *it) {
  uint8_t *at;
  uint32_t place = it->posted % LCOMM_PAIR_WINDOW;
  size_t size = lcomm_pair_piece(it, it->posted, &at);
  if (it->wire) {
    at = lcomm_pair_frame_at(it, it->posted);
    size = lcomm_pair_frame_write(comm, it, it->posted);
  }
  it->posted++;
  it->end.wire_bytes += size;
  return lcomm_pair_send(comm, it, LCOMM_PAIR_PIECE_TAG, at, size, &it->in_flight.piece[place],
                         &it->in_flight.piece_posted[place]);
}

lcomm_status lcomm_pair_move_out(lcomm_comm *comm, lcomm_pair_message *it, bool *moved,
                                 bool *over) {
  lcomm_pair_transfers *all = &it->in_flight;
  bool left = true;
  while (left && it->piece < it->posted) {
    uint32_t place = it->piece % LCOMM_PAIR_WINDOW;
    LCOMM_TRY(
        lcomm_pair_test(comm, it, &all->piece[place], &all->piece_posted[place], NULL, moved));
    left = !all->piece_posted[place];
    it->piece += left;
  }
  while (it->posted < it->pieces && it->posted - it->piece < LCOMM_PAIR_WINDOW &&
         lcomm_pair_has(it, it->posted + 1)) {
    *moved = true;
    LCOMM_TRY(post_out(comm, it));
  }
  *over = it->piece == it->pieces;
  return LCOMM_OK;
}

static lcomm_status post_in(lcomm_comm *comm, lcomm_pair_message *it) {
  uint8_t *at;
  uint32_t place = it->posted % LCOMM_PAIR_WINDOW;
  size_t size = lcomm_pair_piece(it, it->posted, &at);
  if (it->wire) {
    at = lcomm_pair_frame_at(it, it->posted);
    size = LCOMM_PAIR_FRAME_ROOM;
  }
  it->posted++;
  return lcomm_pair_receive(comm, it, LCOMM_PAIR_PIECE_TAG, at, size, &it->in_flight.piece[place],
                            &it->in_flight.piece_posted[place]);
}

lcomm_status lcomm_pair_post_pieces(lcomm_comm *comm, lcomm_pair_message *it) {
  while (it->posted < it->pieces && it->posted - it->piece < LCOMM_PAIR_WINDOW) {
    LCOMM_TRY(post_in(comm, it));
  }
  return LCOMM_OK;
}

/* The piece that has come. */
static lcomm_status accept(lcomm_comm *comm, lcomm_pair_message *it, size_t size) {
  uint8_t *at;
  const char *why = NULL;
  if (it->wire) {
    why = lcomm_pair_frame_read(comm, it, it->piece, size);
  } else if (size != lcomm_pair_piece(it, it->piece, &at)) {
    why = "a piece of another length than that of its elements";
  }
  if (why) {
    return lcomm_pair_malformed(comm, it->peer, why);
  }
  it->end.wire_bytes += size;
  it->piece++;
  lcomm_pair_gives(it, it->piece);
  return lcomm_pair_post_pieces(comm, it);
}

lcomm_status lcomm_pair_move_in(lcomm_comm *comm, lcomm_pair_message *it, bool *moved, bool *over) {
  lcomm_pair_transfers *all = &it->in_flight;
  bool here = true;
  while (here && it->piece < it->posted) {
    size_t size = 0;
    uint32_t place = it->piece % LCOMM_PAIR_WINDOW;
    LCOMM_TRY(
        lcomm_pair_test(comm, it, &all->piece[place], &all->piece_posted[place], &size, moved));
    here = !all->piece_posted[place];
    LCOMM_TRY(here ? accept(comm, it, size) : LCOMM_OK);
  }
  *over = it->piece == it->pieces;
  return LCOMM_OK;
}
