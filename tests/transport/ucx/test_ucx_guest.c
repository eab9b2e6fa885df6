/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* UCX as a guest in the user's program: what it must leave alone, what it must
 * not leave behind, and which devices it is given. */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <signal.h>

#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

/* ----------------------------------------------------------- left alone */

enum { SIGNALS = 64 };

static void own_handler(int number) {
  (void)number;
}

static void read_handlers(struct sigaction *actions) {
  for (int i = 1; i <= SIGNALS; i++) {
    memset(&actions[i], 0, sizeof(actions[i]));
    sigaction(i, NULL, &actions[i]);
  }
}

static void signal_handlers_stay(forked *self) {
  struct sigaction before[SIGNALS + 1], during[SIGNALS + 1], mine = {.sa_handler = own_handler};
  sigaction(SIGFPE, &mine, NULL);
  read_handlers(before);
  party p = open_party(self);
  read_handlers(during);
  for (int i = 1; i <= SIGNALS; i++) {
    forked_require(self, before[i].sa_handler == during[i].sa_handler, "signal %d was taken", i);
  }
  close_party(&p);
}

/* UCX can rewrite the beginning of these to learn of memory that goes. Where
 * there is only TCP it has no use for that; with other devices it may. */
static void keep_functions(forked *self) {
  static const char *const names[] = {"mmap", "munmap", "mremap", "madvise",
                                      "brk",  "sbrk",   "shmdt"};
  enum { NAMES = sizeof(names) / sizeof(names[0]), BYTES = 16 };
  unsigned char before[NAMES][BYTES];
  void *functions[NAMES];
  setenv("LCOMM_UCX_TLS", "tcp", 1);
  for (int i = 0; i < NAMES; i++) {
    functions[i] = dlsym(RTLD_NEXT, names[i]);
    forked_require(self, functions[i] != NULL, "there is no %s", names[i]);
    memcpy(before[i], functions[i], BYTES);
  }
  party p = open_party(self);
  for (int i = 0; i < NAMES; i++) {
    forked_require(self, memcmp(before[i], functions[i], BYTES) == 0, "%s was changed", names[i]);
  }
  close_party(&p);
}

static void functions_of_the_c_library_stay(void **state) {
  (void)state;
  skip_without_ucx();
  if (access("/sys/class/infiniband", F_OK) == 0) {
    skip();
  }
  forked_run(2, keep_functions);
}

/* What a user sets for MPI's UCX would make ours useless. */
static void settings_for_mpi_do_not_count(forked *self) {
  setenv("UCX_TLS", "nonsense", 1);
  setenv("UCX_NET_DEVICES", "nosuch0", 1);
  setenv("UCX_TCP_TX_SEG_SIZE", "no size", 1);
  char **own = environ;
  party p = open_party(self);
  forked_require(self, environ == own, "the environment is another");
  forked_require(self, strcmp(getenv("UCX_TLS"), "nonsense") == 0, "UCX_TLS was changed");
  forked_require(self, !getenv("UCX_ERROR_SIGNALS"), "UCX_ERROR_SIGNALS was left behind");
  close_party(&p);
}

static void own_settings_count(forked *self) {
  static const char *const bad[][2] = {{"LCOMM_UCX_TLS", "nonsense"},
                                       {"LCOMM_UCX_NET_DEVICES", "nosuch0"},
                                       {"LCOMM_UCX_RNDV_THRESH", "no size"}};
  lcomm_why why;
  lcomm_transport *t = NULL;
  for (int i = 0; i < 3; i++) {
    setenv(bad[i][0], bad[i][1], 1);
    lcomm_status status = try_open(self, &t, &why);
    forked_require(self, status == LCOMM_ERR_TRANSPORT, "%s: status %d", bad[i][0], (int)status);
    forked_require(self, strstr(why.text, i < 2 ? "no device" : "LCOMM_UCX_") != NULL, "'%s'",
                   why.text);
    unsetenv(bad[i][0]);
  }
  setenv("LCOMM_UCX_TLS", "tcp", 1);
  setenv("LCOMM_UCX_RNDV_THRESH", "1k", 1);
  party p = open_party(self);
  lcomm_transfer in, out;
  enum { SIZE = 1 << 20 };
  unsigned char *sent = pattern(SIZE, 3), *got = malloc(SIZE);
  receive_from(&p, 1 - self->rank, 1, got, SIZE, &in);
  send_to(&p, 1 - self->rank, 1, sent, SIZE, &out);
  expect_end(&p, &in, SIZE);
  expect_end(&p, &out, SIZE);
  forked_require(self, memcmp(got, sent, SIZE) == 0, "other bytes");
  free(sent);
  free(got);
  close_party(&p);
}

/* ----------------------------------------------------- nothing left behind */

