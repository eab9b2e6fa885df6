/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TERMINAL_H
#define TRAINER_TERMINAL_H

#include <stdbool.h>

/* Is somebody watching standard output? Then lines may be drawn again. */
bool terminal_is_live(void);

/* Live, and colours are not refused (NO_COLOR, TERM=dumb). */
bool terminal_has_colours(void);

#endif
