/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which rails there are, who uses which, and whose card is to blame when one fails, for hosts that
 * are made up. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/transport/ucx/ucx_lost.h"
#include "tests/support/unit_tests.h"

enum { RANKS_MAX = 12, FAST = 100000, SLOW = 1000 };

static lcomm_ucx_interfaces all[RANKS_MAX];
static lcomm_ucx_names names;
static lcomm_ucx_rails rails;

static void add(lcomm_ucx_interfaces *host, const char *address, int bits, uint32_t speed_mbit_s) {
  host->near |= UINT32_C(1) << host->count;
  host->entries[host->count].address = inet_addr(address);
  host->entries[host->count].mask = htonl(UINT32_MAX << (32 - bits));
  host->entries[host->count].speed_mbit_s = speed_mbit_s;
  host->count++;
}

/* Hosts of `ranks` ranks each, adjacent; card c of host h is 10.0.c.(h+1)/24. */
static void make_hosts(int hosts, int ranks, int cards) {
  char address[32];
  memset(all, 0, sizeof(all));
  for (int rank = 0; rank < hosts * ranks; rank++) {
    for (int card = 0; card < cards; card++) {
      snprintf(address, sizeof(address), "10.0.%d.%d", card, rank / ranks + 1);
      add(&all[rank], address, 24, FAST);
    }
  }
  for (int card = 0; card < cards; card++) {
    snprintf(names.of[card], sizeof(names.of[card]), "eth%d", card);
  }
}

static uint32_t fastest(int size) {
  lcomm_ucx_rails_find(all, size, &rails);
  return lcomm_ucx_rails_fastest(&rails, lcomm_ucx_rails_every(&rails));
}

static uint32_t of(int size, int rank) {
  return lcomm_ucx_rails_of(all, size, rank, &rails, fastest(size));
}

/* ------------------------------------------------------------- which there are */

static void a_rail_has_a_usable_card_of_every_host(void **state) {
  (void)state;
  make_hosts(3, 2, 4);
  assert_int_equal(fastest(6), 0xf);
  all[2].down = all[3].down = 1 << 0;
  all[5].unwanted = 1 << 1;
  all[0].broken = 1 << 3;
  assert_int_equal(fastest(6), 1);
  assert_int_equal(rails.of[0].network, inet_addr("10.0.2.0"));
}

static void networks_of_some_hosts_and_bridges_for_containers_are_none(void **state) {
  (void)state;
  make_hosts(2, 1, 1);
  for (int rank = 0; rank < 2; rank++) {
    add(&all[rank], "172.17.0.1", 16, FAST);
  }
  add(&all[0], "10.9.0.1", 24, FAST);
  add(&all[1], "10.8.0.1", 24, FAST);
  add(&all[0], "10.7.0.1", 24, FAST); /* the same address, another network */
  add(&all[1], "10.7.0.2", 16, FAST);
  fastest(2);
  assert_int_equal(rails.count, 1);
  assert_int_equal(rails.of[0].network, inet_addr("10.0.0.0"));
}

static void one_host_has_none_and_a_rank_without_them_speaks_for_all(void **state) {
  (void)state;
  make_hosts(1, 4, 2);
  assert_int_equal(fastest(4), 0);
  make_hosts(2, 2, 2);
  all[3].asked = LCOMM_UCX_RAILS_NONE;
  assert_int_equal(fastest(4), 0);
  all[3].asked = UINT32_MAX; /* from a peer */
  assert_int_equal(fastest(4), 0);
}

static void slower_cards_are_used_where_faster_ones_fail(void **state) {
  (void)state;
  make_hosts(2, 1, 3);
  all[1].entries[0].speed_mbit_s = SLOW; /* one of its cards makes a rail slow */
  assert_int_equal(fastest(2), 3);
  assert_int_equal(rails.of[0].network, inet_addr("10.0.1.0"));
  assert_int_equal(rails.of[2].network, inet_addr("10.0.0.0"));
  assert_int_equal(rails.of[2].speed_mbit_s, SLOW);
  assert_int_equal(lcomm_ucx_rails_fastest(&rails, 4), 4);
  assert_int_equal(lcomm_ucx_rails_fastest(&rails, 6), 2);
  assert_int_equal(lcomm_ucx_rails_fastest(&rails, 0), 0);
}

