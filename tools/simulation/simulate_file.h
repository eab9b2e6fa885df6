/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_FILE_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_FILE_H

#include <stddef.h>

/* Read a whole file of at most `most` bytes; a zero follows them. NULL with a sentence in `why`
 * (SIMULATE_WHY_MAX bytes). Free with free(). */
char *simulate_file_read(const char *path, size_t most, size_t *length, char *why);

#endif
