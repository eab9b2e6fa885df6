/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's blocking constructors of communicators: what they make is looked at while all
 * of its ranks are in the same call. Communicators that come to be otherwise
 * (MPI_Comm_idup, spawned and connected ones) stay unknown, and MPI's. */

#include "libcomm/doors/mpi/comms.h"

static int adopted(int code, const MPI_Comm *made) {
  if (code == MPI_SUCCESS) {
    lcomm_door_adopt(*made);
  }
  return code;
}

LCOMM_DOOR_API int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_dup(comm, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_dup_with_info(comm, info, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_split(comm, color, key, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info,
                                       MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_split_type(comm, split_type, key, info, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_create(comm, group, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                                         MPI_Comm *newcomm) {
  return adopted(PMPI_Comm_create_group(comm, group, tag, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm) {
  return adopted(PMPI_Intercomm_merge(intercomm, high, newcomm), newcomm);
}

/* ---------------------------------------------------------------- topologies */

LCOMM_DOOR_API int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[],
                                   int reorder, MPI_Comm *newcomm) {
  return adopted(PMPI_Cart_create(comm, ndims, dims, periods, reorder, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm) {
  return adopted(PMPI_Cart_sub(comm, remain_dims, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[],
                                    int reorder, MPI_Comm *newcomm) {
  return adopted(PMPI_Graph_create(comm, nnodes, index, edges, reorder, newcomm), newcomm);
}

LCOMM_DOOR_API int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[],
                                         const int degrees[], const int destinations[],
                                         const int weights[], MPI_Info info, int reorder,
                                         MPI_Comm *newcomm) {
  return adopted(PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info,
                                        reorder, newcomm),
                 newcomm);
}

LCOMM_DOOR_API int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[],
                                                  const int sourceweights[], int outdegree,
                                                  const int destinations[], const int destweights[],
                                                  MPI_Info info, int reorder, MPI_Comm *newcomm) {
  return adopted(PMPI_Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree,
                                                 destinations, destweights, info, reorder, newcomm),
                 newcomm);
}
