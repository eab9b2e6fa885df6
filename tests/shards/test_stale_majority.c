/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* stale=N:drop closes a round without ranks that are behind where more than half of those that
 * contribute are ahead of them: servers, which are set apart, count on neither side. */

#include "libcomm/shards/staleness.h"
#include "tests/support/unit_tests.h"

enum { WORKERS_MOST = 9, SERVERS_MOST = 5, STEPS_MOST = 7, KEPT = 16 };

typedef struct world {
  lcomm_stale_rule rule;
  int workers, servers;
  uint8_t apart[2];
  lcomm_quorum lanes[STEPS_MOST + 1];
  lcomm_quorum *views[STEPS_MOST + 1];
} world;

/* Servers at the front, or behind the workers. */
static int rank_of(const world *it, int worker, bool is_behind) {
  return is_behind ? worker : it->servers + worker;
}

static void begin(world *it, bool is_behind) {
  int ranks = it->workers + it->servers;
  it->apart[0] = it->apart[1] = 0;
  for (int i = 0; i < it->servers; i++) {
    int server = is_behind ? it->workers + i : i;
    it->apart[server / 8] |= (uint8_t)(1 << server % 8);
  }
  const uint8_t *apart = it->servers > 0 ? it->apart : NULL;
  lcomm_quorum_rule rule = lcomm_stale_quorum(&it->rule, ranks, apart, KEPT);
  for (unsigned i = 0; i < lcomm_stale_lanes(&it->rule); i++) {
    assert_true(lcomm_quorum_make(&it->lanes[i], &rule));
    it->views[i] = &it->lanes[i];
  }
}

static void end(world *it) {
  for (unsigned i = 0; i < lcomm_stale_lanes(&it->rule); i++) {
    lcomm_quorum_free(&it->lanes[i]);
  }
}

/* As far as a worker may be ahead of one that has come to nothing. */
static void go_ahead(world *it, int rank) {
  for (unsigned lane = 0; lane < lcomm_stale_lanes(&it->rule); lane++) {
    assert_true(lcomm_quorum_contribute(&it->lanes[lane], rank, 0) == LCOMM_QUORUM_COUNTS);
  }
}

/* One worker after the other goes ahead; the others never come. */
static void require_majority(world *it, bool is_behind) {
  begin(it, is_behind);
  for (int ahead = 0; ahead <= it->workers; ahead++) {
    bool may_close = lcomm_stale_may_close(&it->rule, it->views, 0, 1000);
    bool has_to = ahead == it->workers || (it->rule.drops && 2 * ahead > it->workers);
    if (may_close != has_to) {
      fail_msg("with %d of %d workers and %d servers, stale=%u%s, a round %s", ahead, it->workers,
               it->servers, it->rule.steps, it->rule.drops ? ":drop" : "",
               may_close ? "closes" : "does not close");
    }
    if (ahead < it->workers) {
      go_ahead(it, rank_of(it, ahead, is_behind));
    }
  }
  end(it);
}

static void more_than_half_of_the_workers_close_a_round_and_no_fewer(void **state) {
  (void)state;
  static world it;
  for (it.workers = 1; it.workers <= WORKERS_MOST; it.workers++) {
    for (it.servers = 0; it.servers <= SERVERS_MOST; it.servers++) {
      for (unsigned steps = 1; steps <= STEPS_MOST; steps++) {
        for (int more = 0; more < 4; more++) {
          it.rule = (lcomm_stale_rule){.steps = steps, .drops = more / 2};
          require_majority(&it, more % 2);
        }
      }
    }
  }
}

/* A worker that is one step less ahead does not count. */
static void who_is_less_ahead_is_no_part_of_the_majority(void **state) {
  (void)state;
  static world it = {.workers = 5, .servers = 2, .rule = {.steps = 3, .drops = true}};
  begin(&it, true);
  go_ahead(&it, 0);
  go_ahead(&it, 1);
  for (unsigned lane = 0; lane < it.rule.steps; lane++) {
    assert_true(lcomm_quorum_contribute(&it.lanes[lane], 2, 0) == LCOMM_QUORUM_COUNTS);
    assert_false(lcomm_stale_may_close(&it.rule, it.views, 0, 1000));
  }
  assert_true(lcomm_quorum_contribute(&it.lanes[it.rule.steps], 2, 0) == LCOMM_QUORUM_COUNTS);
  assert_true(lcomm_stale_may_close(&it.rule, it.views, 0, 0));
  end(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(more_than_half_of_the_workers_close_a_round_and_no_fewer),
    cmocka_unit_test(who_is_less_ahead_is_no_part_of_the_majority),
};
RUN_TESTS(tests)
