/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* From what ranks say of their devices to the link classes between them. */

#include "tests/topo/topo_fixtures.h"

#include <limits.h>

#include "libcomm/comm/handshake.h"
#include "libcomm/topo/identity_device.h"
#include "tests/support/unit_tests.h"
#include "tests/topo/nvml_fake.h"

enum { RANKS_MAX = 16 };

/* A device table of which only the questions about the current device answer. */
static struct {
  lcomm_device_facts facts;
  int current, current_error, facts_error;
} device;

static int device_current(int *number) {
  *number = device.current;
  return device.current_error;
}

static int device_facts(int number, lcomm_device_facts *facts) {
  assert_int_equal(number, device.current);
  *facts = device.facts;
  return device.facts_error;
}

static const lcomm_device_table table = {
    .name = "fake", .current = device_current, .facts = device_facts};

/* The identity of a rank on `host` whose device is GPU `gpu` of the fake NVML,
 * -1 for none. */
static lcomm_identity identity_on(char host, int gpu) {
  lcomm_identity identity;
  static lcomm_gpus gpus;
  memset(&identity, 0, sizeof(identity));
  identity.host[0] = host;
  identity.host_hash = (uint64_t)host * 77;
  if (gpu < 0) {
    return identity;
  }
  lcomm_gpus_survey(&fake_nvml, &gpus);
  memset(&device, 0, sizeof(device));
  device.current = 0; /* CUDA counts what this process may see */
  memcpy(device.facts.uuid, gpus.gpu[gpu].uuid, sizeof(device.facts.uuid));
  snprintf(device.facts.pci, sizeof(device.facts.pci), "0000:%02x:00.0", (uint8_t)(0x10 + gpu));
  lcomm_identity_take_device(&identity, &table, &gpus);
  assert_int_equal(identity.device.index, gpu);
  return identity;
}

static lcomm_topo topo_of(const lcomm_identity *identities, int size, int forced_nodes) {
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_create(identities, size, forced_nodes, &topo, &error), LCOMM_OK);
  return topo;
}

/* The links, which are also those after a trip through text. */
static void expect_links(const lcomm_identity *identities, int size, int forced_nodes,
                         const char *const *rows) {
  lcomm_topo topo = topo_of(identities, size, forced_nodes);
  assert_links(&topo, rows);
  char *text = text_of_topo(&topo);
  lcomm_topo loaded = topo_of_text(text);
  assert_links(&loaded, rows);
  char *again = text_of_topo(&loaded);
  assert_string_equal(text, again);
  free(text);
  free(again);
  lcomm_topo_free(&topo);
  lcomm_topo_free(&loaded);
}

static void gpus_on_switches_are_nvlink_neighbours(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  fake_machine(8);
  fake_switch(18, LCOMM_NVML_REMOTE_SWITCH, NULL);
  for (int i = 0; i < 8; i++) {
    identities[i] = identity_on(i < 4 ? 'a' : 'b', i);
  }
  static const char *const rows[] = {"SNNNTTTT", "NSNNTTTT", "NNSNTTTT", "NNNSTTTT",
                                     "TTTTSNNN", "TTTTNSNN", "TTTTNNSN", "TTTTNNNS"};
  expect_links(identities, 8, 0, rows);
}

static void pairs_are_nvlink_and_the_rest_is_pcie(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  fake_machine(4);
  fake_join(0, 1, 0, 4);
  fake_join(2, 3, 0, 4);
  fake.gpu[3].p2p_status[0][0] = 1; /* one direction is enough to forbid it */
  for (int i = 0; i < 4; i++) {
    identities[i] = identity_on('a', 3 - i);
  }
  static const char *const rows[] = {"SNPH", "NSPP", "PPSN", "HPNS"};
  expect_links(identities, 4, 0, rows);
}

static void ranks_of_one_gpu_and_of_none_are_told_apart(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  fake_machine(2);
  static const int gpus[] = {1, 1, -1, 0, 1, -1};
  for (int i = 0; i < 6; i++) {
    identities[i] = identity_on(i < 4 ? 'a' : 'b', gpus[i]);
  }
  static const char *const rows[] = {"SDHPTT", "DSHPTT", "HHSHTT", "PPHSTT", "TTTTSH", "TTTTHS"};
  expect_links(identities, 6, 0, rows);
  lcomm_topo topo = topo_of(identities, 6, 0);
  assert_int_equal(topo.devices, 3);
  assert_int_equal(topo.device[0], 0);
  assert_int_equal(topo.device[1], 0);
  assert_int_equal(topo.device[2], -1);
  assert_int_equal(topo.device[3], 1);
  assert_int_equal(topo.device[4], 2); /* the same PCI id on another host */
  assert_int_equal(topo.device_list[0].ranks, 2);
  assert_int_equal(topo.device_members[topo.device_list[0].first + 1], 1);
  lcomm_topo_free(&topo);
}

