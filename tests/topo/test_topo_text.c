/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Devices, links and costs in the text form of a topology. */

#include "tests/support/unit_tests.h"
#include "tests/topo/topo_fixtures.h"

#define NODES "node 0 host a ranks 0 1\nnode 1 host b ranks 2 3\n"
#define DEVICES "device 0 pci 0000:17:00.0 ranks 0\ndevice 1 pci 0000:31:00.0 ranks 1\n"

static const char *const fixtures[] = {"nvswitch.topo", "pairs.topo", "pcie.topo", "mixed.topo",
                                       "domain.topo"};

/* What follows the comments at the top of a fixture. */
static const char *without_comments(const char *text) {
  while (*text == '#') {
    text = strchr(text, '\n') + 1;
  }
  return text;
}

static void fixtures_are_printed_as_they_were_loaded(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(fixtures) / sizeof *fixtures; i++) {
    char *text = fixture_text(fixtures[i]);
    lcomm_topo topo = topo_of_text(text);
    char *printed = text_of_topo(&topo);
    assert_string_equal(printed, without_comments(text));
    free(text);
    free(printed);
    lcomm_topo_free(&topo);
  }
}

static void printing_keeps_to_its_buffer(void **state) {
  (void)state;
  lcomm_topo topo = topo_of_fixture("mixed.topo");
  size_t (*const printers[])(const lcomm_topo *, char *, size_t) = {lcomm_topo_print,
                                                                    lcomm_topo_matrix};
  for (int i = 0; i < 2; i++) {
    size_t needed = printers[i](&topo, NULL, 0);
    char *whole = malloc(needed + 1);
    assert_non_null(whole);
    assert_int_equal(printers[i](&topo, whole, needed + 1), needed);
    for (size_t size = 1; size <= needed; size++) {
      char *part = malloc(size); /* so that a sanitizer sees a step too far */
      assert_non_null(part);
      assert_int_equal(printers[i](&topo, part, size), needed);
      assert_int_equal(strlen(part), size - 1);
      assert_memory_equal(part, whole, size - 1);
      free(part);
    }
    free(whole);
  }
  lcomm_topo_free(&topo);
}

static void facts_of_devices_survive_their_text(void **state) {
  (void)state;
  lcomm_topo topo = topo_of_text(
      NODES "# for people\n"
            "device 0 pci 00000000:3B:00.0 uuid GPU-00112233445566778899AABBCCDDEEFF index 65535 "
            "switched 255 cluster 1-0000000000000000000000000000000 clique 4294967295 ranks 3 0\n"
            "device 1 pci 10000:1:2.3 ranks 1\n"
            "nvlink 1 0 links 255\np2p 1 0\n"
            "link net latency 0 us bandwidth 0.001 GB/s\n"
            "link shm latency 1000000 us bandwidth 12.340 GB/s\n");
  char *text = text_of_topo(&topo);
  assert_string_equal(
      text, NODES "device 0 pci 0000:3b:00.0 uuid 00112233-4455-6677-8899-aabbccddeeff index 65535 "
                  "switched 255 cluster 10000000-0000-0000-0000-000000000000 clique 4294967295 "
                  "ranks 0 3\n"
                  "device 1 pci 10000:01:02.3 ranks 1\n"
                  "p2p 0 1\nnvlink 0 1 links 255\n"
                  "link shm latency 1000000 us bandwidth 12.34 GB/s\n"
                  "link net latency 0 us bandwidth 0.001 GB/s\n");
  assert_true(topo.cost[LCOMM_LINK_SHM].bandwidth_gb_s == 12.34);
  assert_true(topo.cost[LCOMM_LINK_NET].latency_us == 0);
  assert_false(topo.cost[LCOMM_LINK_NET].assumed);
  assert_true(topo.cost[LCOMM_LINK_PCIE].assumed);
  assert_int_equal(topo.device_list[1].index, -1);
  free(text);
  lcomm_topo_free(&topo);
}

static void every_class_has_an_assumed_cost(void **state) {
  (void)state;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    lcomm_link_cost cost = lcomm_link_cost_assumed((lcomm_link)link);
    assert_true(cost.assumed && cost.latency_us > 0 && cost.bandwidth_gb_s > 0);
  }
  assert_true(lcomm_link_cost_assumed((lcomm_link)-1).bandwidth_gb_s > 0);
  lcomm_topo topo = topo_of_text(NODES);
  assert_null(topo.device_list);
  assert_true(topo.cost[LCOMM_LINK_NET].assumed);
  lcomm_topo_free(&topo);
}

