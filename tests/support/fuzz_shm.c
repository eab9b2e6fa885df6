/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_shm.h"

#include <unistd.h>

#include "libcomm/transport/shm_internal.h"
#include "tests/support/fuzz_bytes.h"
#include "tests/support/fuzz_promise.h"

enum { RANKS = 2, PEER = 1, TRANSFERS = 16, EVENTS_MAX = 200, MEMORY_SIZE = 12000, TAGS = 8 };

/* A message that we wait for, or send. */
typedef struct pending {
  bool in_use, borrowed;
  uint8_t *bytes; /* of exactly `room` */
  size_t room;
  lcomm_transfer transfer;
} pending;

typedef struct party {
  fuzz_bytes *in;
  uint8_t how; /* byte 0 */
  lcomm_identity identities[RANKS];
  lcomm_transport *t;
  const lcomm_transport_table *v;
  lcomm_shm_peer *peer;
  lcomm_shm_writer out;  /* the peer's, into our ring */
  lcomm_shm_reader back; /* likewise, of its own ring */
  lcomm_shm_long known;  /* a long message that we have sent */
  uint8_t *memory;       /* that peers can view */
  pending pendings[TRANSFERS];
} party;

/* --------------------------------------------------------------- meeting */

/* The peer says what we say, but for the input's changes; then, what it reached. */
static int say_the_same(void *context, const void *send, void *receive, size_t size) {
  party *p = context;
  uint8_t *theirs = (uint8_t *)receive + PEER * size;
  memcpy(receive, send, size);
  memcpy(theirs, send, size);
  if (size == sizeof(lcomm_shm_offer)) {
    for (int i = 0; i < (p->how & 15); i++) {
      size_t at = fuzz_u8(p->in) % size;
      theirs[at] = fuzz_u8(p->in);
    }
  } else {
    theirs[0] = p->how & 0x40 ? 0xff : ((const uint8_t *)send)[PEER];
  }
  return 0;
}

static bool open_party(party *p) {
  static const uint64_t odd_pids[] = {0, UINT64_MAX, UINT64_C(1) << 40};
  char why[LCOMM_TRANSPORT_WHY_MAX];
  unsigned odd = p->how >> 4 & 3;
  for (int i = 0; i < RANKS; i++) {
    p->identities[i].pid = (uint64_t)getpid();
  }
  p->identities[PEER].pid = odd > 0 ? odd_pids[odd - 1] : p->identities[PEER].pid;
  lcomm_boot boot = {.world_size = RANKS, .context = p, .allgather = say_the_same};
  lcomm_transport_setup setup = {
      .size = RANKS, .identities = p->identities, .boot = &boot, .timeout_s = 1e-3};
  lcomm_status status = lcomm_transport_shm.open(&setup, &p->t, why);
  fuzz_require(strnlen(why, sizeof(why)) < sizeof(why), "a phrase ends");
  fuzz_require(status == LCOMM_OK || why[0] != '\0', "a refusal has a phrase");
  if (status != LCOMM_OK) {
    return false;
  }
  p->v = p->t->table;
  p->peer = lcomm_shm_of(p->t)->of[PEER];
  fuzz_require(p->peer && p->v->reaches(p->t, PEER), "what is open reaches the peer");
  lcomm_shm_writer_init(&p->out, p->peer->here);
  lcomm_shm_reader_init(&p->back, p->peer->there);
  return true;
}

/* ------------------------------------------------------- what it has heard */

