/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcomm/topo/topo.h"
#include "tests/support/unit_tests.h"
#include "tests/topo/topo_fixtures.h"

enum { RANKS_MAX = 64 };

/* Ranks on hosts that are named by one letter each. */
static void place(const char *hosts, lcomm_identity *identities) {
  memset(identities, 0, RANKS_MAX * sizeof *identities);
  for (size_t rank = 0; hosts[rank] != '\0'; rank++) {
    identities[rank].host[0] = hosts[rank];
    identities[rank].host_hash = ~(uint64_t)hosts[rank] * 0x9e3779b97f4a7c15u;
    identities[rank].pid = rank + 1;
  }
}

static lcomm_topo create(const char *hosts, int forced_nodes) {
  lcomm_identity identities[RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  place(hosts, identities);
  assert_int_equal(lcomm_topo_create(identities, (int)strlen(hosts), forced_nodes, &topo, &error),
                   LCOMM_OK);
  assert_string_equal(error.text, "");
  return topo;
}

static void assert_nodes(const lcomm_topo *topo, const char *digits) {
  assert_int_equal(topo->size, strlen(digits));
  for (int rank = 0; rank < topo->size; rank++) {
    assert_int_equal(topo->node[rank], digits[rank] - '0');
  }
}

/* Everything that topo.h says of the tables. */
static void assert_consistent(const lcomm_topo *topo) {
  int lowest_before = -1;
  assert_int_equal(topo->first[0], 0);
  assert_int_equal(topo->first[topo->nodes], topo->size);
  for (int node = 0; node < topo->nodes; node++) {
    assert_true(topo->node_size[node] > 0);
    assert_int_equal(topo->first[node + 1] - topo->first[node], topo->node_size[node]);
    assert_true(lcomm_topo_rank(topo, node, 0) > lowest_before);
    lowest_before = lcomm_topo_rank(topo, node, 0);
    for (int local = 0; local < topo->node_size[node]; local++) {
      int rank = lcomm_topo_rank(topo, node, local);
      assert_int_equal(topo->members[topo->first[node] + local], rank);
      assert_int_equal(topo->node[rank], node);
      assert_int_equal(topo->local[rank], local);
      if (local > 0) {
        assert_true(rank > lcomm_topo_rank(topo, node, local - 1));
      }
    }
  }
  for (int rank = 0; rank < topo->size; rank++) {
    assert_true(memchr(topo->host[rank], 0, LCOMM_HOST_MAX) && topo->host[rank][0] != 0);
  }
}

static void assert_equal(const lcomm_topo *a, const lcomm_topo *b) {
  assert_int_equal(a->size, b->size);
  assert_int_equal(a->nodes, b->nodes);
  size_t ranks = (size_t)a->size * sizeof(int), nodes = (size_t)a->nodes * sizeof(int);
  assert_memory_equal(a->node, b->node, ranks);
  assert_memory_equal(a->local, b->local, ranks);
  assert_memory_equal(a->members, b->members, ranks);
  assert_memory_equal(a->node_size, b->node_size, nodes);
  assert_memory_equal(a->first, b->first, nodes + sizeof(int));
  assert_memory_equal(a->host, b->host, (size_t)a->size * LCOMM_HOST_MAX);
}

static void ranks_of_one_host_form_a_node(void **state) {
  (void)state;
  static const struct {
    const char *hosts, *nodes;
  } cases[] = {{"a", "0"},       {"aaaa", "0000"},     {"aabb", "0011"},
               {"abab", "0101"}, {"zyxzyx", "012012"}, {"baab", "0110"},
               {"abcd", "0123"}, {"cabbac", "012210"}, {"edcbaabcde", "0123443210"},
               {"aab", "001"},   {"abb", "011"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lcomm_topo topo = create(cases[i].hosts, 0);
    assert_nodes(&topo, cases[i].nodes);
    assert_consistent(&topo);
    for (int rank = 0; rank < topo.size; rank++) {
      assert_int_equal(topo.host[rank][0], cases[i].hosts[rank]);
    }
    lcomm_topo_free(&topo);
  }
}

static void the_hash_and_not_the_name_tells_hosts_apart(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  place("aaa", identities);
  identities[1].host_hash++;
  assert_int_equal(lcomm_topo_create(identities, 3, 0, &topo, &error), LCOMM_OK);
  assert_nodes(&topo, "010");
  lcomm_topo_free(&topo);
}

static void forced_nodes_cut_ranks_into_equal_runs(void **state) {
  (void)state;
  static const struct {
    int nodes;
    const char *expected;
  } cases[] = {{1, "0000000"}, {2, "0000111"}, {3, "0001122"}, {4, "0011223"},
               {5, "0011234"}, {6, "0012345"}, {7, "0123456"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lcomm_topo topo = create("abababa", cases[i].nodes);
    assert_int_equal(topo.nodes, cases[i].nodes);
    assert_nodes(&topo, cases[i].expected);
    assert_consistent(&topo);
    lcomm_topo_free(&topo);
  }
}

static void impossible_numbers_are_refused(void **state) {
  (void)state;
  static const struct {
    int size, forced_nodes;
    const char *sentence;
  } cases[] = {
      {4, 8, "LCOMM_NODES=8 with 4 ranks would leave 4 nodes without a rank; use 1 to 4"},
      {4, 5, "LCOMM_NODES=5 with 4 ranks would leave 1 node without a rank; use 1 to 4"},
      {1, INT_MAX,
       "LCOMM_NODES=2147483647 with 1 rank would leave 2147483646 nodes without a "
       "rank; use 1 to 1"},
      {4, -1, "LCOMM_NODES=-1 is no number of nodes; use 1 to 4, or 0 for the real hosts"},
      {4, INT_MIN, "LCOMM_NODES=-2147483648"},
      {0, 0, "0 ranks"},
      {-1, 0, "-1 ranks"},
      {INT_MIN, 1, "-2147483648 ranks"},
  };
  lcomm_identity identities[RANKS_MAX];
  place("abcd", identities);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lcomm_why error = {""};
    lcomm_topo topo;
    assert_int_equal(
        lcomm_topo_create(identities, cases[i].size, cases[i].forced_nodes, &topo, &error),
        LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, cases[i].sentence));
    lcomm_topo_free(&topo); /* is empty */
  }
}

static void names_from_peers_are_made_safe(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  place("aaaa", identities);
  memset(identities[0].host, 'x', LCOMM_HOST_MAX);
  memset(&identities[1], 0xff, sizeof identities[1]);
  memset(&identities[2], 0, sizeof identities[2]);
  strcpy(identities[3].host, "a b\n\x1b[2J");
  for (int rank = 0; rank < 4; rank++) {
    memset(identities[rank].rack, 0xff, LCOMM_RACK_MAX);
  }
  assert_int_equal(lcomm_topo_create(identities, 4, 0, &topo, &error), LCOMM_OK);
  assert_consistent(&topo);
  assert_int_equal(topo.racks.count, 1);
  assert_int_equal(strspn(topo.racks.name[0], "?"), LCOMM_RACK_MAX - 1);
  assert_int_equal(strlen(topo.host[0]), LCOMM_HOST_MAX - 1);
  assert_int_equal(strspn(topo.host[1], "?"), LCOMM_HOST_MAX - 1);
  assert_string_equal(topo.host[2], "?");
  assert_string_equal(topo.host[3], "a?b??[2J");
  lcomm_topo_free(&topo);
}

static void links_are_self_shm_or_net(void **state) {
  (void)state;
  lcomm_topo topo = create("abab", 0);
  for (int a = 0; a < 4; a++) {
    for (int b = 0; b < 4; b++) {
      lcomm_link expected = a == b           ? LCOMM_LINK_SELF
                            : a % 2 == b % 2 ? LCOMM_LINK_SHM
                                             : LCOMM_LINK_NET;
      assert_int_equal(lcomm_topo_link(&topo, a, b), expected);
    }
  }
  lcomm_topo_free(&topo);
}

static void a_node_group_holds_its_ranks_in_order(void **state) {
  (void)state;
  lcomm_topo topo = create("abaab", 0);
  lcomm_group group = lcomm_topo_node_group(&topo, 0, 3);
  assert_int_equal(group.size, 3);
  assert_int_equal(group.ranks[0], 0);
  assert_int_equal(group.ranks[1], 2);
  assert_int_equal(group.ranks[2], 3);
  assert_int_equal(group.me, 2);
  group = lcomm_topo_node_group(&topo, 1, 3);
  assert_int_equal(group.size, 2);
  assert_int_equal(group.ranks[0], 1);
  assert_int_equal(group.ranks[1], 4);
  assert_int_equal(group.me, -1);
  assert_int_equal(lcomm_topo_node_group(&topo, 0, -1).me, -1);
  assert_int_equal(lcomm_topo_node_group(&topo, 0, 5).me, -1);
  lcomm_topo_free(&topo);
}

static void text_has_one_line_for_each_node(void **state) {
  (void)state;
  char text[256];
  lcomm_topo topo = create("baab", 0);
  const char expected[] = "node 0 host b ranks 0 3\nnode 1 host a ranks 1 2\n";
  assert_int_equal(lcomm_topo_print(&topo, text, sizeof text), sizeof expected - 1);
  assert_string_equal(text, expected);
  lcomm_topo_free(&topo);
  topo = create("aabb", 1);
  lcomm_topo_print(&topo, text, sizeof text);
  assert_string_equal(text, "node 0 host a ranks 0 1 host b ranks 2 3\n");
  lcomm_topo_free(&topo);
}

static void printing_keeps_to_its_buffer(void **state) {
  (void)state;
  char whole[256], part[256];
  lcomm_topo topo = create("baabccab", 0);
  size_t needed = lcomm_topo_print(&topo, whole, sizeof whole);
  assert_int_equal(needed, strlen(whole));
  assert_int_equal(lcomm_topo_print(&topo, NULL, 0), needed);
  for (size_t size = 1; size <= needed + 1; size++) {
    memset(part, '#', sizeof part);
    assert_int_equal(lcomm_topo_print(&topo, part, size), needed);
    assert_int_equal(strlen(part), size - 1);
    assert_memory_equal(part, whole, size - 1);
    assert_int_equal(part[size], '#');
  }
  lcomm_topo_free(&topo);
}

static void text_loads_back_into_an_equal_topology(void **state) {
  (void)state;
  const char *const hosts[] = {"a", "aabb", "abab", "cabbac", "abcdefgh", "aaaaaaaaaaaaaaaa"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
    for (int forced = 0; forced <= (int)strlen(hosts[i]); forced++) {
      char text[1024];
      lcomm_why error;
      lcomm_topo topo = create(hosts[i], forced), loaded;
      assert_true(lcomm_topo_print(&topo, text, sizeof text) < sizeof text);
      assert_int_equal(lcomm_topo_load(text, &loaded, &error), LCOMM_OK);
      assert_equal(&topo, &loaded);
      assert_consistent(&loaded);
      lcomm_topo_free(&topo);
      lcomm_topo_free(&loaded);
    }
  }
}

static void text_by_hand_may_be_spaced_and_unsorted(void **state) {
  (void)state;
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_load("  node\t0 host ranks ranks 3  0 \nnode 1 host node ranks 1 2",
                                   &topo, &error),
                   LCOMM_OK);
  assert_nodes(&topo, "0110");
  assert_consistent(&topo);
  assert_string_equal(topo.host[0], "ranks");
  assert_string_equal(topo.host[2], "node");
  lcomm_topo_free(&topo);
}

