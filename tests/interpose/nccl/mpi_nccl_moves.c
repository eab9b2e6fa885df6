/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 6 7 8 */

/* Every call of NCCL that moves data, with every type and root, and messages between two ranks. */

#include "tests/interpose/nccl/nccl_values.h"

/* Differs by rank and place, in any type. */
static double mark(int rank, size_t place) {
  return (double)(rank * 7 + (int)(place % 13) + 1);
}

static const size_t counts[] = {0, 3, 2003};

enum { COUNTS = 3 };

typedef void (*try_move)(program *it, const struct value_type *type, size_t count);

static void try_all(try_move function) {
  program it = begin_with_stream();
  for (int t = 0; t < TYPES; t++) {
    for (int n = 0; n < COUNTS; n++) {
      function(&it, &value_types[t], counts[n]);
    }
  }
  end_program(&it);
}

static unsigned char *part(unsigned char *all, const struct value_type *type, size_t count,
                           int rank) {
  return all + (size_t)rank * count * type->size;
}

static void try_all_gather(program *it, const struct value_type *type, size_t count) {
  unsigned char *mine = part(it->to, type, count, mpi_rank);
  fill_values(it->from, type, mark, mpi_rank, 0, count);
  for (int in_place = 0; in_place < 2; in_place++) {
    fine(
        ncclAllGather(in_place ? mine : it->from, it->to, count, type->type, it->comm, it->stream));
    for (int rank = 0; rank < mpi_size; rank++) {
      holds_values("all-gather", part(it->to, type, count, rank), type, mark, rank, 0, count,
                   it->stream);
    }
  }
}

static void try_all_to_all(program *it, const struct value_type *type, size_t count) {
  fill_values(it->from, type, mark, mpi_rank, 0, count * (size_t)mpi_size);
  fine(ncclAlltoAll(it->from, it->to, count, type->type, it->comm, it->stream));
  for (int rank = 0; rank < mpi_size; rank++) {
    holds_values("all-to-all", part(it->to, type, count, rank), type, mark, rank,
                 count * (size_t)mpi_rank, count, it->stream);
  }
}

static void try_broadcasts(program *it, const struct value_type *type, size_t count) {
  for (int root = 0; root < mpi_size; root++) {
    fill_values(it->from, type, mark, mpi_rank, 0, count);
    fine(ncclBroadcast(it->from, it->to, count, type->type, root, it->comm, it->stream));
    holds_values("broadcast", it->to, type, mark, root, 0, count, it->stream);
    fine(ncclBcast(it->from, count, type->type, root, it->comm, it->stream));
    holds_values("bcast", it->from, type, mark, root, 0, count, it->stream);
  }
}

static void try_gather(program *it, const struct value_type *type, size_t count) {
  for (int root = 0; root < mpi_size; root++) {
    bool in_place = root % 2 == 1 && mpi_rank == root;
    unsigned char *from = in_place ? part(it->to, type, count, root) : it->from;
    fill_values(from, type, mark, mpi_rank, 0, count);
    fine(ncclGather(from, mpi_rank == root ? it->to : NULL, count, type->type, root, it->comm,
                    it->stream));
    for (int rank = 0; rank < mpi_size && mpi_rank == root; rank++) {
      holds_values("gather", part(it->to, type, count, rank), type, mark, rank, 0, count,
                   it->stream);
    }
  }
}

static void try_scatter(program *it, const struct value_type *type, size_t count) {
  for (int root = 0; root < mpi_size; root++) {
    bool in_place = root % 2 == 1 && mpi_rank == root;
    fill_values(it->from, type, mark, mpi_rank, 0, count * (size_t)mpi_size);
    unsigned char *to = in_place ? part(it->from, type, count, root) : it->to;
    fine(ncclScatter(mpi_rank == root ? it->from : NULL, to, count, type->type, root, it->comm,
                     it->stream));
    holds_values("scatter", to, type, mark, root, count * (size_t)mpi_rank, count, it->stream);
  }
}

static void every_all_gather(void) {
  try_all(try_all_gather);
}

