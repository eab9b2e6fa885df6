/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 8 */

/* lcomm_split: who comes together, that the parts work like any communicator,
 * and that what fails in one of them ends nothing else. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/comm/split.h"
#include "tests/support/mpi_property.h"

enum { COUNT = 3001 };

static lcomm_comm *make_over(const char *transport, double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.transport = transport;
  config.timeout_s = timeout_s;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  require(status == LCOMM_OK, "no communicator: %s", lcomm_last_error(NULL));
  return comm;
}

static lcomm_comm *split_well(lcomm_comm *comm, int color, int key) {
  lcomm_comm *part = NULL;
  lcomm_status status = lcomm_split(comm, color, key, NULL, &part);
  require(status == LCOMM_OK, "split by %d, %d: %s: %s", color, key, lcomm_status_name(status),
          lcomm_last_error(comm));
  return part;
}

/* Every rank gives the rank that it has in the world, and more; sums of whole
 * numbers are exact in any order. */
static void require_sum(lcomm_comm *comm, double expected, const char *what) {
  static float values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = (float)(mpi_rank + 1) * (float)(i % 7 + 1);
  }
  lcomm_status status = lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK, "sum of %s: %s", what, lcomm_last_error(comm));
  for (int i = 0; status == LCOMM_OK && i < COUNT; i++) {
    if (values[i] != (float)(expected * (i % 7 + 1))) {
      require(false, "sum of %s: element %d is %g", what, i, (double)values[i]);
      return;
    }
  }
}

/* Sum of rank + 1 over the ranks of a color, where colors[r] is that of r. */
static double sum_of_color(const int *colors, int color) {
  double sum = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    sum += colors[rank] == color ? rank + 1 : 0;
  }
  return sum;
}

/* Split by these colors and keys; look at everything; sum in turn. */
static void try_split(lcomm_comm *comm, const int *colors, const int *keys) {
  int mine = colors[mpi_rank], place = 0, size = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    bool before = keys[rank] < keys[mpi_rank] || (keys[rank] == keys[mpi_rank] && rank < mpi_rank);
    size += colors[rank] == mine;
    place += colors[rank] == mine && before;
  }
  lcomm_comm *part = split_well(comm, mine, keys[mpi_rank]);
  require((!part) == (mine < 0), "color %d gets a part or none", mine);
  double whole = mpi_size * (mpi_size + 1) / 2.0;
  for (int i = 0; i < 3; i++) {
    if (part) {
      require(lcomm_size(part) == size, "the part has %d ranks, not %d", lcomm_size(part), size);
      require(lcomm_rank(part) == place, "rank %d of the part, not %d", lcomm_rank(part), place);
      require_sum(part, sum_of_color(colors, mine), "the part");
    }
    require_sum(comm, whole, "the parent");
  }
  if (part) {
    require(lcomm_destroy(part) == LCOMM_OK, "the part ends well");
  }
}

/* ------------------------------------------------------------ who with whom */

static void on_each_transport(void (*run)(lcomm_comm *comm)) {
  static const char *const transports[] = {"auto", "mpi"};
  for (int i = 0; i < 2; i++) {
    lcomm_comm *comm = make_over(transports[i], 0);
    if (!comm) {
      return;
    }
    run(comm);
    require(lcomm_destroy(comm) == LCOMM_OK, "the parent ends well");
  }
}

static void split_halves(lcomm_comm *comm) {
  int colors[64], keys[64] = {0};
  for (int rank = 0; rank < mpi_size; rank++) {
    colors[rank] = rank * 2 / mpi_size;
  }
  try_split(comm, colors, keys);
  for (int rank = 0; rank < mpi_size; rank++) {
    colors[rank] = rank % 2;
  }
  try_split(comm, colors, keys);
}

static void halves_work_beside_the_whole(void) {
  on_each_transport(split_halves);
}

static void split_reversed(lcomm_comm *comm) {
  int colors[64] = {0}, keys[64];
  for (int rank = 0; rank < mpi_size; rank++) {
    keys[rank] = -rank;
  }
  try_split(comm, colors, keys);
  for (int rank = 0; rank < mpi_size; rank++) {
    colors[rank] = rank % 2 ? INT_MAX : 7;
    keys[rank] = rank < mpi_size / 2 ? INT_MAX : INT_MIN;
  }
  try_split(comm, colors, keys);
}

static void keys_give_the_order(void) {
  on_each_transport(split_reversed);
}

