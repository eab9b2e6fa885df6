/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Frames out of a stream of bytes, whatever they are. */

#include "libcomm/bootstrap/store/store_internal.h"

static bool has_room(const lcomm_store_frame *frame, const lcomm_store_room *room) {
  return frame->kind == LCOMM_STORE_DATA ? room->takes_data && frame->size == room->data_size
                                         : frame->size <= room->other_size;
}

static lcomm_stream read_body(int fd, lcomm_store_inbox *inbox, const lcomm_store_room *room) {
  size_t done = inbox->received - LCOMM_STORE_HEADER_SIZE;
  uint8_t *place = inbox->frame.kind == LCOMM_STORE_DATA ? room->data : room->other;
  lcomm_stream stream = lcomm_socket_read(fd, place, (size_t)inbox->frame.size, &done);
  inbox->received = LCOMM_STORE_HEADER_SIZE + done;
  return stream;
}

lcomm_store_heard lcomm_store_hear(int fd, lcomm_store_inbox *inbox, const lcomm_store_room *room) {
  const size_t head = LCOMM_STORE_HEADER_SIZE;
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  while (stream == LCOMM_STREAM_MOVED) {
    if (inbox->received < head) {
      stream = lcomm_socket_read(fd, inbox->header, head, &inbox->received);
      if (inbox->received == head &&
          (lcomm_store_read_frame(inbox->header, &inbox->frame) != LCOMM_OK ||
           !has_room(&inbox->frame, room))) {
        return LCOMM_STORE_HEARD_STRANGE;
      }
    } else {
      stream = read_body(fd, inbox, room);
    }
    if (inbox->received >= head && inbox->received == head + inbox->frame.size) {
      inbox->received = 0;
      return LCOMM_STORE_HEARD_FRAME;
    }
  }
  return stream == LCOMM_STREAM_GONE ? LCOMM_STORE_HEARD_END : LCOMM_STORE_HEARD_NOTHING;
}