static void fifty_opens_leave_no_open_file(forked *self) {
  enum { TIMES = 50 };
  int before = 0;
  for (int i = 0; i <= TIMES; i++) {
    party p = open_party(self);
    if (i % 2 == 0) {
      close_party(&p);
    } else {
      p.v->close(p.t, false);
    }
    before = i == 0 ? count_files() : before;
  }
  int after = count_files();
  forked_require(self, after == before, "%d open files, then %d", before, after);
}

/* Two communicators of one process do not hear each other. */
static void two_transports_of_a_process_are_apart(forked *self) {
  party p = open_party(self), q = open_party(self);
  lcomm_transfer in[2], out[2];
  unsigned char sent[2] = {1, 2}, got[2] = {0, 0};
  receive_from(&q, 1 - self->rank, 6, &got[1], 1, &in[1]);
  receive_from(&p, 1 - self->rank, 6, &got[0], 1, &in[0]);
  send_to(&p, 1 - self->rank, 6, &sent[0], 1, &out[0]);
  send_to(&q, 1 - self->rank, 6, &sent[1], 1, &out[1]);
  expect_end(&p, &in[0], 1);
  expect_end(&p, &out[0], 1);
  expect_end(&q, &in[1], 1);
  expect_end(&q, &out[1], 1);
  forked_require(self, got[0] == 1 && got[1] == 2, "%d and %d", got[0], got[1]);
  close_party(&q);
  close_party(&p);
}

static void version_is_told(forked *self) {
  const char *version = lcomm_ucx_version();
  int major = 0, minor = 0;
  forked_require(self, version && sscanf(version, "%d.%d", &major, &minor) == 2 && major == 1,
                 "version '%s'", version ? version : "none");
}

/* --------------------------------------------------------------- devices */

static void add(lcomm_ucx_interfaces *host, const char *address, int bits) {
  host->entries[host->count].address = inet_addr(address);
  host->entries[host->count].mask = htonl(bits == 0 ? 0 : UINT32_MAX << (32 - bits));
  host->count++;
}

static const char *choose(const lcomm_ucx_interfaces *all, int size, int rank) {
  static char devices[LCOMM_UCX_DEVICES_MAX];
  lcomm_ucx_names names = {.of = {"eth0", "eth1", "docker0"}};
  lcomm_ucx_devices_select(all, size, rank, &names, devices);
  return devices;
}

static void only_networks_with_every_host_are_chosen(void **state) {
  lcomm_ucx_interfaces all[4] = {0}; /* ranks 0 and 1 are on one host */
  (void)state;
  for (int i = 0; i < 4; i++) {
    char address[32];
    snprintf(address, sizeof(address), "10.0.0.%d", i < 2 ? 1 : i);
    add(&all[i], address, 24);
    snprintf(address, sizeof(address), "192.168.%d.5", i < 2 ? 1 : i);
    add(&all[i], address, 24);
    add(&all[i], "172.17.0.1", 16); /* a bridge for containers */
  }
  assert_string_equal(choose(all, 4, 0), "eth0,lo");
  assert_string_equal(choose(all, 4, 3), "eth0,lo");
  add(&all[0], "10.5.0.1", 16);
  add(&all[1], "10.5.0.1", 16);
  assert_string_equal(choose(all, 4, 0), "eth0,lo"); /* not shared with ranks 2 and 3 */
}

static void hosts_in_networks_of_their_own_use_what_is_theirs_alone(void **state) {
  lcomm_ucx_interfaces all[2] = {0};
  (void)state;
  add(&all[0], "10.1.0.2", 32);
  add(&all[0], "10.9.0.2", 32);
  add(&all[0], "172.17.0.1", 16);
  add(&all[1], "10.2.0.2", 32);
  add(&all[1], "10.9.1.2", 32);
  add(&all[1], "172.17.0.1", 16);
  assert_string_equal(choose(all, 2, 0), "eth0,eth1,lo");
}

static void choice_is_left_to_ucx_where_nothing_is_known(void **state) {
  lcomm_ucx_interfaces all[2] = {0};
  (void)state;
  assert_string_equal(choose(all, 2, 0), "");
  add(&all[0], "10.1.0.2", 24);
  add(&all[1], "10.1.0.2", 24);
  assert_string_equal(choose(all, 2, 0), "lo"); /* one host */
  memset(&all[1], 0xff, sizeof(all[1]));        /* nonsense from a peer */
  assert_string_equal(choose(all, 2, 0), "eth0,lo");
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(signal_handlers_stay, 2),
    cmocka_unit_test(functions_of_the_c_library_stay),
    UCX_TEST(settings_for_mpi_do_not_count, 2),
    UCX_TEST(own_settings_count, 2),
    UCX_TEST(fifty_opens_leave_no_open_file, 2),
    UCX_TEST(two_transports_of_a_process_are_apart, 2),
    UCX_TEST(version_is_told, 1),
    cmocka_unit_test(only_networks_with_every_host_are_chosen),
    cmocka_unit_test(hosts_in_networks_of_their_own_use_what_is_theirs_alone),
    cmocka_unit_test(choice_is_left_to_ucx_where_nothing_is_known),
};
RUN_TESTS(tests)