static void costs_are_read_to_a_millionth(void **state) {
  (void)state;
  static const struct {
    const char *number, *printed;
  } cases[] = {{"1", "1"},
               {"1.5", "1.5"},
               {"0.05", "0.05"},
               {"0.125", "0.125"},
               {"007.10", "7.1"},
               {"12.", NULL},
               {".5", NULL},
               {"0.00125", "0.00125"},
               {"0.000001", "0.000001"},
               {"1.2345670", NULL},
               {"1.2.3", NULL},
               {"-1", NULL},
               {"1e3", NULL},
               {"1,5", NULL},
               {"1000000", "1000000"},
               {"1000000.000001", NULL},
               {"9999999999999", NULL},
               {"99999999999999999999999", NULL},
               {"nan", NULL}};
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    char text[256], expected[256];
    lcomm_why error;
    lcomm_topo topo;
    snprintf(text, sizeof(text), NODES "link net latency %s us bandwidth %s GB/s\n",
             cases[i].number, cases[i].number);
    lcomm_status status = lcomm_topo_load(text, &topo, &error);
    assert_int_equal(status, cases[i].printed ? LCOMM_OK : LCOMM_ERR_WIRE);
    if (!cases[i].printed) {
      assert_non_null(strstr(error.text, "line 3: '"));
      continue;
    }
    snprintf(expected, sizeof(expected), NODES "link net latency %s us bandwidth %s GB/s\n",
             cases[i].printed, cases[i].printed);
    char *printed = text_of_topo(&topo);
    assert_string_equal(printed, expected);
    free(printed);
    lcomm_topo_free(&topo);
  }
}

