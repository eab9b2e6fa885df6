/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which network interface's address an id carries: NCCL_SOCKET_IFNAME, on this host's own
 * interfaces. */

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_address.h"
#include "libcomm/interpose/nccl/nccl_comm.h"
#include "tests/support/unit_tests.h"

static void lists_have_beginnings_whole_names_and_exclusions(void **state) {
  static const struct {
    const char *list, *name;
    bool matches;
  } cases[] = {
      {"eth", "eth0", true},     {"eth", "eth", true},        {"eth", "veth0", false},
      {"eth0", "eth", false},    {"ib,eth", "eth1", true},    {"ib,eth", "ib0", true},
      {"ib,eth", "lo", false},   {"=eth0", "eth0", true},     {"=eth0", "eth01", false},
      {"=eth", "eth0", false},   {"=ib0,eth1", "eth1", true}, {"^docker", "docker0", false},
      {"^docker", "eth0", true}, {"^docker,lo", "lo", false}, {"^=eth0", "eth0", false},
      {"^=eth0", "eth01", true}, {"^=eth0,lo", "lo", false},  {"", "eth0", false},
      {",", "eth0", false},      {"^", "eth0", true},         {"=", "eth0", false},
      {",,eth", "eth0", true},   {"eth0,", "lo", false},      {"^^", "eth0", true},
      {"==eth0", "eth0", false}, {"lo,", "lo", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    if (lcomm_nccl_interface_matches(cases[i].list, cases[i].name) != cases[i].matches) {
      fail_msg("list '%s', name '%s'", cases[i].list, cases[i].name);
    }
  }
}

/* The address of an id that is made with this list; "" where there is none. */
static const char *address_with(const char *list) {
  static lcomm_nccl_place place;
  ncclUniqueId id;
  setenv("NCCL_SOCKET_IFNAME", list, 1);
  ncclResult_t result = lcomm_nccl_id_get(&id);
  unsetenv("NCCL_SOCKET_IFNAME");
  if (result != ncclSuccess) {
    assert_int_equal(result, ncclInvalidUsage);
    return "";
  }
  assert_true(lcomm_nccl_id_read(&id, &place));
  lcomm_nccl_place_release(&place);
  return place.address;
}

static void every_interface_of_this_host_can_be_named(void **state) {
  struct ifaddrs *all = NULL;
  char seen[4096] = ",", key[80], address[INET_ADDRSTRLEN], list[80];
  (void)state;
  assert_int_equal(getifaddrs(&all), 0);
  for (const struct ifaddrs *it = all; it; it = it->ifa_next) {
    if (!(it->ifa_flags & IFF_UP) || !it->ifa_addr || it->ifa_addr->sa_family != AF_INET) {
      continue;
    }
    snprintf(key, sizeof(key), ",%s,", it->ifa_name);
    if (strstr(seen, key)) { /* its first address counts */
      continue;
    }
    strcat(seen, key);
    inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)it->ifa_addr)->sin_addr, address,
              sizeof(address));
    snprintf(list, sizeof(list), "=none,%s", it->ifa_name);
    assert_string_equal(address_with(list), address);
    snprintf(list, sizeof(list), "^=%s", it->ifa_name);
    assert_string_not_equal(address_with(list), address);
  }
  freeifaddrs(all);
}

static void loopback_can_be_named_and_is_the_last_choice_else(void **state) {
  (void)state;
  assert_string_equal(address_with("lo"), "127.0.0.1");
  assert_string_equal(address_with("=lo"), "127.0.0.1");
  assert_string_equal(address_with("nothing,l"), "127.0.0.1");
  assert_string_equal(address_with(""), address_with("^nothing"));
}

static void a_list_that_chooses_none_is_refused_by_name(void **state) {
  (void)state;
  assert_string_equal(address_with("=l"), "");
  const char *sentence = lcomm_nccl_last_failure();
  assert_non_null(sentence);
  assert_non_null(strstr(sentence, "NCCL_SOCKET_IFNAME==l "));
  assert_non_null(strstr(sentence, "lo"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lists_have_beginnings_whole_names_and_exclusions),
    cmocka_unit_test(every_interface_of_this_host_can_be_named),
    cmocka_unit_test(loopback_can_be_named_and_is_the_last_choice_else),
    cmocka_unit_test(a_list_that_chooses_none_is_refused_by_name),
};

RUN_TESTS(tests)