static void posed_nodes_are_net_whatever_joins_them(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  fake_machine(2);
  fake_join(0, 1, 0, 4);
  for (int i = 0; i < 2; i++) {
    fake.gpu[i].fabric = (lcomm_nvml_fabric){.state = LCOMM_NVML_FABRIC_COMPLETED};
    fake.gpu[i].fabric.cluster[0] = 1;
  }
  for (int i = 0; i < 4; i++) {
    identities[i] = identity_on('a', i / 2 * (i % 2)); /* 0 0 0 1 */
  }
  static const char *const rows[] = {"SDTT", "DSTT", "TTSN", "TTNS"};
  expect_links(identities, 4, 2, rows);
}

static void a_domain_of_nvlink_spans_hosts(void **state) {
  (void)state;
  lcomm_identity identities[RANKS_MAX];
  fake_machine(4);
  for (int i = 0; i < 4; i++) {
    fake.gpu[i].fabric = (lcomm_nvml_fabric){.state = LCOMM_NVML_FABRIC_COMPLETED, .clique = 5};
    fake.gpu[i].fabric.cluster[0] = 1;
  }
  fake.gpu[2].fabric.state = 2;  /* not there yet */
  fake.gpu[3].fabric.clique = 6; /* another part */
  for (int i = 0; i < 4; i++) {
    identities[i] = identity_on((char)('a' + i), i);
  }
  static const char *const rows[] = {"SNTT", "NSTT", "TTST", "TTTS"};
  expect_links(identities, 4, 0, rows);
}

static void a_host_that_is_posed_is_in_no_domain(void **state) {
  (void)state;
  fake_machine(1);
  fake.gpu[0].fabric = (lcomm_nvml_fabric){.state = LCOMM_NVML_FABRIC_COMPLETED, .clique = 5};
  fake.gpu[0].fabric.cluster[0] = 1;
  assert_int_equal(identity_on('a', 0).device.cluster[0], 1);
  setenv("LCOMM_HOSTID", "posed", 1);
  lcomm_identity identity = identity_on('a', 0);
  unsetenv("LCOMM_HOSTID");
  assert_true(lcomm_uuid_is_zero(identity.device.cluster));
  assert_int_equal(identity.device.clique, 0);
}

/* Two slices have the PCI id of their GPU and UUIDs of their own. */
static void slices_of_a_gpu_reach_nothing(void **state) {
  (void)state;
  lcomm_identity identities[3];
  fake_machine(2);
  fake_switch(18, LCOMM_NVML_REMOTE_SWITCH, NULL);
  static lcomm_gpus gpus;
  lcomm_gpus_survey(&fake_nvml, &gpus);
  for (int i = 0; i < 2; i++) {
    identities[i] = identity_on('a', 0);
    device.facts.uuid[7] = (uint8_t)(100 + i);
    lcomm_identity_take_device(&identities[i], &table, &gpus);
    assert_int_equal(identities[i].device.peers, 0);
    assert_int_equal(identities[i].device.switched, 0);
  }
  identities[2] = identity_on('a', 1);
  static const char *const rows[] = {"SHH", "HSH", "HHS"};
  expect_links(identities, 3, 0, rows);
}

static void a_device_that_cannot_be_read_is_none(void **state) {
  (void)state;
  static lcomm_gpus gpus;
  fake_machine(1);
  lcomm_identity identity = identity_on('a', 0), none = identity_on('a', -1);
  lcomm_device_facts good = device.facts;
  for (int i = 0; i < 4; i++) {
    memset(&device, 0, sizeof(device));
    device.facts = good;
    device.current_error = i == 0;
    device.facts_error = i == 1;
    memset(device.facts.pci, i == 2 ? '0' : '\0', i >= 2 ? sizeof(device.facts.pci) : 0);
    memset(&identity.device, 0x11, sizeof(identity.device));
    lcomm_identity_take_device(&identity, &table, &gpus);
    assert_memory_equal(&identity, &none, sizeof(none));
  }
}

static void a_device_unknown_to_nvml_is_still_a_device(void **state) {
  (void)state;
  static lcomm_gpus none;
  lcomm_identity identities[2];
  fake_machine(2);
  for (int i = 0; i < 2; i++) {
    identities[i] = identity_on('a', i);
    device.current = 3;
    lcomm_identity_take_device(&identities[i], &table, &none);
    assert_int_equal(identities[i].device.index, 3);
    assert_int_equal(identities[i].device.peers, 0);
  }
  static const char *const rows[] = {"SH", "HS"};
  expect_links(identities, 2, 0, rows);
}

