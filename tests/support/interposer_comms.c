/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/interposer_comms.h"

#include <stdlib.h>

#include "tests/support/interposer_property.h"

static MPI_Comm world(void) {
  return MPI_COMM_WORLD;
}

static MPI_Comm self(void) {
  return MPI_COMM_SELF;
}

static MPI_Comm split_by(int color, int key) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
  return comm;
}

/* ------------------------------------------------------------------- copies */

static MPI_Comm dup(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

static MPI_Comm idup(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return comm;
}

static MPI_Comm dup_with_info(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "a_hint", "of the program");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

static MPI_Comm dup_of_split(void) {
  MPI_Comm part = split_by(mpi_rank % 2, 0), comm = MPI_COMM_NULL;
  MPI_Comm_dup(part, &comm);
  MPI_Comm_free(&part);
  return comm;
}

/* -------------------------------------------------------------------- parts */

static MPI_Comm odd_and_even(void) {
  return split_by(mpi_rank % 2, 0);
}

static MPI_Comm reversed(void) {
  return split_by(0, -mpi_rank);
}

/* All of a posed node. */
static MPI_Comm halves(void) {
  return split_by(node_of(mpi_rank), 0);
}

static MPI_Comm some_take_no_part(void) {
  return split_by(mpi_rank % 3 == 1 ? MPI_UNDEFINED : 3, 0);
}

static MPI_Comm shared_memory(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -mpi_rank, MPI_INFO_NULL, &comm);
  return comm;
}

/* The world's ranks but for its last one, if there are others; in reversed order. */
static MPI_Group most_ranks(void) {
  int ranks[64], count = mpi_size > 1 ? mpi_size - 1 : 1;
  MPI_Group all, most;
  for (int i = 0; i < count && i < 64; i++) {
    ranks[i] = count - 1 - i;
  }
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, count, ranks, &most);
  MPI_Group_free(&all);
  return most;
}

static MPI_Comm create(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Group most = most_ranks();
  MPI_Comm_create(MPI_COMM_WORLD, most, &comm);
  MPI_Group_free(&most);
  return comm;
}

/* Called by the members alone. */
static MPI_Comm create_group(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Group most = most_ranks();
  int rank;
  MPI_Group_rank(most, &rank);
  if (rank != MPI_UNDEFINED) {
    MPI_Comm_create_group(MPI_COMM_WORLD, most, 17, &comm);
  }
  MPI_Group_free(&most);
  return comm;
}

/* --------------------------------------------------------------- topologies */

static MPI_Comm cart(void) {
  int sizes[2] = {0, 0}, periods[2] = {1, 0};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dims_create(mpi_size, 2, sizes);
  MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &comm);
  return comm;
}

/* One row of the grid, which lies across the nodes when there are several columns. */
static MPI_Comm cart_sub(void) {
  int keep[2] = {1, 0};
  MPI_Comm grid = cart(), comm = MPI_COMM_NULL;
  MPI_Cart_sub(grid, keep, &comm);
  MPI_Comm_free(&grid);
  return comm;
}

/* A ring. */
static MPI_Comm graph(void) {
  int ends[64], next[64];
  MPI_Comm comm = MPI_COMM_NULL;
  for (int i = 0; i < mpi_size; i++) {
    ends[i] = i + 1;
    next[i] = (i + 1) % mpi_size;
  }
  MPI_Graph_create(MPI_COMM_WORLD, mpi_size, ends, next, 0, &comm);
  return comm;
}

static MPI_Comm dist_graph(void) {
  int to = (mpi_rank + 1) % mpi_size, one = 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &mpi_rank, &one, &to, &one, MPI_INFO_NULL, 0, &comm);
  return comm;
}

static MPI_Comm dist_graph_adjacent(void) {
  int from = (mpi_rank + mpi_size - 1) % mpi_size, to = (mpi_rank + 1) % mpi_size, one = 1;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &one, 1, &to, &one, MPI_INFO_NULL, 0,
                                 &comm);
  return comm;
}