static void split_one(lcomm_comm *comm) {
  int colors[64] = {0}, keys[64] = {0};
  colors[mpi_size - 1] = 1;
  try_split(comm, colors, keys);
}

static void one_rank_may_be_alone(void) {
  on_each_transport(split_one);
}

static void split_some(lcomm_comm *comm) {
  int colors[64], keys[64] = {0};
  for (int rank = 0; rank < mpi_size; rank++) {
    colors[rank] = rank % 3 == 1 ? -1 : 5;
  }
  try_split(comm, colors, keys);
  for (int rank = 0; rank < mpi_size; rank++) {
    colors[rank] = INT_MIN;
  }
  try_split(comm, colors, keys);
}

static void negative_colors_get_no_part(void) {
  on_each_transport(split_some);
}

static void parts_are_split_again(void) {
  lcomm_comm *comm = make_over("auto", 0);
  lcomm_comm *half = split_well(comm, mpi_rank % 2, -mpi_rank);
  lcomm_comm *quarter = half ? split_well(half, lcomm_rank(half) / 2, 0) : NULL;
  require(lcomm_destroy(comm) == LCOMM_OK, "the whole ends first");
  require(quarter && lcomm_size(quarter) <= 2, "a quarter has at most two ranks");
  if (quarter) {
    int64_t ranks[2] = {0}, mine = mpi_rank;
    require(lcomm_allgather(quarter, &mine, ranks, 1, LCOMM_INT64) == LCOMM_OK, "it gathers: %s",
            lcomm_last_error(quarter));
    require(ranks[lcomm_rank(quarter)] == mpi_rank, "this rank is where it should be");
    require(lcomm_size(quarter) == 1 || ranks[0] == ranks[1] + 2, "the order is that of the half");
  }
  require(lcomm_destroy(half) == LCOMM_OK, "then the half");
  require(lcomm_destroy(quarter) == LCOMM_OK, "then the quarter");
}

static void parts_outlive_the_whole(void) {
  static const char *const transports[] = {"auto", "mpi"};
  int colors[64];
  for (int i = 0; i < 2; i++) {
    lcomm_comm *comm = make_over(transports[i], 0);
    lcomm_comm *part = split_well(comm, mpi_rank % 2, 0);
    require(lcomm_destroy(comm) == LCOMM_OK, "the whole ends first");
    for (int rank = 0; rank < mpi_size; rank++) {
      colors[rank] = rank % 2;
    }
    if (part) {
      require_sum(part, sum_of_color(colors, mpi_rank % 2), "the part");
      require_sum(part, sum_of_color(colors, mpi_rank % 2), "the part");
    }
    require(lcomm_destroy(part) == LCOMM_OK, "the part ends well");
  }
}

static void operations_of_the_whole_go_on(void) {
  static float values[1 << 16];
  lcomm_comm *comm = make_over("auto", 0);
  lcomm_request request;
  for (int i = 0; i < 1 << 16; i++) {
    values[i] = 1;
  }
  lcomm_status status =
      lcomm_iallreduce(comm, values, values, 1 << 16, LCOMM_FLOAT32, LCOMM_SUM, &request);
  require(status == LCOMM_OK, "it starts: %s", lcomm_last_error(comm));
  lcomm_comm *part = split_well(comm, mpi_rank % 2, 0);
  require(lcomm_wait(comm, &request) == LCOMM_OK, "it ends: %s", lcomm_last_error(comm));
  require(values[0] == (float)mpi_size && values[65535] == (float)mpi_size, "it is right");
  require(lcomm_barrier(part) == LCOMM_OK, "the part is there");
  require(lcomm_destroy(part) == LCOMM_OK && lcomm_destroy(comm) == LCOMM_OK, "both end well");
}

/* ---------------------------------------------------------------- settings */

static void colors_may_have_policies_of_their_own(void) {
  lcomm_comm *comm = make_over("auto", 0), *part = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = mpi_rank % 2 ? "net=bf16" : "net=none";
  lcomm_status status = lcomm_split(comm, mpi_rank % 2, 0, &config, &part);
  require(status == LCOMM_OK, "it splits: %s", lcomm_last_error(comm));
  require(!part || strstr(lcomm_policy_string(part), mpi_rank % 2 ? "bf16" : "none"),
          "the policy is '%s'", lcomm_policy_string(part));
  require(lcomm_destroy(part) == LCOMM_OK && lcomm_destroy(comm) == LCOMM_OK, "both end well");
}