/* The next entry that we have written to it; its size, or -1. */
static int hear_entry(party *p, uint32_t *kind, uint32_t *tag, uint32_t *generation,
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

/* Send it memory that it can view, so that it knows what a long message is like. */
static void introduce(party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind, tag, generation;
  pending *it = &p->pendings[0];
  p->memory = p->v->memory_get(p->t, MEMORY_SIZE);
  if (p->memory) {
    it->in_use = p->v->send(p->t, PEER, 0, p->memory, MEMORY_SIZE, &it->transfer) == LCOMM_OK;
    hear_entry(p, &kind, &tag, &generation, data);
  }
}

/* ---------------------------------------------------------- what it writes */

static void write_entry(party *p, uint32_t kind, uint32_t tag, uint32_t generation,
                        const void *data, size_t size) {
  unsigned char *place = lcomm_shm_reserve(&p->out, size, 0);
  if (place) {
    memcpy(place, data, size);
    lcomm_shm_publish(&p->out, kind, tag, generation, size);
    lcomm_shm_prepare(&p->out);
  }
}

static void write_any_entry(party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind = fuzz_u8(p->in) % 12, tag = fuzz_u8(p->in) % TAGS, generation = fuzz_u8(p->in);
  size_t size = fuzz_u16(p->in) % (sizeof(data) + 1);
  size = kind == LCOMM_SHM_NOTICE && size > 8 ? (size_t)LCOMM_NOTICE_SIZE : size;
  fuzz_take(p->in, data, size);
  write_entry(p, kind, tag, generation, data, size);
}

static void write_word(party *p) {
  lcomm_shm_entry *entry = lcomm_shm_place(p->out.ring, p->out.head);
  uint64_t word = fuzz_u64(p->in);
  bool stamped = fuzz_u8(p->in) % 2 == 0;
  atomic_store(&entry->word,
               stamped ? (word & ~(uint64_t)UINT32_MAX) | lcomm_shm_stamp(p->out.head) : word);
}

static void change(party *p, uint8_t *bytes, size_t size) {
  for (size_t changes = fuzz_u8(p->in) % 8; size > 0 && changes > 0; changes--) {
    size_t at = fuzz_u8(p->in) % size;
    bytes[at] = fuzz_u8(p->in);
  }
}

/* A long message as it should be, then some of its bytes changed. */
static void write_long(party *p) {
  uint32_t kind = LCOMM_SHM_VIEW + fuzz_u8(p->in) % 3, tag = fuzz_u8(p->in) % TAGS;
  uint32_t generation = fuzz_u8(p->in);
  lcomm_shm_long there = p->known;
  there.slot = generation % 16;
  there.size = LCOMM_SHM_INLINE + 1 + fuzz_u16(p->in) % 6000;
  change(p, (uint8_t *)&there, sizeof(there));
  write_entry(p, kind, tag, generation, &there, sizeof(there));
}

/* What we have sent comes back, changed. */
static void write_back(party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind = 0, tag = 0, generation = 0;
  int size = hear_entry(p, &kind, &tag, &generation, data);
  if (size >= 0) {
    change(p, data, (size_t)size);
    write_entry(p, kind, tag, generation, data, (size_t)size);
  }
}

/* A piece of a stream: right, or with any offset. */
static void write_piece(party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t slot = fuzz_u8(p->in) % 20, generation = fuzz_u8(p->in);
  uint64_t offset = (uint64_t)fuzz_u8(p->in) * LCOMM_SHM_PIECE_SIZE;
  offset = fuzz_u8(p->in) == 255 ? fuzz_u64(p->in) : offset;
  size_t size = fuzz_u16(p->in) % (LCOMM_SHM_PIECE_SIZE + 1);
  memcpy(data, &offset, sizeof(offset));
  fuzz_take(p->in, data + sizeof(offset), size);
  write_entry(p, LCOMM_SHM_PIECE, slot, generation, data, sizeof(offset) + size);
}

static void write_answer(party *p) {
  uint32_t slot = fuzz_u8(p->in) % 16;
  uint64_t answer = fuzz_u16(p->in);
  atomic_store(&p->peer->here->answers[slot], answer);
  atomic_fetch_add(&p->peer->here->asked, 1);
}

static void write_tail(party *p) {
  uint8_t how = fuzz_u8(p->in);
  uint64_t tail = how % 4 == 0 ? fuzz_u64(p->in) : (uint64_t)how * LCOMM_SHM_LINE;
  atomic_store(&p->peer->there->tail, tail);
}

/* ------------------------------------------------------------- what we do */

static void forget(party *p, pending *it) {
  if (it->in_use && it->borrowed) {
    p->v->give_back(p->t, &it->transfer);
  } else if (it->in_use) {
    p->v->cancel(p->t, &it->transfer);
  }
  free(it->bytes);
  memset(it, 0, sizeof(*it));
}

static void start(party *p, int kind) {
  pending *it = &p->pendings[fuzz_u8(p->in) % TRANSFERS];
  uint32_t tag = fuzz_u8(p->in) % TAGS;
  forget(p, it);
  it->room = fuzz_u16(p->in) % 12000;
  it->bytes = fuzz_allocate(it->room);
  lcomm_status status = kind == LCOMM_SHM_SEND
                            ? p->v->send(p->t, PEER, tag, it->bytes, it->room, &it->transfer)
                        : kind == LCOMM_SHM_RECEIVE
                            ? p->v->receive(p->t, PEER, tag, it->bytes, it->room, &it->transfer)
                            : p->v->borrow(p->t, PEER, tag, it->room, &it->transfer);
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_MEMORY,
               "a message starts, or has a status");
  it->in_use = status == LCOMM_OK;
  it->borrowed = kind == LCOMM_SHM_BORROW;
}

