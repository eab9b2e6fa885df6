/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* All-gather, even and uneven, all-to-all and broadcast: of every type, in place
 * or not, every bit is kept. */

#include "tests/api/call_model.h"

enum { SEGMENT_MAX = 2051, BYTES_MAX = SEGMENT_MAX * MODEL_RANKS * 8 };

static const uint64_t counts[] = {0, 1, 3, 130, SEGMENT_MAX};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static _Alignas(8) uint8_t send[BYTES_MAX], receive[BYTES_MAX], wanted[BYTES_MAX];

typedef struct shape {
  lcomm_comm *comm;
  lcomm_dtype dtype;
  size_t element;
  uint64_t count;
  int layout;
} shape;

static void check(const shape *it, const char *name, lcomm_status status, const uint8_t *result,
                  uint64_t count) {
  const char *type = lcomm_dtype_name(it->dtype);
  unsigned long long n = it->count;
  require(status == LCOMM_OK, "%s of %llu %s, layout %d: %s", name, n, type, it->layout,
          lcomm_last_error(it->comm));
  require(memcmp(result, wanted, count * it->element) == 0, "%s of %llu %s, layout %d is wrong",
          name, n, type, it->layout);
}

static void for_all_shapes(void (*visit)(const shape *it)) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=topk:0.01 node=int8 min=1", layout);
    for (int i = 0; comm && i < MODEL_TYPES * COUNTS; i++) {
      lcomm_dtype dtype = model_types[i / COUNTS];
      shape it = {comm, dtype, lcomm_dtype_size(dtype), counts[i % COUNTS], layout};
      visit(&it);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

/* -------------------------------------------------------------- all-gather */

static void gather(const shape *it) {
  uint64_t whole = it->count * (uint64_t)mpi_size;
  size_t mine = it->count * (uint64_t)mpi_rank * it->element;
  for (int rank = 0; rank < mpi_size; rank++) {
    model_bytes(wanted + it->count * (uint64_t)rank * it->element, it->element, rank, 0, it->count);
  }
  model_bytes(send, it->element, mpi_rank, 0, it->count);
  memset(receive, 0, whole * it->element);
  check(it, "all-gather", lcomm_allgather(it->comm, send, receive, it->count, it->dtype), receive,
        whole);
  memset(receive, 0, whole * it->element);
  memcpy(receive + mine, send, it->count * it->element);
  check(it, "all-gather in place",
        lcomm_allgather(it->comm, receive + mine, receive, it->count, it->dtype), receive, whole);
}

static void allgather_keeps_every_bit_of_every_type(void) {
  for_all_shapes(gather);
}

/* Parts of many sizes, some empty; the last rank's may be all there is. */
static uint64_t part_of(const shape *it, int rank) {
  if (it->count == 3) {
    return rank == mpi_size - 1 ? 977 : 0;
  }
  return it->count * (uint64_t)((rank + 1) % 3) / 2;
}

static void gather_unevenly(const shape *it) {
  uint64_t parts[MODEL_RANKS] = {0}, whole = 0, before = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    parts[rank] = part_of(it, rank);
    model_bytes(wanted + whole * it->element, it->element, rank, 0, parts[rank]);
    before = rank == mpi_rank ? whole : before;
    whole += parts[rank];
  }
  uint64_t mine = parts[mpi_rank];
  model_bytes(send, it->element, mpi_rank, 0, mine);
  memset(receive, 0, whole * it->element);
  check(it, "uneven all-gather",
        lcomm_allgatherv(it->comm, mine > 0 ? send : NULL, receive, parts, it->dtype), receive,
        whole);
  memset(receive, 0, whole * it->element);
  uint8_t *place = receive + before * it->element;
  memcpy(place, send, mine * it->element);
  lcomm_request request;
  lcomm_status status = lcomm_iallgatherv(it->comm, place, receive, parts, it->dtype, &request);
  memset(parts, 0xff, sizeof(parts)); /* read during the call only */
  if (status == LCOMM_OK) {
    status = lcomm_wait(it->comm, &request);
  }
  check(it, "uneven all-gather in place", status, receive, whole);
}

static void uneven_allgather_keeps_every_bit_of_every_type(void) {
  for_all_shapes(gather_unevenly);
}

/* The sums of all counts are equal, the counts are not; a shape that is kept from
 * an earlier call must not be mistaken for this one. */
static void other_parts_are_another_shape(void) {
  uint64_t parts[MODEL_RANKS] = {0};
  lcomm_comm *comm = make_comm("net=none", 1);
  shape it = {comm, LCOMM_INT32, 4, 100, 0};
  for (int owner = 0; owner < 2 * mpi_size; owner++) {
    memset(parts, 0, sizeof(parts));
    parts[owner % mpi_size] = 100;
    model_bytes(send, 4, mpi_rank, (uint64_t)owner, 100);
    model_bytes(wanted, 4, owner % mpi_size, (uint64_t)owner, 100);
    check(&it, "lone part", lcomm_allgatherv(comm, send, receive, parts, LCOMM_INT32), receive,
          100);
  }
  lcomm_destroy(comm);
}