static void any_bytes_of_peers_are_read(void **state) {
  (void)state;
  for (int byte = 0; byte < 256; byte++) {
    memset(all, byte, sizeof(all));
    make_hosts(1, 1, 3);
    memset(&all[1], byte, sizeof(all) - sizeof(all[0]));
    lcomm_ucx_rails_find(all, RANKS_MAX, &rails);
    for (int rank = 0; rank < RANKS_MAX && rails.count > 0; rank++) {
      uint32_t mine = of(RANKS_MAX, rank);
      assert_true(mine != 0 && (mine & ~lcomm_ucx_rails_every(&rails)) == 0);
    }
  }
}

static void what_travels_is_what_was_said(void **state) {
  unsigned char bytes[LCOMM_UCX_INTERFACES_SIZE];
  static const uint32_t speeds[] = {0, 10, 1000, 32767, 40000, 100000, 400000, 3276700};
  (void)state;
  lcomm_ucx_interfaces host = {.asked = LCOMM_UCX_RAILS_ALL, .down = 5, .unwanted = 1u << 31};
  for (int i = 0; i < LCOMM_UCX_INTERFACES_MAX; i++) {
    add(&host, "10.1.2.3", i + 1, speeds[i % 8]);
  }
  host.broken = 77;
  lcomm_ucx_interfaces_pack(&host, bytes);
  memset(&all[0], 0xaa, sizeof(all[0]));
  lcomm_ucx_interfaces_unpack(bytes, &all[0]);
  assert_memory_equal(&all[0], &host, sizeof(host));
}

static void any_bytes_are_interfaces_of_a_host(void **state) {
  unsigned char bytes[LCOMM_UCX_INTERFACES_SIZE], again[LCOMM_UCX_INTERFACES_SIZE];
  uint32_t number = 1;
  (void)state;
  for (int round = 0; round < 1000; round++) {
    for (size_t i = 0; i < sizeof(bytes); i++) {
      number = number * 1664525 + 1013904223;
      bytes[i] = (unsigned char)(number >> 24);
    }
    lcomm_ucx_interfaces_unpack(bytes, &all[round % RANKS_MAX]);
    assert_true(all[round % RANKS_MAX].count <= LCOMM_UCX_INTERFACES_MAX);
    lcomm_ucx_interfaces_pack(&all[round % RANKS_MAX], again);
    lcomm_ucx_interfaces_unpack(again, &all[(round + 1) % RANKS_MAX]);
    assert_memory_equal(&all[round % RANKS_MAX], &all[(round + 1) % RANKS_MAX], sizeof(all[0]));
    lcomm_ucx_rails_find(all, RANKS_MAX, &rails);
    assert_true(rails.count <= LCOMM_UCX_RAILS_MAX);
  }
}

/* ------------------------------------------------------------- who uses which */

static void ranks_of_a_host_take_rails_in_turn(void **state) {
  (void)state;
  for (int cards = 1; cards <= 4; cards++) {
    for (int ranks = 1; ranks <= 6; ranks++) {
      make_hosts(2, ranks, cards);
      for (int rank = 0; rank < 2 * ranks; rank++) {
        assert_int_equal(of(2 * ranks, rank), 1 << rank % ranks % cards);
      }
    }
  }
}

/* Ranks of two hosts that alternate. */
static void ranks_that_are_not_adjacent_do_so_too(void **state) {
  (void)state;
  make_hosts(8, 1, 2);
  for (int rank = 2; rank < 8; rank++) {
    all[rank] = all[rank % 2];
  }
  for (int rank = 0; rank < 8; rank++) {
    assert_int_equal(of(8, rank), 1 << rank / 2 % 2);
  }
}

static void near_cards_come_first_and_no_card_has_more_than_its_share(void **state) {
  (void)state;
  make_hosts(2, 4, 2);
  for (int rank = 0; rank < 8; rank++) {
    all[rank].near = rank % 4 < 2 ? 1 << 1 : 1 << 0; /* ranks 0 and 1 are near the second */
  }
  for (int rank = 0; rank < 8; rank++) {
    assert_int_equal(of(8, rank), rank % 4 < 2 ? 2 : 1);
  }
  for (int rank = 0; rank < 8; rank++) {
    all[rank].near = 1 << 1;
  }
  for (int rank = 0; rank < 8; rank++) {
    assert_int_equal(of(8, rank), rank % 4 < 2 ? 2 : 1);
  }
}

