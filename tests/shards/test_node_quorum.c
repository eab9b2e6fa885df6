/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The rule of a quorum by nodes, simulated: the owner of a piece on the first node, a collector on
 * each other node of more than one rank, ranks that are late at random, and messages between nodes
 * that take a while, each pair's in its order. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/shards/node_quorum.h"
#include "tests/shards/draws.h"
#include "tests/support/unit_tests.h"

enum { ROUNDS = 150, RANKS_MOST = 64, MASK = RANKS_MOST / 8, QUEUE = 256 };
static const double STEP_S = 0.001;

typedef enum message_kind { NOTICE, CONTRIBUTION, ASK, RESULT } message_kind;

typedef struct message {
  message_kind kind;
  uint64_t round;
  double due_s;
  uint8_t set[MASK];
} message;

/* In order; nobody has more messages under way than fit. */
typedef struct queue {
  message all[QUEUE];
  unsigned first, last;
} queue;

typedef struct node {
  int first, size; /* its ranks are in a row */
  int collector;   /* -1: its ranks contribute themselves */
  lcomm_node_quorum quorum;
  queue up, down;
  uint8_t sent[MASK];
  bool asked; /* by the owner, in the round that it has open for this node */
  uint64_t contributions, notices;
} node;

typedef struct world {
  int ranks, nodes;
  lcomm_quorum quorum;
  int source[RANKS_MOST], node_of[RANKS_MOST];
  node node[RANKS_MOST];
  uint64_t random;
  double now_s;
  double comes_s[RANKS_MOST];
  uint64_t begun[RANKS_MOST], ended[RANKS_MOST], used[RANKS_MOST];
  uint8_t sets[ROUNDS][MASK]; /* who was used, as the owner said */
} world;

static double draw(world *it) {
  return draw_next(&it->random);
}

/* Most steps take one unit, some ranks and the last node are always slow, and all pause. */
static double draw_step_s(world *it, int rank) {
  double slow = rank % 7 == 3 ? 3 : 1, pause = draw(it) < 0.05 ? 40 : 0;
  bool is_last = it->nodes > 2 && it->node_of[rank] == it->nodes - 1;
  return STEP_S * (slow * (is_last ? 2 : 1) * (0.5 + draw(it)) + pause);
}

static void post(world *it, queue *to, message_kind kind, uint64_t round, const uint8_t *set) {
  message *at = &to->all[to->last % QUEUE];
  double before_s = to->last > to->first ? to->all[(to->last - 1) % QUEUE].due_s : 0;
  double due_s = it->now_s + STEP_S * draw(it);
  assert_true(to->last - to->first < QUEUE);
  *at = (message){.kind = kind, .round = round, .due_s = due_s > before_s ? due_s : before_s};
  memcpy(at->set, set, MASK);
  to->last++;
}

static const message *take(const world *it, queue *from) {
  const message *at = &from->all[from->first % QUEUE];
  if (from->first == from->last || at->due_s > it->now_s) {
    return NULL;
  }
  from->first++;
  return at;
}

/* -------------------------------------------------------------------- making */

static void add_node(world *it, int size, int spare, unsigned kept) {
  node *made = &it->node[it->nodes];
  *made = (node){.first = it->ranks, .size = size, .collector = -1};
  if (it->nodes > 0 && size > 1) {
    made->collector = it->ranks + (int)(draw(it) * size);
    int needed = size > spare ? size - spare : 1;
    assert_true(lcomm_node_quorum_make(&made->quorum, size, needed, kept, 20 * STEP_S));
  }
  for (int rank = it->ranks; rank < it->ranks + size; rank++) {
    it->source[rank] = made->collector >= 0 ? made->collector : rank;
    it->node_of[rank] = it->nodes;
  }
  it->ranks += size;
  it->nodes++;
}

/* sizes: of the nodes, 0 at the end. */
static void begin(world *it, const int *sizes, int needed, double late_s, unsigned kept,
                  uint64_t seed) {
  int ranks = 0;
  memset(it, 0, sizeof *it);
  it->random = seed * 2 + 1;
  for (int i = 0; sizes[i] > 0; i++) {
    ranks += sizes[i];
  }
  for (int i = 0; sizes[i] > 0; i++) {
    add_node(it, sizes[i], ranks - needed, kept);
  }
  lcomm_quorum_rule rule = {
      .ranks = ranks, .needed = needed, .late_s = late_s, .kept = kept, .source = it->source};
  assert_true(lcomm_quorum_make(&it->quorum, &rule));
  for (int rank = 0; rank < ranks; rank++) {
    it->comes_s[rank] = draw_step_s(it, rank);
  }
}

