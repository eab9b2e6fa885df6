/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* What stands between a program and MPI sees nothing of libcomm: none of its messages
 * goes through MPI's ordinary functions, which tools replace as this program does, and
 * communicators of the program are not duplicated. */

#include "libcomm/comm/create.h"
#include "libcomm/transport/mpi/mpi_table.h"
#include "tests/support/mpi_property.h"

static int seen; /* ordinary calls while `looking` */
static bool looking;

/* An ordinary function that is replaced: counted, then done. */
#define REPLACE(name, parameters, arguments)                                                       \
  int MPI_##name parameters;                                                                       \
  int MPI_##name parameters {                                                                      \
    seen += looking;                                                                               \
    return PMPI_##name arguments;                                                                  \
  }

REPLACE(Isend,
        (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
         MPI_Request *request),
        (buffer, count, type, peer, tag, comm, request))
REPLACE(Irecv,
        (void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
         MPI_Request *request),
        (buffer, count, type, peer, tag, comm, request))
REPLACE(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
REPLACE(Get_elements_x, (const MPI_Status *status, MPI_Datatype type, MPI_Count *count),
        (status, type, count))
REPLACE(Get_count, (const MPI_Status *status, MPI_Datatype type, int *count), (status, type, count))
REPLACE(Cancel, (MPI_Request * request), (request))
REPLACE(Request_free, (MPI_Request * request), (request))
REPLACE(Comm_get_attr, (MPI_Comm comm, int key, void *value, int *flag), (comm, key, value, flag))
REPLACE(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), (comm, handler))
REPLACE(Allgather,
        (const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
         MPI_Datatype receive_type, MPI_Comm comm),
        (send, send_count, send_type, receive, receive_count, receive_type, comm))
REPLACE(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
REPLACE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
REPLACE(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
        (comm, group, tag, made))
REPLACE(Comm_free, (MPI_Comm * comm), (comm))
REPLACE(Comm_group, (MPI_Comm comm, MPI_Group *group), (comm, group))
REPLACE(Group_incl, (MPI_Group all, int count, const int *ranks, MPI_Group *group),
        (all, count, ranks, group))
REPLACE(Group_free, (MPI_Group * group), (group))
REPLACE(Comm_rank, (MPI_Comm comm, int *rank), (comm, rank))
REPLACE(Comm_size, (MPI_Comm comm, int *size), (comm, size))
REPLACE(Comm_test_inter, (MPI_Comm comm, int *flag), (comm, flag))
REPLACE(Initialized, (int *flag), (flag))
REPLACE(Finalized, (int *flag), (flag))
REPLACE(Query_thread, (int *level), (level))

/* Make one over `mpi_comm`, use it and a part of it, and end both. */
static lcomm_status use(MPI_Comm mpi_comm) {
  static float values[70000];
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL, *part = NULL;
  config.policy = "net=int8";
  config.transport = "mpi";
  config.nodes = 2;
  lcomm_status status = lcomm_create_mpi(mpi_comm, &config, &comm);
  if (status == LCOMM_OK) {
    config.nodes = 1;
    status = lcomm_split(comm, lcomm_rank(comm) % 2, 0, &config, &part);
  }
  status = status == LCOMM_OK
               ? lcomm_allreduce(comm, values, values, 70000, LCOMM_FLOAT32, LCOMM_SUM)
               : status;
  status = status == LCOMM_OK ? lcomm_barrier(part) : status;
  status = status == LCOMM_OK ? lcomm_destroy(part) : status;
  return status == LCOMM_OK ? lcomm_destroy(comm) : status;
}

static void no_call_of_libcomm_goes_through_ordinary_functions(void) {
  seen = 0;
  looking = true;
  lcomm_status status = use(MPI_COMM_WORLD);
  (void)lcomm_mpi_allows_threads();
  looking = false;
  require(status == LCOMM_OK, "%s: %s", lcomm_status_name(status), lcomm_last_error(NULL));
  require(seen == 0, "%d calls of libcomm were seen", seen);
  looking = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
  looking = false;
  require(seen == 1, "this program's own call was not seen");
}

/* ----------------------------------------------------------------- attributes */

static int copied, deleted;

static int count_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
  (void)comm, (void)key, (void)extra;
  copied++;
  *(void **)out = in;
  *flag = 1;
  return MPI_SUCCESS;
}

static int count_delete(MPI_Comm comm, int key, void *value, void *extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  deleted++;
  return MPI_SUCCESS;
}

static void attributes_of_the_program_are_left_alone(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_keyval(count_copy, count_delete, &key, NULL);
  MPI_Comm_set_attr(comm, key, &key);
  lcomm_status status = use(comm);
  require(status == LCOMM_OK, "%s: %s", lcomm_status_name(status), lcomm_last_error(NULL));
  require(copied == 0 && deleted == 0, "%d copied, %d deleted", copied, deleted);
  MPI_Comm_free(&comm);
  require(deleted == 1, "%d deleted", deleted);
  MPI_Comm_free_keyval(&key);
}

static const mpi_property properties[] = {
    PROPERTY(no_call_of_libcomm_goes_through_ordinary_functions),
    PROPERTY(attributes_of_the_program_are_left_alone),
};
RUN_PROPERTIES(mpi_property_main, properties)
