/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What of MPI takes part in the making of a communicator: lcomm_create_mpi,
 * whose ranks meet over MPI, and lcomm_create, whose callers bring a bootstrap
 * of their own and for whose messages MPI is one transport among others. Calls are
 * PMPI_ for the reason that transport/mpi_transport.c gives. */

#include <mpi.h>
#include <stdlib.h>

#include "libcomm/base/error.h"
#include "libcomm/boot/boot.h"
#include "libcomm/include/libcomm_mpi.h"

static bool mpi_is_running(void) {
  int begun = 0, ended = 0;
  return PMPI_Initialized(&begun) == MPI_SUCCESS && begun &&
         PMPI_Finalized(&ended) == MPI_SUCCESS && !ended;
}

bool lcomm_mpi_allows_threads(void) {
  int level = MPI_THREAD_SINGLE;
  return mpi_is_running() && PMPI_Query_thread(&level) == MPI_SUCCESS &&
         level >= MPI_THREAD_MULTIPLE;
}

static int gather_over_mpi(void *context, const void *send, void *receive, size_t size) {
  if (size > INT32_MAX) {
    return 1;
  }
  return PMPI_Allgather(send, (int)size, MPI_BYTE, receive, (int)size, MPI_BYTE,
                        *(MPI_Comm *)context) != MPI_SUCCESS;
}

/* ------------------------------------------- an MPI_Comm that is ours alone */

/* After a failure peers may be gone, and MPI_Comm_free is collective: then the
 * communicator stays with MPI. */
static void release_mpi(lcomm_origin *origin, bool orderly) {
  if (orderly && mpi_is_running()) {
    PMPI_Comm_free(origin->mpi);
  }
  free(origin->mpi);
  *origin = (lcomm_origin){.boot = origin->boot};
}

/* Room for the handle, filled in before anything collective is done with it. */
static lcomm_status hold(lcomm_origin *origin) {
  MPI_Comm *own = malloc(sizeof(*own));
  if (!own) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory for a communicator of MPI");
  }
  *own = MPI_COMM_NULL;
  origin->mpi = own;
  origin->release = release_mpi;
  return LCOMM_OK;
}

static void drop(lcomm_origin *origin) {
  free(origin->mpi);
  *origin = (lcomm_origin){.boot = origin->boot};
}

/* Collective over the members only. */
static lcomm_status group_ranks(MPI_Comm parent, const int *members, int count, int tag,
                                lcomm_origin *origin) {
  MPI_Group everyone = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(parent, &everyone);
  PMPI_Group_incl(everyone, count, members, &group);
  int code = PMPI_Comm_create_group(parent, group, tag, origin->mpi);
  PMPI_Group_free(&group);
  PMPI_Group_free(&everyone);
  if (code == MPI_SUCCESS && *(MPI_Comm *)origin->mpi != MPI_COMM_NULL) {
    return LCOMM_OK;
  }
  drop(origin);
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT, "MPI cannot group %d of its ranks", count);
}

lcomm_status lcomm_origin_mpi_part(void *parent_mpi, const int *members, int count, int tag,
                                   lcomm_origin *origin) {
  lcomm_status status = hold(origin);
  return status == LCOMM_OK ? group_ranks(*(MPI_Comm *)parent_mpi, members, count, tag, origin)
                            : status;
}

/* Collective over all ranks of `parent`. Not a duplicate of it: the program's attributes
 * would be copied, by functions of the program, and topologies, too. */
static lcomm_status group_all(MPI_Comm parent, lcomm_origin *origin) {
  MPI_Group everyone = MPI_GROUP_NULL;
  PMPI_Comm_group(parent, &everyone);
  int code = PMPI_Comm_create(parent, everyone, origin->mpi);
  PMPI_Group_free(&everyone);
  if (code == MPI_SUCCESS && *(MPI_Comm *)origin->mpi != MPI_COMM_NULL) {
    return LCOMM_OK;
  }
  drop(origin);
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                            "lcomm_create_mpi: MPI makes no communicator over the same ranks");
}

static lcomm_status create_over(lcomm_origin *origin, const lcomm_config *config,
                                lcomm_comm **comm) {
  lcomm_status status = lcomm_comm_create(origin, config, comm);
  if (status != LCOMM_OK && origin->release) {
    origin->release(origin, true); /* all ranks have come to the same verdict */
  }
  return status;
}

