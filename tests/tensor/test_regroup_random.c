/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A training whose ranks are killed, leave and join in random order; after each change the replicas
 * are compared bit for bit. The order is drawn by a fixed seed, REGROUP_SEED=N another one, and all
 * members draw it alike. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/transport/transport.h"
#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"
#include "tests/tensor/elastic_regroup.h"

enum { CHANGES = 30, MEMBERS = 16, FOUNDERS = 4, LEAST = 2, MOST = 8, KILLS_MAX = 8 };

typedef enum change_kind { KILL, LEAVE, JOIN, KINDS } change_kind;

typedef struct change {
  change_kind kind;
  int member;
  int ranks; /* afterwards */
} change;

/* Where each member is while the order is drawn. */
typedef enum whereabouts { OUTSIDE, INSIDE, DEAD } whereabouts;

static change script[CHANGES];
static atomic_int *shared; /* the change that is due */

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % below;
}

static bool is_possible(change_kind kind, int ranks, int kills, int outside) {
  switch (kind) {
  case KILL:
    return ranks > LEAST && kills < KILLS_MAX;
  case LEAVE:
    return ranks > LEAST;
  default:
    return ranks < MOST && outside > 0;
  }
}

static int draw_member(uint32_t *state, const whereabouts *where, whereabouts wanted, int count) {
  int number = (int)draw(state, (uint32_t)count), member = 0;
  for (;; member++) {
    if (where[member] == wanted && number-- == 0) {
      return member;
    }
  }
}

static void draw_script(uint32_t seed) {
  whereabouts where[MEMBERS] = {OUTSIDE};
  int ranks = FOUNDERS, kills = 0;
  for (int i = 0; i < FOUNDERS; i++) {
    where[i] = INSIDE;
  }
  for (int i = 0; i < CHANGES;) {
    change_kind kind = (change_kind)draw(&seed, KINDS);
    int outside = MEMBERS - ranks - kills;
    if (is_possible(kind, ranks, kills, outside)) {
      int member = kind == JOIN ? draw_member(&seed, where, OUTSIDE, outside)
                                : draw_member(&seed, where, INSIDE, ranks);
      where[member] = kind == JOIN ? INSIDE : kind == KILL ? DEAD : OUTSIDE;
      ranks += kind == JOIN ? 1 : -1;
      kills += kind == KILL;
      script[i++] = (change){kind, member, ranks};
    }
  }
}

/* ---------------------------------------------------------------- one member */

/* Steps until the change has happened; false on one that has left, or is wrong. */
static bool live_through(training *t, const change *it) {
  bool mine = it->member == t->seat, good = true;
  if (lcomm_rank(t->comm) == 0) {
    atomic_store(shared, (int)(it - script));
  }
  if (mine && it->kind == KILL) {
    make_gradients(t);
    (void)report_ready(t);
    raise(SIGKILL);
  }
  if (mine && it->kind == LEAVE) {
    good = lcomm_leave(t->comm) == LCOMM_OK;
  }
  while (good && lcomm_size(t->comm) != it->ranks) {
    lcomm_changes changes = {0};
    good = make_step(t, true) && lcomm_changes_get(t->comm, &changes) == LCOMM_OK;
    if (good && changes.leaving + changes.waiting > 0) {
      good = regroup(t) && share_weights(t) && keep_residuals(t);
    }
  }
  return good;
}

/* The residual that conserves_step() begins with is known after a step. */
static bool check_replicas(training *t) {
  make_gradients(t);
  bool good = report_ready(t) == LCOMM_OK && lcomm_tensors_wait(t->comm) == LCOMM_OK;
  if (!good) {
    return wrong(t, "the step after a change");
  }
  take_results(t);
  return keep_residuals(t) && is_equal_everywhere(t);
}

/* From change number i on, until this member has left, or the end. Returns the next change. */
static int stay(training *t, int i, bool *good) {
  for (; *good && t->comm && i < CHANGES; i++) {
    *good = live_through(t, &script[i]);
    if (!t->comm) {
      *good = script[i].member == t->seat && script[i].kind == LEAVE;
      return i + 1;
    }
    *good = *good && check_replicas(t);
  }
  return i;
}

static int find_join(int seat, int i) {
  while (i < CHANGES && !(script[i].kind == JOIN && script[i].member == seat)) {
    i++;
  }
  return i;
}

static bool come(training *t, const crew *c, int seat, int i, report *mine) {
  while (atomic_load(shared) < i) {
    sleep_ms(5);
  }
  return join_training(t, c, seat, mine) && share_weights(t) && keep_residuals(t) &&
         check_replicas(t);
}

static void train_through_all(const crew *c, int seat, report *mine) {
  training t = {.mine = mine};
  crew first = *c;
  first.size = FOUNDERS;
  bool good =
      seat >= FOUNDERS || begin_training(&t, &first, seat, "net=int8+ef min=1K bucket=64K", mine);
  int i = seat < FOUNDERS ? stay(&t, 0, &good) : 0;
  while (good && !t.comm && (i = find_join(seat, i)) < CHANGES) {
    end_training(&t);
    good = come(&t, c, seat, i, mine);
    i = good ? stay(&t, i + 1, &good) : i;
  }
  mine->good = good && (!t.comm || lcomm_size(t.comm) == script[CHANGES - 1].ranks);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void change_at_random(void) {
  unsigned dead = 0;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  atomic_store(shared, -1);
  const char *seed = getenv("REGROUP_SEED");
  draw_script(seed ? (uint32_t)atoi(seed) : 25);
  for (int i = 0; i < CHANGES; i++) {
    dead |= script[i].kind == KILL ? 1u << script[i].member : 0;
  }
  crew c = new_crew(MEMBERS, train_through_all);
  c.timeout_s = 60;
  run_survivors(&c, dead);
  munmap(shared, sizeof *shared);
}

static void replicas_stay_equal_through_random_changes(void **state) {
  (void)state;
  change_at_random();
}

static bool has_ucx(void) {
  int i = 0;
  while (lcomm_transport_list[i] && strcmp(lcomm_transport_list[i]->name, "ucx") != 0) {
    i++;
  }
  return lcomm_transport_list[i] != NULL;
}

static void change_over_ucx(void) {
  if (!has_ucx()) {
    skip();
  }
  crew_transport = "ucx";
  change_at_random();
  crew_transport = "shm";
}

static void replicas_stay_equal_over_ucx(void **state) {
  (void)state;
  change_over_ucx();
}

static void replicas_stay_equal_over_tcp(void **state) {
  (void)state;
  setenv("UCX_TLS", "tcp,self", 1);
  change_over_ucx();
  unsetenv("UCX_TLS");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(replicas_stay_equal_through_random_changes),
    cmocka_unit_test(replicas_stay_equal_over_ucx),
    cmocka_unit_test(replicas_stay_equal_over_tcp),
};
RUN_TESTS(tests)
