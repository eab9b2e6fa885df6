/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Racks: what ranks say of them, in identities, in the environment and in a text. */

#include "tests/topo/topo_fixtures.h"

#include "libcomm/topo/topo_file.h"
#include "tests/support/unit_tests.h"

enum { RANKS_MAX = 16 };

/* Ranks on hosts and in racks that are named by one letter each; '-': none. */
static lcomm_status try_create(const char *hosts, const char *racks, int forced_nodes,
                               lcomm_topo *topo, lcomm_why *error) {
  lcomm_identity identities[RANKS_MAX];
  memset(identities, 0, sizeof identities);
  for (size_t rank = 0; hosts[rank] != '\0'; rank++) {
    identities[rank].host[0] = hosts[rank];
    identities[rank].host_hash = (uint64_t)hosts[rank];
    identities[rank].rack[0] = (char)(racks[rank] == '-' ? 0 : racks[rank]);
  }
  return lcomm_topo_create(identities, (int)strlen(hosts), forced_nodes, topo, error);
}

static lcomm_topo create(const char *hosts, const char *racks, int forced_nodes) {
  lcomm_why error;
  lcomm_topo topo;
  if (try_create(hosts, racks, forced_nodes, &topo, &error) != LCOMM_OK) {
    fail_msg("%s", error.text);
  }
  return topo;
}

/* The rack of each node, a digit each, and their names, a letter each. */
static void expect_racks(const lcomm_topo *topo, const char *digits, const char *names) {
  assert_int_equal(topo->racks.count, strlen(names));
  assert_int_equal(topo->nodes, strlen(digits));
  for (int node = 0; node < topo->nodes; node++) {
    int rack = topo->racks.of[node], place = topo->racks.place[node];
    assert_int_equal(rack, digits[node] - '0');
    assert_int_equal(topo->racks.members[topo->racks.first[rack] + place], node);
    assert_true(topo->racks.name[rack][0] == names[rack] && topo->racks.name[rack][1] == '\0');
  }
}

static void racks_are_numbered_by_their_lowest_node(void **state) {
  (void)state;
  lcomm_topo topo = create("aabbccddee", "yyxxyyxxzz", 0);
  expect_racks(&topo, "01012", "yxz");
  assert_int_equal(lcomm_racks_smallest(&topo.racks), 1);
  assert_int_equal(lcomm_racks_largest(&topo.racks), 2);
  assert_true(lcomm_topo_shares_rack(&topo, 0, 4) && !lcomm_topo_shares_rack(&topo, 0, 2));
  assert_false(lcomm_topo_shares_rack(&topo, 0, 1)); /* of one node */
  lcomm_topo_free(&topo);
  topo = create("aaaaaaaa", "rrrrssss", 4); /* ranks that pose as nodes */
  expect_racks(&topo, "0011", "rs");
  lcomm_topo_free(&topo);
}

static void without_names_there_are_no_racks(void **state) {
  (void)state;
  lcomm_topo topo = create("aabb", "----", 0);
  assert_int_equal(topo.racks.count, 0);
  assert_null(topo.racks.of);
  assert_false(lcomm_topo_shares_rack(&topo, 0, 2));
  lcomm_topo_free(&topo);
}

static void ranks_of_a_node_are_in_one_rack(void **state) {
  (void)state;
  static const struct {
    const char *hosts, *racks, *sentence;
    int nodes;
  } wrong[] = {
      {"aabb", "rrst", "ranks 2 and 3 are on node 1, but LCOMM_RACK names rack s of one and t", 0},
      {"aabb", "rrss", "ranks 0 and 2 are on node 0, but LCOMM_RACK names rack r of one and s", 1},
      {"aabb", "rr-s", "rank 0 names its rack (LCOMM_RACK), rank 2 does not; set LCOMM_RACK on", 0},
      {"aabb", "--ss", "rank 2 names its rack (LCOMM_RACK), rank 0 does not; set LCOMM_RACK on", 0},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    lcomm_why error = {""};
    lcomm_topo topo;
    assert_int_equal(try_create(wrong[i].hosts, wrong[i].racks, wrong[i].nodes, &topo, &error),
                     LCOMM_ERR_ARGUMENT);
    if (!strstr(error.text, wrong[i].sentence)) {
      fail_msg("%s", error.text);
    }
    lcomm_topo_free(&topo); /* is empty */
  }
}