/* Every byte of what was borrowed can be read. */
static void read_borrowed(party *p, const pending *it, size_t size) {
  fuzz_require(size == it->room, "what is borrowed has the size that was asked for");
  const uint8_t *view = p->v->view(p->t, &it->transfer);
  if (view) {
    memcpy(it->bytes, view, size);
  } else if (size > 0) {
    lcomm_status status = p->v->fetch(p->t, &it->transfer, size / 2, size - size / 2, it->bytes);
    fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_TRANSPORT, "fetching has a status");
  }
}

static void test_all(party *p) {
  for (int i = 0; i < TRANSFERS; i++) {
    pending *it = &p->pendings[i];
    bool over = false;
    size_t size = it->room;
    lcomm_status status = it->in_use ? p->v->test(p->t, &it->transfer, &over, &size) : LCOMM_OK;
    if (status != LCOMM_OK) {
      fuzz_require(status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_MEMORY,
                   "a failure has a status");
      fuzz_require(p->v->why(p->t)[0] != '\0', "a failure has a sentence");
      it->in_use = false;
      forget(p, it);
    } else if (it->in_use && over) {
      fuzz_require(size <= it->room, "no message is longer than its room");
      if (it->borrowed) {
        read_borrowed(p, it, size);
      } else {
        it->in_use = false;
      }
      forget(p, it);
    }
  }
}

static void peek(party *p) {
  const void *bytes = NULL;
  size_t size = 0;
  uint8_t copy[LCOMM_SHM_INLINE];
  if (p->v->peek(p->t, PEER, fuzz_u8(p->in) % TAGS, &bytes, &size)) {
    fuzz_require(size <= sizeof(copy), "what is peeked at is short");
    memcpy(copy, bytes, size);
    p->v->drop(p->t, PEER);
  }
}

static void talk(party *p) {
  uint8_t notice[LCOMM_NOTICE_SIZE] = {1};
  while (p->v->hear(p->t, notice)) {
  }
  p->v->tell(p->t, PEER, notice);
}

static void sleep_and_wake(party *p) {
  p->v->arm(p->t);
  p->v->disarm(p->t);
}

static void act(party *p) {
  switch (fuzz_u8(p->in) % 16) {
  case 0:
  case 1:
    write_any_entry(p);
    break;
  case 2:
    write_word(p);
    break;
  case 3:
  case 4:
    write_long(p);
    break;
  case 5:
    write_piece(p);
    break;
  case 6:
    write_answer(p);
    break;
  case 7:
    write_tail(p);
    break;
  case 8:
    start(p, LCOMM_SHM_SEND);
    break;
  case 9:
    start(p, LCOMM_SHM_RECEIVE);
    break;
  case 10:
    start(p, LCOMM_SHM_BORROW);
    break;
  case 11:
    forget(p, &p->pendings[fuzz_u8(p->in) % TRANSFERS]);
    break;
  case 12:
    peek(p);
    break;
  case 13:
    sleep_and_wake(p);
    break;
  case 15:
    write_back(p);
    break;
  default:
    talk(p);
  }
  p->v->progress(p->t);
  test_all(p);
}

void lcomm_fuzz_shm(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  party p = {.in = &in, .how = fuzz_u8(&in)};
  if (!open_party(&p)) {
    return;
  }
  introduce(&p);
  for (int i = 0; i < EVENTS_MAX && in.left > 0; i++) {
    act(&p);
  }
  for (int i = 0; i < TRANSFERS; i++) {
    forget(&p, &p.pendings[i]);
  }
  p.v->memory_free(p.t, p.memory);
  p.v->close(p.t, false);
}
