/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_PROGRAM_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_PROGRAM_H

/* What one rank does in one collective, ready to be simulated: the schedule of a plan of the
 * library, each computation with its time, each message with its bytes. */

#include "libcomm/plan/plan.h"
#include "tools/simulation/simulate_network.h"
#include "tools/simulation/simulate_speeds.h"

typedef struct simulate_step {
  uint64_t work; /* a computation: picoseconds, in memory; a message: bytes with its header */
  simulate_time cached;  /* a computation: picoseconds, in a cache */
  uint32_t peer;         /* of a message: rank */
  uint32_t message;      /* of a message: running number, as both ends know it */
  uint32_t partner;      /* of a message: the simulated rank at its other end ... */
  uint32_t partner_step; /* ... and its step */
  uint32_t next_first, next_count;
  float vector, residual; /* a computation: shares of these arrays that it touches */
  uint16_t waits_for;
  uint8_t kind;  /* lcomm_step_kind */
  uint8_t link;  /* of a message: class */
  bool is_paced; /* one of the few messages between nodes that may be in flight */
  bool is_again; /* a computation: on what the one before it has made */
} simulate_step;

/* A computation on the whole vector of a bucket. */
typedef struct simulate_pass {
  simulate_time memory, cache; /* picoseconds there */
} simulate_pass;

typedef struct simulate_program {
  simulate_step *steps;
  uint32_t step_count;
  uint32_t *next;                    /* steps that wait for a step: next[next_first ..] */
  simulate_pass stage_in, stage_out; /* copies from the tensors and back */
  simulate_pass fill;                /* a copy into the tensors */
  int block;                         /* nodes are visited in blocks of so many */
  uint64_t data_size;                /* bytes of the vector */
  uint64_t memory_size;              /* of a run: slots, residual, and what the library keeps */
  char codec[48];                    /* between nodes */
  char reason[512];                  /* why this plan */
} simulate_program;

/* cached: speeds of vectors in a cache; NULL: as `speeds`. false with a sentence in `why`: no
 * memory, or a step waits for too many. */
bool simulate_program_make(const lcomm_plan *plan, const lcomm_topo *topo,
                           const simulate_speeds *speeds, const simulate_speeds *cached,
                           simulate_program *program, char *why);

void simulate_program_free(simulate_program *program);

#endif
