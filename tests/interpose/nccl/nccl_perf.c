/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* NCCL's calls in a row of sizes, checked and timed, in the manner of nccl-tests, with whatever
 * NCCL the process has:
 *
 *   nccl_perf [OPTION...] FILE    as a rank of a launcher; rank 0 leaves the id in FILE
 *
 * -b, -e BYTES: the first and the last size; -f N: from one to the next; -n N: timed calls; -d
 * TYPE: float, double, bfloat16 or int32; -o NAME: one call only; -r ERROR: results may be off by
 * this share of the largest value, for policies that are lossy. Bandwidths are those of nccl-tests:
 * of the size, and of a link that carries what this call has to move. Exit status 1: a result is
 * wrong, or ranks have different bits. */

#include <math.h>
#include <time.h>

#include "tests/interpose/nccl/nccl_perf_calls.h"

/* ---------------------------------------------------------------- one size */

typedef struct places {
  char *send, *receive;
} places;

static places places_of(const run *it, const call *made, bool in_place) {
  size_t mine = in_place ? (size_t)it->rank * it->each * it->as->size : 0;
  return (places){(in_place ? it->to : it->from) + (made->in_place == FROM_PART ? mine : 0),
                  it->to + (made->in_place == TO_PART ? mine : 0)};
}

static void fill(const run *it, const call *made, char *send) {
  size_t given = made->in_place == FROM_PART ? it->each : it->count;
  for (size_t i = 0; i < given; i++) {
    put(it->as, value_of(it->rank, i), it->host + i * it->as->size);
  }
  CUDA(cudaMemcpy(send, it->host, given * it->as->size, cudaMemcpyHostToDevice));
}

/* Seconds of one call, the mean of some that are in flight together. */
static double time_of(const run *it, const call *made, places at) {
  struct timespec begin, end;
  NCCL(made->make(it, at.send, at.receive)); /* the first one makes a plan */
  CUDA(cudaStreamSynchronize(it->stream));
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < it->times; i++) {
    NCCL(made->make(it, at.send, at.receive));
  }
  CUDA(cudaStreamSynchronize(it->stream));
  clock_gettime(CLOCK_MONOTONIC, &end);
  double passed = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
  return passed / it->times;
}

/* The largest error, as a share of the largest value. */
static double error_of(const run *it, const call *made, const char *receive, size_t results) {
  double error = 0, largest = 1;
  CUDA(cudaMemcpy(it->host, receive, results * it->as->size, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < results; i++) {
    double wanted = made->wanted(it, i);
    double off = fabs(get(it->as, it->host + i * it->as->size) - wanted);
    error = off <= error ? error : off >= 0 ? off : (double)INFINITY; /* no number */
    largest = wanted > largest ? wanted : largest;
  }
  return error / largest;
}

/* Of a result that all ranks have: its hash is the least and the greatest of all hashes. */
static bool is_equal_everywhere(const run *it, size_t bytes) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < bytes; i++) {
    hash = (hash ^ (unsigned char)it->host[i]) * 1099511628211u;
  }
  int64_t mine[2] = {(int64_t)(hash >> 1), -(int64_t)(hash >> 1)}, most[2];
  CUDA(cudaMemcpy(it->from, mine, sizeof(mine), cudaMemcpyHostToDevice));
  NCCL(ncclAllReduce(it->from, it->from, 2, ncclInt64, ncclMax, it->comm, it->stream));
  CUDA(cudaStreamSynchronize(it->stream));
  CUDA(cudaMemcpy(most, it->from, sizeof(most), cudaMemcpyDeviceToHost));
  return most[0] == -most[1];
}

/* False: a result is wrong. */
static bool try_call(const run *it, const call *made, size_t bytes, bool in_place) {
  places at = places_of(it, made, in_place);
  size_t results = made->results(it);
  fill(it, made, at.send);
  double seconds = time_of(it, made, at);
  fill(it, made, at.send);
  NCCL(made->make(it, at.send, at.receive));
  CUDA(cudaStreamSynchronize(it->stream));
  double error = error_of(it, made, at.receive, results);
  bool is_equal = made->make != all_reduce || is_equal_everywhere(it, it->count * it->as->size);
  bool is_right = error <= it->error && is_equal;
  if (it->rank == 0 || !is_right) {
    double speed = (double)bytes / seconds / 1e9;
    printf("%-14s %12zu %3s %12.1f %9.3f %9.3f %10.3g%s%s\n", made->name, bytes,
           in_place ? "yes" : "no", seconds * 1e6, speed, speed * made->moved(it->ranks), error,
           is_right ? "" : "  WRONG", is_equal ? "" : ", ranks have different bits");
    fflush(stdout);
  }
  return is_right;
}

