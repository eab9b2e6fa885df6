/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/progress.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcomm/topo/processors.h"
#include "libcomm/topo/topo.h"

uint64_t info_processors_share(void) {
  int rank = 0, size = 1;
  lcomm_identity identity;
  lcomm_processors mine;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  lcomm_identity_self(&identity);
  lcomm_processors_self(identity.host_hash, &mine);
  lcomm_processors *all = calloc((size_t)size, sizeof(*all));
  if (!all) {
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 0;
  }
  MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
  uint64_t share = lcomm_processors_share(all, size, rank);
  free(all);
  return share;
}

void info_print_progress(uint64_t share, int ranks) {
  bool thread = ranks > 1 && share >= LCOMM_PROCESSORS_ENOUGH;
  printf("\nprogress     auto: %s; %llu.%02llu processors for each rank, a thread needs 2\n",
         thread      ? "by a thread, from the first call that does not block"
         : ranks > 1 ? "in calls"
                     : "in calls, as a single rank has nobody to wait for",
         (unsigned long long)(share / 100), (unsigned long long)(share % 100));
}