lcomm_status lcomm_create_mpi(MPI_Comm mpi_comm, const lcomm_config *config, lcomm_comm **comm) {
  int is_inter = 0;
  lcomm_origin origin = {.boot = {.allgather = gather_over_mpi}};
  if (!mpi_is_running() || mpi_comm == MPI_COMM_NULL || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create_mpi: MPI is not running, or a communicator is NULL; "
                              "call it between MPI_Init and MPI_Finalize");
  }
  PMPI_Comm_test_inter(mpi_comm, &is_inter);
  if (is_inter) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create_mpi: an inter-communicator has no common ranks");
  }
  lcomm_status status = hold(&origin);
  status = status == LCOMM_OK ? group_all(mpi_comm, &origin) : status;
  if (status != LCOMM_OK) {
    return status;
  }
  origin.boot.context = origin.mpi;
  PMPI_Comm_rank(*(MPI_Comm *)origin.mpi, &origin.boot.rank);
  PMPI_Comm_size(*(MPI_Comm *)origin.mpi, &origin.boot.world_size);
  return create_over(&origin, config, comm);
}

/* ------------------------------------------------- a bootstrap of others */

/* Where a rank is in MPI's world: -1 where MPI does not run. */
typedef struct mpi_place {
  int32_t rank, size;
} mpi_place;

static mpi_place my_place(void) {
  int rank = -1, size = 0;
  if (mpi_is_running()) {
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  return (mpi_place){.rank = rank, .size = size};
}

static int by_number(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Do the ranks have different places in one world? Processes that were started
 * apart all are rank 0 of worlds of their own. */
static bool share_world(const mpi_place *places, int count, int *members) {
  for (int i = 0; i < count; i++) {
    if (places[i].rank < 0 || places[i].rank >= places[i].size ||
        places[i].size != places[0].size) {
      return false;
    }
    members[i] = places[i].rank;
  }
  qsort(members, (size_t)count, sizeof(*members), by_number);
  for (int i = 1; i < count; i++) {
    if (members[i] == members[i - 1]) {
      return false;
    }
  }
  for (int i = 0; i < count; i++) {
    members[i] = places[i].rank;
  }
  return true;
}

/* Give the origin an MPI_Comm of the ranks `members`, or none where they do
 * not share a world: then other transports must do. */
static lcomm_status agree_on_mpi(lcomm_origin *origin, mpi_place *all, int *members) {
  const lcomm_boot *boot = &origin->boot;
  mpi_place mine = my_place();
  if (mine.rank >= 0 && hold(origin) != LCOMM_OK) {
    mine.rank = -1;
  }
  if (boot->allgather(boot->context, &mine, all, sizeof(mine)) != 0) {
    drop(origin);
    return lcomm_error_thread(LCOMM_ERR_TRANSPORT, "lcomm_create: the bootstrap failed on rank %d",
                              boot->rank);
  }
  if (share_world(all, boot->world_size, members)) {
    return group_ranks(MPI_COMM_WORLD, members, boot->world_size, 0, origin);
  }
  drop(origin);
  return LCOMM_OK;
}

static lcomm_status find_mpi(lcomm_origin *origin) {
  size_t size = (size_t)origin->boot.world_size;
  mpi_place *all = calloc(size, sizeof(*all));
  int *members = calloc(size, sizeof(*members));
  lcomm_status status = all && members
                            ? agree_on_mpi(origin, all, members)
                            : lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_create: out of memory");
  free(members);
  free(all);
  return status;
}

lcomm_status lcomm_create(const lcomm_boot *boot, const lcomm_config *config, lcomm_comm **comm) {
  if (!boot || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create: a pointer is NULL");
  }
  if (boot->world_size < 1 || boot->rank < 0 || boot->rank >= boot->world_size ||
      !boot->allgather) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create: rank %d of %d ranks is no place, or there is no "
                              "allgather function",
                              boot->rank, boot->world_size);
  }
  lcomm_origin origin = {.boot = *boot};
  lcomm_status status = boot->world_size > 1 ? find_mpi(&origin) : LCOMM_OK;
  return status == LCOMM_OK ? create_over(&origin, config, comm) : status;
}
