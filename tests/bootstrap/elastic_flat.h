/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_BOOTSTRAP_ELASTIC_FLAT_H
#define LCOMM_TESTS_BOOTSTRAP_ELASTIC_FLAT_H

/* What communicators before leave behind. Included after elastic_crew.h. */

#include "tests/support/process_counts.h"

/* What a rank holds. */
typedef struct holdings {
  int files, mappings;
  long heap, resident; /* KiB */
} holdings;

static inline holdings count_holdings(void) {
  return (holdings){count_files(), count_mappings_of("memfd:libcomm"), heap_kib(), resident_kib()};
}

/* Malloc's bookkeeping wanders by a few KiB, and a rank that another one is ahead of has not made
 * the slots of its sum: up to three times its numbers. Malloc may also hold some that were freed.
 * What a change left would be counted 80 times. */
static inline bool are_no_more(const holdings *now, const holdings *before) {
  long slots = 3 * crew_count * (long)sizeof(float) / 1024;
  return now->files <= before->files && now->mappings <= before->mappings &&
         now->heap <= before->heap + 24 + slots &&
         is_memory_within(before->resident + 2048 + 3 * slots);
}

/* After 100 changes a rank has as many files, mappings of shared memory and as much memory as after
 * 20. `change` makes the next communicator, of `size` ranks on 2 nodes, and destroys the one
 * before. */
static inline void stay_flat(lcomm_comm *comm, lcomm_comm *(*change)(lcomm_comm *, report *),
                             int size, report *mine) {
  enum { CHANGES = 100, FIRST = 20 };
  holdings first = {0}, last = {0};
  for (int i = 0; comm && i <= CHANGES; i++) {
    (void)sums_up(comm, mine); /* unless another rank is further */
    last = count_holdings();
    first = i == FIRST ? last : first;
    comm = i < CHANGES ? change(comm, mine) : comm;
  }
  bool flat = comm && are_no_more(&last, &first);
  if (comm && !flat) {
    print_error(
        "%d files, then %d; %d mappings, then %d; heap %ld KiB, then %ld; resident %ld KiB, "
        "then %ld\n",
        first.files, last.files, first.mappings, last.mappings, first.heap, last.heap,
        first.resident, last.resident);
  }
  expect_work(comm, size, 2, mine);
  mine->good = mine->good && flat;
}

#endif
