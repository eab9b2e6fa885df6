/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A peer may write anything into shared memory: it is named, and nothing is
 * read or written that is not ours or its own. Rank 1 does the writing. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

enum { TAG = 5 };

static lcomm_shm_peer *victim_of(const party *p) {
  return lcomm_shm_of(p->t)->of[0];
}

static void publish(const party *p, uint32_t kind, uint32_t tag, uint32_t generation,
                    const void *data, size_t size) {
  lcomm_shm_peer *victim = victim_of(p);
  unsigned char *place = lcomm_shm_reserve(&victim->out, size, 0);
  forked_require(p->self, place != NULL, "the ring is full");
  memcpy(place, data, size);
  lcomm_shm_publish(&victim->out, kind, tag, generation, size);
}

/* A description that is right, to be spoilt. */
static lcomm_shm_long right(const party *p) {
  lcomm_shm_address address;
  unsigned char *memory = p->v->memory_get(p->t, 100000);
  forked_require(p->self, memory && lcomm_shm_heap_find(memory, 100000, &address), "no memory");
  return (lcomm_shm_long){.size = 100000,
                          .address = (uintptr_t)memory,
                          .offset = address.offset,
                          .region_size = address.region_size,
                          .region = address.region,
                          .region_generation = address.generation,
                          .file = address.file};
}

/* --------------------------------------------------------------- entries */

typedef void (*spoiler)(const party *p);
static spoiler spoil;

static void unknown_kind(const party *p) {
  publish(p, 99, TAG, 0, "12345678", 8);
}
static void kind_zero(const party *p) {
  publish(p, 0, TAG, 0, "12345678", 8);
}
static void short_notice(const party *p) {
  publish(p, LCOMM_SHM_CONTROL, 0, 0, "12345678", 8);
}
static void short_description(const party *p) {
  publish(p, LCOMM_SHM_MAPPED, TAG, 0, "12345678", 8);
}
static void piece_of_nothing(const party *p) {
  publish(p, LCOMM_SHM_PIECE, 3, 0, "12345678abc", 11);
}
static void piece_of_a_wild_slot(const party *p) {
  publish(p, LCOMM_SHM_PIECE, UINT32_MAX, 0, "12345678abc", 11);
}
static void piece_without_offset(const party *p) {
  publish(p, LCOMM_SHM_PIECE, 0, 0, "123", 3);
}
static void raw_word(const party *p, uint64_t word) {
  lcomm_shm_peer *victim = victim_of(p);
  lcomm_shm_entry *entry = lcomm_shm_place(victim->out.ring, victim->out.head);
  atomic_store(&entry->word, word);
}
static void wrong_stamp(const party *p) {
  raw_word(p, lcomm_shm_word(victim_of(p)->out.head + LCOMM_SHM_LINE, LCOMM_SHM_MESSAGE, 8));
}
static void too_long_an_entry(const party *p) {
  raw_word(p, lcomm_shm_word(victim_of(p)->out.head, LCOMM_SHM_MESSAGE, LCOMM_SHM_INLINE + 1));
}
static void longest_entry(const party *p) {
  raw_word(p, lcomm_shm_word(victim_of(p)->out.head, LCOMM_SHM_MESSAGE, 0xffffff));
}
static void pad_of_a_whole_ring(const party *p) {
  raw_word(p, lcomm_shm_word(victim_of(p)->out.head, LCOMM_SHM_PAD, 0));
}
static void entry_beyond_the_end(const party *p) {
  lcomm_shm_peer *victim = victim_of(p);
  static const unsigned char filler[4000];
  while (lcomm_shm_left(victim->out.head) > 4096) {
    publish(p, LCOMM_SHM_MESSAGE, 77, 0, filler, sizeof(filler));
  }
  raw_word(p, lcomm_shm_word(victim->out.head, LCOMM_SHM_MESSAGE, LCOMM_SHM_INLINE));
}
/* A long message that is right but for one member. */
#define LONG_WITH(name, kind, member, value)                                                       \
  static void name(const party *p) {                                                               \
    lcomm_shm_long there = right(p);                                                               \
    there.member = value;                                                                          \
    publish(p, kind, TAG, 1, &there, sizeof(there));                                               \
  }
