/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Meeting: who is reached and who is not, and that nothing is left behind. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/few_files.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/shm/test_shm.h"

static void require_nothing_left(forked *self, int files) {
  forked_require(self, count_files() == files, "%d files where there were %d", count_files(),
                 files);
  forked_require(self, count_mappings_of("memfd:libcomm") == 0, "%d mappings are left",
                 count_mappings_of("memfd:libcomm"));
}

/* One message each way in memory that the peer maps, and one that it copies. */
static void exchange(const party *p, int peer) {
  enum { SIZE = 20000 };
  static unsigned char private[SIZE], in[SIZE];
  unsigned char *shared = p->v->memory_get(p->t, SIZE);
  lcomm_transfer sent[2], received;
  forked_require(p->self, shared != NULL, "no memory");
  fill(shared, SIZE, 1);
  fill(private, SIZE, 2);
  send_to(p, peer, 1, shared, SIZE, &sent[0]);
  send_to(p, peer, 1, private, SIZE, &sent[1]);
  for (uint32_t i = 0; i < 2; i++) {
    receive_from(p, peer, 1, in, SIZE, &received);
    finish(p, &received);
    require_bytes(p, in, SIZE, 1 + i, "exchange");
  }
  finish(p, &sent[0]);
  finish(p, &sent[1]);
  p->v->memory_free(shared);
}

static void nothing_is_left_after_a_thousand_opens(forked *self) {
  int files = count_files();
  for (int i = 0; i < 1000; i++) {
    party p = open_party(self);
    if (i % 20 == 0) {
      exchange(&p, 1 - self->rank);
    }
    if (i % 2 == 0) {
      together(self);
    }
    p.v->close(p.t, i % 3 == 0);
    require_nothing_left(self, files);
  }
}

/* A bell and an epoll; for each peer its bell, and once for all communicators a
 * descriptor that tells its end. */
static void few_files_are_held(forked *self) {
  party p[3];
  int before = count_files(), peers = self->size - 1;
  for (int i = 0; i < 3; i++) {
    p[i] = open_party(self);
    int held = count_files() - before, most = (i + 1) * (2 + peers) + peers;
    forked_require(self, held <= most, "%d communicators hold %d files, not %d", i + 1, held, most);
  }
  for (int i = 0; i < 3; i++) {
    exchange(&p[i], self->rank ^ 1);
    close_party(&p[i]);
  }
  require_nothing_left(self, before);
}

static void nothing_is_left_after_a_killed_process(forked *self) {
  int files = count_files();
  static unsigned char bytes[3 << 20];
  lcomm_transfer transfers[40];
  party p = open_party(self);
  exchange(&p, 1 - self->rank);
  /* In flight when it ends: queued, copied, to be read, posted. */
  for (uint32_t i = 0; i < 40; i++) {
    size_t size = i % 3 == 0 ? 4000 : i % 3 == 1 ? 100000 : sizeof(bytes);
    send_to(&p, 1 - self->rank, i, bytes, size, &transfers[i]);
  }
  receive_from(&p, 1 - self->rank, 99, bytes, 10, &transfers[0]);
  if (self->rank == 1) {
    forked_die();
  }
  forked_require(self, await(&p, &transfers[0], NULL) == LCOMM_ERR_TRANSPORT,
                 "a message came from nowhere");
  p.v->close(p.t, false);
  require_nothing_left(self, files);
}

static void memory_that_was_not_given_back_outlives_the_transport(forked *self) {
  party p = open_party(self);
  unsigned char *memory = p.v->memory_get(p.t, 10000);
  forked_require(self, memory != NULL, "no memory");
  p.v->close(p.t, false);
  memory[9999] = 1; /* somebody else's transfer, say */
}

/* ---------------------------------------------------------- not reached */

static void only_ranks_of_one_machine_meet(forked *self) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  self->identities[2].host_hash = 2; /* on every rank */
  lcomm_status status = try_open(self, &t, &why);
  if (self->rank == 2) {
    forked_require(self, status == LCOMM_ERR_UNSUPPORTED && strstr(why.text, "no other rank"),
                   "said: %s", why.text);
    return;
  }
  forked_require(self, status == LCOMM_OK, "open: %s", why.text);
  party p = {self, t, &lcomm_transport_shm};
  forked_require(self, p.v->reaches(t, 1 - self->rank), "the neighbour is not reached");
  forked_require(self, !p.v->reaches(t, 2), "another machine is reached");
  forked_require(self, !p.v->reaches(t, self->rank), "it reaches itself");
  lcomm_transfer transfer;
  forked_require(self, p.v->send(t, 2, 1, "", 1, &transfer) == LCOMM_ERR_TRANSPORT,
                 "it sends to another machine");
  exchange(&p, 1 - self->rank);
  p.v->close(t, false);
}

