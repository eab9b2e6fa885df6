/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 5 */

/* Parts for libraries that take over calls: what the policy would say of them is what it says
 * when they are made; they are freed by each rank when it likes. */

#include <string.h>
#include <time.h>

#include "tests/support/mpi_property.h"

enum { COUNT = 6000, PARTS = 3 };

static const char *const policies[] = {"net=int8", "net=bf16+ef min=8K", "node=int8 net=none",
                                       "net=int8 match=comm=part&size>=4K"};

static lcomm_comm *make_base(void) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policies[0];
  config.nodes = mpi_size > 1 ? 2 : 1;
  require(lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) == LCOMM_OK, "%s",
          lcomm_last_error(NULL));
  return comm;
}

/* This rank's half of the ranks, in falling order. */
static int find_members(int *members) {
  int count = 0;
  for (int rank = mpi_size - 1; rank >= 0; rank--) {
    if (rank % 2 == mpi_rank % 2) {
      members[count++] = rank;
    }
  }
  return count;
}

static int gather(void *context, const void *send, void *receive, size_t size) {
  return MPI_Allgather(send, (int)size, MPI_BYTE, receive, (int)size, MPI_BYTE,
                       *(MPI_Comm *)context) != MPI_SUCCESS;
}

/* over: NULL, or the MPI_Comm for messages. */
static lcomm_comm *make_part(const lcomm_comm *base, MPI_Comm half, void *over,
                             const char *policy) {
  int members[64], rank = 0;
  lcomm_comm *part = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  MPI_Comm_rank(half, &rank);
  lcomm_bootstrap boot = {
      .rank = rank, .world_size = find_members(members), .context = &half, .allgather = gather};
  config.policy = policy;
  config.transport = over ? "mpi" : "shm";
  lcomm_status status = lcomm_create_part(base, members, &boot, over, &config, &part);
  require(status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  return part;
}

/* ------------------------------------------------------------------- previews */

static void compare_choices(const lcomm_preview *preview, const lcomm_comm *part) {
  static const uint64_t counts[] = {1, 1000, 2048, 100000};
  static const lcomm_dtype types[] = {LCOMM_FLOAT32, LCOMM_BFLOAT16, LCOMM_INT32};
  for (int i = 0; i < 4 * 3 * LCOMM_CALL_KINDS; i++) {
    const char *why = NULL, *other = NULL;
    lcomm_call_kind kind = (lcomm_call_kind)(i / 12);
    lcomm_selection choice =
        lcomm_preview_query(preview, kind, counts[i % 4], types[i / 4 % 3], LCOMM_SUM, &why);
    require(choice ==
                lcomm_policy_query(part, kind, counts[i % 4], types[i / 4 % 3], LCOMM_SUM, &other),
            "another choice: %s, not %s", why, other);
    require(strcmp(why, other) == 0, "'%s', not '%s'", why, other);
  }
}

static void compare_bytes(const lcomm_preview *preview, lcomm_comm *part) {
  for (int error_feedback = 0; error_feedback < 2; error_feedback++) {
    uint64_t sent = 1, exact = 1, sent_there = 2, exact_there = 2;
    lcomm_preview_bytes(preview, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM,
                        error_feedback, &sent, &exact);
    lcomm_call_bytes(part, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM, error_feedback,
                     &sent_there, &exact_there);
    require(sent == sent_there && exact == exact_there, "%d and %d bytes, not %d and %d", (int)sent,
            (int)exact, (int)sent_there, (int)exact_there);
  }
}

static void a_preview_says_what_the_part_says(void) {
  int members[64], count = find_members(members);
  MPI_Comm half = MPI_COMM_NULL;
  lcomm_comm *base = make_base();
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % 2, -mpi_rank, &half);
  for (int p = 0; p < 4; p++) {
    lcomm_preview *preview = NULL;
    lcomm_comm *part = make_part(base, half, NULL, policies[p]);
    lcomm_status status = lcomm_preview_create(base, members, count, policies[p], &preview);
    require(status == LCOMM_OK, "%s", lcomm_last_error(NULL));
    lcomm_preview_name_set(preview, "part");
    lcomm_name_set(part, "part");
    require(lcomm_preview_nodes(preview) == lcomm_nodes(part), "%d nodes, not %d",
            lcomm_preview_nodes(preview), lcomm_nodes(part));
    require(strcmp(lcomm_preview_policy(preview), lcomm_policy_string(part)) == 0, "policy '%s'",
            lcomm_preview_policy(preview));
    compare_choices(preview, part);
    compare_bytes(preview, part);
    lcomm_preview_destroy(preview);
    lcomm_destroy(part);
  }
  MPI_Comm_free(&half);
  lcomm_destroy(base);
}

