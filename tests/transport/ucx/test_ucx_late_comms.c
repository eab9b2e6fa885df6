/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators of eight ranks whose links over distances of 3 and 5 are made when a plan needs
 * them: which those are, and that errors reach ranks to which there is no link. */

#include "libcomm/engine/engine.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"
#include "tests/transport/ucx/test_ucx.h"

enum { RANKS = 8, AT_ONCE = 5, DEAD = 3, LARGE = 100000, SAID_MAX = 500 };

static lcomm_comm *make_late(forked *self, int nodes) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_ucx_at_once_max = 2;
  config.transport = "ucx";
  config.nodes = nodes;
  config.progress = LCOMM_PROGRESS_CALLS;
  config.timeout_s = LIMIT_S;
  return forked_create(self, &config);
}

static int count_links(const lcomm_comm *comm) {
  int count = 0;
  for (int peer = 0; peer < comm->size; peer++) {
    count += lcomm_links_linked(&comm->links, peer);
  }
  return count;
}

static void require_links(forked *self, const lcomm_comm *comm, int wanted) {
  int found = count_links(comm);
  forked_require(self, found == wanted, "%d links instead of %d", found, wanted);
}

static void sum(forked *self, lcomm_comm *comm, uint64_t count) {
  float *vector = malloc(count * sizeof *vector);
  int size = lcomm_size(comm);
  for (uint64_t i = 0; i < count; i++) {
    vector[i] = (float)(lcomm_rank(comm) + (int)(i % 7));
  }
  lcomm_status status = lcomm_allreduce(comm, vector, vector, count, LCOMM_FLOAT32, LCOMM_SUM);
  forked_fine(self, comm, status, "the sum");
  for (uint64_t i = 0; i < count; i++) {
    float wanted = (float)(size * (size - 1) / 2 + size * (int)(i % 7));
    forked_require(self, vector[i] == wanted, "%g instead of %g", vector[i], wanted);
  }
  free(vector);
}

/* ------------------------------------------------------------ which links */

static void short_sums_need_no_more_than_is_there(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS);
  require_links(self, comm, AT_ONCE);
  forked_fine(self, comm, lcomm_barrier(comm), "the barrier");
  sum(self, comm, 2);
  require_links(self, comm, AT_ONCE);
  forked_destroy(self, comm);
}

/* Those of making a part and of another policy, too. */
static void short_all_gathers_need_no_more_than_is_there(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS), *part = NULL;
  int32_t parts[RANKS];
  forked_fine(self, comm, lcomm_allgather(comm, &self->rank, parts, 1, LCOMM_INT32),
              "the all-gather");
  for (int i = 0; i < RANKS; i++) {
    forked_require(self, parts[i] == i, "%d from %d", parts[i], i);
  }
  require_links(self, comm, AT_ONCE);
  forked_fine(self, comm, lcomm_split(comm, self->rank % 2, 0, NULL, &part), "the split");
  require_links(self, comm, AT_ONCE);
  forked_destroy(self, part);
  forked_fine(self, comm, lcomm_policy_set(comm, "net=bf16"), "the policy");
  require_links(self, comm, AT_ONCE);
  forked_destroy(self, comm);
}

/* Its node, and its counterpart on the other one. */
static void plans_link_their_own_peers(forked *self) {
  lcomm_comm *comm = make_late(self, 2);
  sum(self, comm, LARGE);
  for (int peer = 0; peer < RANKS; peer++) {
    bool needed = peer / 4 == self->rank / 4 || peer % 4 == self->rank % 4;
    bool at_once = lcomm_ucx_is_linked_at_once(self->rank, peer, RANKS);
    bool there = lcomm_links_linked(&comm->links, peer);
    forked_require(self, peer == self->rank || there == (needed || at_once),
                   "the link to %d is %sthere", peer, there ? "" : "not ");
  }
  forked_destroy(self, comm);
}

static void links_that_were_never_made_do_not_hold_up_the_end(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS);
  require_links(self, comm, AT_ONCE);
  forked_destroy(self, comm);
}

