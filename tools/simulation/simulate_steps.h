/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_STEPS_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_STEPS_H

/* A program that is written step by step, where no plan of the library has one. */

#include "tools/simulation/simulate_program.h"

/* Zeros are one without steps. */
typedef struct simulate_steps {
  simulate_step *steps;
  uint32_t count, room;
  uint32_t *pairs; /* a step, and one that waits for it */
  uint32_t pair_count, pair_room;
  bool broken; /* memory ended */
} simulate_steps;

/* Its number. Where steps are ready together, the one that was added first comes first. */
uint32_t simulate_steps_add(simulate_steps *steps, simulate_step step);

/* `later` waits for `earlier`. */
void simulate_steps_order(simulate_steps *steps, uint32_t earlier, uint32_t later);

/* The program takes the steps over; nothing is left here. false, with a sentence in `why`: memory
 * ended, or a step waits for too many. */
bool simulate_steps_finish(simulate_steps *steps, simulate_program *program, char *why);

#endif
