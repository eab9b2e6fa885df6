/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_split.h"

#include "libcomm/comm/split.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

enum { RANKS_MAX = 8 };

/* Members are those of one color, once each, in the order of their keys. */
static void check_members(const lcomm_split_color_key *wishes, int size, int rank,
                          const int *members, int count, int me) {
  int same = 0;
  for (int i = 0; i < size; i++) {
    same += wishes[i].color == wishes[rank].color;
  }
  fuzz_require(count == same && me >= 0 && me < count && members[me] == rank,
               "all of a color are members");
  for (int i = 0; i < count; i++) {
    fuzz_require(members[i] >= 0 && members[i] < size &&
                     wishes[members[i]].color == wishes[rank].color,
                 "members have one color");
    if (i > 0) {
      const lcomm_split_color_key *a = &wishes[members[i - 1]], *b = &wishes[members[i]];
      fuzz_require(a->key < b->key || (a->key == b->key && members[i - 1] < members[i]),
                   "members are in the order of their keys, then of their ranks");
    }
  }
}

static void gather(lcomm_split_rendezvous *m, size_t size) {
  uint8_t *mine = fuzz_allocate(size), *all = fuzz_allocate(size * (size_t)m->count);
  memset(mine, 0x5a, size);
  int failed = lcomm_split_gather(m, mine, all, size);
  lcomm_status status = (lcomm_status)atomic_load(&m->parent->errors.status);
  fuzz_require((failed != 0) == (status != LCOMM_OK), "a failure is the parent's");
  fuzz_require(failed || m->me > 0 || memcmp(all, mine, size) == 0,
               "the first member hears itself");
  for (int i = 0; i < m->message_count; i++) {
    fuzz_require(!m->messages[i].in_flight, "no message is in flight any more");
  }
  free(mine);
  free(all);
}

static void meet(lcomm_comm *comm, const lcomm_split_color_key *wishes, size_t size) {
  lcomm_split_rendezvous m = {.parent = comm};
  m.members = fuzz_allocate((size_t)comm->size * sizeof *m.members);
  m.count = lcomm_split_members(wishes, comm->size, comm->rank, m.members, &m.me);
  check_members(wishes, comm->size, comm->rank, m.members, m.count, m.me);
  gather(&m, size);
  free(m.members);
}

void lcomm_fuzz_split(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  fuzz_link link;
  lcomm_split_color_key wishes[RANKS_MAX];
  int ranks = 1 + fuzz_u8(&in) % RANKS_MAX, rank = fuzz_u8(&in) % ranks;
  size_t bytes = fuzz_u8(&in);
  for (int i = 0; i < ranks; i++) {
    fuzz_take(&in, &wishes[i], sizeof(wishes[i]));
    wishes[i].color %= 3;
  }
  lcomm_comm *comm = fuzz_comm_make(&in, rank, ranks, &link);
  meet(comm, wishes, bytes);
  fuzz_comm_check(comm);
  fuzz_comm_free(comm);
}