/* A bootstrap that changes what rank 0 hears of rank 1. */
typedef void (*forger)(forked *self, lcomm_shm_offer *offer);
static forger forge;
static int (*honest)(void *context, const void *send, void *receive, size_t size);

static int gather_forged(void *context, const void *send, void *receive, size_t size) {
  forked *self = context;
  int status = honest(context, send, receive, size);
  if (self->rank == 0 && size == sizeof(lcomm_shm_offer)) {
    forge(self, &((lcomm_shm_offer *)receive)[1]);
  }
  return status;
}

static void open_forged(forked *self) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  int files = count_files();
  honest = self->boot.allgather;
  self->boot.allgather = gather_forged;
  lcomm_status status = try_open(self, &t, &why);
  forked_require(self, status == LCOMM_ERR_UNSUPPORTED && !t, "a forged offer was taken");
  const char *said = self->rank == 0 ? "rank 1" : "rank 0 could not open the memory of rank 1";
  forked_require(self, strstr(why.text, said) != NULL, "said: %s", why.text);
  require_nothing_left(self, files);
}

static void forge_token(forked *self, lcomm_shm_offer *offer) {
  (void)self;
  offer->token[3] ^= 1;
}
static void forge_file(forked *self, lcomm_shm_offer *offer) {
  (void)self;
  offer->file = 0;
}
static void forge_no_file(forked *self, lcomm_shm_offer *offer) {
  (void)self;
  offer->file = -7;
}
static void forge_door(forked *self, lcomm_shm_offer *offer) {
  (void)self;
  offer->pipe = offer->file;
}
static void forge_size(forked *self, lcomm_shm_offer *offer) {
  (void)self;
  offer->segment_size += 4096;
}
/* Another process has got the number: our own, which offers something else. */
static void forge_process(forked *self, lcomm_shm_offer *offer) {
  (void)offer;
  self->identities[1].pid = self->identities[0].pid;
}
static void forge_no_process(forked *self, lcomm_shm_offer *offer) {
  (void)offer;
  self->identities[1].pid = 0x3fffffff;
}

static void what_is_not_what_was_offered_is_refused(void **state) {
  (void)state;
  static const forger forgers[] = {forge_token, forge_file,    forge_no_file,   forge_door,
                                   forge_size,  forge_process, forge_no_process};
  for (size_t i = 0; i < sizeof(forgers) / sizeof(forgers[0]); i++) {
    forge = forgers[i];
    forked_run(2, open_forged);
  }
}

/* A memory file that can become shorter is a trap. */
static void files_that_can_become_shorter_are_refused(forked *self) {
  int loose = memfd_create("libcomm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  forked_require(self, loose >= 0 && ftruncate(loose, 8192) == 0, "no memory file");
  forked_require(self, !lcomm_shm_file_is_fixed(loose, 8192), "an unsealed file was taken");
  int fixed = lcomm_shm_file_create("libcomm", 8192);
  forked_require(self, fixed >= 0 && lcomm_shm_file_is_fixed(fixed, 8192), "a sealed one was not");
  forked_require(self, !lcomm_shm_file_is_fixed(fixed, 4096), "another size was taken");
  forked_require(self, ftruncate(fixed, 4096) != 0, "it became shorter");
  close(loose);
  close(fixed);
}

/* The rank that can make no memory does not keep the others waiting. */
static void a_rank_that_fails_takes_part_in_the_bootstrap(forked *self) {
  lcomm_why why;
  lcomm_transport *t = NULL;
  struct rlimit usual;
  getrlimit(RLIMIT_NOFILE, &usual);
  if (self->rank == 1) {
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, usual.rlim_max});
  }
  lcomm_status status = try_open(self, &t, &why);
  setrlimit(RLIMIT_NOFILE, &usual);
  const char *said = self->rank == 1 ? "cannot make shared memory" : "rank 1 has no shared memory";
  if (self->rank == 2) {
    forked_require(self, status == LCOMM_OK, "open: %s", why.text);
    forked_require(self, lcomm_transport_shm.reaches(t, 0), "rank 0 is not reached");
  } else if (self->rank == 1) {
    forked_require(self, status == LCOMM_ERR_UNSUPPORTED, "open did not fail");
  }
  forked_require(self, strstr(why.text, said) != NULL, "said: %s", why.text);
  if (t) {
    forked_require(self, !lcomm_transport_shm.reaches(t, 1), "rank 1 is reached");
    lcomm_transport_shm.close(t, true);
  }
}

