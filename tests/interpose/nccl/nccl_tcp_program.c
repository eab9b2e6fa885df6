/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program as frameworks start them, of NCCL's and CUDA's functions alone:
 *
 *   nccl_tcp_program RANK RANKS FILE
 *
 * Rank 0 gives the id to the others over TCP; FILE has its port. Then the ranks split their
 * communicator in several ways, sum in all parts, and replay a sum that was captured. Each says
 * what is wrong, or that all is right. */

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/interpose/nccl/nccl_client.h"

enum { COUNT = 5000, REPLAYS = 3 };

typedef struct client {
  int rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  int *from, *to; /* on the device, COUNT elements each */
} client;

static void require(bool holds, const char *what) {
  if (!holds) {
    printf("wrong: %s\n", what);
    exit(1);
  }
}

/* ---------------------------------------------------------------------- TCP */

/* Its port is in the file, which is complete when it has its name. */
static int listen_here(const char *path) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof(address);
  char unready[4096];
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  require(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              listen(listener, 64) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &length) == 0,
          "rank 0 cannot listen");
  snprintf(unready, sizeof(unready), "%s.unready", path);
  FILE *file = fopen(unready, "w");
  require(file && fprintf(file, "%d", ntohs(address.sin_port)) > 0 && fclose(file) == 0 &&
              rename(unready, path) == 0,
          "the port cannot be written");
  return listener;
}

static ncclUniqueId send_id(int others, const char *path) {
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  int listener = listen_here(path);
  for (int i = 0; i < others; i++) {
    int connection = accept(listener, NULL, NULL);
    require(write(connection, &id, sizeof(id)) == sizeof(id), "the id cannot be sent");
    close(connection);
  }
  close(listener);
  return id;
}

static ncclUniqueId receive_id(const char *path) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  ncclUniqueId id = {{0}};
  FILE *file;
  int port = 0;
  while (!(file = fopen(path, "r"))) {
    usleep(1000);
  }
  require(fscanf(file, "%d", &port) == 1 && fclose(file) == 0, "there is no port");
  address.sin_port = htons((uint16_t)port);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  require(connection >= 0 &&
              connect(connection, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              recv(connection, &id, sizeof(id), MSG_WAITALL) == sizeof(id),
          "the id cannot be received");
  close(connection);
  return id;
}

/* ------------------------------------------------------------------ the device */

static void look_at_device(const client *it) {
  cudaDeviceProp properties;
  cudaPointerAttributes attributes;
  size_t unused = 0, all = 0;
  void *function = NULL;
  int device = -1, status = -1;
  CUDA(cudaGetDevice(&device));
  CUDA(cudaGetDeviceProperties(&properties, device));
  CUDA(cudaMemGetInfo(&unused, &all));
  require(all == properties.totalGlobalMem && unused < all, "the memory of the device");
  CUDA(cudaPointerGetAttributes(&attributes, it->from));
  require(attributes.type == cudaMemoryTypeDevice && attributes.device == device,
          "where device memory is");
  CUDA(cudaGetDriverEntryPoint("cuStreamBeginCapture", &function, 0, &status));
  require(function && status == cudaDriverEntryPointSuccess, "a function of the driver");
  CUDA(cudaGetDriverEntryPoint("cuNothing", &function, 0, &status));
  require(!function && status == cudaDriverEntryPointSymbolNotFound, "no function of the driver");
}

static void open_device(client *it) {
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(it->rank % devices));
  CUDA(cudaStreamCreateWithFlags(&it->stream, cudaStreamNonBlocking));
  CUDA(cudaMallocAsync((void **)&it->from, COUNT * sizeof(int), it->stream));
  CUDA(cudaMallocAsync((void **)&it->to, COUNT * sizeof(int), it->stream));
  CUDA(cudaStreamSynchronize(it->stream));
}

static void close_device(const client *it) {
  CUDA(cudaFreeAsync(it->from, it->stream));
  CUDA(cudaFreeAsync(it->to, it->stream));
  CUDA(cudaStreamSynchronize(it->stream));
  CUDA(cudaStreamDestroy(it->stream));
}

/* ------------------------------------------------------------------------ sums */

static void give(const client *it, int value) {
  int values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = value + i;
  }
  CUDA(cudaMemcpyAsync(it->from, values, sizeof(values), cudaMemcpyHostToDevice, it->stream));
  CUDA(cudaStreamSynchronize(it->stream));
}

