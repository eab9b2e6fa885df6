/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_LANES_H
#define LCOMM_ENGINE_LANES_H

/* Lanes: the streams of a communicator on a device, into which the tapes (tape.h) of all its runs
 * there are played, one after the other. A lane waits for lanes before it and for numbers that the
 * progress of messages writes, so the first one never waits for what has to come back from peers
 * before an operation is complete, and operations and chunks follow each other without a gap.
 *
 * Sequence spaces have lanes of their own: their operations may begin in another order on every
 * rank. So have calls that are captured into graphs (recording.h), one set for each capture at a
 * time: what is put there is done nowhere. */

#include "libcomm/engine/engine.h"
#include "libcomm/sched/lane.h"

typedef struct lcomm_lanes {
  struct lcomm_lanes *next;
  int ordinal; /* of the device */
  lcomm_sequence_space space;
  uint64_t capture; /* the last one that they were in; 0: they are in none, ever */
  void *stream[LCOMM_LANE_COUNT];
} lcomm_lanes;

/* The lanes of a sequence space on the device in use, `ordinal`; made when they are first asked
 * for. In the device's turn (device_turn.h). NULL, and *error: what CUDA has against it, or -1
 * without memory. */
const lcomm_lanes *lcomm_lanes_of(lcomm_comm *comm, int ordinal, lcomm_sequence_space space,
                                  int *error);

/* Lanes for calls in a capture of a program, `capture`: those of the call before in it, or others
 * that are in no capture, of `all`: comm->recordings has lists. Likewise. */
const lcomm_lanes *lcomm_lanes_captured(lcomm_lanes **all, int ordinal, uint64_t capture,
                                        int *error);

/* Wait until devices are through with all that was put there, calls and buckets: the host reads and
 * writes what they worked with. The caller has entered the communicator, and gives up its turn
 * meanwhile; what lanes wait for comes, or all has failed. */
void lcomm_lanes_finish(lcomm_comm *comm);

/* Part of lcomm_comm_free, after the runs. */
void lcomm_lanes_free(lcomm_comm *comm);

#endif