static void end(world *it) {
  for (int i = 0; i < it->nodes; i++) {
    lcomm_node_quorum_free(&it->node[i].quorum);
  }
  lcomm_quorum_free(&it->quorum);
}

/* --------------------------------------------------------------------- ranks */

static void let_them_come(world *it) {
  for (int rank = 0; rank < it->ranks; rank++) {
    node *of = &it->node[it->node_of[rank]];
    if (it->begun[rank] > it->ended[rank] || it->begun[rank] == ROUNDS ||
        it->comes_s[rank] > it->now_s) {
      continue;
    }
    lcomm_quorum_verdict verdict =
        of->collector >= 0 ? lcomm_node_quorum_contribute(&of->quorum, rank - of->first, it->now_s)
                           : lcomm_quorum_contribute(&it->quorum, rank, it->now_s);
    assert_true(verdict != LCOMM_QUORUM_REFUSED);
    it->begun[rank]++;
  }
}

/* A rank has the result of its round. */
static void give(world *it, int rank) {
  uint64_t round = it->ended[rank]++;
  it->used[rank] += lcomm_quorum_mask_has(it->sets[round], rank);
  it->comes_s[rank] = it->now_s + draw_step_s(it, rank);
}

/* ---------------------------------------------------------------- collectors */

static void set_of(const node *of, bool is_sent, uint8_t *set) {
  memset(set, 0, MASK);
  for (int local = 0; local < of->size; local++) {
    bool has = is_sent ? lcomm_quorum_mask_has(of->quorum.sent, local)
                       : lcomm_quorum_is_in(&of->quorum.ranks, local);
    set[(of->first + local) / 8] |= (uint8_t)(has << (of->first + local) % 8);
  }
}

static void collect(world *it, node *of) {
  uint8_t set[MASK];
  if (lcomm_node_quorum_may_send(&of->quorum)) {
    lcomm_node_quorum_send(&of->quorum, it->now_s);
    set_of(of, true, of->sent);
    of->contributions++;
    post(it, &of->up, CONTRIBUTION, of->quorum.ranks.open, of->sent);
  } else if (lcomm_node_quorum_may_tell(&of->quorum, it->now_s)) {
    lcomm_node_quorum_tell(&of->quorum, it->now_s);
    set_of(of, false, set);
    of->notices++;
    post(it, &of->up, NOTICE, of->quorum.ranks.open, set);
  }
}

/* Of the ranks of a node all are used for which it contributed, or none. */
static void check_used(const node *of, const uint8_t *used) {
  int sent = 0, both = 0, its = 0;
  for (int rank = of->first; rank < of->first + of->size; rank++) {
    sent += lcomm_quorum_mask_has(of->sent, rank);
    its += lcomm_quorum_mask_has(used, rank);
    both += lcomm_quorum_mask_has(of->sent, rank) && lcomm_quorum_mask_has(used, rank);
  }
  assert_true(sent > 0 && both == its && (its == 0 || its == sent));
}

static void hear_owner(world *it, node *of) {
  for (const message *came = take(it, &of->down); came; came = take(it, &of->down)) {
    assert_true(came->round == of->quorum.ranks.open);
    if (came->kind == ASK) {
      assert_true(lcomm_node_quorum_ask(&of->quorum, came->round));
    } else {
      check_used(of, came->set);
      assert_true(lcomm_quorum_has_room(&of->quorum.ranks));
      lcomm_node_quorum_close(&of->quorum);
    }
  }
  for (int local = 0; local < of->size; local++) {
    if (lcomm_quorum_may_answer(&of->quorum.ranks, local)) {
      lcomm_quorum_answered(&of->quorum.ranks, local);
      give(it, of->first + local);
    }
  }
}

/* --------------------------------------------------------------------- owner */

static void hear_nodes(world *it) {
  for (int i = 0; i < it->nodes; i++) {
    node *of = &it->node[i];
    for (const message *came = take(it, &of->up); came; came = take(it, &of->up)) {
      lcomm_quorum_verdict verdict =
          came->kind == NOTICE
              ? lcomm_quorum_notice(&it->quorum, of->collector, came->round, came->set, it->now_s)
              : lcomm_quorum_contribute_for(&it->quorum, of->collector, came->round, came->set,
                                            it->now_s);
      bool is_late = came->round < it->quorum.open;
      assert_int_equal(verdict, is_late ? LCOMM_QUORUM_LATE : LCOMM_QUORUM_COUNTS);
    }
  }
}

