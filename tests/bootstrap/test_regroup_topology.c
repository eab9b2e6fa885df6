/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Nodes lose ranks, vanish and get newcomers: topology and plans are made anew each time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"

enum { FOUNDERS = 4, NODES = 2 };

/* What happens one after the other, and how many ranks are on each node then. */
typedef struct stage {
  unsigned leave; /* members, a bit for each */
  int join;       /* a member; -1: nobody */
  int on_node[NODES];
} stage;

static const stage stages[] = {
    {1 << 1, -1, {2, 1}},          /* a node loses a rank, */
    {0, 4, {2, 2}},                /* and gets a newcomer */
    {1 << 3 | 1 << 4, -1, {2, 0}}, /* one loses all */
    {0, 5, {3, 0}},
};
enum { STAGES = sizeof(stages) / sizeof stages[0] };

static atomic_int *under_way; /* the stage */

/* Ranks on each node are as they should be, all ranks know it alike, and sums cross the nodes. */
static bool has_shape(lcomm_comm *comm, const stage *it, report *mine) {
  int32_t where = lcomm_node(comm), all[CREW_MAX] = {0}, found[NODES] = {0};
  mine->status = lcomm_allgather(comm, &where, all, 1, LCOMM_INT32);
  for (int rank = 0; rank < lcomm_size(comm); rank++) {
    found[all[rank] < NODES ? all[rank] : 0]++;
  }
  if (mine->status != LCOMM_OK || memcmp(found, it->on_node, sizeof(found)) != 0 ||
      lcomm_nodes(comm) != 1 + (it->on_node[1] > 0)) {
    snprintf(mine->sentence, sizeof(mine->sentence), "stage %d: %d and %d ranks on %d nodes",
             (int)(it - stages), found[0], found[1], lcomm_nodes(comm));
    return false;
  }
  return sums_up(comm, mine);
}

static lcomm_comm *go_through(lcomm_comm *comm, int member, const stage *it, report *mine) {
  int ranks = it->on_node[0] + it->on_node[1];
  if (it->leave >> member & 1) {
    lcomm_leave(comm);
  }
  atomic_store(under_way, (int)(it - stages));
  while (comm && lcomm_size(comm) != ranks) {
    comm = regroup_to_next(comm, mine);
    sleep_ms(10);
  }
  return comm;
}

static bool is_newcomer_of(int member, int i) {
  return stages[i].join == member;
}

static void live_through_all(const crew *c, int member, report *mine) {
  crew first = *c;
  int i = 0;
  first.size = FOUNDERS;
  lcomm_comm *comm = NULL;
  if (member < FOUNDERS) {
    comm = create_elastic(&first, member, "", mine);
  } else {
    while (!is_newcomer_of(member, i)) {
      i++;
    }
    while (atomic_load(under_way) < i) {
      sleep_ms(5);
    }
    comm = join_elastic(c, mine);
  }
  bool good = comm != NULL;
  for (; good && i < STAGES; i++) {
    comm = is_newcomer_of(member, i) ? comm : go_through(comm, member, &stages[i], mine);
    if (stages[i].leave >> member & 1) {
      mine->good = !comm && mine->status == LCOMM_OK;
      return;
    }
    good = comm && has_shape(comm, &stages[i], mine);
  }
  lcomm_destroy(comm);
  mine->good = good;
}

static void plans_follow_the_nodes(void **state) {
  (void)state;
  under_way =
      mmap(NULL, sizeof *under_way, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(under_way != MAP_FAILED);
  atomic_store(under_way, -1);
  crew c = new_crew(FOUNDERS + 2, live_through_all);
  run_survivors(&c, 0);
  munmap(under_way, sizeof *under_way);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plans_follow_the_nodes),
};
RUN_TESTS(tests)
