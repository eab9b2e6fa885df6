/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who owns pieces, and how they are balanced over servers. */

#include <string.h>

#include "libcomm/shards/shard_roles.h"
#include "tests/support/unit_tests.h"

enum { RANKS_MOST = 64, VECTORS = 40 };

/* Ranks of `nodes` nodes of equal size. */
static lcomm_topo topo_of(int ranks, int nodes) {
  static lcomm_identity identities[RANKS_MOST];
  lcomm_topo topo;
  lcomm_why why;
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &why), LCOMM_OK);
  return topo;
}

static lcomm_status make(const char *text, int ranks, int nodes, lcomm_shard_roles *roles,
                         lcomm_why *why) {
  lcomm_policy policy;
  assert_int_equal(lcomm_policy_parse(text, &policy, why), LCOMM_OK);
  lcomm_topo topo = topo_of(ranks, nodes);
  lcomm_status status = lcomm_shard_roles_make(&policy.quorum.servers, &topo, roles, why);
  lcomm_topo_free(&topo);
  return status;
}

static lcomm_shard_roles roles_of(const char *text, int ranks, int nodes) {
  lcomm_shard_roles roles;
  lcomm_why why;
  assert_int_equal(make(text, ranks, nodes, &roles, &why), LCOMM_OK);
  return roles;
}

static void servers_are_the_ranks_that_the_policy_names(void **state) {
  (void)state;
  lcomm_shard_roles roles = roles_of("algo=servers servers=1,6@3", 8, 4);
  assert_true(roles.servers == 2 && roles.workers == 6);
  for (int rank = 0; rank < 8; rank++) {
    assert_int_equal(lcomm_shard_roles_serves(&roles, rank), rank == 1 || rank == 6);
  }
  assert_true(roles.shares[1] == 1 && roles.shares[6] == 3 && roles.shares[0] == 0);
  lcomm_shard_roles_free(&roles);
  roles = roles_of("algo=servers servers=nodes:2", 8, 4);
  assert_true(roles.servers == 2 && lcomm_shard_roles_serves(&roles, 4) &&
              lcomm_shard_roles_serves(&roles, 5));
  lcomm_shard_roles_free(&roles);
}

static void without_servers_all_ranks_do_both(void **state) {
  (void)state;
  lcomm_shard_roles roles = roles_of("quorum=3", 8, 1);
  lcomm_shard_cut_piece pieces[8];
  assert_true(roles.servers == 0 && roles.workers == 8);
  lcomm_shard_cut(&roles, 1000, 4000, pieces);
  for (int rank = 0; rank < 8; rank++) {
    assert_int_equal(pieces[rank].first, rank * 128);
    assert_int_equal(pieces[rank].count, rank < 7 ? 128 : 104);
  }
  lcomm_shard_roles_free(&roles);
}

static void servers_that_cannot_be_are_refused_with_a_sentence(void **state) {
  (void)state;
  lcomm_shard_roles roles;
  lcomm_why why;
  assert_int_equal(make("algo=servers servers=0,8", 8, 4, &roles, &why), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(why.text, "servers=8 names a rank that is not there"));
  lcomm_shard_roles_free(&roles);
  assert_int_equal(make("algo=servers servers=nodes:4", 8, 4, &roles, &why), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(why.text, "servers=nodes:4 names a node that is not there"));
  lcomm_shard_roles_free(&roles);
  assert_int_equal(make("algo=servers servers=0,1", 2, 1, &roles, &why), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(why.text, "all 2 ranks"));
  lcomm_shard_roles_free(&roles);
}

/* Whole blocks, in order, each element once, and only servers have any. */
static void check_cut(const lcomm_shard_roles *roles, uint64_t count,
                      const lcomm_shard_cut_piece *pieces) {
  uint64_t at = 0;
  for (int rank = 0; rank < roles->ranks; rank++) {
    assert_int_equal(pieces[rank].first, at);
    assert_true(pieces[rank].count == 0 || lcomm_shard_roles_serves(roles, rank));
    at += pieces[rank].count;
    assert_true(at == count || at % 128 == 0);
  }
  assert_int_equal(at, count);
}

static uint64_t size_of(int i) {
  uint64_t x = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
  uint64_t most = i % 3 == 0 ? 500000 : i % 3 == 1 ? 9000 : 300;
  return (x >> 20) % most + 1;
}

