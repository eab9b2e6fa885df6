/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_BOOTSTRAP_ELASTIC_FLAT_H
#define LCOMM_TESTS_BOOTSTRAP_ELASTIC_FLAT_H

/* What communicators before leave behind. Included after elastic_crew.h. */

#include "tests/support/process_counts.h"

/* After 30 changes a rank has as many files, mappings of shared memory and as much memory as after
 * 10, but for what a broken communicator keeps, which messages may still read: 12 KiB for each.
 * `change` makes the next communicator, of `size` ranks on 2 nodes, and destroys the one before. */
static inline void stay_flat(lcomm_comm *comm, lcomm_comm *(*change)(lcomm_comm *, report *),
                             int size, report *mine) {
  int files = 0, mappings = 0;
  long kib = 0;
  for (int i = 0; comm && i < 30; i++) {
    (void)sums_up(comm, mine); /* unless another rank is further */
    if (i == 10) {
      files = count_files();
      mappings = count_mappings_of("memfd:libcomm");
      kib = resident_kib();
    }
    comm = change(comm, mine);
  }
  bool flat = comm && sums_up(comm, mine) && count_files() == files &&
              count_mappings_of("memfd:libcomm") == mappings && is_memory_flat(kib);
  if (comm && !flat) {
    print_error("%d files, then %d; %d mappings, then %d; %ld KiB, then %ld\n", files,
                count_files(), mappings, count_mappings_of("memfd:libcomm"), kib, resident_kib());
  }
  expect_work(comm, size, 2, mine);
  mine->good = mine->good && flat;
}

#endif