static void malformed_text_is_refused_by_line(void **state) {
  (void)state;
  static const refused_text cases[] = {
      {"", 1, "'node' is expected"},
      {"\n", 1, "'node' is expected"},
      {"node", 1, "the number of a node is expected"},
      {"node x host a ranks 0", 1, "'x' where the number of a node"},
      {"node -1 host a ranks 0", 1, "'-1' where the number of a node"},
      {"node 1 host a ranks 0", 1, "node 1 where node 0"},
      {"node 0 host a ranks 0\nnode 2 host a ranks 1\n", 2, "node 2 where node 1"},
      {"node 0 host a ranks 0\nnode 0 host a ranks 1\n", 2, "node 0 where node 1"},
      {"node 0 ranks 0", 1, "'ranks' where 'host'"},
      {"node 0 host", 1, "a host name is expected"},
      {"node 0 host a", 1, "'ranks' is expected"},
      {"node 0 host a 0", 1, "'0' where 'ranks'"},
      {"node 0 host a ranks", 1, "a rank below 1048576 is expected"},
      {"node 0 host a ranks 0 host b ranks", 1, "a rank below 1048576 is expected"},
      {"node 0 host a ranks\n0", 1, "a rank below"},
      {"node 0 host a ranks host b ranks 0", 1, "'host' where a rank"},
      {"node 0 host a ranks 0 0", 1, "rank 0 is already on node 0"},
      {"node 0 host a ranks 0\nnode 1 host b ranks 1 0", 2, "rank 0 is already on node 0"},
      {"node 0 host a ranks 1", 1, "rank 0 is missing"},
      {"node 0 host a ranks 0 2\nnode 1 host b ranks 3", 2, "rank 1 is missing"},
      {"node 0 host a ranks 0 1000", 1, "too few ranks"},
      {"node 0 host a ranks 0 1048576", 1, "'1048576' where a rank below 1048576"},
      {"node 0 host a ranks 99999999999999999999", 1, "where a rank below"},
      {"node 0 host a ranks 0 x", 1, "'x' where a rank"},
      {"node 0 host a ranks 0,1", 1, "'0,1' where a rank"},
      {"node 0 host a ranks 0\r\n", 1, "'0?' where a rank"},
      {"node 0 host a ranks 0\ngarbage", 2, "'garbage' where 'node'"},
      {"node 0 host a ranks 0\n\n", 2, "ends where 'node', 'rack', 'device'"},
      {"node 0 host a ranks 0\n\nnode 1 host a ranks 1\n", 2,
       "ends where 'node', 'rack', 'device'"},
      {"node 0 host a ranks 1\nnode 1 host a ranks 0\n", 2, "below all ranks of node 0"},
      {"node 0 host \x1b[2J ranks 0", 1, "'?[2J' has bytes"},
      {"\x1b[2J", 1, "'?[2J' where"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_refused(&cases[i]);
  }
}

/* Also at the edges of the tables, which are sized by the number of words. */
static void a_gap_of_any_width_is_refused(void **state) {
  (void)state;
  for (int rank = 1; rank < 40; rank++) {
    char text[64];
    lcomm_why error;
    lcomm_topo topo;
    snprintf(text, sizeof text, "node 0 host a ranks 0 %d", rank);
    assert_int_equal(lcomm_topo_load(text, &topo, &error), rank == 1 ? LCOMM_OK : LCOMM_ERR_WIRE);
    lcomm_topo_free(&topo);
  }
}

static void long_host_names_are_refused(void **state) {
  (void)state;
  char text[256], name[LCOMM_HOST_MAX + 1];
  lcomm_why error;
  lcomm_topo topo;
  memset(name, 'n', LCOMM_HOST_MAX);
  name[LCOMM_HOST_MAX] = '\0';
  snprintf(text, sizeof text, "node 0 host %s ranks 0", name);
  assert_int_equal(lcomm_topo_load(text, &topo, &error), LCOMM_ERR_WIRE);
  assert_non_null(strstr(error.text, "line 1: a host name of 64 bytes"));
  snprintf(text, sizeof text, "node 0 host %s ranks 0", name + 1);
  assert_int_equal(lcomm_topo_load(text, &topo, &error), LCOMM_OK);
  assert_string_equal(topo.host[0], name + 1);
  lcomm_topo_free(&topo);
}

/* "node 0 host a ranks 0 1 2 ..." with the ranks 0..ranks-1; free it. */
static char *text_of_many_ranks(int ranks) {
  size_t size = (size_t)ranks * 9 + 64;
  char *text = malloc(size);
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, size, "node 0 host a ranks");
  for (int rank = 0; rank < ranks; rank++) {
    used += (size_t)snprintf(text + used, size - used, " %d", rank);
  }
  return text;
}

