/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What libcomm asks of MPI while a communicator is made, in libcomm-with-mpi.so:
 * lcomm_create_mpi, whose ranks meet over MPI, and the table of mpi_table.h. Calls are
 * PMPI_ for the reason that transport/mpi/mpi_internal.h gives. */

#include <mpi.h>
#include <stdlib.h>

#include "libcomm/base/error.h"
#include "libcomm/comm/create.h"
#include "libcomm/include/libcomm_mpi.h"
#include "libcomm/transport/mpi/mpi_table.h"
#include "libcomm/transport/mpi/mpi_transport.h"

static bool mpi_is_running(void) {
  int begun = 0, ended = 0;
  return !lcomm_mpi_other() && PMPI_Initialized(&begun) == MPI_SUCCESS && begun &&
         PMPI_Finalized(&ended) == MPI_SUCCESS && !ended;
}

static bool allows_threads(void) {
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

/* May the calling thread be inside MPI now? Of several at a time the program has to take
 * care with MPI_THREAD_SERIALIZED (libcomm.h says so). */
static bool thread_may_enter(void) {
  int level = MPI_THREAD_SINGLE, is_main = 0;
  PMPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED) {
    PMPI_Is_thread_main(&is_main);
  }
  return level >= MPI_THREAD_SERIALIZED || is_main;
}

/* A look for a message to itself, which nobody sends: MPI makes progress in it. */
static void progress_mpi(lcomm_bootstrap_object *bootstrap) {
  int found = 0;
  if (mpi_is_running() && thread_may_enter()) {
    PMPI_Iprobe(bootstrap->base.rank, 0, *(MPI_Comm *)bootstrap->mpi, &found, MPI_STATUS_IGNORE);
  }
}

/* After a failure peers may be gone, and MPI_Comm_free is collective: then the
 * communicator stays with MPI. */
static void release_mpi(lcomm_bootstrap_object *bootstrap, bool orderly) {
  if (orderly && mpi_is_running() && *(MPI_Comm *)bootstrap->mpi != MPI_COMM_NULL) {
    PMPI_Comm_free(bootstrap->mpi);
  }
  free(bootstrap->mpi);
  *bootstrap = (lcomm_bootstrap_object){.base = bootstrap->base};
}

/* Room for the handle, filled in before anything collective is done with it. */
static lcomm_status hold(lcomm_bootstrap_object *bootstrap) {
  MPI_Comm *own = malloc(sizeof *own);
  if (!own) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory for a communicator of MPI");
  }
  *own = MPI_COMM_NULL;
  bootstrap->mpi = own;
  bootstrap->progress = progress_mpi;
  bootstrap->release = release_mpi;
  return LCOMM_OK;
}

static void drop(lcomm_bootstrap_object *bootstrap) {
  free(bootstrap->mpi);
  *bootstrap = (lcomm_bootstrap_object){.base = bootstrap->base};
}

/* MPI has tried to make the communicator. False, and the room given back: there is none. */
static bool is_made(lcomm_bootstrap_object *bootstrap, int code) {
  MPI_Comm made = *(MPI_Comm *)bootstrap->mpi;
  if (code != MPI_SUCCESS || made == MPI_COMM_NULL) {
    drop(bootstrap);
    return false;
  }
  PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return true;
}

/* Collective over the members only. */
static lcomm_status group_ranks(MPI_Comm parent, const int *members, int count, int tag,
                                lcomm_bootstrap_object *bootstrap) {
  MPI_Group everyone = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(parent, &everyone);
  PMPI_Group_incl(everyone, count, members, &group);
  int code = PMPI_Comm_create_group(parent, group, tag, bootstrap->mpi);
  PMPI_Group_free(&group);
  PMPI_Group_free(&everyone);
  if (is_made(bootstrap, code)) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT, "MPI cannot group %d of its ranks", count);
}

static lcomm_status part(void *parent_mpi, const int *members, int count, int tag,
                         lcomm_bootstrap_object *bootstrap) {
  LCOMM_TRY(hold(bootstrap));
  return group_ranks(*(MPI_Comm *)parent_mpi, members, count, tag, bootstrap);
}

/* Collective over all ranks of `parent`. Not a duplicate of it: the program's attributes
 * would be copied, by functions of the program, and topologies, too. */
static lcomm_status group_all(MPI_Comm parent, lcomm_bootstrap_object *bootstrap) {
  MPI_Group everyone = MPI_GROUP_NULL;
  PMPI_Comm_group(parent, &everyone);
  int code = PMPI_Comm_create(parent, everyone, bootstrap->mpi);
  PMPI_Group_free(&everyone);
  if (is_made(bootstrap, code)) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                            "lcomm_create_mpi: MPI makes no communicator over the same ranks");
}

lcomm_status lcomm_create_mpi(MPI_Comm mpi_comm, const lcomm_config *config, lcomm_comm **comm) {
  int is_inter = 0;
  lcomm_bootstrap_object bootstrap = {.base = {.allgather = gather_over_mpi}};
  if (lcomm_mpi_other()) {
    return lcomm_error_thread(LCOMM_ERR_UNSUPPORTED, "lcomm_create_mpi: %s", lcomm_mpi_other());
  }
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
  LCOMM_TRY(hold(&bootstrap));
  LCOMM_TRY(group_all(mpi_comm, &bootstrap));
  bootstrap.base.context = bootstrap.mpi;
  PMPI_Comm_rank(*(MPI_Comm *)bootstrap.mpi, &bootstrap.base.rank);
  PMPI_Comm_size(*(MPI_Comm *)bootstrap.mpi, &bootstrap.base.world_size);
  return lcomm_create_over(&bootstrap, config, comm);
}

/* ------------------------------------------------------------- the table */

static void world(int *rank, int *size) {
  *rank = -1;
  *size = 0;
  if (mpi_is_running()) {
    PMPI_Comm_rank(MPI_COMM_WORLD, rank);
    PMPI_Comm_size(MPI_COMM_WORLD, size);
  }
}

static lcomm_status part_of_world(const int *members, int count,
                                  lcomm_bootstrap_object *bootstrap) {
  return group_ranks(MPI_COMM_WORLD, members, count, 0, bootstrap);
}

static const lcomm_mpi_table table = {.version = LCOMM_VERSION_MAJOR * 10000 +
                                                 LCOMM_VERSION_MINOR * 100 + LCOMM_VERSION_PATCH,
                                      .transport = &lcomm_transport_mpi,
                                      .name = lcomm_mpi_running,
                                      .allows_threads = allows_threads,
                                      .world = world,
                                      .hold = hold,
                                      .part_of_world = part_of_world,
                                      .part = part};

/* A library of another version stays without: communicators then say that MPI is missing. */
__attribute__((constructor)) static void register_mpi(void) {
  (void)lcomm_mpi_register(&table);
}
