/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_progress.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/topo/processors.h"
#include "libcomm/topo/topo.h"
#include "tools/info/info_ranks.h"

uint64_t info_processors_share(void) {
  int size = info_ranks();
  lcomm_identity identity;
  lcomm_processors mine;
  lcomm_identity_self(&identity);
  lcomm_processors_self(identity.host_hash, &mine);
  lcomm_processors *all = calloc((size_t)size, sizeof *all);
  if (!all) {
    info_ranks_abort(1);
    return 0;
  }
  info_gather(&mine, all, sizeof(mine));
  uint64_t share = lcomm_processors_share(all, size, info_rank());
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
