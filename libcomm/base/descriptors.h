/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_DESCRIPTORS_H
#define LCOMM_BASE_DESCRIPTORS_H

/* File descriptors: how many this process may open, and how many it still can. */

#include <stddef.h>

/* Raise the soft limit of open files (RLIMIT_NOFILE) to the hard one. Once per
 * process: who lowers it afterwards keeps what was set. */
void lcomm_descriptors_raise(void);

/* The soft limit, at most INT_MAX. */
int lcomm_descriptors_limit(void);

/* How many more can be opened now: what is open below the limit counts. */
int lcomm_descriptors_free(void);

enum { LCOMM_DESCRIPTORS_TEXT_MAX = 256 };

/* Of a process that has this limit, so many left, and needs more: "it can open 3
 * more file descriptors (its limit is 20), and WHAT needs 9; start it with `ulimit
 * -n 26` ...", which lets it open `wanted`. Returns the text
 * (LCOMM_DESCRIPTORS_TEXT_MAX bytes). */
const char *lcomm_descriptors_lack(int limit, int left, int needed, int wanted, const char *what,
                                   char *text);

#endif
