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
  size_t bytes; /* of malloc(), without the emulated device's notes; 0 where it cannot be said */
  long kib;     /* resident, which is for people: the system gives and takes whole pages */
} holding;

/* Not beside a thread that gets and frees memory at random. */
static inline size_t count_bytes(void) {
  if (getenv("EMULATED_CHURN")) {
    return 0;
  }
  size_t all = mallinfo2().uordblks, notes = emulated_notes_size();
  return all > notes ? all - notes : 0;
}

/* When the threads that end communicators are through, on all ranks, and what they have left on
 * devices is freed, as calls of NCCL do. */
static inline holding hold(void) {
  wait_for_threads();
  lcomm_device_free_deferred();
  MPI_Barrier(MPI_COMM_WORLD);
  return (holding){count_files(), count_threads(), count_bytes(), resident_kib()};
}

/* Ranks are ahead of each other, and so are the threads of one: how much is there wanders. So this
 * is the least after each of some more communicators, of each number for itself. */
static inline holding hold_least(void (*make_and_free)(void *context), void *context) {
  enum { LOOKS = 12 };
  holding least = hold();
  for (int i = 0; i < LOOKS; i++) {
    make_and_free(context);
    holding now = hold();
    least.files = now.files < least.files ? now.files : least.files;
    least.threads = now.threads < least.threads ? now.threads : least.threads;
    least.bytes = now.bytes < least.bytes ? now.bytes : least.bytes;
    least.kib = now.kib < least.kib ? now.kib : least.kib;
  }
  return least;
}

/* What each communicator left would be there 200 times. The heap may wander by so much. */
static inline void leave_at_most(size_t wanders, void (*make_and_free)(void *context),
                                 void *context) {
  enum { MANY = 300, OF_LAST = 8 };
  const char *wish = getenv("NCCL_COMMUNICATORS");
  int many = wish ? atoi(wish) : MANY, warm = many / 3;
  for (int i = 0; i < warm; i++) {
    make_and_free(context);
  }
  holding first = hold_least(make_and_free, context);
  for (int i = warm; i < many; i++) {
    make_and_free(context);
  }
  holding last = hold_least(make_and_free, context);
  printf("# rank %d: after %d and %d communicators %d and %d files, %d and %d threads, %zu and %zu "
         "bytes, %ld and %ld KiB resident\n",
         mpi_rank, warm, many, first.files, last.files, first.threads, last.threads, first.bytes,
         last.bytes, first.kib, last.kib);
  require(last.files <= first.files + OF_LAST, "%d files are open, not %d", last.files,
          first.files);
  require(last.threads <= first.threads + OF_LAST, "%d threads run, not %d", last.threads,
          first.threads);
  require(last.bytes <= first.bytes + wanders, "%zu bytes, after %zu", last.bytes, first.bytes);
}

/* malloc's own bookkeeping is a few KiB. */
static inline void leave_nothing(void (*make_and_free)(void *context), void *context) {
  leave_at_most(24 << 10, make_and_free, context);
}

#endif
