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
  uint64_t work;         /* a computation: picoseconds; a message: bytes with its header */
  uint32_t peer;         /* of a message: rank */
  uint32_t message;      /* of a message: running number, as both ends know it */
  uint32_t partner;      /* of a SEND: the simulated rank that receives ... */
  uint32_t partner_step; /* ... and its step */
  uint32_t next_first, next_count;
  uint16_t waits_for;
  uint8_t kind;  /* lcomm_step_kind */
  uint8_t link;  /* of a message: class */
  bool is_paced; /* one of the few messages between nodes that may be in flight */
} simulate_step;

typedef struct simulate_program {
  simulate_step *steps;
  uint32_t step_count;
  uint32_t *next;                    /* steps that wait for a step: next[next_first ..] */
  simulate_time stage_in, stage_out; /* copies from the tensors and back */
  uint64_t data_size;                /* bytes of the vector */
  uint64_t memory_size;              /* of a run: slots, residual, and what the library keeps */
  char codec[48];                    /* between nodes */
  char reason[384];                  /* why this plan */
} simulate_program;

/* false with a sentence in `why`: no memory, or a step waits for too many. */
bool simulate_program_make(const lcomm_plan *plan, const lcomm_topo *topo,
                           const simulate_speeds *speeds, simulate_program *program, char *why);

void simulate_program_free(simulate_program *program);

#endif
