/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_dialogue.h"

#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/bootstrap/store/store_internal.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

enum { RANKS = 4, EVENTS_MAX = 64, BYTES_MAX = 4096 };

static lcomm_launcher_env launcher = {
    .world_size = RANKS, .size_from = "WORLD_SIZE", .token = "token", .token_from = "LCOMM_TOKEN"};

/* Two ends: ours, as a store's sockets are, and the other side's. */
typedef struct ends {
  int ours, theirs;
} ends;

static ends connect_ends(void) {
  int fds[2];
  fuzz_require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0,
               "the test machine has sockets");
  return (ends){fds[0], fds[1]};
}

/* The other side says bytes of the input. */
static void say(fuzz_bytes *in, int fd, size_t size) {
  uint8_t bytes[BYTES_MAX];
  size = size < sizeof(bytes) ? size : sizeof(bytes);
  size = fuzz_take(in, bytes, size);
  fuzz_require(size == 0 || send(fd, bytes, size, MSG_NOSIGNAL) <= (ssize_t)size,
               "a socket takes no more than it is given");
}

static void hush(int fd) {
  shutdown(fd, SHUT_WR);
}

/* ----------------------------------------------------------------- stores */

static lcomm_store *make_store(int rank) {
  lcomm_store *store = fuzz_allocate(sizeof *store);
  store->launcher = &launcher;
  store->rank = rank;
  store->size = RANKS;
  store->timeout_s = 1;
  store->next_wait_s = 1e18;
  store->fd = store->parent.fd = store->listener = -1;
  memcpy(store->host, "here", 5);
  memcpy(store->where, "there port 1", 13);
  store->peers = rank == 0 ? fuzz_allocate(RANKS * sizeof *store->peers) : NULL;
  store->polls = rank == 0 ? fuzz_allocate(LCOMM_STORE_POLLS(RANKS) * sizeof *store->polls) : NULL;
  for (int i = 0; rank == 0 && i < RANKS; i++) {
    store->peers[i].fd = -1;
  }
  return store;
}

static void check_store(const lcomm_store *store) {
  const char *sentence = NULL;
  lcomm_status status = lcomm_store_failure(store, &sentence);
  fuzz_require(status <= 0 && status >= LCOMM_ERR_INTERNAL, "a failure is a status");
  fuzz_check_text(sentence, LCOMM_ERROR_MAX);
  fuzz_require((status == LCOMM_OK) == (sentence[0] == '\0'), "a failure has a sentence");
}

/* --------------------------------------------------------------- visitors */

/* Who has not come is missing, and nobody else. */
static void check_meeting(const lcomm_store_rendezvous *m) {
  int missing = 0;
  for (int rank = 1; rank < RANKS; rank++) {
    const lcomm_store_peer *peer = &m->store->peers[rank];
    missing += m->store->status == LCOMM_OK ? peer->fd < 0 : !peer->told;
    fuzz_check_text(peer->host, sizeof(peer->host));
  }
  fuzz_require(m->missing == missing, "who is missing is counted");
  fuzz_check_text(m->refusal, sizeof(m->refusal));
  check_store(m->store);
}

/* Two bytes: which visitor does what, and how much. */
static void visit(lcomm_store_rendezvous *m, const ends *others, fuzz_bytes *in) {
  uint8_t event = fuzz_u8(in), size = fuzz_u8(in);
  int who = event % RANKS;
  lcomm_store_visitor *it = &m->visitors[who];
  if (event / 4 % 4 == 3) {
    hush(others[who].theirs);
  } else {
    say(in, others[who].theirs, event / 4 % 4 == 2 ? (size_t)LCOMM_STORE_HANDSHAKE_SIZE : size);
  }
  if (it->fd >= 0) {
    lcomm_store_visitor_receive(m, it);
  }
  it->until_s = event >= 250 ? 0 : it->until_s;
  lcomm_store_visitor_mind_time(m, it);
  check_meeting(m);
}

static void receive_visitors(fuzz_bytes *in, bool failed) {
  lcomm_store_visitor visitors[RANKS] = {{0}};
  ends others[RANKS];
  lcomm_store *store = make_store(0);
  lcomm_store_rendezvous m = {
      .store = store, .visitors = visitors, .visitor_count = RANKS, .missing = RANKS - 1};
  for (int i = 0; i < RANKS; i++) {
    others[i] = connect_ends();
    visitors[i] = (lcomm_store_visitor){.fd = others[i].ours, .until_s = 1e18};
  }
  if (failed) {
    lcomm_store_fail(store, LCOMM_ERR_SYSTEM, "it has failed");
  }
  for (int i = 0; i < EVENTS_MAX && in->left > 0; i++) {
    visit(&m, others, in);
  }
  for (int i = 0; i < RANKS; i++) {
    close(others[i].theirs);
    if (visitors[i].fd >= 0) {
      lcomm_store_visitor_part(&visitors[i]);
    }
  }
  lcomm_store_close(store);
}

/* -------------------------------------------------------------- allgathers */

static void check_outcome(const lcomm_store *store, int failed) {
  fuzz_require((failed != 0) == (store->status != LCOMM_OK), "what failed says so");
  check_store(store);
}