static void malformed_lines_are_refused_by_number(void **state) {
  (void)state;
  static const refused_text cases[] = {
      {NODES "devices", 3, "'devices' where 'node', 'rack', 'device', 'p2p', 'nvlink' or 'link'"},
      {"# a\n" NODES "\n", 4, "the line ends where 'node', 'rack', 'device'"},
      {DEVICES, 1, "'device' where 'node'"},
      {"# a\nnode 0 host a ranks 1\n# b\n", 2, "rank 0 is missing"},
      {"# a\nnode 0 host a ranks 1\n# b\nnode 1 host a ranks 0\n", 4, "below all ranks of node 0"},
      {"node 0 host a ranks 1\n# b\nnode 1 host a ranks 0\nnode 2 host a ranks 2\n", 3,
       "node 1 has rank 0"},
      {NODES DEVICES "node 2 host c ranks 4\n", 5, "list all nodes first"},
      {NODES "device", 3, "a number from 0 to 1048575"},
      {NODES "device 1 pci 0:0:0.0 ranks 0\n", 3, "device 1 where device 0"},
      {NODES DEVICES "device 1 pci 0:0:0.0 ranks 2\n", 5, "device 1 where device 2"},
      {NODES "device 0 ranks 0\n", 3, "'ranks' where 'pci'"},
      {NODES "device 0 pci 17:00.0 ranks 0\n", 3, "'17:00.0' where a PCI id"},
      {NODES "device 0 pci", 3, "a PCI id is expected"},
      {NODES "device 0 pci 0:0:0.0", 3, "'ranks' is expected"},
      {NODES "device 0 pci 0:0:0.0 ranks", 3, "a rank that is on a node"},
      {NODES "device 0 pci 0:0:0.0 ranks 4", 3, "'4' where a rank that is on a node"},
      {NODES "device 0 pci 0:0:0.0 ranks 1 1", 3, "rank 1 already has device 0"},
      {NODES DEVICES "device 2 pci 0:0:0.0 ranks 2 0", 5, "rank 0 already has device 0"},
      {NODES "device 0 pci 0:0:0.0 uuid 12 ranks 0", 3, "'12' where a UUID"},
      {NODES "device 0 pci 0:0:0.0 uuid 00000000000000000000000000000000 ranks 0", 3, "a UUID"},
      {NODES "device 0 pci 0:0:0.0 index -1 ranks 0", 3, "'-1' where a number from 0 to 65535"},
      {NODES "device 0 pci 0:0:0.0 switched 0 ranks 0", 3, "a number from 1 to 255"},
      {NODES "device 0 pci 0:0:0.0 switched 256 ranks 0", 3, "a number from 1 to 255"},
      {NODES "device 0 pci 0:0:0.0 switched 1 index 0 ranks 0", 3, "'index' where 'ranks'"},
      {NODES "device 0 pci 0:0:0.0 cluster 00112233445566778899aabbccddeeff ranks 0", 3,
       "'ranks' where 'clique'"},
      {NODES "device 0 pci 0:0:0.0 cluster 00112233445566778899aabbccddeeff clique 4294967296 "
             "ranks 0",
       3, "'4294967296' where a number below"},
      {NODES "device 0 pci 0:0:0.0 cluster 00112233445566778899aabbccddeeff clique", 3,
       "a number below 4294967296 is expected"},
      {NODES "device 0 pci 0:0:0.0 cluster 00112233445566778899aabbccddeeff clique x", 3,
       "'x' where a number below"},
      {NODES DEVICES "device 2 pci 0:0:0.0 ranks 2\ndevice 3 pci 0:0:0.0 ranks 3\n"
                     "device 4 pci 0:0:0.0 ranks 0\n",
       7, "there are only 4 ranks"},
      {NODES "p2p 0 1\n", 3, "'0' where a device that was listed"},
      {NODES DEVICES "p2p 0\n", 5, "a device that was listed is expected"},
      {NODES DEVICES "p2p 0 2\n", 5, "'2' where a device that was listed"},
      {NODES DEVICES "p2p 1 1\n", 5, "device 1 is paired with itself"},
      {NODES DEVICES "p2p 0 1\n# again\np2p 1 0\n", 7, "already said of devices 0 and 1"},
      {NODES DEVICES "p2p 0 1 1\n", 5, "already said of devices 0 and 1"},
      {NODES DEVICES "nvlink 0 1 links 3\np2p 0 1\nnvlink 0 1 links 2\n", 7, "already said"},
      {NODES DEVICES "nvlink 0 1\n", 5, "'links' is expected"},
      {NODES DEVICES "nvlink 0 1 links 0\n", 5, "a number from 1 to 255"},
      {NODES DEVICES "nvlink 0 1 links 1 2\n", 5, "'2' where the end of the line"},
      {NODES "link\n", 3, "a link class is expected"},
      {NODES "link wire latency 1 us bandwidth 1 GB/s\n", 3, "'wire' where a link class"},
      {NODES "link net bandwidth 1 GB/s latency 1 us\n", 3, "'bandwidth' where 'latency'"},
      {NODES "link net latency 1 ms bandwidth 1 GB/s\n", 3, "'ms' where 'us'"},
      {NODES "link net latency 1 us bandwidth 0 GB/s\n", 3, "moves nothing"},
      {NODES "link net latency 1 us bandwidth 1 GB/s or so\n", 3, "'or' where the end"},
      {NODES "link net latency 1 us bandwidth 1 GB/s\nlink net latency 1 us bandwidth 1 GB/s\n", 4,
       "what net links cost was already said"},
      {NODES "device 0 pci \x1b[2J ranks 0", 3, "'?[2J' where a PCI id"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    assert_refused(&cases[i]);
  }
}

static void a_matrix_names_every_link_and_loads_back(void **state) {
  (void)state;
  char text[16384];
  lcomm_why error;
  lcomm_topo topo = topo_of_fixture("mixed.topo"), again;
  size_t length = lcomm_topo_matrix(&topo, text, sizeof(text));
  assert_true(length < sizeof(text));
  static const char *const words[] = {"same-device", "nvlink", "pcie",           "shm",
                                      "net",         "self",   "3 GB/s, assumed"};
  for (size_t i = 0; i < sizeof(words) / sizeof *words; i++) {
    assert_non_null(strstr(text, words[i]));
  }
  lcomm_topo_print(&topo, text + length, sizeof(text) - length);
  assert_int_equal(lcomm_topo_load(text, &again, &error), LCOMM_OK);
  lcomm_topo_free(&again);
  lcomm_topo_free(&topo);
  topo = topo_of_text("node 0 host a ranks 0 1 2 3 4 5 6 7 8\nnode 1 host b ranks 9 10 11 12 13 14 "
                      "15 16\ndevice 0 pci 0:1:0.0 ranks 0 1 2\n");
  lcomm_topo_matrix(&topo, text, sizeof(text));
  assert_non_null(strstr(text, "# 17 ranks, pairs by link: same-device 3 shm 61 net 72\n"));
  lcomm_topo_free(&topo);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fixtures_are_printed_as_they_were_loaded),
    cmocka_unit_test(printing_keeps_to_its_buffer),
    cmocka_unit_test(facts_of_devices_survive_their_text),
    cmocka_unit_test(every_class_has_an_assumed_cost),
    cmocka_unit_test(costs_are_read_to_a_millionth),
    cmocka_unit_test(malformed_lines_are_refused_by_number),
    cmocka_unit_test(a_matrix_names_every_link_and_loads_back),
};
RUN_TESTS(tests)
