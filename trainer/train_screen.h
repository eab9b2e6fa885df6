/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_SCREEN_H
#define TRAINER_TRAIN_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* How the screen writes: colours where there are some, numbers, plurals. */

#define SCREEN_MEGA 1e6
/* Before the second line of what has a label. */
#define SCREEN_INDENT "            "

/* Does a person look at it while it is written? */
bool screen_is_live(void);

/* What switches to bold or green, and back; empty without colours. */
const char *screen_bold(void);
const char *screen_green(void);
const char *screen_plain(void);

/* 60000 as "60,000"; returns text. */
enum { SCREEN_COUNT_SIZE = 32 };
const char *screen_count(uint64_t value, char text[SCREEN_COUNT_SIZE]);

/* "s", but for one. */
const char *screen_plural(int count);

#endif
