/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program as NCCL's manual shows them, of NCCL's and CUDA's functions alone:
 *
 *   nccl_program devices          one process with all devices, ncclCommInitAll and groups
 *   nccl_program RANK RANKS FILE  a process for each device; rank 0 leaves the id in FILE
 *
 * Each rank averages a million floats and prints how far the result is from the exact one. */

#include "tests/interpose/nccl/nccl_client.h"

enum { COUNT = 1 << 20, DEVICES_MAX = 8 };

typedef struct rank_data {
  ncclComm_t comm;
  cudaStream_t stream;
  float *from, *to;
} rank_data;

static float value_of(int rank, int i) {
  return (float)((i * 37 + rank * 11) % 1009) / 64;
}

static void open_rank(rank_data *it, int rank, int device) {
  float *values = malloc(COUNT * sizeof *values);
  if (!values) {
    exit(1);
  }
  for (int i = 0; i < COUNT; i++) {
    values[i] = value_of(rank, i);
  }
  CUDA(cudaSetDevice(device));
  CUDA(cudaStreamCreate(&it->stream));
  CUDA(cudaMalloc((void **)&it->from, COUNT * sizeof(float)));
  CUDA(cudaMalloc((void **)&it->to, COUNT * sizeof(float)));
  CUDA(cudaMemcpy(it->from, values, COUNT * sizeof(float), cudaMemcpyHostToDevice));
  free(values);
}

static void average(const rank_data *it) {
  NCCL(ncclAllReduce(it->from, it->to, COUNT, ncclFloat32, ncclAvg, it->comm, it->stream));
}

static void print_result(const rank_data *it, int rank, int ranks) {
  float *values = malloc(COUNT * sizeof *values);
  bool is_exact = true, is_near = true;
  CUDA(cudaStreamSynchronize(it->stream));
  if (!values) {
    exit(1);
  }
  CUDA(cudaMemcpy(values, it->to, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    double error = (double)values[i];
    for (int r = 0; r < ranks; r++) {
      error -= (double)value_of(r, i) / ranks;
    }
    is_exact = is_exact && error < 1e-5 && error > -1e-5;
    is_near = is_near && error < 0.2 && error > -0.2;
  }
  printf("rank %d of %d: %s\n", rank, ranks, is_exact ? "exact" : is_near ? "near" : "wrong");
  free(values);
}

static void close_rank(const rank_data *it) {
  NCCL(ncclCommDestroy(it->comm));
  CUDA(cudaStreamDestroy(it->stream));
  CUDA(cudaFree(it->from));
  CUDA(cudaFree(it->to));
}

static void work_with_all_devices(void) {
  rank_data all[DEVICES_MAX] = {{.comm = NULL}};
  ncclComm_t comms[DEVICES_MAX] = {NULL};
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  devices = devices < DEVICES_MAX ? devices : DEVICES_MAX;
  NCCL(ncclCommInitAll(comms, devices, NULL));
  for (int i = 0; i < devices; i++) {
    all[i].comm = comms[i];
    open_rank(&all[i], i, i);
  }
  NCCL(ncclGroupStart());
  for (int i = 0; i < devices; i++) {
    average(&all[i]);
  }
  NCCL(ncclGroupEnd());
  for (int i = 0; i < devices; i++) {
    CUDA(cudaSetDevice(i));
    print_result(&all[i], i, devices);
    close_rank(&all[i]);
  }
}

int main(int argc, char **argv) {
  rank_data mine = {.comm = NULL};
  if (argc == 2 && strcmp(argv[1], "devices") == 0) {
    work_with_all_devices();
    return 0;
  }
  if (argc != 4) {
    printf("usage: nccl_program devices | RANK RANKS FILE\n");
    return 2;
  }
  int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  open_rank(&mine, rank, 0);
  NCCL(ncclCommInitRank(&mine.comm, ranks, share_id(rank, argv[3]), rank));
  average(&mine);
  print_result(&mine, rank, ranks);
  close_rank(&mine);
  return 0;
}