static void a_bad_policy_fails_its_color_only(void) {
  lcomm_comm *comm = make_over("auto", 0), *part = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  bool bad = mpi_rank % 2 == 0; /* of rank 0 alone, in fact */
  config.policy = mpi_rank == 0 ? "net=nonsense" : "net=none";
  lcomm_status status = lcomm_split(comm, mpi_rank % 2, 0, &config, &part);
  require(status == (bad ? LCOMM_ERR_POLICY : LCOMM_OK), "%s: %s", lcomm_status_name(status),
          lcomm_last_error(comm));
  require(!bad || strstr(lcomm_last_error(comm), "nonsense"), "the reason is said: %s",
          lcomm_last_error(comm));
  require((!part) == bad, "what failed gives nothing");
  require_sum(comm, mpi_size * (mpi_size + 1) / 2.0, "the parent, which goes on");
  lcomm_comm *again = split_well(comm, 0, 0);
  require(lcomm_size(again) == mpi_size, "it can be split again");
  require(lcomm_destroy(again) == LCOMM_OK, "that ends well");
  require(lcomm_destroy(part) == LCOMM_OK && lcomm_destroy(comm) == LCOMM_OK, "both end well");
}

static void parts_pose_as_the_nodes_they_are_on(void) {
  setenv("LCOMM_NODES", mpi_size > 1 ? "2" : "1", 1);
  lcomm_comm *comm = make_over("auto", 0);
  int node = lcomm_node(comm);
  lcomm_comm *inside = split_well(comm, node, 0);
  lcomm_comm *across = split_well(comm, lcomm_local_rank(comm), 0);
  unsetenv("LCOMM_NODES");
  int members = 0, nodes = 0, last = -1;
  for (int rank = 0; rank < mpi_size; rank++) {
    int of_rank = mpi_size > 1 && rank >= (mpi_size + 1) / 2;
    int local = rank - of_rank * ((mpi_size + 1) / 2);
    members += of_rank == node;
    if (local == lcomm_local_rank(comm) && of_rank != last) {
      nodes++;
      last = of_rank;
    }
  }
  require(lcomm_nodes(inside) == 1 && lcomm_size(inside) == members, "a node is one node");
  require(lcomm_nodes(across) == nodes, "%d nodes lie across, not %d", lcomm_nodes(across), nodes);
  require(lcomm_destroy(inside) == LCOMM_OK && lcomm_destroy(across) == LCOMM_OK, "they end");
  require(lcomm_destroy(comm) == LCOMM_OK, "the whole ends well");
}

/* What a rank of a part goes by. */
static void require_alike(const lcomm_comm *part, const lcomm_comm *parent) {
  require(strcmp(lcomm_policy_string(part), lcomm_policy_string(parent)) == 0,
          "the policy of the part is '%s', not '%s'", lcomm_policy_string(part),
          lcomm_policy_string(parent));
  require(part->settings.timeout_s == parent->settings.timeout_s, "its time-out is %g s, not %g s",
          part->settings.timeout_s, parent->settings.timeout_s);
  require(strcmp(part->settings.transport, parent->settings.transport) == 0,
          "its transports are %s, not %s", part->settings.transport, parent->settings.transport);
  require((part->progress.thread != NULL) == (parent->progress.thread != NULL),
          "it has a thread: %d, not %d", part->progress.thread != NULL,
          parent->progress.thread != NULL);
  require(lcomm_nodes(part) == lcomm_nodes(parent), "it has %d nodes, not %d", lcomm_nodes(part),
          lcomm_nodes(parent));
}