static void hear_answers(fuzz_bytes *in, size_t part) {
  uint8_t *mine = fuzz_allocate(part), *all = fuzz_allocate(RANKS * part);
  lcomm_store *store = make_store(1);
  ends other = connect_ends();
  store->fd = other.ours;
  say(in, other.theirs, BYTES_MAX);
  hush(other.theirs);
  int failed = lcomm_store_allgather(store, mine, all, part);
  check_outcome(store, failed);
  fuzz_require((store->fd < 0) == (failed != 0), "a dialogue that failed is over");
  fuzz_require(lcomm_store_allgather(store, mine, all, part) != 0 || !failed,
               "a store that has failed fails");
  close(other.theirs);
  lcomm_store_close(store);
  free(mine);
  free(all);
}

/* All others say something to rank 0, and no more. */
static void say_all(fuzz_bytes *in, lcomm_store *store, ends others[RANKS]) {
  for (int rank = 1; rank < RANKS; rank++) {
    others[rank] = connect_ends();
    store->peers[rank].fd = others[rank].ours;
    say(in, others[rank].theirs, fuzz_u16(in));
    hush(others[rank].theirs);
  }
}

static void close_all(lcomm_store *store, const ends others[RANKS]) {
  for (int rank = 1; rank < RANKS; rank++) {
    close(others[rank].theirs);
  }
  lcomm_store_close(store);
}

static void hear_parts(fuzz_bytes *in, size_t part) {
  uint8_t *mine = fuzz_allocate(part), *all = fuzz_allocate(RANKS * part);
  ends others[RANKS];
  lcomm_store *store = make_store(0);
  memset(mine, 0x5a, part);
  say_all(in, store, others);
  int failed = lcomm_store_allgather(store, mine, all, part);
  check_outcome(store, failed);
  fuzz_require(failed || memcmp(all, mine, part) == 0, "rank 0 gives its own part");
  close_all(store, others);
  free(mine);
  free(all);
}

/* ------------------------------------------------------------------- the tree */

static void grow(lcomm_store *store, int fan_out) {
  store->shape = (lcomm_store_shape){.star_most = 2, .fan_out = fan_out};
  store->tree = true;
  lcomm_store_branch_find(RANKS, fan_out, store->rank, &store->branch);
}

/* Rank 0 hears all others: children and those below them. */
static void hear_tree(fuzz_bytes *in, size_t part, bool linking) {
  uint8_t *mine = fuzz_allocate(part), *all = fuzz_allocate(RANKS * part);
  ends others[RANKS];
  lcomm_store *store = make_store(0);
  grow(store, 2);
  say_all(in, store, others);
  int failed = linking ? lcomm_store_root_link(store) != LCOMM_OK
                       : lcomm_store_allgather(store, mine, all, part);
  check_outcome(store, failed);
  close_all(store, others);
  free(mine);
  free(all);
}

/* Rank 2 of a chain hears rank 0, its parent 1 and its child 3. */
static void hear_neighbours(fuzz_bytes *in, size_t part) {
  uint8_t *mine = fuzz_allocate(part), *all = fuzz_allocate(RANKS * part);
  ends root = connect_ends(), parent = connect_ends(), child = connect_ends();
  const ends *others[] = {&root, &parent, &child};
  lcomm_store *store = make_store(2);
  store->peers = fuzz_allocate(RANKS * sizeof *store->peers);
  store->polls = fuzz_allocate(LCOMM_STORE_POLLS(RANKS) * sizeof *store->polls);
  for (int i = 0; i < RANKS; i++) {
    store->peers[i].fd = -1;
  }
  grow(store, 1);
  store->fd = root.ours;
  store->parent.fd = parent.ours;
  store->peers[3].fd = child.ours;
  for (int i = 0; i < 3; i++) {
    say(in, others[i]->theirs, fuzz_u16(in));
    hush(others[i]->theirs);
  }
  int failed = lcomm_store_allgather(store, mine, all, part);
  check_outcome(store, failed);
  fuzz_require((store->fd < 0) == (failed != 0), "what failed is over");
  for (int i = 0; i < 3; i++) {
    close(others[i]->theirs);
  }
  lcomm_store_close(store);
  free(mine);
  free(all);
}

/* Rank 3, which has no children, hears rank 0 decide. */
static void hear_decision(fuzz_bytes *in) {
  lcomm_store *store = make_store(3);
  ends root = connect_ends();
  grow(store, 2);
  store->tree = false;
  store->fd = root.ours;
  store->parent.place.way = LCOMM_STORE_WAY_ROOT;
  say(in, root.theirs, BYTES_MAX);
  hush(root.theirs);
  check_outcome(store, lcomm_store_link(store) != LCOMM_OK);
  close(root.theirs);
  lcomm_store_close(store);
}

static void hear_along_the_tree(fuzz_bytes *in, uint8_t what, size_t part) {
  if (what == 0) {
    hear_neighbours(in, part);
  } else if (what == 1) {
    hear_decision(in);
  } else {
    hear_tree(in, part, what == 2);
  }
}

void lcomm_fuzz_dialogue(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  uint8_t what = fuzz_u8(&in) % 7, part = fuzz_u8(&in);
  if (what >= 3) {
    hear_along_the_tree(&in, what - 3, part);
    return;
  }
  if (what == 0) {
    receive_visitors(&in, part % 2 == 1);
  } else if (what == 1) {
    hear_answers(&in, part);
  } else {
    hear_parts(&in, part);
  }
}