static void every_all_to_all(void) {
  try_all(try_all_to_all);
}

static void every_broadcast(void) {
  try_all(try_broadcasts);
}

static void every_gather(void) {
  try_all(try_gather);
}

static void every_scatter(void) {
  try_all(try_scatter);
}

/* --------------------------------------------------------- between two ranks */

/* In a ring, of one byte to several pieces, in every type. */
static void groups_of_a_send_and_a_receive(void) {
  static const size_t sizes[] = {0, 8, 4072, 4080, 70000, 1 << 20, VALUES_MAX};
  program it = begin_with_stream();
  int right = (mpi_rank + 1) % mpi_size, left = (mpi_rank + mpi_size - 1) % mpi_size;
  for (size_t s = 0; s < sizeof(sizes) / sizeof *sizes; s++) {
    for (int t = 0; t<TYPES; t += sizes[s]> 70000 ? 5 : 1) {
      const struct value_type *type = &value_types[t];
      size_t count = sizes[s] / type->size;
      fill_values(it.from, type, mark, mpi_rank, s, count);
      cuda(cudaMemsetAsync(it.to, 0, VALUES_MAX, it.stream));
      fine(ncclGroupStart());
      fine(ncclRecv(it.to, count, type->type, left, it.comm, it.stream));
      fine(ncclSend(it.from, count, type->type, right, it.comm, it.stream));
      fine(ncclGroupEnd());
      holds_values("from the left", it.to, type, mark, left, s, count, it.stream);
    }
  }
  end_program(&it);
}

/* Each rank to each, itself too, several messages of other lengths; receives in another order. */
static void all_pairs_with_several_messages_each(void) {
  enum { MESSAGES = 4, ROOM_EACH = 8192 };
  static const size_t lengths[MESSAGES] = {1, 4095, 2, 600};
  const struct value_type *type = &value_types[6];
  program it = begin_with_stream();
  fill_values(it.from, type, mark, mpi_rank, 0, ROOM_EACH);
  for (int round = 0; round < 3; round++) {
    fine(ncclGroupStart());
    for (int peer = mpi_size - 1; peer >= 0; peer--) {
      for (int m = 0; m < MESSAGES; m++) {
        unsigned char *to = it.to + (size_t)(peer * MESSAGES + m) * ROOM_EACH;
        fine(ncclRecv(to, lengths[m], type->type, peer, it.comm, it.stream));
        fine(ncclSend(it.from + 2 * m, lengths[m], type->type, (peer + round) % mpi_size, it.comm,
                      it.stream));
      }
    }
    fine(ncclGroupEnd());
    for (int peer = 0; peer < mpi_size; peer++) {
      for (int m = 0; m < MESSAGES; m++) {
        holds_values("message", it.to + (size_t)(peer * MESSAGES + m) * ROOM_EACH, type, mark, peer,
                     (size_t)m, lengths[m], it.stream);
      }
    }
  }
  end_program(&it);
}

/* Without groups: around a chain, between sums, on another stream than those. */
static void a_chain_between_sums(void) {
  const struct value_type *type = &value_types[2];
  cudaStream_t other = NULL;
  program it = begin_with_stream();
  cuda(cudaStreamCreate(&other));
  for (int round = 0; round < 10; round++) {
    int first = round % mpi_size, place = (mpi_rank - first + mpi_size) % mpi_size;
    fill_values(it.from, type, mark, first, (size_t)round, 5000);
    fine(ncclAllReduce(it.from, it.to, 100, ncclInt32, ncclMax, it.comm, other));
    if (place > 0) {
      cuda(cudaMemsetAsync(it.from, 0, 20000, it.stream));
      fine(ncclRecv(it.from, 5000, ncclInt32, (mpi_rank + mpi_size - 1) % mpi_size, it.comm,
                    it.stream));
    }
    if (place < mpi_size - 1) {
      fine(ncclSend(it.from, 5000, ncclInt32, (mpi_rank + 1) % mpi_size, it.comm, it.stream));
    }
    holds_values("at the end of the chain", it.from, type, mark, first, (size_t)round, 5000,
                 it.stream);
    cuda(cudaStreamSynchronize(other));
  }
  cuda(cudaStreamDestroy(other));
  end_program(&it);
}