static void a_part_is_configured_as_its_parent(void) {
  lcomm_config config = LCOMM_CONFIG_INIT, own = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL, *same = NULL, *other = NULL, *grandchild = NULL;
  config.progress = LCOMM_PROGRESS_THREAD;
  config.transport = "shm,mpi";
  config.policy = "net=topk:0.05+ef min=1K warmup=3";
  config.timeout_s = 17;
  config.nodes = mpi_size > 1 ? 2 : 1;
  setenv("LCOMM_POLICY", "net=int4", 1); /* what the parent was not made with */
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  require(status == LCOMM_OK, "no communicator: %s", lcomm_last_error(NULL));
  if (!comm) {
    return;
  }
  require(lcomm_split(comm, 0, 0, NULL, &same) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require_alike(same, comm);
  require(lcomm_split(same, 0, 0, NULL, &grandchild) == LCOMM_OK, "%s", lcomm_last_error(same));
  require_alike(grandchild, comm);
  own.policy = "net=bf16";
  own.timeout_s = 23;
  own.progress = LCOMM_PROGRESS_CALLS;
  require(lcomm_split(comm, 0, 0, &own, &other) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(strstr(lcomm_policy_string(other), "bf16") && other->settings.timeout_s == 23 &&
              !other->progress.thread,
          "what is given counts: %s, %g s", lcomm_policy_string(other), other->settings.timeout_s);
  require(strcmp(other->settings.transport, "shm,mpi") == 0, "and the rest is inherited");
  unsetenv("LCOMM_POLICY");
  require(lcomm_destroy(grandchild) == LCOMM_OK && lcomm_destroy(same) == LCOMM_OK &&
              lcomm_destroy(other) == LCOMM_OK && lcomm_destroy(comm) == LCOMM_OK,
          "all end well");
}

static void a_progress_thread_may_run_meanwhile(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL, *part = NULL;
  config.progress = LCOMM_PROGRESS_THREAD;
  config.transport = "shm";
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  require(status == LCOMM_OK, "a thread needs no threads of MPI: %s", lcomm_last_error(NULL));
  if (!comm) {
    return;
  }
  status = lcomm_split(comm, mpi_rank % 2, 0, &config, &part);
  require(status == LCOMM_OK, "it splits: %s", lcomm_last_error(comm));
  require_sum(comm, mpi_size * (mpi_size + 1) / 2.0, "the parent");
  require(lcomm_barrier(part) == LCOMM_OK, "the part is there");
  require(lcomm_destroy(part) == LCOMM_OK && lcomm_destroy(comm) == LCOMM_OK, "both end well");
}

/* ---------------------------------------------------------------- failures */

/* Even and odd ranks as lcomm_split has them, to see what happens when a member
 * does not take part. */
static lcomm_split_rendezvous meet(lcomm_comm *comm) {
  lcomm_split_rendezvous m = {.parent = comm};
  m.members = calloc((size_t)mpi_size, sizeof *m.members);
  for (int rank = mpi_rank % 2; rank < mpi_size; rank += 2) {
    m.me = rank == mpi_rank ? m.count : m.me;
    m.members[m.count++] = rank;
  }
  return m;
}

/* All ranks, in their order. */
static lcomm_split_rendezvous meet_all(lcomm_comm *comm) {
  lcomm_split_rendezvous m = {.parent = comm, .count = mpi_size, .me = mpi_rank};
  m.members = calloc((size_t)mpi_size, sizeof *m.members);
  for (int rank = 0; rank < mpi_size; rank++) {
    m.members[rank] = rank;
  }
  return m;
}

static void end(lcomm_split_rendezvous *m) {
  free(m->members);
}

static void exchange(lcomm_split_rendezvous *m, size_t size) {
  uint8_t *send = malloc(size + 1), *all = calloc((size_t)m->count, size + 1);
  memset(send, mpi_rank + 1, size);
  require(lcomm_split_gather(m, send, all, size) == 0, "%zu bytes: %s", size,
          lcomm_last_error(m->parent));
  for (size_t k = 0; k < size * (size_t)m->count; k++) {
    if (all[k] != m->members[k / size] + 1) {
      require(false, "byte %zu of %zu is %d", k, size, all[k]);
      break;
    }
  }
  free(send);
  free(all);
}

static void members_exchange_any_sizes(void) {
  static const size_t sizes[] = {0, 1, 64, 4096, 300000};
  lcomm_comm *comm = make_over("auto", 0);
  lcomm_split_rendezvous m = meet(comm), whole = meet_all(comm);
  for (int i = 0; i < 5; i++) {
    exchange(&m, sizes[i]);
    exchange(&whole, sizes[i]);
  }
  end(&m);
  end(&whole);
  require(lcomm_destroy(comm) == LCOMM_OK, "it ends well");
}

/* Members 2 and 3 of the tree hang on each other, and 2 on the first one. */
static void is_named_alone(int silent) {
  char who[32];
  lcomm_comm *comm = make_over("auto", 2);
  lcomm_split_rendezvous m = meet_all(comm);
  int64_t mine = mpi_rank, all[64];
  if (mpi_rank != silent) {
    snprintf(who, sizeof(who), "rank %d (host", silent);
    require(lcomm_split_gather(&m, &mine, all, sizeof(mine)) != 0, "rank %d is not there", silent);
    require(strstr(lcomm_last_error(comm), who), "rank %d is named: %s", silent,
            lcomm_last_error(comm));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  end(&m);
  lcomm_destroy(comm);
}

static void silent_members_are_named_by_those_above_and_below(void) {
  is_named_alone(0);
  is_named_alone(2);
  is_named_alone(3);
}

static void silent_member_is_named_by_its_color(void) {
  static const char *const transports[] = {"auto", "mpi"};
  for (int i = 0; i < 2; i++) {
    lcomm_comm *comm = make_over(transports[i], 2);
    lcomm_split_rendezvous m = meet(comm);
    int64_t mine = mpi_rank, all[64];
    if (mpi_rank % 2 == 1) { /* the other color does not wait for rank 2 */
      require(lcomm_split_gather(&m, &mine, all, sizeof(mine)) == 0, "odd ranks meet: %s",
              lcomm_last_error(comm));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = lcomm_clock_s();
    if (mpi_rank % 2 == 0 && mpi_rank != 2) {
      require(lcomm_split_gather(&m, &mine, all, sizeof(mine)) != 0, "rank 2 is not there");
      require(mpi_rank != 0 || lcomm_clock_s() - begin_s >= 2, "the time-out is waited for");
      require(strstr(lcomm_last_error(comm), "rank 2 (host"), "it is named: %s",
              lcomm_last_error(comm));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    require(lcomm_barrier(comm) != LCOMM_OK, "the parent has failed on all ranks");
    end(&m);
    lcomm_destroy(comm);
  }
}

static void what_fails_elsewhere_ends_the_wait(void) {
  lcomm_comm *comm = make_over("auto", 60);
  lcomm_split_rendezvous m = meet(comm);
  int64_t mine = mpi_rank, all[64];
  double begin_s = lcomm_clock_s();
  if (mpi_rank == 2) {
    lcomm_abort(comm, "the test says so");
    lcomm_progress(comm);
  } else if (mpi_rank % 2 == 0) {
    require(lcomm_split_gather(&m, &mine, all, sizeof(mine)) != 0, "there is nobody to meet");
    require(strstr(lcomm_last_error(comm), "the test says so"), "the reason has come: %s",
            lcomm_last_error(comm));
    require(lcomm_clock_s() - begin_s < 55, "nobody waits for the time-out");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_comm *part = NULL;
  require(lcomm_split(comm, 0, 0, NULL, &part) == LCOMM_ERR_ABORTED && !part,
          "a parent that failed cannot be split: %s", lcomm_last_error(comm));
  end(&m);
  lcomm_destroy(comm);
}

static void bad_arguments_are_refused(void) {
  lcomm_comm *comm = make_over("auto", 0), *part = NULL;
  require(lcomm_split(NULL, 0, 0, NULL, &part) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_split(comm, 0, 0, NULL, NULL) == LCOMM_ERR_ARGUMENT, "no place");
  lcomm_config config = {.struct_size = 100000};
  lcomm_status status = lcomm_split(comm, 0, 0, &config, &part);
  require(status == LCOMM_ERR_ARGUMENT, "a strange configuration: %s", lcomm_status_name(status));
  require(lcomm_destroy(comm) == LCOMM_OK, "nothing of it sticks");
}

static const mpi_property properties[] = {
    PROPERTY(halves_work_beside_the_whole),
    PROPERTY(keys_give_the_order),
    PROPERTY(one_rank_may_be_alone),
    PROPERTY(negative_colors_get_no_part),
    PROPERTY(parts_are_split_again),
    PROPERTY(parts_outlive_the_whole),
    PROPERTY(operations_of_the_whole_go_on),
    PROPERTY(colors_may_have_policies_of_their_own),
    PROPERTY(a_bad_policy_fails_its_color_only),
    PROPERTY(parts_pose_as_the_nodes_they_are_on),
    PROPERTY(a_part_is_configured_as_its_parent),
    PROPERTY(a_progress_thread_may_run_meanwhile),
    PROPERTY(members_exchange_any_sizes),
    PROPERTY_OF(4, silent_members_are_named_by_those_above_and_below),
    PROPERTY_OF(4, silent_member_is_named_by_its_color),
    PROPERTY_OF(4, what_fails_elsewhere_ends_the_wait),
    PROPERTY(bad_arguments_are_refused),
};
RUN_PROPERTIES(mpi_property_main, properties)