static void a_rank_gets_what_it_asks_for(void **state) {
  (void)state;
  make_hosts(2, 3, 3);
  assert_true(lcomm_ucx_rails_ask("1", &names, &all[1]));
  assert_true(lcomm_ucx_rails_ask("all", &names, &all[2]));
  assert_int_equal(of(6, 0), 1);
  assert_int_equal(of(6, 1), 1);
  assert_int_equal(of(6, 2), 7);
  assert_true(lcomm_ucx_rails_ask("eth2,eth0", &names, &all[3]));
  assert_int_equal(all[3].unwanted, 2);
  assert_int_equal(fastest(6), 3);
  assert_true(lcomm_ucx_rails_ask("auto", &names, &all[4]));
  assert_true(lcomm_ucx_rails_ask(NULL, &names, &all[4]));
  assert_int_equal(all[4].unwanted, 0);
  static const char *const none[] = {"eth", "eth00", "eth0 eth1", "2", ",", "eth0.1,ALL"};
  for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
    assert_false(lcomm_ucx_rails_ask(none[i], &names, &all[5]));
    assert_int_equal(all[5].unwanted, 7);
  }
}

static void devices_are_those_of_the_rails(void **state) {
  char devices[LCOMM_UCX_DEVICES_MAX];
  (void)state;
  make_hosts(2, 1, 3);
  fastest(2);
  lcomm_ucx_rails_devices(&all[1], &names, &rails, 5, devices);
  assert_string_equal(devices, "eth0,eth2,lo");
  lcomm_ucx_rails_devices(&all[1], &names, &rails, 2, devices);
  assert_string_equal(devices, "eth1,lo");
}

/* ------------------------------------------------------------- what is lost */

static lcomm_ucx_cards cards;
static lcomm_ucx_lost lost;
static unsigned char reached[RANKS_MAX * RANKS_MAX];

static void all_reach_all(int size) {
  memset(&cards, 0, sizeof(cards));
  memset(reached, 1, sizeof(reached));
  cards.all = all;
  cards.size = size;
  cards.names = names;
  lcomm_ucx_rails_find(all, size, &cards.rails);
  lcomm_ucx_lost_find(&cards, &lost);
}

static void fails(int a, int b) {
  reached[a * cards.size + b] = 0;
}

static uint32_t judge(void) {
  return lcomm_ucx_lost_judge(&cards, lcomm_ucx_rails_every(&cards.rails), reached, &lost);
}

static void the_host_of_all_failures_is_to_blame(void **state) {
  (void)state;
  make_hosts(3, 2, 2);
  all_reach_all(6);
  assert_int_equal(judge(), 0);
  fails(1, 3); /* second ranks of hosts 0 and 1, and of 2 and 1, one side is enough */
  fails(5, 3);
  assert_int_equal(judge(), 2);
  assert_int_equal(lost.count, 1);
  assert_int_equal(lost.of[0].rank, 3);
  assert_int_equal(lost.of[0].other, -1);
  assert_int_equal(lost.of[0].rail.network, inet_addr("10.0.1.0"));
  assert_false(lost.of[0].known);
}

static void of_two_hosts_either_may_be_to_blame(void **state) {
  (void)state;
  make_hosts(2, 1, 1);
  all_reach_all(2);
  fails(1, 0);
  assert_int_equal(judge(), 1);
  assert_int_equal(lost.of[0].rank, 0);
  assert_int_equal(lost.of[0].other, 1);
}

static void nobody_is_blamed_for_failures_of_several_hosts(void **state) {
  (void)state;
  make_hosts(4, 1, 1);
  all_reach_all(4);
  fails(0, 1);
  fails(2, 3);
  assert_int_equal(judge(), 1);
  assert_int_equal(lost.of[0].rank, 0);
  assert_int_equal(lost.of[0].other, 1);
}

static void ranks_of_different_rails_or_of_several_prove_nothing(void **state) {
  (void)state;
  make_hosts(2, 2, 2);
  all_reach_all(4);
  fails(0, 3);
  fails(3, 0);
  fails(0, 1); /* of one host: over the loop-back */
  assert_int_equal(judge(), 0);
  all[0].asked = LCOMM_UCX_RAILS_ALL;
  fails(0, 2);
  assert_int_equal(judge(), 0);
  assert_int_equal(lost.count, 0);
}

static void cards_that_are_down_or_broken_are_lost(void **state) {
  (void)state;
  make_hosts(3, 1, 4);
  all[1].down = 1 << 1;
  all[2].broken = 1 << 2;
  for (int rank = 0; rank < 3; rank++) {
    all[rank].down |= 1 << 3; /* on all hosts: nobody misses it */
  }
  all_reach_all(3);
  assert_int_equal(cards.rails.count, 1);
  assert_int_equal(lost.count, 2);
  assert_int_equal(lost.of[0].rank, 1);
  assert_int_equal(lost.of[0].rail.network, inet_addr("10.0.1.0"));
  assert_int_equal(lost.of[1].rank, 2);
  assert_true(lost.of[0].known && lost.of[1].known);
}

