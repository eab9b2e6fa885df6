/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_shm.h"

#include <unistd.h>

#include "tests/support/fuzz_promise.h"
#include "tests/support/target_shm_party.h"

enum {
  RANKS = FUZZ_SHM_RANKS,
  PEER = 1,
  TRANSFERS = FUZZ_SHM_TRANSFERS,
  TAGS = FUZZ_SHM_TAGS,
  EVENTS_MAX = 200,
  MEMORY_SIZE = 12000
};

typedef fuzz_party party;
typedef fuzz_pending pending;

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
  } else { /* a lcomm_links_uniform */
    theirs[0] = p->how & 0x40 ? 0xff : theirs[0];
  }
  return 0;
}

static bool open_party(party *p) {
  static const uint64_t odd_pids[] = {0, UINT64_MAX, UINT64_C(1) << 40};
  lcomm_why why;
  unsigned odd = p->how >> 4 & 3;
  for (int i = 0; i < RANKS; i++) {
    p->identities[i].pid = (uint64_t)getpid();
  }
  p->identities[PEER].pid = odd > 0 ? odd_pids[odd - 1] : p->identities[PEER].pid;
  lcomm_bootstrap boot = {.world_size = RANKS, .context = p, .allgather = say_the_same};
  lcomm_transport_setup setup = {
      .size = RANKS, .identities = p->identities, .bootstrap = &boot, .timeout_s = 1e-3};
  lcomm_status status = lcomm_transport_shm.open(&setup, &p->t, &why);
  fuzz_require(strnlen(why.text, sizeof(why.text)) < sizeof(why.text), "a phrase ends");
  fuzz_require(status == LCOMM_OK || why.text[0] != '\0', "a refusal has a phrase");
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

/* Send it memory that it can view, so that it knows what a long message is like. */
static void introduce(party *p) {
  uint8_t data[LCOMM_SHM_INLINE];
  uint32_t kind, tag, generation;
  pending *it = &p->pendings[0];
  p->memory = p->v->memory_get(p->t, MEMORY_SIZE);
  if (p->memory) {
    it->in_use = p->v->send(p->t, PEER, 0, p->memory, MEMORY_SIZE, &it->transfer) == LCOMM_OK;
    fuzz_shm_hear_entry(p, &kind, &tag, &generation, data);
  }
}

/* ------------------------------------------------------------- what we do */

static void forget(party *p, pending *it) {
  if (it->in_use && it->zcopy) {
    p->v->zero_copy->release(p->t, &it->transfer);
  } else if (it->in_use) {
    p->v->cancel(p->t, &it->transfer);
  }
  free(it->bytes);
  memset(it, 0, sizeof *it);
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
                            : p->v->zero_copy->receive(p->t, PEER, tag, it->room, &it->transfer);
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_MEMORY,
               "a message starts, or has a status");
  it->in_use = status == LCOMM_OK;
  it->zcopy = kind == LCOMM_SHM_ZCOPY;
}

/* Every byte of a zero-copy message can be read. */
static void read_borrowed(party *p, const pending *it, size_t size) {
  fuzz_require(size == it->room, "a zero-copy message has the size that was asked for");
  const uint8_t *view = p->v->zero_copy->map(p->t, &it->transfer);
  if (view) {
    memcpy(it->bytes, view, size);
  } else if (size > 0) {
    lcomm_status status =
        p->v->zero_copy->get(p->t, &it->transfer, size / 2, size - size / 2, it->bytes);
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
      fuzz_require(p->t->why[0] != '\0', "a failure has a sentence");
      it->in_use = false;
      forget(p, it);
    } else if (it->in_use && over) {
      fuzz_require(size <= it->room, "no message is longer than its room");
      if (it->zcopy) {
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
  uint8_t message[LCOMM_CONTROL_SIZE] = {1};
  while (p->v->control.receive(p->t, message)) {
  }
  p->v->control.send(p->t, PEER, message);
}

static void sleep_and_wake(party *p) {
  p->v->wakeup->arm(p->t);
  p->v->wakeup->disarm(p->t);
}

static void act(party *p) {
  unsigned what = fuzz_u8(p->in) % 16;
  switch (what) {
  case 8:
    start(p, LCOMM_SHM_SEND);
    break;
  case 9:
    start(p, LCOMM_SHM_RECEIVE);
    break;
  case 10:
    start(p, LCOMM_SHM_ZCOPY);
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
  case 14:
    talk(p);
    break;
  default:
    fuzz_shm_write(p, what < 8 ? what : 8);
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
  p.v->memory_free(p.memory);
  p.v->close(p.t, false);
}