/* ---------------------------------------------------------- between groups */

static MPI_Comm inter_between(MPI_Comm local, int other_leader) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, other_leader, 29, &comm);
  MPI_Comm_free(&local);
  return comm;
}

static MPI_Comm inter(void) {
  int odd = mpi_rank % 2;
  return mpi_size > 1 ? inter_between(split_by(odd, 0), odd ? 0 : 1) : MPI_COMM_NULL;
}

static MPI_Comm inter_of_nodes(void) {
  int leaders[2] = {0, (mpi_size + 1) / 2}, mine = node_of(mpi_rank);
  return mpi_size > 1 ? inter_between(split_by(mine, 0), leaders[!mine]) : MPI_COMM_NULL;
}

static MPI_Comm inter_dup(void) {
  MPI_Comm first = inter(), comm = MPI_COMM_NULL;
  if (first != MPI_COMM_NULL) {
    MPI_Comm_dup(first, &comm);
    MPI_Comm_free(&first);
  }
  return comm;
}

/* Parts of both groups, still apart. */
static MPI_Comm inter_split(void) {
  MPI_Comm first = mpi_size > 3 ? inter() : MPI_COMM_NULL, comm = MPI_COMM_NULL;
  if (first != MPI_COMM_NULL) {
    MPI_Comm_split(first, mpi_rank / 2 % 2, 0, &comm);
    MPI_Comm_free(&first);
  }
  return comm;
}

/* The odd ranks first. */
static MPI_Comm merged(void) {
  MPI_Comm first = inter(), comm = MPI_COMM_NULL;
  if (first != MPI_COMM_NULL) {
    MPI_Intercomm_merge(first, mpi_rank % 2 == 0, &comm);
    MPI_Comm_free(&first);
  }
  return comm;
}

static MPI_Comm dup_of_dup(void) {
  MPI_Comm first = dup(), comm = MPI_COMM_NULL;
  MPI_Comm_dup(first, &comm);
  MPI_Comm_free(&first);
  return comm;
}

const interposer_comm_kind interposer_comm_kinds[INTERPOSER_COMM_KINDS] = {
    {"world", world},
    {"self", self},
    {"dup", dup},
    {"dup of dup", dup_of_dup},
    {"idup", idup},
    {"dup_with_info", dup_with_info},
    {"split in odd and even", odd_and_even},
    {"dup of split", dup_of_split},
    {"split reversed", reversed},
    {"split in nodes", halves},
    {"split without some", some_take_no_part},
    {"split_type", shared_memory},
    {"create", create},
    {"create_group", create_group},
    {"cart_create", cart},
    {"cart_sub", cart_sub},
    {"graph_create", graph},
    {"dist_graph_create", dist_graph},
    {"dist_graph_create_adjacent", dist_graph_adjacent},
    {"intercomm_create", inter},
    {"intercomm_create of nodes", inter_of_nodes},
    {"dup of intercomm", inter_dup},
    {"split of intercomm", inter_split},
    {"intercomm_merge", merged},
};

/* -------------------------------------------------------------- what they are */

bool interposer_comm_is_inter(MPI_Comm comm) {
  int between = 0;
  PMPI_Comm_test_inter(comm, &between);
  return between;
}

int interposer_comm_size(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

int interposer_comm_nodes(MPI_Comm comm) {
  int on_node[2] = {0, 0}, size, there;
  MPI_Group group, all;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Group_size(group, &size);
  for (int rank = 0; rank < size; rank++) {
    PMPI_Group_translate_ranks(group, 1, &rank, all, &there);
    on_node[node_of(there)] = 1;
  }
  PMPI_Group_free(&group);
  PMPI_Group_free(&all);
  return on_node[0] + on_node[1];
}

void interposer_comm_free(MPI_Comm *comm) {
  if (*comm != MPI_COMM_WORLD && *comm != MPI_COMM_SELF && *comm != MPI_COMM_NULL) {
    MPI_Comm_free(comm);
  }
}