static void previews_of_others_are_refused(void) {
  lcomm_comm *base = make_base();
  lcomm_preview *preview = NULL;
  const int alone[] = {mpi_rank}, beyond[] = {mpi_rank, mpi_size};
  const int other[] = {(mpi_rank + 1) % mpi_size};
  require(lcomm_preview_create(base, beyond, 2, NULL, &preview) == LCOMM_ERR_ARGUMENT, "beyond");
  require(mpi_size == 1 ||
              lcomm_preview_create(base, other, 1, NULL, &preview) == LCOMM_ERR_ARGUMENT,
          "without this rank");
  require(lcomm_preview_create(base, alone, 1, "net=int9", &preview) == LCOMM_ERR_POLICY, "int9");
  require(strstr(lcomm_last_error(NULL), "int9"), "'%s'", lcomm_last_error(NULL));
  require(lcomm_preview_create(base, alone, 1, NULL, &preview) == LCOMM_OK, "this rank alone");
  lcomm_preview_destroy(preview);
  lcomm_preview_destroy(NULL);
  lcomm_destroy(base);
}

/* ------------------------------------------------------------------- freeing */

static void sum_ones(lcomm_comm *part) {
  static float ones[COUNT], sum[COUNT];
  for (int i = 0; i < COUNT; i++) {
    ones[i] = 1;
  }
  lcomm_status status = lcomm_allreduce(part, ones, sum, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK, "%s", lcomm_last_error(part));
  require(sum[COUNT - 1] == (float)lcomm_size(part), "%g", (double)sum[COUNT - 1]);
}

/* Each in an order of its own, and late. */
static void retiring_waits_for_nobody(void) {
  MPI_Comm half = MPI_COMM_NULL, own = MPI_COMM_NULL;
  lcomm_comm *base = make_base(), *parts[PARTS];
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % 2, -mpi_rank, &half);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  for (int i = 0; i < PARTS; i++) {
    parts[i] = make_part(base, half, i == 1 ? &own : NULL, "net=none");
    require(mpi_size < 3 ||
                lcomm_travels_over(parts[i], "mpi") == (i == 1 && lcomm_size(parts[i]) > 1),
            "part %d travels otherwise", i);
    sum_ones(parts[i]);
  }
  for (int i = 0; i < PARTS; i++) {
    const struct timespec late = {0, 20000000L * mpi_rank};
    nanosleep(&late, NULL);
    lcomm_retire(parts[(i + mpi_rank) % PARTS]);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* all have said so */
  for (int i = 0; i < PARTS; i++) {
    lcomm_release(parts[(i + 2 * mpi_rank) % PARTS]);
  }
  sum_ones(base);
  MPI_Comm_free(&half);
  MPI_Comm_free(&own);
  lcomm_destroy(base);
}

static const mpi_property properties[] = {
    PROPERTY(a_preview_says_what_the_part_says),
    PROPERTY(previews_of_others_are_refused),
    PROPERTY(retiring_waits_for_nobody),
};
RUN_PROPERTIES(mpi_property_main, properties)
