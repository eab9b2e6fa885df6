/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_WORLD_H
#define LCOMM_TOOLS_PERF_PERF_WORLD_H

#include <stddef.h>

#include "libcomm.h"
#include "tools/perf/perf_options.h"

/* All ranks of the run: what the measurement itself needs of them. MPI does it
 * (under names that no preloaded library takes over: only what is measured may come
 * to one), or, where there is none, an exact communicator of libcomm. */
typedef struct lcomm_perf_world {
  const char *tool;
  int rank;
  int ranks;
  lcomm_comm *control; /* NULL: MPI */
} lcomm_perf_world;

/* Collective. On a failure, which every rank sees, says why and ends the
 * program with exit status 2. */
void lcomm_perf_world_begin(lcomm_perf_world *world, const lcomm_perf_options *options);
void lcomm_perf_world_end(lcomm_perf_world *world);

/* Collective: values of all ranks come together in all of them. */
void lcomm_perf_world_barrier(const lcomm_perf_world *world);
void lcomm_perf_world_sum(const lcomm_perf_world *world, double *values, size_t count);
void lcomm_perf_world_max(const lcomm_perf_world *world, double *values, size_t count);

/* Is this the first rank of its host? Collective. Hosts are told apart by name. */
int lcomm_perf_world_is_host_first(const lcomm_perf_world *world);

/* Make a communicator over all ranks to be measured. Collective. */
lcomm_status lcomm_perf_world_comm(const lcomm_perf_world *world, const lcomm_config *config,
                                   lcomm_comm **comm);

/* Why that failed. */
const char *lcomm_perf_world_comm_error(const lcomm_perf_world *world);

/* Say `sentence` and end the program with exit status 2: `stop` when this rank
 * is in trouble alone, which must not leave the others waiting; `stop_together`
 * when every rank comes here, so that all can end in order. */
_Noreturn void lcomm_perf_world_stop(lcomm_perf_world *world, const char *sentence);
_Noreturn void lcomm_perf_world_stop_together(lcomm_perf_world *world, const char *sentence);

/* From now on the first SIGINT or SIGTERM is only noted; a second one ends the
 * process at once. What is ignored stays ignored. */
void lcomm_perf_interrupt_watch(void);

/* The signal that came to this process; 0: none. */
int lcomm_perf_interrupt_signal(void);

#endif