LONG_WITH(beyond_the_region, LCOMM_SHM_MAPPED, offset, there.region_size - there.size + 1)
LONG_WITH(offset_that_wraps, LCOMM_SHM_MAPPED, offset, UINT64_MAX - 10)
LONG_WITH(size_that_wraps, LCOMM_SHM_READ, size, UINT64_MAX)
LONG_WITH(wild_slot, LCOMM_SHM_READ, slot, LCOMM_SHM_SLOTS)
LONG_WITH(wild_region, LCOMM_SHM_MAPPED, region, LCOMM_SHM_REGIONS)
LONG_WITH(negative_file, LCOMM_SHM_MAPPED, file, -1)
LONG_WITH(short_long_message, LCOMM_SHM_MAPPED, size, 1)
/* Two streams in one slot. */
static void slot_used_twice(const party *p) {
  lcomm_shm_long there = right(p);
  publish(p, LCOMM_SHM_STREAM, TAG + 1, 1, &there, sizeof(there));
  publish(p, LCOMM_SHM_STREAM, TAG, 2, &there, sizeof(there));
}
static void piece_out_of_order(const party *p) {
  lcomm_shm_long there = right(p);
  uint64_t piece[2] = {1, 0};
  publish(p, LCOMM_SHM_STREAM, TAG, 1, &there, sizeof(there));
  publish(p, LCOMM_SHM_PIECE, 0, 1, piece, sizeof(piece));
}
static void piece_of_another_generation(const party *p) {
  lcomm_shm_long there = right(p);
  uint64_t piece[2] = {0, 0};
  publish(p, LCOMM_SHM_STREAM, TAG, 1, &there, sizeof(there));
  publish(p, LCOMM_SHM_PIECE, 0, 2, piece, sizeof(piece));
}
static void more_pieces_than_said(const party *p) {
  static unsigned char piece[8 + 4096];
  lcomm_shm_long there = right(p);
  there.size = LCOMM_SHM_INLINE + 1;
  publish(p, LCOMM_SHM_STREAM, TAG, 1, &there, sizeof(there));
  publish(p, LCOMM_SHM_PIECE, 0, 1, piece, sizeof(piece));
  piece[1] = 0x10; /* offset 4096 */
  publish(p, LCOMM_SHM_PIECE, 0, 1, piece, 8 + 66);
}

static void suffer(forked *self) {
  static unsigned char in[100000];
  party p = open_party(self);
  if (self->rank == 1) {
    together(self);
    spoil(&p);
    together(self);
    together(self);
    p.v->close(p.t, false);
    return;
  }
  lcomm_transfer received[2], sent;
  receive_from(&p, 1, TAG, in, sizeof(in), &received[0]);
  receive_from(&p, 1, TAG + 1, in, sizeof(in), &received[1]);
  together(self);
  together(self);
  const void *bytes = NULL;
  size_t size = 0;
  forked_require(self, !p.v->peek(p.t, 1, TAG, &bytes, &size), "it was taken for a message");
  for (int i = 0; i < 2; i++) {
    forked_require(self, await(&p, &received[i], NULL) == LCOMM_ERR_TRANSPORT, "it was taken");
    forked_require(self, strcmp(p.t->why, "rank 1 wrote a malformed entry into shared memory") == 0,
                   "said: %s", p.t->why);
  }
  forked_require(self, p.v->send(p.t, 1, TAG, "", 1, &sent) == LCOMM_ERR_TRANSPORT,
                 "it still sends");
  together(self);
  p.v->close(p.t, false);
}

static void malformed_entries_are_named(void **state) {
  (void)state;
  static const spoiler spoilers[] = {unknown_kind,
                                     kind_zero,
                                     short_notice,
                                     short_description,
                                     piece_of_nothing,
                                     wild_slot,
                                     piece_of_a_wild_slot,
                                     piece_without_offset,
                                     wrong_stamp,
                                     too_long_an_entry,
                                     longest_entry,
                                     pad_of_a_whole_ring,
                                     beyond_the_region,
                                     offset_that_wraps,
                                     entry_beyond_the_end,
                                     size_that_wraps,
                                     wild_region,
                                     negative_file,
                                     short_long_message,
                                     slot_used_twice,
                                     more_pieces_than_said,
                                     piece_out_of_order,
                                     piece_of_another_generation};
  for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++) {
    spoil = spoilers[i];
    forked_run(2, suffer);
  }
}

