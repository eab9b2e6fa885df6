/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Bad input and trouble: every rank ends with a sentence, none hangs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/mpi_property.h"

static float buffer[100000];

/* The operation failed with `wanted` on every rank, and the sentence has `word` and names a rank.
 */
static void require_failure(lcomm_comm *comm, lcomm_status got, lcomm_status wanted,
                            const char *word) {
  require_status_everywhere(comm, got, wanted, word);
  require(strstr(lcomm_last_error(comm), "rank") != NULL, "%s", lcomm_last_error(comm));
}

static void a_count_that_differs_is_named_on_every_rank(void) {
  static const uint64_t usual[] = {100, 5000, 60000, 0}, odd[] = {200, 5001, 0, 7};
  for (int i = 0; i < 4; i++) {
    lcomm_comm *comm = make_comm("net=int8 min=1", mpi_size < 2 ? 1 : 2);
    uint64_t count = mpi_rank == 1 ? odd[i] : usual[i];
    lcomm_status status = lcomm_allreduce(comm, buffer, buffer, count, LCOMM_FLOAT32, LCOMM_SUM);
    if (status == LCOMM_OK) { /* a rank may be done before another one complains */
      status = lcomm_barrier(comm);
    }
    require_failure(comm, status, LCOMM_ERR_MISMATCH, "float32");
    require(lcomm_barrier(comm) == LCOMM_ERR_MISMATCH, "the error did not stick");
    require(lcomm_destroy(comm) == LCOMM_ERR_MISMATCH, "destroy forgot the error");
  }
}

static void another_collective_is_an_error_on_every_rank(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_status status = mpi_rank == 0
                            ? lcomm_barrier(comm)
                            : lcomm_allreduce(comm, buffer, buffer, 9, LCOMM_FLOAT32, LCOMM_SUM);
  if (status == LCOMM_OK) {
    status = lcomm_barrier(comm);
  }
  require_failure(comm, status, LCOMM_ERR_MISMATCH, "the same calls");
  lcomm_destroy(comm);
}

/* No rank makes a communicator; all say the status and both words. */
static void require_no_comm(const lcomm_config *config, lcomm_status wanted, const char *word,
                            const char *other) {
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, config, &comm);
  require_failure(NULL, status, wanted, word);
  require(strstr(lcomm_last_error(NULL), other) != NULL, "%s", lcomm_last_error(NULL));
  require(!comm, "a communicator was made");
}

static void a_policy_that_differs_is_named_on_every_rank(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = mpi_rank == 1 ? "net=int8" : "net=bf16";
  require_no_comm(&config, LCOMM_ERR_MISMATCH, "int8", "bf16");
}

static void a_bad_policy_is_explained_on_every_rank(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = mpi_rank == 0 ? "min=1 net=int9" : "net=int8";
  require_no_comm(&config, LCOMM_ERR_POLICY, "int9", "column");
}

static void nodes_without_ranks_are_refused_on_every_rank(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.nodes = mpi_size + 1;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  require_failure(NULL, status, LCOMM_ERR_ARGUMENT, "without a rank");
  config.nodes = -3;
  require(lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) == LCOMM_ERR_ARGUMENT,
          "a negative number of nodes was taken");
}

static void bad_environment_is_explained(void) {
  lcomm_comm *comm = NULL;
  static const struct {
    const char *variable, *value;
  } bad[] = {{"LCOMM_NODES", "two"}, {"LCOMM_NODES", "0"}, {"LCOMM_TIMEOUT_S", "soon"}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    char *kept = getenv(bad[i].variable) ? strdup(getenv(bad[i].variable)) : NULL;
    setenv(bad[i].variable, bad[i].value, 1);
    lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, NULL, &comm);
    require_failure(NULL, status, LCOMM_ERR_ARGUMENT, bad[i].variable);
    unsetenv(bad[i].variable);
    if (kept) {
      setenv(bad[i].variable, kept, 1);
    }
    free(kept);
  }
}

