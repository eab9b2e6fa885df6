/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_PROCESSORS_H
#define LCOMM_TOPO_PROCESSORS_H

/* How many processors each rank has for itself, by affinity and by the quota of its
 * control group. */

#include <stddef.h>
#include <stdint.h>

/* ENOUGH: of a rank's own, in percent, for a progress thread beside the program. */
enum { LCOMM_PROCESSORS_MAX = 1024, LCOMM_PROCESSORS_ENOUGH = 200 };

/* What a rank says of itself; exchanged as plain bytes, no padding. */
typedef struct lcomm_processors {
  uint64_t allowed[LCOMM_PROCESSORS_MAX / 64]; /* a bit for each that it may run on */
  uint64_t machine;                            /* the same in all containers of a machine */
  uint64_t host;                               /* lcomm_identity.host_hash */
  uint64_t quota_percent;                      /* 100 is one processor; 0: no quota */
} lcomm_processors;

/* Of this process. host: its host_hash. Cannot fail: what cannot be read counts as
 * no processor, or no quota. */
void lcomm_processors_self(uint64_t host, lcomm_processors *mine);

/* Processors of a rank's own, in percent: of those that it may run on its part among the
 * ranks of its machine that may run there, too, and of a quota its part among the ranks
 * of its host; of all ranks of the machine the least, so that all find the same. */
uint64_t lcomm_processors_share(const lcomm_processors *all, int size, int rank);

/* The smallest quota of the control groups that this process is in, in percent of a
 * processor; 0: none. root: "" or, for tests, a folder that stands for /. */
uint64_t lcomm_cgroup_quota(const char *root);

#endif