/* -------------------------------------------------------------- all-to-all */

static void exchange(const shape *it) {
  uint64_t whole = it->count * (uint64_t)mpi_size;
  for (int rank = 0; rank < mpi_size; rank++) {
    model_bytes(wanted + it->count * (uint64_t)rank * it->element, it->element, rank,
                it->count * (uint64_t)mpi_rank, it->count);
  }
  model_bytes(send, it->element, mpi_rank, 0, whole);
  memset(receive, 0, whole * it->element);
  check(it, "all-to-all", lcomm_alltoall(it->comm, send, receive, it->count, it->dtype), receive,
        whole);
  model_bytes(receive, it->element, mpi_rank, 0, whole);
  require(memcmp(send, receive, whole * it->element) == 0, "all-to-all changed the send buffer");
  check(it, "all-to-all in place", lcomm_alltoall(it->comm, send, send, it->count, it->dtype), send,
        whole);
}

static void alltoall_keeps_every_bit_of_every_type(void) {
  for_all_shapes(exchange);
}

/* Being in place is each rank's own affair. */
static void ranks_may_differ_in_being_in_place(void) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=none", layout);
    shape it = {comm, LCOMM_FLOAT16, 2, 130, layout};
    for (int round = 0; comm && round < 3; round++) {
      uint8_t *target = (mpi_rank + round) % 2 == 0 ? send : receive;
      for (int rank = 0; rank < mpi_size; rank++) {
        model_bytes(wanted + rank * 260, 2, rank, 130 * (uint64_t)mpi_rank, 130);
      }
      model_bytes(send, 2, mpi_rank, 0, 130 * (uint64_t)mpi_size);
      check(&it, "all-to-all", lcomm_alltoall(comm, send, target, 130, LCOMM_FLOAT16), target,
            130 * (uint64_t)mpi_size);
    }
    lcomm_destroy(comm);
  }
}

/* --------------------------------------------------------------- broadcast */

static void broadcast(const shape *it) {
  for (int root = 0; root < mpi_size; root += 2) {
    model_bytes(wanted, it->element, root, 5, it->count);
    model_bytes(receive, it->element, mpi_rank, 5, it->count);
    check(it, "broadcast", lcomm_broadcast(it->comm, receive, it->count, it->dtype, root), receive,
          it->count);
  }
}

static void broadcast_keeps_every_bit_of_every_type(void) {
  for_all_shapes(broadcast);
}

/* Types of two bytes need not begin at a multiple of four, nor any at one of
 * their own: nothing is computed. */
static void moved_bytes_may_lie_anywhere(void) {
  lcomm_comm *comm = make_comm("net=none", mpi_size > 2 ? 2 : 1);
  shape it = {comm, LCOMM_FLOAT64, 8, 777, 0};
  for (int rank = 0; rank < mpi_size; rank++) {
    model_bytes(wanted + rank * 777 * 8, 8, rank, 0, 777);
  }
  model_bytes(send + 3, 8, mpi_rank, 0, 777);
  check(&it, "all-gather", lcomm_allgather(comm, send + 3, receive + 1, 777, LCOMM_FLOAT64),
        receive + 1, 777 * (uint64_t)mpi_size);
  lcomm_destroy(comm);
}

/* In several chunks down the tree. */
static void long_broadcast_inside_a_node_reaches_all(void) {
  enum { COUNT = (3 << 20) / sizeof(uint32_t) + 77 };
  lcomm_comm *comm = make_comm("", 1);
  uint32_t *vector = malloc(COUNT * sizeof *vector);
  for (int root = 0; root < mpi_size; root += 2) {
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
      vector[i] = mpi_rank == root ? i * 2654435761u + (uint32_t)root : 0;
    }
    lcomm_status status = lcomm_broadcast(comm, vector, COUNT, LCOMM_INT32, root);
    require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
    for (uint32_t i = 0; i < COUNT; i++) {
      wrong += vector[i] != i * 2654435761u + (uint32_t)root;
    }
    require(wrong == 0, "root %d: %d elements are wrong", root, (int)wrong);
  }
  free(vector);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static const mpi_property properties[] = {
    PROPERTY(allgather_keeps_every_bit_of_every_type),
    PROPERTY(uneven_allgather_keeps_every_bit_of_every_type),
    PROPERTY(other_parts_are_another_shape),
    PROPERTY(alltoall_keeps_every_bit_of_every_type),
    PROPERTY(ranks_may_differ_in_being_in_place),
    PROPERTY(broadcast_keeps_every_bit_of_every_type),
    PROPERTY(long_broadcast_inside_a_node_reaches_all),
    PROPERTY(moved_bytes_may_lie_anywhere),
};
RUN_PROPERTIES(mpi_property_main, properties)