/* --------------------------------------------------------- hostile peers */

static void only_what_both_ends_say_counts(void **state) {
  (void)state;
  lcomm_identity identities[2];
  fake_machine(2);
  fake_join(0, 1, 0, 4);
  for (int i = 0; i < 2; i++) {
    identities[i] = identity_on('a', i);
  }
  identities[0].device.peer[0].nvlinks = 200;
  lcomm_topo topo = topo_of(identities, 2, 0);
  assert_int_equal(topo.pair_list[0].nvlinks, 4);
  lcomm_topo_free(&topo);
  identities[1].device.peer[0].nvlinks = 0;
  expect_links(identities, 2, 0, (const char *const[]){"SP", "PS"});
  for (int i = 0; i < 2; i++) {
    identities[i].device.peer[0].p2p = 0;
    expect_links(identities, 2, 0, (const char *const[]){"SH", "HS"});
    identities[i].device.peer[0].p2p = 1;
  }
  identities[1].device.peers = 0;
  expect_links(identities, 2, 0, (const char *const[]){"SH", "HS"});
}

static void identities_that_break_their_limits_have_no_device(void **state) {
  (void)state;
  lcomm_identity good[2], bad[2];
  fake_machine(2);
  for (int i = 0; i < 2; i++) {
    good[i] = identity_on('a', i);
  }
  for (int i = 0; i < 10; i++) {
    memcpy(bad, good, sizeof(bad));
    lcomm_device_identity *d = &bad[1].device;
    d->pci = i == 0 ? UINT64_MAX : i == 1 ? 1 : d->pci;
    d->peers = i == 2 ? LCOMM_DEVICE_PEERS_MAX + 1 : i == 3 ? UINT32_MAX : d->peers;
    d->switched = i == 4 ? LCOMM_NVLINKS_MAX + 1 : d->switched;
    d->index = i == 5 ? -2 : i == 6 ? LCOMM_DEVICE_INDEX_MAX + 1 : d->index;
    d->peer[0].pci = i == 7 ? 0 : d->peer[0].pci;
    d->peer[0].nvlinks = i == 8 ? UINT32_MAX : d->peer[0].nvlinks;
    d->peer[0].p2p = i == 9 ? 2 : d->peer[0].p2p;
    expect_links(bad, 2, 0, (const char *const[]){"SH", "HS"});
  }
  expect_links(good, 2, 0, (const char *const[]){"SP", "PS"});
}

/* Of exactly the right size, so that a sanitizer sees a step too far. */
static void no_peer_is_read_beyond_the_last(void **state) {
  (void)state;
  lcomm_identity *identity = malloc(sizeof *identity);
  assert_non_null(identity);
  fake_machine(2);
  *identity = identity_on('a', 0);
  for (int i = 0; i < LCOMM_DEVICE_PEERS_MAX; i++) {
    identity->device.peer[i] = identity->device.peer[0];
  }
  for (uint32_t more = 0; more < 2; more++) {
    identity->device.peers = LCOMM_DEVICE_PEERS_MAX + more;
    lcomm_topo topo = topo_of(identity, 1, 0);
    assert_int_equal(topo.devices, more == 0);
    lcomm_topo_free(&topo);
  }
  free(identity);
}

static void a_peer_that_is_named_often_is_one_pair(void **state) {
  (void)state;
  lcomm_identity identities[2];
  fake_machine(2);
  for (int i = 0; i < 2; i++) {
    identities[i] = identity_on('a', i);
    identities[i].device.peers = LCOMM_DEVICE_PEERS_MAX;
    for (int j = 1; j < LCOMM_DEVICE_PEERS_MAX; j++) {
      identities[i].device.peer[j] = identities[i].device.peer[0];
      identities[i].device.peer[j].pci = j % 2 ? identities[i].device.pci /* itself */
                                               : identities[i].device.peer[0].pci;
    }
  }
  lcomm_topo topo = topo_of(identities, 2, 0);
  assert_int_equal(topo.pairs, 1);
  lcomm_topo_free(&topo);
  expect_links(identities, 2, 0, (const char *const[]){"SP", "PS"});
}

/* ------------------------------------------------------------- the hello */