static void ask(world *it) {
  static const uint8_t nobody[MASK];
  for (int i = 0; i < it->nodes; i++) {
    node *of = &it->node[i];
    bool must = of->collector >= 0 && !of->asked &&
                lcomm_quorum_must_ask(&it->quorum, of->collector, it->now_s);
    if (must) {
      of->asked = true;
      post(it, &of->down, ASK, it->quorum.ranks[of->collector].answered, nobody);
    }
  }
}

static void close_rounds(world *it) {
  while (lcomm_quorum_is_whole(&it->quorum, it->now_s)) {
    uint64_t round = it->quorum.open;
    assert_true(it->quorum.there >= it->quorum.rule.needed && round < ROUNDS);
    lcomm_quorum_close(&it->quorum);
    memcpy(it->sets[round], lcomm_quorum_used(&it->quorum, round),
           lcomm_quorum_mask_size(it->ranks));
  }
}

static void answer(world *it) {
  for (int source = 0; source < it->ranks; source++) {
    uint64_t round = it->quorum.ranks[source].answered;
    if (it->source[source] != source || !lcomm_quorum_may_answer(&it->quorum, source)) {
      continue;
    }
    node *of = &it->node[it->node_of[source]];
    assert_true(it->quorum.open - round <= it->quorum.rule.kept);
    lcomm_quorum_answered(&it->quorum, source);
    if (of->collector < 0) {
      give(it, source);
    } else {
      of->asked = false;
      post(it, &of->down, RESULT, round, it->sets[round]);
    }
  }
}

/* Bounded: a rule that blocks would never come to the end. */
static void run(world *it) {
  bool all_over = false;
  for (uint64_t tick = 0; !all_over; tick++) {
    assert_true(tick < 2000ull * ROUNDS);
    it->now_s += STEP_S / 4;
    let_them_come(it);
    for (int i = 0; i < it->nodes; i++) {
      if (it->node[i].collector >= 0) {
        collect(it, &it->node[i]);
        hear_owner(it, &it->node[i]);
      }
    }
    hear_nodes(it);
    ask(it);
    close_rounds(it);
    answer(it);
    all_over = true;
    for (int rank = 0; rank < it->ranks; rank++) {
      all_over &= it->ended[rank] == ROUNDS;
    }
  }
}

/* ---------------------------------------------------------------- properties */