/* Many sends that nobody has received yet hold no stream. */
static void sends_do_not_wait_for_receives(void) {
  enum { MANY = 100, EACH = 3000 };
  const struct value_type *type = &value_types[2];
  program it = begin_with_stream();
  int peer = mpi_rank ^ 1;
  bool has_peer = peer < mpi_size;
  for (int i = 0; i < MANY && has_peer; i++) {
    fill_values(it.from, type, mark, mpi_rank, (size_t)i, EACH);
    fine(ncclSend(it.from, EACH, ncclInt32, peer, it.comm, it.stream));
    cuda(cudaStreamSynchronize(it.stream));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MANY && has_peer; i++) {
    fine(ncclRecv(it.to, EACH, ncclInt32, peer, it.comm, it.stream));
    holds_values("one of many", it.to, type, mark, peer, (size_t)i, EACH, it.stream);
  }
  end_program(&it);
}

/* Nothing hangs: all ranks are told who sends what to whom. */
static void counts_that_differ_are_an_error_on_all_ranks(void) {
  program it = begin_with_stream();
  ncclResult_t error = ncclSuccess;
  MPI_Barrier(MPI_COMM_WORLD); /* a rank that is told of it in its init has no communicator */
  if (mpi_size > 1 && mpi_rank == 0) {
    fine(ncclSend(it.from, 9000, ncclInt32, 1, it.comm, it.stream));
  } else if (mpi_rank == 1) {
    fine(ncclRecv(it.to, 9001, ncclInt32, 0, it.comm, it.stream));
  }
  while (mpi_size > 1 && it.comm && error == ncclSuccess) {
    require(ncclCommGetAsyncError(it.comm, &error) == ncclSuccess, "it cannot be asked");
  }
  const char *sentence = ncclGetLastError(NULL);
  require(mpi_size == 1 || (error == ncclInvalidUsage && strstr(sentence, "sends 9000 int32")),
          "%d: %s", (int)error, sentence);
  cuda(cudaStreamSynchronize(it.stream));
  fine(ncclCommAbort(it.comm));
  it.comm = NULL;
  end_program(&it);
}

static void arguments_are_checked(void) {
  program it = begin_with_stream();
  int here = 7;
  refused(ncclSend(it.from, 1, ncclInt32, mpi_size, it.comm, it.stream), ncclInvalidArgument,
          "not a rank");
  refused(ncclRecv(it.to, 1, ncclInt32, -1, it.comm, it.stream), ncclInvalidArgument, "not a rank");
  refused(ncclSend(NULL, 1, ncclInt32, 0, it.comm, it.stream), ncclInvalidArgument, "NULL");
  refused(ncclSend(&here, 1, ncclInt32, 0, it.comm, it.stream), ncclInvalidArgument, "host memory");
  refused(ncclGather(it.from, it.to, 1, ncclInt32, mpi_size, it.comm, it.stream),
          ncclInvalidArgument, "no root");
  refused(ncclScatter(it.from, it.to, 1, (ncclDataType_t)40, 0, it.comm, it.stream),
          ncclInvalidArgument, "no type 40");
  refused(ncclSend(it.from, 1, ncclInt32, 0, NULL, it.stream), ncclInvalidArgument, "comm is NULL");
  end_program(&it);
}

static const mpi_property properties[] = {
    PROPERTY(every_all_gather),
    PROPERTY(every_all_to_all),
    PROPERTY(every_broadcast),
    PROPERTY(every_gather),
    PROPERTY(every_scatter),
    PROPERTY(groups_of_a_send_and_a_receive),
    PROPERTY(all_pairs_with_several_messages_each),
    PROPERTY(a_chain_between_sums),
    PROPERTY(sends_do_not_wait_for_receives),
    PROPERTY(arguments_are_checked),
    PROPERTY(counts_that_differ_are_an_error_on_all_ranks),
    PROPERTY(the_device_comes_to_an_end),
};

RUN_PROPERTIES(alone_main, properties)
