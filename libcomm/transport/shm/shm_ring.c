/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/shm/shm_ring.h"

#include <string.h>

void lcomm_shm_writer_init(lcomm_shm_writer *writer, lcomm_shm_lane *lane) {
  memset(writer, 0, sizeof *writer);
  writer->ring = lane->ring;
  writer->tail = &lane->tail;
  writer->clean = LCOMM_SHM_RING; /* new memory is zero */
}

void lcomm_shm_reader_init(lcomm_shm_reader *reader, lcomm_shm_lane *lane) {
  memset(reader, 0, sizeof *reader);
  reader->ring = lane->ring;
  reader->tail = &lane->tail;
}

/* Look at the tail, which the peer may have set to anything. */
static void look_at_tail(lcomm_shm_writer *writer) {
  uint64_t tail = atomic_load_explicit(writer->tail, memory_order_seq_cst);
  if (tail < writer->seen || tail > writer->head || tail % LCOMM_SHM_LINE != 0) {
    writer->broken = true;
    return;
  }
  writer->seen = tail;
}

unsigned char *lcomm_shm_reserve_slowly(lcomm_shm_writer *writer, uint64_t span, size_t spare) {
  uint64_t left = lcomm_shm_left(writer->head);
  uint64_t pad = span > left ? left : 0;
  uint64_t end = writer->head + pad + span + LCOMM_SHM_LINE + spare;
  if (end > writer->seen + LCOMM_SHM_RING) {
    look_at_tail(writer);
    if (writer->broken || end > writer->seen + LCOMM_SHM_RING) {
      return NULL;
    }
  }
  if (pad > 0) {
    lcomm_shm_entry *entry = lcomm_shm_place(writer->ring, writer->head);
    uint64_t begin = writer->head + pad;
    lcomm_shm_clear(writer, begin, begin + LCOMM_SHM_LINE);
    atomic_store_explicit(&entry->word, lcomm_shm_word(writer->head, LCOMM_SHM_PAD, 0),
                          memory_order_release);
    writer->head = begin;
  }
  return lcomm_shm_data(lcomm_shm_place(writer->ring, writer->head));
}

void lcomm_shm_prepare_slowly(lcomm_shm_writer *writer) {
  uint64_t to = writer->head + LCOMM_SHM_AHEAD;
  if (to > writer->seen + LCOMM_SHM_RING) {
    look_at_tail(writer);
  }
  uint64_t limit = writer->seen + LCOMM_SHM_RING;
  lcomm_shm_clear(writer, writer->head + LCOMM_SHM_LINE, to < limit ? to : limit);
}