static void is_sum(const client *it, int sum, int ranks, const char *what) {
  int values[COUNT];
  CUDA(cudaMemcpyAsync(values, it->to, sizeof(values), cudaMemcpyDeviceToHost, it->stream));
  CUDA(cudaStreamSynchronize(it->stream));
  for (int i = 0; i < COUNT; i++) {
    require(values[i] == sum + ranks * i, what);
  }
}

static void sum_in(const client *it, ncclComm_t comm) {
  NCCL(ncclAllReduce(it->from, it->to, COUNT, ncclInt32, ncclSum, comm, it->stream));
}

/* Ranks `first`, first + step, ... have given 10 times their rank. */
static void sum_of_part(const client *it, ncclComm_t part, int first, int step, const char *what) {
  int sum = 0, ranks = 0, size = 0;
  for (int rank = first; rank < it->ranks; rank += step) {
    sum += 10 * rank;
    ranks++;
  }
  NCCL(ncclCommCount(part, &size));
  require(size == ranks, what);
  give(it, 10 * it->rank);
  sum_in(it, part);
  is_sum(it, sum, ranks, what);
}

/* ---------------------------------------------------------------------- splits */

static int rank_in(ncclComm_t comm) {
  int rank = -1;
  NCCL(ncclCommUserRank(comm, &rank));
  return rank;
}

static ncclComm_t split(ncclComm_t comm, int color, int key) {
  ncclComm_t part = (ncclComm_t)-1; /* NOLINT(performance-no-int-to-ptr) */
  NCCL(ncclCommSplit(comm, color, key, &part, NULL));
  return part;
}

/* Even and odd ranks, in their order and in the opposite one. */
static void split_in_two(const client *it) {
  int first = it->rank % 2, size = (it->ranks - first + 1) / 2;
  ncclComm_t part = split(it->comm, first, it->rank);
  ncclComm_t opposite = split(it->comm, first, -it->rank);
  require(rank_in(part) == it->rank / 2, "the order of a part");
  require(rank_in(opposite) == size - 1 - it->rank / 2, "the opposite order of a part");
  sum_of_part(it, opposite, first, 2, "the sum of a part in the opposite order");
  sum_of_part(it, part, first, 2, "the sum of a part");
  ncclComm_t again = split(opposite, 0, it->rank);
  NCCL(ncclCommDestroy(opposite));
  sum_of_part(it, again, first, 2, "the sum of a part of a part");
  require(rank_in(again) == it->rank / 2, "the order of a part of a part");
  NCCL(ncclCommDestroy(again));
  NCCL(ncclCommDestroy(part));
}

/* All but rank 0, in the opposite order. */
static void split_off(const client *it) {
  bool takes_part = it->rank > 0;
  ncclComm_t part = split(it->comm, takes_part ? 7 : NCCL_SPLIT_NOCOLOR, it->ranks - it->rank);
  require(takes_part == (part != NULL), "who has a part");
  if (part) {
    require(rank_in(part) == it->ranks - 1 - it->rank, "the order without rank 0");
    sum_of_part(it, part, 1, 1, "the sum without rank 0");
    NCCL(ncclCommDestroy(part));
  }
  sum_of_part(it, it->comm, 0, 1, "the sum of all behind that");
}

/* ---------------------------------------------------------------------- replays */

static void replay(const client *it) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t executable = NULL;
  CUDA(cudaStreamBeginCapture(it->stream, cudaStreamCaptureModeThreadLocal));
  sum_in(it, it->comm);
  CUDA(cudaStreamEndCapture(it->stream, &graph));
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  for (int i = 0; i < REPLAYS; i++) {
    give(it, it->rank + i);
    CUDA(cudaGraphLaunch(executable, it->stream));
    is_sum(it, it->ranks * (it->ranks - 1) / 2 + i * it->ranks, it->ranks, "a replayed sum");
  }
  CUDA(cudaGraphExecDestroy(executable));
}

int main(int argc, char **argv) {
  if (argc != 4) {
    printf("usage: nccl_tcp_program RANK RANKS FILE\n");
    return 2;
  }
  client it = {.rank = atoi(argv[1]), .ranks = atoi(argv[2])};
  open_device(&it);
  look_at_device(&it);
  ncclUniqueId id = it.rank == 0 ? send_id(it.ranks - 1, argv[3]) : receive_id(argv[3]);
  NCCL(ncclCommInitRank(&it.comm, it.ranks, id, it.rank));
  sum_of_part(&it, it.comm, 0, 1, "the sum of all");
  split_in_two(&it);
  split_off(&it);
  replay(&it);
  NCCL(ncclCommFinalize(it.comm));
  NCCL(ncclCommDestroy(it.comm));
  close_device(&it);
  printf("right\n");
  return 0;
}