/* Rank 1 can make its own memory and open that of rank 0, but not that of rank 2. */
static void both_sides_say_why_one_could_not_open_the_other(forked *self) {
  enum { ENOUGH_FOR_ONE = 5 };
  lcomm_why why;
  lcomm_transport *t = NULL;
  forked_require(self, self->rank != 1 || leave_files(ENOUGH_FOR_ONE, false), "setrlimit");
  lcomm_status status = try_open(self, &t, &why);
  forked_require(self, status == LCOMM_OK, "open: %s", why.text);
  if (self->rank > 0) {
    forked_require(self, !lcomm_transport_shm.reaches(t, 3 - self->rank), "it is reached");
    forked_require(self, strstr(why.text, "Too many open files") != NULL, "said: %s", why.text);
    forked_require(self, !strstr(why.text, "another user"), "said: %s", why.text);
  }
  lcomm_transport_shm.close(t, true);
}

/* ---------------------------------------------------------------- memory */

static void memory_is_zeroed_and_used_again(forked *self) {
  enum { PIECES = 200 };
  static unsigned char *pieces[PIECES];
  party p = open_party(self);
  int files = count_files();
  for (int round = 0; round < 3; round++) {
    for (size_t i = 0; i < PIECES; i++) {
      size_t size = (i * 7919 % 300 + 1) * 1000;
      pieces[i] = p.v->memory_get(p.t, size);
      forked_require(self, pieces[i] != NULL, "no memory");
      forked_require(self, pieces[i][0] == 0 && pieces[i][size - 1] == 0, "it is not zeroed");
      memset(pieces[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < PIECES; i++) {
      size_t size = (i * 7919 % 300 + 1) * 1000;
      forked_require(self,
                     pieces[i][0] == (unsigned char)(i + 1) &&
                         pieces[i][size - 1] == (unsigned char)(i + 1),
                     "pieces overlap");
    }
    for (size_t i = 0; i < PIECES; i++) {
      p.v->memory_free(pieces[(i * 77 + 3) % PIECES]);
    }
  }
  forked_require(self, count_files() <= files + 1, "%d files for one region",
                 count_files() - files);
  p.v->memory_free(NULL);
  forked_require(self, p.v->memory_get(p.t, SIZE_MAX) == NULL, "SIZE_MAX bytes were found");
  close_party(&p);
}

/* A large piece is a region of its own, whose number serves the next one. */
static void regions_come_and_go(forked *self) {
  enum { SIZE = 80 << 20 };
  party p = open_party(self);
  for (uint32_t i = 0; i < 5; i++) {
    lcomm_transfer transfer;
    if (self->rank == 0) {
      unsigned char *memory = p.v->memory_get(p.t, SIZE);
      forked_require(self, memory != NULL, "no memory");
      fill(memory + SIZE - 5000, 5000, i);
      send_to(&p, 1, 1, memory + SIZE - 5000, 5000, &transfer);
      finish(&p, &transfer);
      p.v->memory_free(memory);
    } else {
      check(&p, p.v->zero_copy->receive(p.t, 0, 1, 5000, &transfer), "zero-copy receive");
      finish(&p, &transfer);
      require_bytes(&p, p.v->zero_copy->map(p.t, &transfer), 5000, i, "region");
      p.v->zero_copy->release(p.t, &transfer);
    }
    together(self);
  }
  close_party(&p);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(nothing_is_left_after_a_thousand_opens, 2),
    FORKED_TEST(few_files_are_held, 2, 4),
    FORKED_TEST_DYING(nothing_is_left_after_a_killed_process, 2, 1),
    FORKED_TEST(memory_that_was_not_given_back_outlives_the_transport, 2),
    FORKED_TEST(only_ranks_of_one_machine_meet, 3),
    cmocka_unit_test(what_is_not_what_was_offered_is_refused),
    FORKED_TEST(files_that_can_become_shorter_are_refused, 1),
    FORKED_TEST(a_rank_that_fails_takes_part_in_the_bootstrap, 3),
    FORKED_TEST(both_sides_say_why_one_could_not_open_the_other, 3),
    FORKED_TEST(memory_is_zeroed_and_used_again, 2),
    FORKED_TEST(regions_come_and_go, 2),
};
RUN_TESTS(tests)
