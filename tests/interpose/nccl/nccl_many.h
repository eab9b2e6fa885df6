/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_MANY_H
#define LCOMM_TESTS_NCCL_MANY_H

/* Communicators that come and go leave no memory, no descriptor and no thread behind.
 * NCCL_COMMUNICATORS=10000 makes as many. Included by one program each. */

#include <malloc.h>
#include <stdlib.h>

#include "tests/interpose/nccl/nccl_world.h"
#include "tests/support/process_counts.h"

typedef struct holding {
  int files, threads;
  size_t bytes; /* of malloc(); 0 under a sanitizer that takes its place */
  long kib;     /* resident, which is for people: the system gives and takes whole pages */
} holding;

/* When the threads that end communicators are through, on all ranks. */
static inline holding hold(void) {
  wait_for_threads();
  MPI_Barrier(MPI_COMM_WORLD);
  return (holding){count_files(), count_threads(), mallinfo2().uordblks, resident_kib()};
}

/* The emulated device keeps a note of all memory that it gave. */
static inline void leave_nothing(void (*make_and_free)(void *context), void *context) {
  enum { MANY = 300, BYTES_EACH = 4096, OF_LAST = 8 };
  const char *wish = getenv("NCCL_COMMUNICATORS");
  int many = wish ? atoi(wish) : MANY, warm = many / 3;
  for (int i = 0; i < warm; i++) {
    make_and_free(context);
  }
  holding first = hold();
  for (int i = warm; i < many; i++) {
    make_and_free(context);
  }
  holding last = hold();
  printf("# rank %d: after %d and %d communicators %d and %d files, %d and %d threads, %zu and %zu "
         "bytes, %ld and %ld KiB resident\n",
         mpi_rank, warm, many, first.files, last.files, first.threads, last.threads, first.bytes,
         last.bytes, first.kib, last.kib);
  require(last.files <= first.files + OF_LAST, "%d files are open, not %d", last.files,
          first.files);
  require(last.threads <= first.threads + OF_LAST, "%d threads run, not %d", last.threads,
          first.threads);
  require(last.bytes <= first.bytes + (size_t)(many - warm) * BYTES_EACH, "%zu bytes, after %zu",
          last.bytes, first.bytes);
}

#endif