static const int shapes[][17] = {
    {2, 0},
    {1, 1, 0},
    {2, 2, 0},
    {1, 3, 0},
    {3, 1, 4, 0},
    {2, 2, 2, 2, 0},
    {8, 8, 0},
    {1, 7, 2, 5, 0},
    {4, 4, 4, 4, 4, 4, 4, 4, 0},
    {8, 8, 8, 8, 8, 8, 8, 8, 0},
    {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static int count_ranks(const int *sizes) {
  int ranks = 0;
  for (int i = 0; sizes[i] > 0; i++) {
    ranks += sizes[i];
  }
  return ranks;
}

/* A rank is used in the rounds whose sets have it, and keeps what it brought in the others: each
 * contribution ends once, and an owner never uses fewer than it says. */
static void every_contribution_is_used_once_or_returned_once(void **state) {
  (void)state;
  static world it;
  for (int s = 0; s < SHAPES; s++) {
    int ranks = count_ranks(shapes[s]);
    const int spares[] = {0, 1, 2, ranks / 2, ranks - 1};
    for (int i = 0; i < 5; i++) {
      int needed = ranks - spares[i] < 1 ? 1 : ranks - spares[i];
      begin(&it, shapes[s], needed, i % 2 * STEP_S, 1 + (unsigned)i * 4, 7 + (uint64_t)(s * 5 + i));
      run(&it);
      for (int rank = 0; rank < ranks; rank++) {
        assert_true(it.begun[rank] == ROUNDS && it.ended[rank] == ROUNDS);
        assert_true(needed < ranks || it.used[rank] == ROUNDS);
      }
      end(&it);
    }
  }
}

static void a_node_contributes_once_to_each_round(void **state) {
  (void)state;
  static const int sizes[] = {4, 4, 4, 0};
  static world it;
  for (int needed = 6; needed <= 12; needed++) {
    begin(&it, sizes, needed, STEP_S, 16, 99);
    run(&it);
    for (int i = 1; i < it.nodes; i++) {
      assert_true(it.node[i].contributions == ROUNDS);
      assert_true(it.node[i].notices <= 3 * ROUNDS);
    }
    end(&it);
  }
}

/* ------------------------------------------------------- one collector alone */

static lcomm_node_quorum node_of(int ranks, int needed, unsigned kept) {
  lcomm_node_quorum made;
  assert_true(lcomm_node_quorum_make(&made, ranks, needed, kept, 5));
  return made;
}

static void a_whole_node_contributes_without_being_asked(void **state) {
  (void)state;
  lcomm_node_quorum it = node_of(2, 2, 4);
  (void)lcomm_node_quorum_contribute(&it, 1, 10);
  assert_false(lcomm_node_quorum_may_send(&it) || lcomm_node_quorum_may_tell(&it, 14));
  assert_true(lcomm_node_quorum_due_s(&it) >= 15 && lcomm_node_quorum_due_s(&it) <= 15);
  (void)lcomm_node_quorum_contribute(&it, 0, 11);
  assert_true(lcomm_node_quorum_may_send(&it));
  lcomm_node_quorum_send(&it, 11);
  assert_int_equal(it.sent[0], 3);
  assert_false(lcomm_node_quorum_may_send(&it) || lcomm_node_quorum_may_tell(&it, 100));
  lcomm_node_quorum_free(&it);
}

static void the_owner_is_told_of_few_ranks_when_they_have_waited(void **state) {
  (void)state;
  lcomm_node_quorum it = node_of(3, 3, 4);
  (void)lcomm_node_quorum_contribute(&it, 1, 10);
  assert_false(lcomm_node_quorum_ask(&it, 0));
  assert_true(lcomm_node_quorum_may_tell(&it, 15));
  lcomm_node_quorum_tell(&it, 15);
  assert_false(lcomm_node_quorum_may_tell(&it, 100));
  assert_false(lcomm_node_quorum_ask(&it, 1));
  assert_true(lcomm_node_quorum_ask(&it, 0));
  assert_true(lcomm_node_quorum_may_send(&it));
  lcomm_node_quorum_send(&it, 16);
  (void)lcomm_node_quorum_contribute(&it, 2, 17); /* late, though its round is open here */
  assert_int_equal(it.sent[0], 2);
  lcomm_node_quorum_close(&it);
  assert_true(lcomm_quorum_may_answer(&it.ranks, 1) && lcomm_quorum_may_answer(&it.ranks, 2));
  assert_false(lcomm_quorum_may_answer(&it.ranks, 0));
  lcomm_node_quorum_free(&it);
}

/* The owner does not go on without a node that it was not told of, so its memory is bounded. */
static void a_node_with_a_rank_far_behind_does_not_contribute(void **state) {
  (void)state;
  lcomm_node_quorum it = node_of(2, 1, 2);
  double since_s = 0;
  for (int round = 0; round < 2; round++) {
    (void)lcomm_node_quorum_contribute(&it, 0, round);
    assert_true(lcomm_node_quorum_may_tell(&it, round));
    lcomm_node_quorum_tell(&it, round);
    assert_true(lcomm_node_quorum_ask(&it, (uint64_t)round));
    lcomm_node_quorum_send(&it, round);
    lcomm_node_quorum_close(&it);
    lcomm_quorum_answered(&it.ranks, 0);
  }
  (void)lcomm_node_quorum_contribute(&it, 0, 2);
  assert_false(lcomm_node_quorum_may_tell(&it, 1000) || lcomm_node_quorum_may_send(&it));
  assert_int_equal(lcomm_quorum_awaits(&it.ranks, &since_s), 1);
  (void)lcomm_node_quorum_contribute(&it, 1, 1000);
  assert_true(lcomm_quorum_may_answer(&it.ranks, 1));
  lcomm_quorum_answered(&it.ranks, 1);
  assert_true(lcomm_node_quorum_may_tell(&it, 1000));
  lcomm_node_quorum_free(&it);
}

static void who_contributes_for_others_or_twice_is_refused(void **state) {
  (void)state;
  static const int source[4] = {0, 1, 3, 3};
  static const uint8_t own[1] = {8}, both[1] = {12}, other[1] = {10};
  lcomm_quorum_rule rule = {.ranks = 4, .needed = 2, .kept = 4, .source = source};
  lcomm_quorum it;
  assert_true(lcomm_quorum_make(&it, &rule));
  assert_int_equal(lcomm_quorum_notice(&it, 3, 0, other, 1), LCOMM_QUORUM_REFUSED);
  assert_int_equal(lcomm_quorum_notice(&it, 3, 1, own, 1), LCOMM_QUORUM_REFUSED);
  assert_int_equal(lcomm_quorum_notice(&it, 3, 0, both, 1), LCOMM_QUORUM_COUNTS);
  assert_int_equal(it.there, 2);
  assert_true(lcomm_quorum_may_close(&it, 1) && !lcomm_quorum_is_whole(&it, 1));
  assert_true(lcomm_quorum_must_ask(&it, 3, 1));
  assert_int_equal(lcomm_quorum_contribute_for(&it, 3, 0, own, 1), LCOMM_QUORUM_REFUSED);
  assert_int_equal(lcomm_quorum_contribute_for(&it, 3, 0, both, 1), LCOMM_QUORUM_COUNTS);
  assert_int_equal(lcomm_quorum_contribute_for(&it, 3, 0, both, 1), LCOMM_QUORUM_REFUSED);
  assert_true(lcomm_quorum_is_whole(&it, 1));
  lcomm_quorum_free(&it);
}

/* Without it the one that is there would wait for the others of its node. */
static void a_late_node_is_asked_and_answered_for_those_that_are_there(void **state) {
  (void)state;
  static const int source[4] = {0, 1, 3, 3};
  static const uint8_t own[1] = {8};
  lcomm_quorum_rule rule = {.ranks = 4, .needed = 2, .kept = 4, .source = source};
  lcomm_quorum it;
  assert_true(lcomm_quorum_make(&it, &rule));
  (void)lcomm_quorum_contribute(&it, 0, 1);
  (void)lcomm_quorum_contribute(&it, 1, 1);
  lcomm_quorum_close(&it);
  assert_int_equal(lcomm_quorum_notice(&it, 3, 0, own, 2), LCOMM_QUORUM_LATE);
  assert_true(lcomm_quorum_must_ask(&it, 3, 2) && !lcomm_quorum_may_answer(&it, 3));
  assert_int_equal(lcomm_quorum_contribute_for(&it, 3, 0, own, 3), LCOMM_QUORUM_LATE);
  assert_true(lcomm_quorum_may_answer(&it, 3));
  lcomm_quorum_answered(&it, 3);
  assert_true(it.ranks[2].answered == 1 && it.ranks[2].came == 1);
  assert_false(lcomm_quorum_may_answer(&it, 3));
  lcomm_quorum_free(&it);
}

/* Who brings nothing of a whole node is stuck, or not there itself. */
static void the_source_of_a_silent_node_is_named(void **state) {
  (void)state;
  static const int source[4] = {0, 1, 3, 3};
  static const uint8_t own[1] = {8};
  lcomm_quorum_rule rule = {.ranks = 4, .needed = 4, .kept = 4, .source = source};
  lcomm_quorum it;
  double since_s;
  assert_true(lcomm_quorum_make(&it, &rule));
  (void)lcomm_quorum_contribute(&it, 0, 1);
  (void)lcomm_quorum_contribute(&it, 1, 1);
  assert_int_equal(lcomm_quorum_awaits(&it, &since_s), 3);
  assert_int_equal(lcomm_quorum_notice(&it, 3, 0, own, 1), LCOMM_QUORUM_COUNTS);
  assert_int_equal(lcomm_quorum_awaits(&it, &since_s), 2);
  lcomm_quorum_free(&it);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_contribution_is_used_once_or_returned_once),
    cmocka_unit_test(a_node_contributes_once_to_each_round),
    cmocka_unit_test(a_whole_node_contributes_without_being_asked),
    cmocka_unit_test(the_owner_is_told_of_few_ranks_when_they_have_waited),
    cmocka_unit_test(a_node_with_a_rank_far_behind_does_not_contribute),
    cmocka_unit_test(who_contributes_for_others_or_twice_is_refused),
    cmocka_unit_test(a_late_node_is_asked_and_answered_for_those_that_are_there),
    cmocka_unit_test(the_source_of_a_silent_node_is_named),
};
RUN_TESTS(tests)
