/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_handshake.h"

#include "codecs/wire.h"
#include "libcomm/comm/handshake.h"
#include "libcomm/transport/links.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

enum { RANKS_MAX = 6, CHANGES_MAX = 32 };

typedef struct world {
  int rank, size;
  lcomm_handshake *hellos;     /* per rank */
  lcomm_links_answer *answers; /* likewise */
} world;

static void greet(const world *w) {
  for (int i = 0; i < w->size; i++) {
    lcomm_handshake *it = &w->hellos[i];
    memcpy(it->magic, "libcomm", 8);
    it->version = lcomm_version();
    it->wire_version = LCOMM_WIRE_VERSION;
    snprintf(it->policy, sizeof(it->policy), "net=int8");
    snprintf(it->transport, sizeof(it->transport), "auto");
    snprintf(it->identity.host, sizeof(it->identity.host), "n%d", i);
    it->identity.host_hash = (uint64_t)i / 2;
    it->identity.pid = 100 + (uint64_t)i;
    w->answers[i].lonely = LCOMM_LINKS_COMPLETE;
  }
}

static void change(void *bytes, size_t room, size_t offset, const uint8_t *patch, size_t size) {
  offset %= room;
  memcpy((uint8_t *)bytes + offset, patch, size < room - offset ? size : room - offset);
}

static void spoil(const world *w, fuzz_bytes *in) {
  uint8_t patch[256];
  for (int i = 0; i < CHANGES_MAX && in->left > 0; i++) {
    uint8_t who = fuzz_u8(in);
    size_t offset = fuzz_u16(in), size = fuzz_u8(in);
    int rank = who / 2 % w->size;
    fuzz_take(in, patch, size);
    change(who % 2 == 0 ? (void *)&w->hellos[rank] : (void *)&w->answers[rank],
           who % 2 == 0 ? sizeof(lcomm_handshake) : sizeof(lcomm_links_answer), offset, patch,
           size);
  }
}

/* The verdict of one rank. */
static lcomm_status judge(const world *w, int rank) {
  lcomm_handshake *copy = fuzz_copy(w->hellos, (size_t)w->size * sizeof *copy);
  lcomm_status status = lcomm_handshake_check(copy, w->size, rank);
  fuzz_require(status <= 0 && status >= LCOMM_ERR_INTERNAL, "a verdict is a status");
  if (status != LCOMM_OK) {
    fuzz_check_text(lcomm_error_thread_text(), LCOMM_ERROR_MAX);
    fuzz_require(strstr(lcomm_error_thread_text(), "rank ") != NULL, "a verdict names a rank");
  }
  for (int i = 0; i < w->size; i++) {
    fuzz_check_text(copy[i].identity.host, sizeof(copy[i].identity.host));
    fuzz_require(status != LCOMM_OK || strcmp(copy[i].policy, copy[0].policy) == 0,
                 "all ranks have one policy");
    fuzz_require(status != LCOMM_OK || copy[i].status == LCOMM_OK, "all ranks are prepared");
  }
  free(copy);
  return status;
}

static void judge_links(const world *w) {
  lcomm_why why = {.text = ""};
  lcomm_identity *identities = fuzz_allocate((size_t)w->size * sizeof *identities);
  bool complete = true;
  for (int i = 0; i < w->size; i++) {
    snprintf(identities[i].host, sizeof(identities[i].host), "n%d", i);
    complete &= w->answers[i].lonely == LCOMM_LINKS_COMPLETE;
  }
  lcomm_status status = lcomm_links_check(w->answers, identities, w->size, &why);
  fuzz_require(complete == (status == LCOMM_OK), "who misses a link is believed");
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_WIRE,
               "a verdict has its status");
  fuzz_check_text(why.text, sizeof(why.text));
  fuzz_require((why.text[0] != '\0') == (status != LCOMM_OK), "a verdict has a sentence");
  free(identities);
}

/* --------------------------------------------------------- what others send */

typedef struct conversation {
  fuzz_bytes *in;
  int size, times;
} conversation;

/* All say what this rank says, with changes. */
static int say_nearly_the_same(void *context, const void *send, void *receive, size_t size) {
  conversation *it = context;
  uint8_t patch[64];
  it->times++;
  for (int i = 0; i < it->size; i++) {
    memcpy((uint8_t *)receive + (size_t)i * size, send, size);
  }
  for (int changes = fuzz_u8(it->in) % 4; changes > 0 && it->in->left > 0; changes--) {
    size_t offset = fuzz_u16(it->in), length = fuzz_u8(it->in) % sizeof(patch);
    fuzz_take(it->in, patch, length);
    change(receive, (size_t)it->size * size, offset, patch, length);
  }
  return fuzz_u8(it->in) == 0xfe;
}

static void gather(const world *w, fuzz_bytes *in) {
  size_t failed = 0;
  conversation with = {.in = in, .size = w->size};
  lcomm_bootstrap base = {
      .rank = w->rank, .world_size = w->size, .context = &with, .allgather = say_nearly_the_same};
  lcomm_handshake *mine = fuzz_copy(&w->hellos[w->rank], sizeof *mine);
  lcomm_handshake *all = fuzz_allocate((size_t)w->size * sizeof *all);
  lcomm_status status = lcomm_handshake_gather(&base, mine, all, &failed);
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_TRANSPORT, "the bootstrap works or not");
  fuzz_require(with.times >= 1 && with.times <= 3 && failed > 0, "there are three allgathers");
  if (status == LCOMM_OK && lcomm_handshake_check(all, w->size, w->rank) == LCOMM_OK) {
    for (int i = 0; i < w->size; i++) {
      fuzz_require(all[i].status == LCOMM_OK && strcmp(all[i].policy, all[0].policy) == 0,
                   "ranks that agree are prepared and have one policy");
    }
  }
  free(all);
  free(mine);
}

void lcomm_fuzz_handshake(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  world w = {.size = 1 + fuzz_u8(&in) % RANKS_MAX};
  uint8_t who = fuzz_u8(&in);
  w.rank = who % 128 % w.size;
  w.hellos = fuzz_allocate((size_t)w.size * sizeof *w.hellos);
  w.answers = fuzz_allocate((size_t)w.size * sizeof *w.answers);
  greet(&w);
  if (who >= 128) {
    gather(&w, &in);
  }
  spoil(&w, &in);
  lcomm_status mine = judge(&w, w.rank), theirs = judge(&w, 0);
  fuzz_require(mine == theirs, "all ranks come to one verdict");
  judge_links(&w);
  free(w.hellos);
  free(w.answers);
}
