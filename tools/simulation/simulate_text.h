/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_TEXT_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_TEXT_H

/* Numbers with units that simulate reads; false where the text is none, or out of range. */

#include <stdbool.h>
#include <stdint.h>

/* "20ms", "30us", "1.5s", "0"; up to 10,000 s. */
bool simulate_text_time(const char *text, double *seconds);

/* Parameters or tokens: "350M", "1G", powers of 1000. */
bool simulate_text_count(const char *text, double most, uint64_t *count);

#endif
