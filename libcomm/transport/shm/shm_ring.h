/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_RING_H
#define LCOMM_TRANSPORT_SHM_SHM_RING_H

/* A ring of entries from one rank to another. Positions only grow; an entry
 * lies at its position modulo the size of the ring, in whole lines and in one
 * piece.
 *
 * The reader polls the first word of the entry to come, so that nothing but
 * the lines of the message moves between two cores. For that this word must
 * be 0 until the entry is there, whatever an earlier lap left in it: before
 * an entry is published, the writer clears the line behind it. It does so
 * some lines ahead, after publishing, which also brings these lines into its
 * cache before they are needed.
 */

#include <stdbool.h>

#include "libcomm/transport/shm/shm_layout.h"

enum {
  LCOMM_SHM_MASK = LCOMM_SHM_RING - 1,
  LCOMM_SHM_AHEAD = 8 * LCOMM_SHM_LINE, /* bytes that are cleared ahead */
  LCOMM_SHM_LAG = LCOMM_SHM_RING / 8    /* bytes read before the tail is moved */
};

typedef struct lcomm_shm_writer {
  unsigned char *ring;
  const _Atomic uint64_t *tail;
  uint64_t head;  /* the next entry's position */
  uint64_t seen;  /* the tail when it was last looked at */
  uint64_t clean; /* lines from head to here are cleared */
  bool broken;    /* the tail made no sense */
} lcomm_shm_writer;

typedef struct lcomm_shm_reader {
  unsigned char *ring;
  _Atomic uint64_t *tail;
  uint64_t at;   /* position of the next entry */
  uint64_t told; /* what was last written to the tail */
} lcomm_shm_reader;

/* Bytes of an entry with `size` bytes of data. */
static inline uint64_t lcomm_shm_span(size_t size) {
  return (LCOMM_SHM_HEADER + size + LCOMM_SHM_LINE - 1) & ~(uint64_t)(LCOMM_SHM_LINE - 1);
}

/* Bytes from a position to the end of the ring. */
static inline uint64_t lcomm_shm_left(uint64_t position) {
  return LCOMM_SHM_RING - (position & LCOMM_SHM_MASK);
}

static inline uint32_t lcomm_shm_stamp(uint64_t position) {
  return (uint32_t)(position / LCOMM_SHM_LINE) | UINT32_C(0x80000000);
}

static inline uint64_t lcomm_shm_word(uint64_t position, uint32_t kind, size_t size) {
  return lcomm_shm_stamp(position) | (uint64_t)kind << 32 | (uint64_t)size << 40;
}

static inline uint32_t lcomm_shm_word_kind(uint64_t word) {
  return (uint32_t)(word >> 32) & 0xff;
}

static inline size_t lcomm_shm_word_size(uint64_t word) {
  return (size_t)(word >> 40);
}

static inline lcomm_shm_entry *lcomm_shm_place(unsigned char *ring, uint64_t position) {
  return (lcomm_shm_entry *)(void *)(ring + (position & LCOMM_SHM_MASK));
}

static inline unsigned char *lcomm_shm_data(lcomm_shm_entry *entry) {
  return (unsigned char *)entry + LCOMM_SHM_HEADER;
}

/* --------------------------------------------------------------- writing */

void lcomm_shm_writer_init(lcomm_shm_writer *writer, lcomm_shm_lane *lane);

/* As lcomm_shm_reserve, when the tail must be looked at or the ring turned. */
unsigned char *lcomm_shm_reserve_slowly(lcomm_shm_writer *writer, uint64_t span, size_t spare);

/* Where the bytes of an entry of `size` bytes go, with `spare` bytes still
 * free behind it; NULL when there is no room, or the ring is broken. */
static inline unsigned char *lcomm_shm_reserve(lcomm_shm_writer *writer, size_t size,
                                               size_t spare) {
  uint64_t span = lcomm_shm_span(size);
  if (span > lcomm_shm_left(writer->head) ||
      writer->head + span + LCOMM_SHM_LINE + spare > writer->seen + LCOMM_SHM_RING) {
    return lcomm_shm_reserve_slowly(writer, span, spare);
  }
  return lcomm_shm_data(lcomm_shm_place(writer->ring, writer->head));
}

/* Clear the stamps of lines up to position `to`; those before `from` will be
 * written over. */
static inline void lcomm_shm_clear(lcomm_shm_writer *writer, uint64_t from, uint64_t to) {
  if (writer->clean < from) {
    writer->clean = from;
  }
  for (; writer->clean < to; writer->clean += LCOMM_SHM_LINE) {
    lcomm_shm_entry *entry = lcomm_shm_place(writer->ring, writer->clean);
    atomic_store_explicit(&entry->word, 0, memory_order_relaxed);
  }
}

/* Publish what was written at the place that reserve gave. The store is
 * sequentially consistent because sleeping and waking need it (shm_wakeup.c). */
static inline void lcomm_shm_publish(lcomm_shm_writer *writer, uint32_t kind, uint32_t tag,
                                     uint32_t generation, size_t size) {
  lcomm_shm_entry *entry = lcomm_shm_place(writer->ring, writer->head);
  uint64_t end = writer->head + lcomm_shm_span(size);
  lcomm_shm_clear(writer, end, end + LCOMM_SHM_LINE);
  entry->tag = tag;
  entry->generation = generation;
  atomic_store_explicit(&entry->word, lcomm_shm_word(writer->head, kind, size),
                        memory_order_seq_cst);
  writer->head = end;
}

void lcomm_shm_prepare_slowly(lcomm_shm_writer *writer);

/* After publishing, and after the doorbell: clear ahead. */
static inline void lcomm_shm_prepare(lcomm_shm_writer *writer) {
  if (writer->clean < writer->head + LCOMM_SHM_AHEAD) {
    lcomm_shm_prepare_slowly(writer);
  }
}

/* --------------------------------------------------------------- reading */

void lcomm_shm_reader_init(lcomm_shm_reader *reader, lcomm_shm_lane *lane);

/* The word of the next entry: stamped when it is there, 0 when not. */
static inline uint64_t lcomm_shm_look(const lcomm_shm_reader *reader) {
  return atomic_load_explicit(&lcomm_shm_place(reader->ring, reader->at)->word,
                              memory_order_acquire);
}

/* Is an entry of this size whole, given where it begins? */
static inline bool lcomm_shm_fits(const lcomm_shm_reader *reader, size_t size) {
  return size <= LCOMM_SHM_INLINE && lcomm_shm_span(size) <= lcomm_shm_left(reader->at);
}

/* Go on behind an entry; true when the writer was told, who may wait for it. */
static inline bool lcomm_shm_advance(lcomm_shm_reader *reader, uint64_t span) {
  reader->at += span;
  if (reader->at - reader->told < LCOMM_SHM_LAG) {
    return false;
  }
  reader->told = reader->at;
  atomic_store_explicit(reader->tail, reader->at, memory_order_seq_cst);
  return true;
}

#endif