static lcomm_handshake hello_with(const lcomm_device_table *current) {
  static lcomm_comm comm;
  lcomm_handshake hello;
  lcomm_summary_mode summary;
  lcomm_topo topo_file = {0};
  memset(&comm, 0, sizeof(comm));
  memset(&hello, 0, sizeof(hello));
  comm.size = 1;
  lcomm_device_replace(current);
  lcomm_handshake_prepare(&comm, NULL, &summary, &topo_file, &hello);
  lcomm_topo_free(&topo_file);
  lcomm_device_replace(NULL);
  assert_int_equal(hello.status, LCOMM_OK);
  return hello;
}

static void a_rank_tells_the_device_that_is_current(void **state) {
  (void)state;
  memset(&device, 0, sizeof(device));
  device.current = 2;
  snprintf(device.facts.pci, sizeof(device.facts.pci), "abcd:3b:00.0");
  device.facts.uuid[0] = 9;
  lcomm_device_identity told = hello_with(&table).identity.device;
  assert_true(told.pci == lcomm_pci_parse("abcd:3b:00.0", 12));
  assert_int_equal(told.uuid[0], 9);
  assert_int_equal(told.index, 2);
  lcomm_device_identity none = {0};
  told = hello_with(NULL).identity.device;
  assert_memory_equal(&told, &none, sizeof(none));
}

static void names_of_devices_are_read_in_any_form(void **state) {
  (void)state;
  static const struct {
    const char *text, *expected;
  } cases[] = {{"0000:3b:00.0", "0000:3b:00.0"},
               {"00000000:3B:00.0", "0000:3b:00.0"},
               {"0:3b:1f.7", "0000:3b:1f.7"},
               {"12345678:ff:1F.0", "12345678:ff:1f.0"},
               {"", "none"},
               {"3b:00.0", "none"},
               {"0000:3b:20.0", "none"},
               {"0000:3b:00.8", "none"},
               {"0000:3b:00.00", "none"},
               {"0000:13b:00.0", "none"},
               {"123456789:00:00.0", "none"},
               {"0000:3b:00.0 ", "none"},
               {"fffffff:ffff:ff", "none"},
               {"0000:3b:00:0", "none"}};
  char text[LCOMM_PCI_TEXT_MAX], back[LCOMM_UUID_TEXT_MAX];
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    lcomm_pci pci = lcomm_pci_parse(cases[i].text, strlen(cases[i].text));
    assert_string_equal(lcomm_pci_format(pci, text), cases[i].expected);
    assert_int_equal(lcomm_pci_is_valid(pci), strcmp(cases[i].expected, "none") != 0);
  }
  uint8_t uuid[LCOMM_UUID_SIZE];
  static const char expected[] = "00112233-4455-6677-8899-aabbccddeeff";
  assert_true(lcomm_uuid_parse("GPU-00112233-4455-6677-8899-AABBCCDDEEFF", 40, uuid));
  assert_string_equal(lcomm_uuid_format(uuid, back), expected);
  assert_true(lcomm_uuid_parse("00112233445566778899aabbccddeeff", 32, uuid));
  assert_false(lcomm_uuid_parse("00112233445566778899aabbccddeeff0", 33, uuid));
  assert_false(lcomm_uuid_parse("00112233445566778899aabbccddeef", 31, uuid));
  assert_false(lcomm_uuid_parse("0011223344556677x899aabbccddeeff", 32, uuid));
  assert_false(lcomm_uuid_parse("", 0, uuid));
  assert_string_equal(lcomm_uuid_format(uuid, back), expected);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_on_switches_are_nvlink_neighbours),
    cmocka_unit_test(pairs_are_nvlink_and_the_rest_is_pcie),
    cmocka_unit_test(ranks_of_one_gpu_and_of_none_are_told_apart),
    cmocka_unit_test(posed_nodes_are_net_whatever_joins_them),
    cmocka_unit_test(a_domain_of_nvlink_spans_hosts),
    cmocka_unit_test(a_host_that_is_posed_is_in_no_domain),
    cmocka_unit_test(slices_of_a_gpu_reach_nothing),
    cmocka_unit_test(a_device_that_cannot_be_read_is_none),
    cmocka_unit_test(a_device_unknown_to_nvml_is_still_a_device),
    cmocka_unit_test(only_what_both_ends_say_counts),
    cmocka_unit_test(identities_that_break_their_limits_have_no_device),
    cmocka_unit_test(no_peer_is_read_beyond_the_last),
    cmocka_unit_test(a_peer_that_is_named_often_is_one_pair),
    cmocka_unit_test(a_rank_tells_the_device_that_is_current),
    cmocka_unit_test(names_of_devices_are_read_in_any_form),
};
RUN_TESTS(tests)