static void parts_of_a_communicator_have_links_of_their_own(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS), *part = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "ucx";
  lcomm_status status = lcomm_split(comm, self->rank % 2, self->rank, &config, &part);
  forked_fine(self, comm, status, "the split");
  sum(self, part, LARGE);
  sum(self, comm, LARGE);
  sum(self, part, 3);
  require_links(self, part, RANKS / 2 - 1);
  forked_destroy(self, part);
  sum(self, comm, 3);
  forked_destroy(self, comm);
}

/* All collectives over all ranks as roots. */
static void other_collectives_make_the_links_that_they_need(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS);
  int32_t parts[RANKS];
  for (int root = 0; root < RANKS; root++) {
    int32_t value = self->rank == root ? 100 + root : -1;
    lcomm_status status = lcomm_broadcast(comm, &value, 1, LCOMM_INT32, root);
    forked_fine(self, comm, status, "the broadcast");
    forked_require(self, value == 100 + root, "%d from %d", value, root);
  }
  forked_fine(self, comm, lcomm_allgather(comm, &self->rank, parts, 1, LCOMM_INT32),
              "the all-gather");
  for (int i = 0; i < RANKS; i++) {
    forked_require(self, parts[i] == i, "%d from %d", parts[i], i);
  }
  forked_destroy(self, comm);
}

/* ----------------------------------------------------------------- errors */

/* What a rank says, without who was stopped. */
static const char *cause(const lcomm_comm *comm) {
  const char *said = lcomm_last_error(comm), *stopped = strstr(said, "stopped by ");
  return stopped ? stopped + strlen("stopped by ") : said;
}

/* The living say the same. */
static void compare_causes(forked *self, const lcomm_comm *comm, int dead) {
  char(*said)[SAID_MAX] = (void *)self->shared;
  snprintf(said[self->rank], SAID_MAX, "%s", cause(comm));
  forked_barrier(self);
  for (int i = 0; i < RANKS; i++) {
    forked_require(self, i == dead || strncmp(said[i], said[self->rank], SAID_MAX - 1) == 0,
                   "rank %d says '%s', this one '%s'", i, said[i], said[self->rank]);
  }
}

static void fault_reaches_all_over_the_links_that_there_are(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS);
  forked_barrier(self);
  if (self->rank == 5) {
    lcomm_abort(comm, "enough");
  }
  lcomm_status status = lcomm_barrier(comm);
  forked_require(self, status == LCOMM_ERR_ABORTED, "status %d: %s", status,
                 lcomm_last_error(comm));
  forked_require(self, strstr(lcomm_last_error(comm), "rank 5 ") != NULL, "%s",
                 lcomm_last_error(comm));
  require_links(self, comm, AT_ONCE);
  compare_causes(self, comm, -1);
  lcomm_destroy(comm);
}

static void killed_rank_is_named_by_all(forked *self) {
  lcomm_comm *comm = make_late(self, RANKS);
  forked_barrier(self);
  if (self->rank == DEAD) {
    forked_die();
  }
  lcomm_status status = lcomm_barrier(comm);
  forked_require(self, status == LCOMM_ERR_TRANSPORT, "status %d: %s", status,
                 lcomm_last_error(comm));
  forked_require(self, strstr(lcomm_last_error(comm), "rank 3 (host ") != NULL, "%s",
                 lcomm_last_error(comm));
  compare_causes(self, comm, DEAD);
  lcomm_destroy(comm);
}

static const struct CMUnitTest tests[] = {
    UCX_TEST(short_sums_need_no_more_than_is_there, RANKS),
    UCX_TEST(short_all_gathers_need_no_more_than_is_there, RANKS),
    UCX_TEST(plans_link_their_own_peers, RANKS),
    UCX_TEST(links_that_were_never_made_do_not_hold_up_the_end, RANKS),
    UCX_TEST(parts_of_a_communicator_have_links_of_their_own, RANKS),
    UCX_TEST(other_collectives_make_the_links_that_they_need, RANKS),
    UCX_TEST(fault_reaches_all_over_the_links_that_there_are, RANKS),
    UCX_TEST_DYING(killed_rank_is_named_by_all, RANKS, DEAD),
};
RUN_TESTS(tests)