static void the_environment_names_the_rack(void **state) {
  (void)state;
  static const char *const wrong[] = {"two words", "tab\t", "caf\xc3\xa9", "\x1b[2J",
                                      "name-of-thirty-two-letters-------"};
  lcomm_identity identity = {.rack = "before"};
  lcomm_why error;
  unsetenv("LCOMM_RACK");
  assert_int_equal(lcomm_identity_rack(&identity, &error), LCOMM_OK);
  assert_string_equal(identity.rack, "");
  setenv("LCOMM_RACK", "row-3/r07", 1);
  assert_int_equal(lcomm_identity_rack(&identity, &error), LCOMM_OK);
  assert_string_equal(identity.rack, "row-3/r07");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("LCOMM_RACK", wrong[i], 1);
    assert_int_equal(lcomm_identity_rack(&identity, &error), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "is no name of a rack; use 1 to 31 visible ASCII"));
    assert_string_equal(identity.rack, "");
  }
  unsetenv("LCOMM_RACK");
}

#define NODES "node 0 host a ranks 0 1\nnode 1 host b ranks 2 3\nnode 2 host c ranks 4 5\n"

static void racks_are_printed_as_they_were_loaded(void **state) {
  (void)state;
  const char *text = NODES "rack r07 nodes 0 2\nrack r08 nodes 1\n"
                           "link net latency 9 us bandwidth 1 GB/s\n";
  lcomm_topo topo = topo_of_text(text);
  char *printed = text_of_topo(&topo);
  assert_string_equal(printed, text);
  free(printed);
  lcomm_topo_free(&topo);
  topo = topo_of_text(NODES "rack x nodes 1\nrack y nodes 0\nrack x nodes 2\n");
  printed = text_of_topo(&topo);
  assert_string_equal(printed, NODES "rack y nodes 0\nrack x nodes 1 2\n");
  free(printed);
  lcomm_topo_free(&topo);
}

static void wrong_racks_are_refused_with_their_line(void **state) {
  (void)state;
  static const refused_text refused[] = {
      {NODES "rack\n", 4, "the name of a rack"},
      {NODES "rack r07\n", 4, "'nodes'"},
      {NODES "rack r07 nodes\n", 4, "a node that was listed"},
      {NODES "rack r07 nodes 3\n", 4, "a node that was listed"},
      {NODES "rack r07 nodes -1\n", 4, "a node that was listed"},
      {NODES "rack r07 nodes 0 x\n", 4, "a node that was listed"},
      {NODES "rack r07 nodes 0 1\nrack r08 nodes 1 2\n", 5, "node 1 is already in rack r07"},
      {NODES "rack r07 nodes 0 1\n", 5, "node 2 is in no rack"},
      {NODES "rack r\x7f nodes 0 1 2\n", 4, "not visible ASCII"},
      {NODES "rack name-of-thirty-two-letters------- nodes 0\n", 4, "too long; use at most 31"},
      {"rack r07 nodes 0\n" NODES, 1, "'node'"},
      {NODES "rack r07 nodes 0 1 2\nnode 3 host d ranks 6\n", 5, "list all nodes first"},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    assert_refused(&refused[i]);
  }
}

/* A file serves any ranks on its hosts. */
static void a_file_gives_racks_by_host(void **state) {
  (void)state;
  lcomm_topo file = topo_of_text(NODES "rack r nodes 0 2\nrack s nodes 1\n");
  lcomm_topo more = create("ccbbbbaa", "--------", 0);
  assert_true(lcomm_topo_take_racks(&more, &file));
  expect_racks(&more, "010", "rs");
  assert_false(lcomm_topo_take_racks(&more, &file)); /* they have racks now */
  lcomm_topo own = create("aabb", "xxxx", 0);
  assert_false(lcomm_topo_take_racks(&own, &file));
  expect_racks(&own, "00", "x");
  lcomm_topo strange = create("aadd", "----", 0);
  assert_false(lcomm_topo_take_racks(&strange, &file));
  assert_int_equal(strange.racks.count, 0);
  lcomm_topo posed = create("aabb", "----", 1); /* one node, two racks */
  assert_false(lcomm_topo_take_racks(&posed, &file));
  lcomm_topo twice = topo_of_text("node 0 host a ranks 0\nnode 1 host a ranks 1\n"
                                  "rack r nodes 0\nrack s nodes 1\n");
  lcomm_topo one = create("a", "-", 0);
  assert_false(lcomm_topo_take_racks(&one, &twice));
  lcomm_topo *all[] = {&file, &more, &own, &strange, &posed, &twice, &one};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    lcomm_topo_free(all[i]);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(racks_are_numbered_by_their_lowest_node),
    cmocka_unit_test(without_names_there_are_no_racks),
    cmocka_unit_test(ranks_of_a_node_are_in_one_rack),
    cmocka_unit_test(the_environment_names_the_rack),
    cmocka_unit_test(racks_are_printed_as_they_were_loaded),
    cmocka_unit_test(wrong_racks_are_refused_with_their_line),
    cmocka_unit_test(a_file_gives_racks_by_host),
};
RUN_TESTS(tests)