/* All ranks of the job have this card alone. */
static void expect_devices(int size, uint32_t used, const char *card) {
  char devices[LCOMM_UCX_DEVICES_MAX], wanted[32];
  snprintf(wanted, sizeof(wanted), "%s,lo", card);
  for (int rank = 0; rank < size; rank++) {
    uint32_t mine = lcomm_ucx_rails_of(all, size, rank, &cards.rails, used);
    lcomm_ucx_rails_devices(&all[rank], &names, &cards.rails, mine, devices);
    assert_string_equal(devices, wanted);
  }
}

/* Of one host a card is broken, so that no rank uses that rail: known before, or found out when
 * links are made. */
static void the_one_rail_that_is_left_has_all_ranks(void **state) {
  (void)state;
  static const char *const left[] = {"eth1", "eth0"};
  for (int broken = 0; broken < 2; broken++) {
    make_hosts(3, 2, 2);
    all[2].broken = all[3].broken = UINT32_C(1) << broken;
    all_reach_all(6);
    assert_int_equal(lost.count, 1);
    assert_int_equal(cards.rails.count, 1);
    expect_devices(6, lcomm_ucx_rails_every(&cards.rails), left[broken]);
  }
  make_hosts(3, 2, 2);
  all_reach_all(6);
  fails(1, 3);
  fails(5, 3);
  uint32_t every = lcomm_ucx_rails_every(&cards.rails), bad = judge();
  assert_int_equal(bad, 2);
  expect_devices(6, lcomm_ucx_rails_fastest(&cards.rails, every & ~bad), "eth0");
}

static int copy_to_all(void *context, const void *mine, void *everybody, size_t size) {
  for (int rank = 0; rank < *(int *)context; rank++) {
    memcpy((char *)everybody + (size_t)rank * size, mine, size);
  }
  return 0;
}

/* Every rank remembers its own card of a rail that leads nowhere, and only that. */
static void what_led_nowhere_is_remembered_in_the_process(void **state) {
  (void)state;
  int size = 2;
  lcomm_identity identities[2] = {{.host = "alpha"}, {.host = "beta"}};
  lcomm_bootstrap bootstrap = {.context = &size, .world_size = 2, .allgather = copy_to_all};
  lcomm_transport_setup setup = {
      .size = 2, .rank = 1, .identities = identities, .bootstrap = &bootstrap};
  make_hosts(2, 1, 3);
  all[0].down = 1 << 0; /* known to all without being remembered */
  all_reach_all(2);
  cards.rank = 1;
  lcomm_ucx_interfaces again = all[1];
  lcomm_ucx_lost_recall(&again);
  assert_int_equal(again.broken, 0);
  fails(0, 1);
  assert_int_equal(lcomm_ucx_lost_judge(&cards, 1, reached, &lost), 1);
  lcomm_ucx_lost_tell(&cards, &setup, &lost);
  lcomm_ucx_lost_recall(&again);
  assert_int_equal(again.broken, 1 << 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_rail_has_a_usable_card_of_every_host),
    cmocka_unit_test(networks_of_some_hosts_and_bridges_for_containers_are_none),
    cmocka_unit_test(one_host_has_none_and_a_rank_without_them_speaks_for_all),
    cmocka_unit_test(slower_cards_are_used_where_faster_ones_fail),
    cmocka_unit_test(any_bytes_of_peers_are_read),
    cmocka_unit_test(what_travels_is_what_was_said),
    cmocka_unit_test(any_bytes_are_interfaces_of_a_host),
    cmocka_unit_test(ranks_of_a_host_take_rails_in_turn),
    cmocka_unit_test(ranks_that_are_not_adjacent_do_so_too),
    cmocka_unit_test(near_cards_come_first_and_no_card_has_more_than_its_share),
    cmocka_unit_test(a_rank_gets_what_it_asks_for),
    cmocka_unit_test(devices_are_those_of_the_rails),
    cmocka_unit_test(the_host_of_all_failures_is_to_blame),
    cmocka_unit_test(of_two_hosts_either_may_be_to_blame),
    cmocka_unit_test(nobody_is_blamed_for_failures_of_several_hosts),
    cmocka_unit_test(ranks_of_different_rails_or_of_several_prove_nothing),
    cmocka_unit_test(cards_that_are_down_or_broken_are_lost),
    cmocka_unit_test(the_one_rail_that_is_left_has_all_ranks),
    cmocka_unit_test(what_led_nowhere_is_remembered_in_the_process),
};
RUN_TESTS(tests)