static int try_all(run *it) {
  int wrong = 0;
  for (size_t c = 0; c < sizeof(calls) / sizeof *calls; c++) {
    if (it->only && strcmp(it->only, calls[c].name) != 0) {
      continue;
    }
    for (size_t bytes = it->first_bytes; bytes <= it->last_bytes; bytes *= it->factor) {
      it->count = bytes / it->as->size;
      it->each = it->count / (size_t)it->ranks;
      wrong += !try_call(it, &calls[c], bytes, false);
      wrong += calls[c].in_place != NOT_IN_PLACE && !try_call(it, &calls[c], bytes, true);
    }
  }
  return wrong;
}

/* ----------------------------------------------------------------- the process */

/* What a launcher says: torchrun, Open MPI, MPICH. */
static int number_of(const char *one, const char *two, const char *three, int otherwise) {
  const char *text = getenv(one);
  text = text ? text : getenv(two);
  text = text ? text : getenv(three);
  return text ? atoi(text) : otherwise;
}

static bool read_element(run *it, const char *name) {
  for (size_t i = 0; i < sizeof(elements) / sizeof *elements; i++) {
    if (strcmp(elements[i].name, name) == 0) {
      it->as = &elements[i];
      return true;
    }
  }
  return false;
}

static bool read_option(run *it, int option) {
  size_t number = option == 'd' || option == 'o' || option == 'r' ? 0 : strtoull(optarg, NULL, 10);
  switch (option) {
  case 'b':
    it->first_bytes = number;
    return number > 0;
  case 'e':
    it->last_bytes = number;
    return number > 0;
  case 'f':
    it->factor = number;
    return number > 1;
  case 'n':
    it->times = (int)number;
    return number > 0;
  case 'd':
    return read_element(it, optarg);
  case 'o':
    it->only = optarg;
    return true;
  case 'r':
    it->error = atof(optarg);
    return true;
  default:
    return false;
  }
}

static bool read_command_line(run *it, int argc, char **argv) {
  int option;
  while ((option = getopt(argc, argv, "b:e:f:n:d:o:r:")) != -1) {
    if (!read_option(it, option)) {
      return false;
    }
  }
  it->path = optind + 1 == argc ? argv[optind] : NULL;
  return it->path != NULL && it->first_bytes <= it->last_bytes;
}

/* Ranks take the devices in turn. */
static void begin(run *it) {
  enum { LEAST = 64 }; /* for hashes */
  size_t bytes = it->last_bytes > LEAST ? it->last_bytes : LEAST;
  int devices = 0, version = 0;
  CUDA(cudaGetDeviceCount(&devices));
  CUDA(cudaSetDevice(it->rank % (devices > 0 ? devices : 1)));
  CUDA(cudaStreamCreateWithFlags(&it->stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc((void **)&it->from, bytes));
  CUDA(cudaMalloc((void **)&it->to, bytes));
  it->host = malloc(bytes);
  if (!it->host) {
    printf("there is no memory\n");
    exit(1);
  }
  NCCL(ncclGetVersion(&version));
  NCCL(ncclCommInitRank(&it->comm, it->ranks, share_id(it->rank, it->path), it->rank));
  if (it->rank == 0) {
    printf("# NCCL %d, %d ranks, %d devices, %s\n# %-12s %12s %3s %12s %9s %9s %10s\n", version,
           it->ranks, devices, it->as->name, "call", "bytes", "in", "us", "alg GB/s", "bus GB/s",
           "error");
  }
}

static void end(run *it) {
  NCCL(ncclCommDestroy(it->comm));
  CUDA(cudaStreamDestroy(it->stream));
  CUDA(cudaFree(it->from));
  CUDA(cudaFree(it->to));
  free(it->host);
}

int main(int argc, char **argv) {
  run it = {.as = &elements[0],
            .first_bytes = 8,
            .last_bytes = 1 << 24,
            .factor = 32,
            .times = 5,
            .rank = number_of("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", 0),
            .ranks = number_of("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", 1)};
  if (!read_command_line(&it, argc, argv)) {
    printf("usage: nccl_perf [-b BYTES] [-e BYTES] [-f N] [-n N] [-d TYPE] [-o NAME] [-r ERROR] "
           "FILE\n");
    return 2;
  }
  begin(&it);
  int wrong = try_all(&it);
  end(&it);
  if (it.rank == 0 || wrong > 0) {
    printf("# rank %d: %d results are wrong\n", it.rank, wrong);
  }
  return wrong > 0;
}