static void bad_arguments_are_refused_and_harmless(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_request request = {0};
  int done = 0;
  require(lcomm_allreduce(comm, NULL, buffer, 5, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_ERR_ARGUMENT,
          "NULL was sent");
  require(lcomm_allreduce(comm, buffer, buffer, 5, (lcomm_dtype)9, LCOMM_SUM) == LCOMM_ERR_ARGUMENT,
          "type 9 was taken");
  require(lcomm_allreduce(comm, buffer, buffer, 5, LCOMM_FLOAT32, (lcomm_op)7) ==
              LCOMM_ERR_ARGUMENT,
          "operation 7 was taken");
  require(lcomm_allreduce(comm, buffer, buffer, UINT64_MAX / 2, LCOMM_FLOAT32, LCOMM_SUM) ==
              LCOMM_ERR_ARGUMENT,
          "a vector past the address space was taken");
  require(lcomm_broadcast(comm, buffer, 5, LCOMM_FLOAT32, mpi_size) == LCOMM_ERR_ARGUMENT,
          "a root outside was taken");
  require(lcomm_wait(comm, &request) == LCOMM_ERR_STATE, "waited for nothing");
  require(lcomm_test(comm, &request, &done) == LCOMM_ERR_STATE, "tested nothing");
  require(lcomm_barrier(NULL) == LCOMM_ERR_ARGUMENT, "no communicator was fine");
  require(lcomm_create_mpi(MPI_COMM_NULL, NULL, &comm) == LCOMM_ERR_ARGUMENT, "MPI_COMM_NULL");
  require(lcomm_barrier(comm) == LCOMM_OK, "a refusal stuck: %s", lcomm_last_error(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void an_abort_reaches_every_rank_with_its_reason(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  if (mpi_rank == 0) {
    lcomm_abort(comm, "the disk is full");
  }
  lcomm_status status = lcomm_allreduce(comm, buffer, buffer, 90000, LCOMM_FLOAT32, LCOMM_SUM);
  require_failure(comm, status, LCOMM_ERR_ABORTED, "the disk is full");
  require(lcomm_destroy(comm) == LCOMM_ERR_ABORTED, "destroy forgot");
}

static void a_late_rank_is_named_with_the_operation(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.timeout_s = 3;
  lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  if (mpi_rank == mpi_size - 1) {
    usleep(7000000);
  }
  lcomm_status status = lcomm_allreduce(comm, buffer, buffer, 1000, LCOMM_FLOAT32, LCOMM_SUM);
  require_failure(comm, status, LCOMM_ERR_TIMEOUT, "all-reduce");
  char name[32];
  snprintf(name, sizeof(name), "rank %d", mpi_size - 1);
  require(strstr(lcomm_last_error(comm), name) != NULL, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

static void an_error_in_one_communicator_leaves_others_alone(void) {
  lcomm_comm *broken = make_comm("net=none", 1), *fine = make_comm("net=int8 min=1", 1);
  lcomm_abort(broken, "on purpose");
  require(lcomm_barrier(broken) == LCOMM_ERR_ABORTED, "not aborted");
  require(lcomm_allreduce(fine, buffer, buffer, 5000, LCOMM_FLOAT32, LCOMM_AVG) == LCOMM_OK, "%s",
          lcomm_last_error(fine));
  lcomm_destroy(broken);
  require(lcomm_destroy(fine) == LCOMM_OK, "destroy");
}

static const mpi_property properties[] = {
    PROPERTY_OF(2, a_count_that_differs_is_named_on_every_rank),
    PROPERTY_OF(2, another_collective_is_an_error_on_every_rank),
    PROPERTY_OF(2, a_policy_that_differs_is_named_on_every_rank),
    PROPERTY(a_bad_policy_is_explained_on_every_rank),
    PROPERTY(nodes_without_ranks_are_refused_on_every_rank),
    PROPERTY(bad_environment_is_explained),
    PROPERTY(bad_arguments_are_refused_and_harmless),
    PROPERTY(an_abort_reaches_every_rank_with_its_reason),
    PROPERTY_OF(2, a_late_rank_is_named_with_the_operation),
    PROPERTY(an_error_in_one_communicator_leaves_others_alone),
};
RUN_PROPERTIES(mpi_property_main, properties)
