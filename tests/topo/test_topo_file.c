/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* LCOMM_TOPO_FILE: what a run takes from a file, and that all ranks end with one sentence where
 * the file is missing, hostile or not the same everywhere. */

#include "tests/topo/topo_fixtures.h"

#include <sys/stat.h>
#include <unistd.h>

#include "libcomm/base/error.h"
#include "libcomm/engine/engine.h"
#include "libcomm/topo/topo_file.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 3, PATH_ROOM = 64 };

static char folder[PATH_ROOM];

static const char measured[] = "# for people\n"
                               "node 0 host somewhere ranks 0 1 2\n"
                               "link shm latency 1.5 us bandwidth 4.25 GB/s\n"
                               "link net latency 77 us bandwidth 0.125 GB/s\n";

static const char *path_of(const char *name, char path[2 * PATH_ROOM]) {
  snprintf(path, 2 * PATH_ROOM, "%s/%s", folder, name);
  return path;
}

static void write_bytes(const char *name, const char *bytes, size_t size) {
  char path[2 * PATH_ROOM];
  FILE *file = fopen(path_of(name, path), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text) {
  write_bytes(name, text, strlen(text));
}

/* A communicator under LCOMM_TOPO_FILE=name; NULL: without it. */
static lcomm_status create(forked *self, const char *name, lcomm_comm **comm) {
  char path[2 * PATH_ROOM];
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_bootstrap boot = self->boot;
  config.transport = "shm";
  if (name) {
    setenv("LCOMM_TOPO_FILE", path_of(name, path), 1);
  } else {
    unsetenv("LCOMM_TOPO_FILE");
  }
  return lcomm_create(&boot, &config, comm);
}

/* ------------------------------------------------------------- what is taken */

static void take_costs(forked *self) {
  char text[4096];
  lcomm_comm *comm = NULL;
  forked_require(self, create(self, "measured", &comm) == LCOMM_OK, "%s",
                 lcomm_error_thread_text());
  const lcomm_link_cost *shm = &comm->topo.cost[LCOMM_LINK_SHM];
  forked_require(self, !shm->assumed && shm->latency_us == 1.5 && shm->bandwidth_gb_s == 4.25,
                 "shm costs %g us, %g GB/s", shm->latency_us, shm->bandwidth_gb_s);
  forked_require(self, comm->topo.cost[LCOMM_LINK_PCIE].assumed, "what was not said is measured");
  forked_require(self, strcmp(comm->topo.host[0], "somewhere") != 0,
                 "the ranks live where the file says");
  forked_require(self,
                 lcomm_plan_print(comm, 1 << 20, LCOMM_FLOAT32, 0, text, sizeof(text)) == LCOMM_OK,
                 "no plan");
  forked_require(self, strstr(text, "; links measured\n") != NULL, "%s", text);
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void measured_costs_are_those_of_the_plans(void **state) {
  (void)state;
  write_text("measured", measured);
  forked_run(RANKS, take_costs);
}

/* Of a job with other ranks. */
static void take_costs_of_others(forked *self) {
  lcomm_comm *comm = NULL;
  forked_require(self, create(self, "others", &comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
  forked_require(self, comm->topo.size == RANKS && comm->topo.nodes == 1 && comm->topo.devices == 0,
                 "the ranks are those of the file");
  forked_require(self, comm->topo.cost[LCOMM_LINK_NET].latency_us == 9, "a cost is not taken");
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void a_file_of_other_ranks_gives_costs_alone(void **state) {
  (void)state;
  write_text("others", "node 0 host a ranks 0 2\nnode 1 host b ranks 1\n"
                       "device 0 pci 0000:17:00.0 ranks 0\n"
                       "link net latency 9 us bandwidth 1 GB/s\n");
  forked_run(RANKS, take_costs_of_others);
}

/* Ranks that pose as nodes are on one host. */
static void take_racks(forked *self) {
  lcomm_comm *comm = NULL;
  setenv("LCOMM_NODES", "3", 1);
  lcomm_status status = create(self, "racks", &comm);
  unsetenv("LCOMM_NODES");
  forked_require(self, status == LCOMM_OK, "%s", lcomm_error_thread_text());
  const lcomm_racks *racks = &comm->topo.racks;
  forked_require(self, racks->count == 1 && racks->of[2] == 0 && strcmp(racks->name[0], "r08") == 0,
                 "%d racks", racks->count);
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void racks_of_the_hosts_are_those_of_the_file(void **state) {
  char text[512];
  lcomm_identity self;
  (void)state;
  lcomm_identity_self(&self);
  snprintf(text, sizeof(text),
           "node 0 host other ranks 0 1\nnode 1 host %s ranks 2\n"
           "rack r07 nodes 0\nrack r08 nodes 1\n",
           self.host);
  write_text("racks", text);
  forked_run(RANKS, take_racks);
}

/* net=auto plans with what the file says of the links: they are not measured, codecs are. */
static void plan_automatically(forked *self) {
  char text[4096], path[2 * PATH_ROOM];
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_bootstrap boot = self->boot;
  config.transport = "shm";
  config.policy = "net=auto:int8 min=1";
  setenv("LCOMM_TOPO_FILE", path_of("measured", path), 1);
  setenv("LCOMM_NODES", "3", 1);
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  unsetenv("LCOMM_NODES");
  forked_require(self, status == LCOMM_OK, "%s", lcomm_error_thread_text());
  const lcomm_link_cost *net = &comm->topo.cost[LCOMM_LINK_NET];
  forked_require(self, net->latency_us == 77 && net->bandwidth_gb_s == 0.125,
                 "net costs %g us, %g GB/s", net->latency_us, net->bandwidth_gb_s);
  forked_require(self, net->message_us == 0, "messages were measured: %g us", net->message_us);
  forked_require(self, comm->topo.codec_cost[LCOMM_AUTO_INT8].encode_gb_s > 0,
                 "codecs were not measured");
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) { /* what else runs here does not count */
    comm->topo.codec_cost[i] = (lcomm_codec_cost){8, 8, 0.1, 0.1};
  }
  forked_require(self,
                 lcomm_plan_print(comm, 1 << 20, LCOMM_FLOAT32, 0, text, sizeof(text)) == LCOMM_OK,
                 "no plan");
  forked_require(self, strstr(text, "; links measured\n") && strstr(text, "between     int8\n"),
                 "%s", text);
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void auto_plans_with_the_links_of_the_file(void **state) {
  (void)state;
  write_text("measured", measured);
  forked_run(RANKS, plan_automatically);
}

static void pairs_of_devices_are_taken_where_ranks_know_none(void **state) {
  (void)state;
  lcomm_topo file = topo_of_fixture("pairs.topo"), here = topo_of_fixture("pairs.topo");
  lcomm_topo other = topo_of_fixture("pcie.topo"), again = topo_of_fixture("pairs.topo");
  here.pairs = 0;
  assert_int_equal(lcomm_topo_link(&here, 0, 1), LCOMM_LINK_SHM);
  assert_int_equal(lcomm_topo_take(&here, &file), LCOMM_TOPO_TAKEN_LINKS);
  assert_int_equal(lcomm_topo_link(&here, 0, 1), LCOMM_LINK_NVLINK);
  assert_int_equal(lcomm_topo_hash(&here), lcomm_topo_hash(&file));
  assert_int_not_equal(lcomm_topo_take(&again, &other), LCOMM_TOPO_TAKEN_LINKS);
  assert_int_equal(again.pairs, file.pairs); /* what was found stays */
  assert_int_equal(lcomm_topo_link(&again, 0, 1), LCOMM_LINK_NVLINK);
  other.pairs = 0;
  assert_int_equal(lcomm_topo_take(&other, &file), LCOMM_TOPO_TAKEN_NOTHING); /* other devices */
  assert_int_equal(other.pairs, 0);
  lcomm_topo_free(&file);
  lcomm_topo_free(&here);
  lcomm_topo_free(&other);
  lcomm_topo_free(&again);
}

/* -------------------------------------------------------------- what is wrong */

static const char *only_rank_1; /* a file that rank 1 alone has; the others have "measured" */

/* All ranks end with this status and these words. */
static void fail_alike(forked *self, const char *name, lcomm_status wanted, const char *words) {
  lcomm_comm *comm = NULL;
  lcomm_status status = create(self, name, &comm);
  const char *sentence = lcomm_error_thread_text();
  forked_require(self, status == wanted, "%s instead of %s: %s", lcomm_status_name(status),
                 lcomm_status_name(wanted), sentence);
  forked_require(self, !comm && strstr(sentence, words) != NULL, "'%s' is not in: %s", words,
                 sentence);
}

static void read_hostile(forked *self) {
  static const struct {
    const char *name;
    lcomm_status status;
    const char *words;
  } files[] = {{"missing", LCOMM_ERR_SYSTEM, "cannot be read: No such file"},
               {".", LCOMM_ERR_SYSTEM, "it is no ordinary file"},
               {"pipe", LCOMM_ERR_SYSTEM, "it is no ordinary file"},
               {"zeros", LCOMM_ERR_SYSTEM, "it has zero bytes"},
               {"long", LCOMM_ERR_SYSTEM, "more than 4 MiB"},
               {"empty", LCOMM_ERR_WIRE, "topology, line 1"},
               {"noise", LCOMM_ERR_WIRE, "topology, line 1"},
               {"twice", LCOMM_ERR_WIRE, "topology, line 3"}};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
    fail_alike(self, files[i].name, files[i].status, files[i].words);
    fail_alike(self, self->rank == 1 ? files[i].name : "measured", files[i].status,
               self->rank == 1 ? "LCOMM_TOPO_FILE=" : "rank 1 (host");
  }
}

static void a_file_that_is_no_topology_is_one_sentence_on_all_ranks(void **state) {
  char path[2 * PATH_ROOM];
  (void)state;
  static char text[LCOMM_TOPO_FILE_MAX + 2];
  memset(text, '#', sizeof(text) - 1);
  write_text("measured", measured);
  write_text("long", text);
  write_bytes("zeros", measured, sizeof(measured));
  write_text("empty", "");
  write_text("noise", "\x01\xff\x7f garbage \x1b[2J\n");
  write_text("twice", "node 0 host a ranks 0 1 2\nlink net latency 1 us bandwidth 1 GB/s\n"
                      "link net latency 2 us bandwidth 1 GB/s\n");
  assert_int_equal(mkfifo(path_of("pipe", path), 0600), 0);
  forked_run(RANKS, read_hostile);
}

static void differ(forked *self) {
  fail_alike(self, self->rank == 1 ? only_rank_1 : "measured", LCOMM_ERR_MISMATCH,
             "is not that of rank 1");
}

static void ranks_with_different_files_are_named(void **state) {
  (void)state;
  static const char *const others[] = {"slower", NULL};
  write_text("measured", measured);
  write_text("slower", "node 0 host somewhere ranks 0 1 2\n"
                       "link shm latency 1.5 us bandwidth 4.24 GB/s\n"
                       "link net latency 77 us bandwidth 0.125 GB/s\n");
  for (int i = 0; i < 2; i++) {
    only_rank_1 = others[i];
    forked_run(RANKS, differ);
  }
}

static void what_is_for_people_does_not_differ(forked *self) {
  lcomm_comm *comm = NULL;
  forked_require(self, create(self, self->rank == 1 ? "copy" : "measured", &comm) == LCOMM_OK, "%s",
                 lcomm_error_thread_text());
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void files_that_say_the_same_are_the_same(void **state) {
  (void)state;
  write_text("measured", measured);
  write_text("copy", strchr(measured, '\n') + 1); /* without the first line */
  forked_run(RANKS, what_is_for_people_does_not_differ);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/lcomm-topo-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  static const char *const names[] = {"measured", "others", "long", "zeros", "empty", "noise",
                                      "twice",    "slower", "copy", "pipe",  "racks"};
  char path[2 * PATH_ROOM];
  (void)state;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    unlink(path_of(names[i], path));
  }
  return rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(racks_of_the_hosts_are_those_of_the_file),
    cmocka_unit_test(measured_costs_are_those_of_the_plans),
    cmocka_unit_test(a_file_of_other_ranks_gives_costs_alone),
    cmocka_unit_test(auto_plans_with_the_links_of_the_file),
    cmocka_unit_test(pairs_of_devices_are_taken_where_ranks_know_none),
    cmocka_unit_test(a_file_that_is_no_topology_is_one_sentence_on_all_ranks),
    cmocka_unit_test(ranks_with_different_files_are_named),
    cmocka_unit_test(files_that_say_the_same_are_the_same),
};
RUN_TESTS_WITHIN(tests, make_folder, remove_folder)