/* ------------------------------------------------------------------ tails */

static void a_tail_that_makes_no_sense_is_named(forked *self) {
  enum { MANY = 60 };
  static unsigned char bytes[4000];
  static const uint64_t tails[] = {UINT64_MAX, 64 * 1024, 1, 1 << 20};
  for (int i = 0; i < 4; i++) {
    party p = open_party(self);
    lcomm_transfer sent[MANY];
    lcomm_status status = LCOMM_OK;
    if (self->rank == 1) {
      atomic_store(&victim_of(&p)->here->tail, tails[i]);
      together(self);
    } else {
      together(self);
      for (int k = 0; k < MANY && status == LCOMM_OK; k++) {
        status = p.v->send(p.t, 1, TAG, bytes, sizeof(bytes), &sent[k]);
      }
      forked_require(self, status == LCOMM_ERR_TRANSPORT && strstr(p.t->why, "malformed"), "%s",
                     p.t->why);
    }
    together(self);
    p.v->close(p.t, false);
  }
}

/* ------------------------------------------------------- what is offered */

/* Files that are no region, or not that one: the bytes come another way. */
static void files_that_are_no_regions_are_not_mapped(forked *self) {
  static unsigned char in[100000];
  party p = open_party(self);
  lcomm_transfer transfer;
  int loose = memfd_create("libcomm memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  forked_require(self, loose >= 0 && ftruncate(loose, 1 << 20) == 0, "no memory file");
  for (int i = 0; i < 4; i++) {
    if (self->rank == 1) {
      lcomm_shm_long there = right(&p);
      there.slot = (uint16_t)i;
      there.region = (uint16_t)(1 + i);
      there.file = i == 0 ? loose : i == 1 ? 0 : i == 2 ? 9999 : there.file;
      there.region_size = i == 3 ? there.region_size + 4096 : 1 << 20;
      there.offset = 4096;
      fill((unsigned char *)(uintptr_t)there.address, 100000, (uint32_t)i);
      publish(&p, LCOMM_SHM_MAPPED, TAG, 1, &there, sizeof(there));
    } else {
      check(&p, p.v->zero_copy->receive(p.t, 1, TAG, 100000, &transfer), "zero-copy receive");
      finish(&p, &transfer);
      forked_require(self, !p.v->zero_copy->map(p.t, &transfer), "file %d was mapped", i);
      check(&p, p.v->zero_copy->get(p.t, &transfer, 0, 100000, in), "get");
      require_bytes(&p, in, 100000, (uint32_t)i, "get");
      p.v->zero_copy->release(p.t, &transfer);
    }
  }
  together(self);
  close(loose);
  close_party(&p);
}

/* Memory that is not there is an error of the reading rank only. */
static void memory_that_is_not_there_cannot_be_read(forked *self) {
  static unsigned char in[100000];
  party p = open_party(self);
  lcomm_transfer transfer;
  if (self->rank == 1) {
    lcomm_shm_long there = {.size = 100000, .address = 64};
    publish(&p, LCOMM_SHM_READ, TAG, 1, &there, sizeof(there));
    there.slot = 1;
    publish(&p, LCOMM_SHM_READ, TAG, 2, &there, sizeof(there));
  } else {
    receive_from(&p, 1, TAG, in, sizeof(in), &transfer);
    forked_require(self, await(&p, &transfer, NULL) == LCOMM_ERR_TRANSPORT, "it was read");
    forked_require(self, strstr(p.t->why, "(rank 1) cannot be read: Bad address") != NULL,
                   "said: %s", p.t->why);
    check(&p, p.v->zero_copy->receive(p.t, 1, TAG, 100000, &transfer), "zero-copy receive");
    finish(&p, &transfer);
    forked_require(self, p.v->zero_copy->get(p.t, &transfer, 0, 10, in) == LCOMM_ERR_TRANSPORT,
                   "it was got");
    p.v->zero_copy->release(p.t, &transfer);
  }
  close_party(&p);
}

static void messages_nobody_asks_for_do_not_fill_the_memory(forked *self) {
  party p = open_party(self);
  lcomm_transfer transfer;
  if (self->rank == 1) {
    while (!self->shared[0]) {
      p.v->progress(p.t);
      if (victim_of(&p)->queue.first) {
        sched_yield();
      } else {
        (void)p.v->send(p.t, 0, TAG + 1, "x", 1, &transfer);
      }
    }
    together(self);
  } else {
    receive_from(&p, 1, TAG, NULL, 0, &transfer);
    forked_require(self, await(&p, &transfer, NULL) == LCOMM_ERR_TRANSPORT, "no end");
    forked_require(self, strstr(p.t->why, "nobody has asked for") != NULL, "said: %s", p.t->why);
    self->shared[0] = 1;
    together(self);
  }
  p.v->close(p.t, false);
}

/* ---------------------------------------------------------------- chance */

static uint64_t next_random(uint64_t *seed) {
  *seed += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t x = *seed;
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Entries that are nearly right, and lines that are not. */
static void write_nonsense(const party *p, uint64_t *seed) {
  lcomm_shm_peer *victim = victim_of(p);
  uint64_t a = next_random(seed);
  uint64_t at = a % 4 ? victim->out.head : next_random(seed) % LCOMM_SHM_RING & ~UINT64_C(63);
  unsigned char *ring = victim->out.ring;
  uint32_t kind = (uint32_t)(a >> 8) % 9;
  size_t size = a >> 16 & 1 ? 48 : (a >> 20) % 5000;
  lcomm_shm_entry *entry = lcomm_shm_place(ring, at);
  lcomm_shm_long there = right(p);
  there.offset = a >> 40 & 1 ? there.offset : next_random(seed) >> (a >> 44 & 63);
  there.size = a >> 41 & 1 ? there.size : next_random(seed) >> (a >> 50 & 63);
  there.slot = (uint16_t)(next_random(seed) % 5000);
  there.region = (uint16_t)(a >> 30 & 3);
  memcpy(lcomm_shm_data(entry), &there, lcomm_shm_left(at) >= 64 ? sizeof(there) : 0);
  p->v->memory_free((void *)(uintptr_t)there.address);
  entry->tag = a >> 60 & 1 ? TAG : (uint32_t)(a >> 56);
  atomic_store(&entry->word, lcomm_shm_word(at, kind, size));
  victim->out.head = at + lcomm_shm_span(size);
}

static void nonsense_is_survived(forked *self) {
  static unsigned char in[100000];
  uint64_t seed = 1;
  for (int round = 0; round < 300; round++) {
    party p = open_party(self);
    seed += (uint64_t)round;
    if (self->rank == 1) {
      for (int i = 0; i < 30; i++) {
        write_nonsense(&p, &seed);
      }
      together(self);
      together(self);
    } else {
      lcomm_transfer transfers[3];
      receive_from(&p, 1, TAG, in, sizeof(in), &transfers[0]);
      check(&p, p.v->zero_copy->receive(p.t, 1, TAG, 100000, &transfers[1]), "zero-copy receive");
      send_to(&p, 1, TAG, in, sizeof(in), &transfers[2]);
      together(self);
      for (int i = 0; i < 10; i++) {
        p.v->progress(p.t);
        for (int k = 0; k < 3; k++) {
          bool over = false;
          (void)p.v->test(p.t, &transfers[k], &over, NULL);
        }
      }
      for (int k = 0; k < 3; k++) {
        p.v->cancel(p.t, &transfers[k]);
      }
      together(self);
    }
    bool is_over = p.v->close(p.t, false);
    together(self);
    forked_require(self, is_over || p.v->release(p.t), "round %d: who has closed may read", round);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(malformed_entries_are_named),
    FORKED_TEST(a_tail_that_makes_no_sense_is_named, 2),
    FORKED_TEST(files_that_are_no_regions_are_not_mapped, 2),
    FORKED_TEST(memory_that_is_not_there_cannot_be_read, 2),
    FORKED_TEST(messages_nobody_asks_for_do_not_fill_the_memory, 2),
    FORKED_TEST(nonsense_is_survived, 2),
};
RUN_TESTS(tests)
