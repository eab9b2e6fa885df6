/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators over MPI: lcomm_create_mpi, and lcomm_create, whose callers
 * bring a bootstrap of their own but whose messages travel over MPI too. */

#include <stdlib.h>

#include "libcomm/comm.h"
#include "libcomm/include/libcomm_mpi.h"
#include "libcomm/transport/mpi_transport.h"

static bool mpi_is_running(void) {
  int begun = 0, ended = 0;
  return MPI_Initialized(&begun) == MPI_SUCCESS && begun && MPI_Finalized(&ended) == MPI_SUCCESS &&
         !ended;
}

static lcomm_status open_self(void *context, lcomm_transport **transport, const char **why) {
  (void)context;
  *why = "";
  return lcomm_transport_self_open(transport);
}

static lcomm_status open_mpi(void *context, lcomm_transport **transport, const char **why) {
  return lcomm_transport_mpi_open(*(MPI_Comm *)context, transport, why);
}

static int gather_over_mpi(void *context, const void *send, void *receive, size_t size) {
  if (size > INT32_MAX) {
    return 1;
  }
  return MPI_Allgather(send, (int)size, MPI_BYTE, receive, (int)size, MPI_BYTE,
                       *(MPI_Comm *)context) != MPI_SUCCESS;
}

/* Create over a communicator that is ours alone; frees it on failure. */
static lcomm_status create_over(MPI_Comm own, const lcomm_boot *boot, const lcomm_config *config,
                                lcomm_comm **comm) {
  lcomm_status status = lcomm_comm_create(boot, config, open_mpi, &own, comm);
  if (status != LCOMM_OK) {
    MPI_Comm_free(&own);
  }
  return status;
}

lcomm_status lcomm_create_mpi(MPI_Comm mpi_comm, const lcomm_config *config, lcomm_comm **comm) {
  int is_inter = 0;
  MPI_Comm own = MPI_COMM_NULL;
  if (!mpi_is_running() || mpi_comm == MPI_COMM_NULL || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create_mpi: MPI is not running, or a communicator is NULL; "
                              "call it between MPI_Init and MPI_Finalize");
  }
  MPI_Comm_test_inter(mpi_comm, &is_inter);
  if (is_inter) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create_mpi: an inter-communicator has no common ranks");
  }
  if (MPI_Comm_dup(mpi_comm, &own) != MPI_SUCCESS) {
    return lcomm_error_thread(LCOMM_ERR_TRANSPORT, "lcomm_create_mpi: MPI_Comm_dup failed");
  }
  lcomm_boot boot = {.context = &own, .allgather = gather_over_mpi};
  MPI_Comm_rank(own, &boot.rank);
  MPI_Comm_size(own, &boot.world_size);
  return create_over(own, &boot, config, comm);
}

/* ------------------------------------------------- a bootstrap of others */

/* An MPI communicator of exactly the ranks of `boot`, in its order. Every
 * rank says its place in MPI_COMM_WORLD; -1 where MPI does not run. */
static lcomm_status find_ranks(const lcomm_boot *boot, MPI_Comm *own) {
  int mine = -1;
  if (mpi_is_running()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  }
  int *world = calloc((size_t)boot->world_size, sizeof(*world));
  if (!world || boot->allgather(boot->context, &mine, world, sizeof(mine)) != 0) {
    free(world);
    return lcomm_error_thread(LCOMM_ERR_TRANSPORT, "lcomm_create: the bootstrap failed on rank %d",
                              boot->rank);
  }
  for (int i = 0; i < boot->world_size; i++) {
    if (world[i] < 0) {
      free(world);
      return lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                                "lcomm_create: no transport reaches rank %d, where MPI is not "
                                "running; call MPI_Init on all ranks first",
                                i);
    }
  }
  MPI_Group everyone = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &everyone);
  MPI_Group_incl(everyone, boot->world_size, world, &group);
  int code = MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, own);
  MPI_Group_free(&group);
  MPI_Group_free(&everyone);
  free(world);
  return code == MPI_SUCCESS ? LCOMM_OK
                             : lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                                                  "lcomm_create: MPI cannot group these ranks");
}

lcomm_status lcomm_create(const lcomm_boot *boot, const lcomm_config *config, lcomm_comm **comm) {
  MPI_Comm own = MPI_COMM_NULL;
  if (!boot || boot->world_size <= 1 || boot->rank < 0 || boot->rank >= boot->world_size ||
      !boot->allgather || !comm) {
    return lcomm_comm_create(boot, config, open_self, NULL, comm);
  }
  lcomm_status status = find_ranks(boot, &own);
  return status == LCOMM_OK ? create_over(own, boot, config, comm) : status;
}