/* By the shares, as near as the largest block and the largest vector that goes whole. */
static void servers_hold_their_shares_of_all_bytes(void **state) {
  (void)state;
  static const char *const texts[] = {"algo=servers servers=0,1", "algo=servers servers=3,5@3,7@2",
                                      "algo=servers servers=nodes:1",
                                      "algo=servers servers=7,0@1000", "algo=servers servers=2"};
  static lcomm_shard_cut_piece pieces[VECTORS][8];
  for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
    lcomm_shard_roles roles = roles_of(texts[t], 8, 4);
    uint64_t all = 0, shares = 0;
    for (int i = 0; i < VECTORS; i++) {
      uint64_t bytes = size_of(i) * (i % 2 == 0 ? 2 : 8);
      lcomm_shard_cut(&roles, size_of(i), bytes, pieces[i]);
      check_cut(&roles, size_of(i), pieces[i]);
    }
    for (int rank = 0; rank < 8; rank++) {
      all += roles.held[rank];
      shares += roles.shares[rank];
    }
    for (int rank = 0; rank < 8; rank++) {
      double share = (double)all * roles.shares[rank] / (double)shares;
      double off = (double)roles.held[rank] - share;
      assert_true(off * off <= 4.0 * 4096 * 4096);
    }
    for (int i = 0; i < VECTORS; i++) {
      for (int rank = 0; rank < 8; rank++) {
        lcomm_shard_uncut(&roles, rank, pieces[i][rank].bytes);
      }
    }
    for (int rank = 0; rank < 8; rank++) {
      assert_int_equal(roles.held[rank], 0);
    }
    lcomm_shard_roles_free(&roles);
  }
}

static void what_has_a_tile_or_less_goes_whole_to_the_server_that_has_least(void **state) {
  (void)state;
  lcomm_shard_roles roles = roles_of("algo=servers servers=0,1", 4, 1);
  lcomm_shard_cut_piece pieces[4];
  lcomm_shard_cut(&roles, 4096, 4096 * 8, pieces);
  assert_true(pieces[0].count == 4096 && pieces[1].count == 0);
  lcomm_shard_cut(&roles, 1, 8, pieces);
  assert_true(pieces[0].count == 0 && pieces[1].count == 1);
  lcomm_shard_cut(&roles, 0, 0, pieces);
  assert_true(pieces[0].count == 0 && pieces[1].count == 0);
  lcomm_shard_roles_free(&roles);
}

/* One of its node, the same for all of it. */
static void ranks_of_a_node_have_one_collector_for_each_owner(void **state) {
  (void)state;
  for (int nodes = 1; nodes <= 16; nodes++) {
    lcomm_topo topo = topo_of(16, nodes);
    for (int owner = 0; owner < 16; owner++) {
      for (int rank = 0; rank < 16; rank++) {
        int node = topo.node[rank], collector = lcomm_shard_collector(&topo, rank, owner);
        bool is_direct = node == topo.node[owner] || topo.node_size[node] == 1;
        assert_int_equal(collector < 0, is_direct);
        assert_true(is_direct || (topo.node[collector] == node &&
                                  lcomm_shard_collector(&topo, collector, owner) == collector));
      }
    }
    lcomm_topo_free(&topo);
  }
}

static void ranks_of_a_node_collect_equally_much(void **state) {
  (void)state;
  int pieces[16] = {0};
  lcomm_topo topo = topo_of(16, 4);
  for (int owner = 0; owner < 16; owner++) {
    for (int rank = 0; rank < 16; rank++) {
      pieces[rank] += lcomm_shard_collector(&topo, rank, owner) == rank;
    }
  }
  for (int rank = 0; rank < 16; rank++) {
    assert_int_equal(pieces[rank], 3);
  }
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(servers_are_the_ranks_that_the_policy_names),
    cmocka_unit_test(without_servers_all_ranks_do_both),
    cmocka_unit_test(servers_that_cannot_be_are_refused_with_a_sentence),
    cmocka_unit_test(servers_hold_their_shares_of_all_bytes),
    cmocka_unit_test(what_has_a_tile_or_less_goes_whole_to_the_server_that_has_least),
    cmocka_unit_test(ranks_of_a_node_have_one_collector_for_each_owner),
    cmocka_unit_test(ranks_of_a_node_collect_equally_much),
};
RUN_TESTS(tests)
