/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the peer of target_shm.c writes into shared memory. */

#include "tests/support/fuzz_promise.h"
#include "tests/support/target_shm_party.h"

/* ------------------------------------------------------- what it has heard */

/* The next entry that we have written to it; its size, or -1. */
int fuzz_shm_hear_entry(fuzz_party *p, uint32_t *kind, uint32_t *tag, uint32_t *generation,
                        uint8_t data[LCOMM_SHM_INLINE]) {
  uint64_t word = lcomm_shm_look(&p->back);
  size_t size = lcomm_shm_word_size(word);
  if ((uint32_t)word != lcomm_shm_stamp(p->back.at)) {
    return -1;
  }
  lcomm_shm_entry *entry = lcomm_shm_place(p->back.ring, p->back.at);
  *kind = lcomm_shm_word_kind(word);
  if (*kind == LCOMM_SHM_PAD) {
    lcomm_shm_advance(&p->back, lcomm_shm_left(p->back.at));
    return -1;
  }
  fuzz_require(size <= LCOMM_SHM_INLINE, "we write no entry that is too long");
  *tag = entry->tag;
  *generation = entry->generation;
  memcpy(data, lcomm_shm_data(entry), size);
  if (size == sizeof(p->known)) {
    memcpy(&p->known, data, size);
  }
  lcomm_shm_advance(&p->back, lcomm_shm_span(size));
  return (int)size;
}

/* ---------------------------------------------------------- what it writes */

static void write_entry(fuzz_party *p, uint32_t kind, uint32_t tag, uint32_t generation,
                        const void *data, size_t size) {
  unsigned char *place = lcomm_shm_reserve(&p->out, size, 0);
  if (place) {
    memcpy(place, data, size);
    lcomm_shm_publish(&p->out, kind, tag, generation, size);
    lcomm_shm_prepare(&p->out);
  }
}

static void write_any_entry(fuzz_party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind = fuzz_u8(p->in) % 12, tag = fuzz_u8(p->in) % FUZZ_SHM_TAGS,
           generation = fuzz_u8(p->in);
  size_t size = fuzz_u16(p->in) % (sizeof(data) + 1);
  size = kind == LCOMM_SHM_CONTROL && size > 8 ? (size_t)LCOMM_CONTROL_SIZE : size;
  fuzz_take(p->in, data, size);
  write_entry(p, kind, tag, generation, data, size);
}

static void write_word(fuzz_party *p) {
  lcomm_shm_entry *entry = lcomm_shm_place(p->out.ring, p->out.head);
  uint64_t word = fuzz_u64(p->in);
  bool stamped = fuzz_u8(p->in) % 2 == 0;
  atomic_store(&entry->word,
               stamped ? (word & ~(uint64_t)UINT32_MAX) | lcomm_shm_stamp(p->out.head) : word);
}

static void change(fuzz_party *p, uint8_t *bytes, size_t size) {
  for (size_t changes = fuzz_u8(p->in) % 8; size > 0 && changes > 0; changes--) {
    size_t at = fuzz_u8(p->in) % size;
    bytes[at] = fuzz_u8(p->in);
  }
}

/* A long message as it should be, then some of its bytes changed. */
static void write_long(fuzz_party *p) {
  uint32_t kind = LCOMM_SHM_MAPPED + fuzz_u8(p->in) % 3, tag = fuzz_u8(p->in) % FUZZ_SHM_TAGS;
  uint32_t generation = fuzz_u8(p->in);
  lcomm_shm_long there = p->known;
  there.slot = generation % 16;
  there.size = LCOMM_SHM_INLINE + 1 + fuzz_u16(p->in) % 6000;
  change(p, (uint8_t *)&there, sizeof(there));
  write_entry(p, kind, tag, generation, &there, sizeof(there));
}

/* What we have sent comes back, changed. */
static void write_back(fuzz_party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind = 0, tag = 0, generation = 0;
  int size = fuzz_shm_hear_entry(p, &kind, &tag, &generation, data);
  if (size >= 0) {
    change(p, data, (size_t)size);
    write_entry(p, kind, tag, generation, data, (size_t)size);
  }
}

/* A piece of a stream: right, or with any offset. */
static void write_piece(fuzz_party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t slot = fuzz_u8(p->in) % 20, generation = fuzz_u8(p->in);
  uint64_t offset = (uint64_t)fuzz_u8(p->in) * LCOMM_SHM_PIECE_SIZE;
  offset = fuzz_u8(p->in) == 255 ? fuzz_u64(p->in) : offset;
  size_t size = fuzz_u16(p->in) % (LCOMM_SHM_PIECE_SIZE + 1);
  memcpy(data, &offset, sizeof(offset));
  fuzz_take(p->in, data + sizeof(offset), size);
  write_entry(p, LCOMM_SHM_PIECE, slot, generation, data, sizeof(offset) + size);
}

static void write_answer(fuzz_party *p) {
  uint32_t slot = fuzz_u8(p->in) % 16;
  uint64_t answer = fuzz_u16(p->in);
  atomic_store(&p->peer->here->answers[slot], answer);
  atomic_fetch_add(&p->peer->here->answered, 1);
}

static void write_tail(fuzz_party *p) {
  uint8_t how = fuzz_u8(p->in);
  uint64_t tail = how % 4 == 0 ? fuzz_u64(p->in) : (uint64_t)how * LCOMM_SHM_LINE;
  atomic_store(&p->peer->there->tail, tail);
}

void fuzz_shm_write(fuzz_party *p, unsigned what) {
  static void (*const writes[FUZZ_SHM_WRITES])(fuzz_party * p) = {
      write_any_entry, write_any_entry, write_word, write_long, write_long,
      write_piece,     write_answer,    write_tail, write_back};
  writes[what](p);
}