static void at_most_a_million_ranks_load(void **state) {
  (void)state;
  lcomm_why error;
  lcomm_topo topo;
  char *text = text_of_many_ranks(1 << 20);
  assert_int_equal(lcomm_topo_load(text, &topo, &error), LCOMM_OK);
  assert_int_equal(topo.size, 1 << 20);
  lcomm_topo_free(&topo);
  free(text);
  text = text_of_many_ranks((1 << 20) + 1);
  assert_int_equal(lcomm_topo_load(text, &topo, &error), LCOMM_ERR_WIRE);
  assert_non_null(strstr(error.text, "line 1: '1048576' where a rank below 1048576"));
  free(text);
}

static void an_identity_is_stable_and_has_no_stray_bytes(void **state) {
  (void)state;
  lcomm_identity a, b;
  unsetenv("LCOMM_HOSTID");
  memset(&a, 0x11, sizeof a);
  memset(&b, 0x22, sizeof b);
  lcomm_identity_self(&a);
  lcomm_identity_self(&b);
  assert_memory_equal(&a, &b, sizeof a);
  assert_int_equal(a.pid, getpid());
  assert_non_null(memchr(a.host, 0, sizeof a.host));
  assert_true(a.host[0] != '\0');

  char name[256] = "";
  assert_int_equal(gethostname(name, sizeof name - 1), 0);
  if (strlen(name) < LCOMM_HOST_MAX) {
    assert_string_equal(a.host, name);
  }

  int status;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    lcomm_identity_self(&b);
    _exit(b.host_hash == a.host_hash && b.pid != a.pid ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void hostid_replaces_the_identity(void **state) {
  (void)state;
  lcomm_identity real, x, y, again;
  unsetenv("LCOMM_HOSTID");
  lcomm_identity_self(&real);
  setenv("LCOMM_HOSTID", "x", 1);
  lcomm_identity_self(&x);
  lcomm_identity_self(&again);
  setenv("LCOMM_HOSTID", "y", 1);
  lcomm_identity_self(&y);
  assert_string_equal(x.host, "x");
  assert_string_equal(y.host, "y");
  assert_true(x.host_hash == again.host_hash);
  assert_true(x.host_hash != y.host_hash && x.host_hash != real.host_hash);
  setenv("LCOMM_HOSTID", "", 1);
  lcomm_identity_self(&again);
  assert_memory_equal(&again, &real, sizeof real);
  unsetenv("LCOMM_HOSTID");
}

static void a_long_hostid_is_cut_for_people_only(void **state) {
  (void)state;
  char id[201];
  lcomm_identity a, b;
  memset(id, 'i', 200);
  id[200] = '\0';
  setenv("LCOMM_HOSTID", id, 1);
  lcomm_identity_self(&a);
  id[199] = 'j';
  setenv("LCOMM_HOSTID", id, 1);
  lcomm_identity_self(&b);
  assert_int_equal(strlen(a.host), LCOMM_HOST_MAX - 1);
  assert_string_equal(a.host, b.host);
  assert_true(a.host_hash != b.host_hash);
  unsetenv("LCOMM_HOSTID");
}

static void free_may_be_called_twice(void **state) {
  (void)state;
  lcomm_topo topo = create("ab", 0);
  lcomm_topo_free(&topo);
  lcomm_topo_free(&topo);
  lcomm_topo_free(NULL);
  assert_null(topo.node);
  assert_int_equal(topo.size, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_of_one_host_form_a_node),
    cmocka_unit_test(the_hash_and_not_the_name_tells_hosts_apart),
    cmocka_unit_test(forced_nodes_cut_ranks_into_equal_runs),
    cmocka_unit_test(impossible_numbers_are_refused),
    cmocka_unit_test(names_from_peers_are_made_safe),
    cmocka_unit_test(links_are_self_shm_or_net),
    cmocka_unit_test(a_node_group_holds_its_ranks_in_order),
    cmocka_unit_test(text_has_one_line_for_each_node),
    cmocka_unit_test(printing_keeps_to_its_buffer),
    cmocka_unit_test(text_loads_back_into_an_equal_topology),
    cmocka_unit_test(text_by_hand_may_be_spaced_and_unsorted),
    cmocka_unit_test(malformed_text_is_refused_by_line),
    cmocka_unit_test(a_gap_of_any_width_is_refused),
    cmocka_unit_test(long_host_names_are_refused),
    cmocka_unit_test(at_most_a_million_ranks_load),
    cmocka_unit_test(an_identity_is_stable_and_has_no_stray_bytes),
    cmocka_unit_test(hostid_replaces_the_identity),
    cmocka_unit_test(a_long_hostid_is_cut_for_people_only),
    cmocka_unit_test(free_may_be_called_twice),
};
RUN_TESTS(tests)
